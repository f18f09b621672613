"""The agenda of one path: the steps that its rows still need, and which of them can run now.

Predicates, table functions, temporal filters and computed columns run as soon as their columns are bound, with one
exception: a step that may fail runs where its failure is reported (see `planner.fallibility`).
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy

from halfjoin.planner.block import Aliases, Block, Function, Input, Known, expressions
from halfjoin.planner.fallibility import explode_fallible, formula_fallible
from halfjoin.planner.linear import Combination, Explode, Extend, Filter, Formula, Static, Step, Temporal
from halfjoin.planner.links import Links, equality
from halfjoin.planner.plan import InputKind
from halfjoin.sql.expr import Column, Expr, Literal, columns_of
from halfjoin.sql.functions import fallible, render

Admits = Callable[[Aliases], bool]


class Agenda:
    """The steps of a block that one path has not run yet. Methods return the steps that are due, and remove them."""

    def __init__(self, block: Block) -> None:
        self.block, self.owners = block, block.owners
        self.present: set[str] = set()
        self.bound: set[str] = set()
        self.links = Links(block.classes)
        self.computed: dict[Expr, Column] = {}  # equality members that are columns now
        self._predicates = list(block.conditions)
        self._temporal = list(block.temporal)
        self._functions = list(block.functions)
        self._outputs = dict(block.early)
        self._early: set[str] = set()

    def copy(self) -> Agenda:
        """Another agenda of the same path, that goes on by itself."""
        other = copy(self)
        other.present, other.bound, other.links = set(self.present), set(self.bound), self.links.copy()
        other.computed, other._outputs, other._early = dict(self.computed), dict(self._outputs), set(self._early)
        other._predicates, other._temporal = list(self._predicates), list(self._temporal)
        other._functions = list(self._functions)
        return other

    @property
    def state(self) -> object:
        """What the rest of the path depends on: two agendas with equal states go on in the same way."""
        return (self.bound, self.present, self.computed, self._early, self._outputs, self._predicates, self._temporal,
                self._functions, self.links.equal)  # fmt: skip

    def arrive(self, item: Input, *, report: bool, used: tuple[Expr, ...] = ()) -> list[Step]:
        """The steps that read one input alone, due once its columns are bound. They are the same in every path.

        `report`: compute every equality member that may fail, so that the failure is reported. Without it, skip the
        members that the lookup `used`: the lookup does not find a row whose key fails.

        For an input that is not plain, no predicate, temporal filter or table function runs here. A step that reads a
        padded input's columns also reads its default row; if it may fail, it fails on complete rows.
        """
        self.bound.add(item.alias)
        self.links.arrive(item.alias)
        self.present |= {column.name for column in item.columns}
        alone = frozenset({item.alias})
        plain = item.kind is InputKind.PLAIN
        steps = self._due(lambda inputs: inputs == alone, fallible_too=True) if plain else []
        return steps + self._members(alone, () if report else used)

    def spread(self) -> list[Step]:
        """The steps over several inputs that can run now and cannot fail; of a block that dares also those that compute
        what is compared."""
        steps = self._due(lambda inputs: inputs <= self.bound, fallible_too=False)
        if self.block.dares and (made := self._compared(lambda known: len(known.inputs) > 1 and self.usable(known))):
            steps += [Extend(made, members=True), *self._due(lambda inputs: inputs <= self.bound, fallible_too=False)]
        ready = {column: expr for column, expr in self._outputs.items() if self._has(columns_of(expr))}
        for column in ready:
            del self._outputs[column]
        if ready:
            steps.append(Extend(tuple(ready.items())))
            self._early |= {column.name for column in ready}
        return steps

    def finish(self) -> list[Step]:
        """The remaining steps, which run on complete rows, and the view's columns."""
        steps = self._due(lambda inputs: True, fallible_too=True)
        items = tuple((column, expr) for column, expr in self.block.outputs if column.name not in self._early)
        return [*steps, Extend(items)] if items else steps

    def usable(self, member: Known) -> bool:
        """Whether an equality member can be computed from the inputs and columns that are bound."""
        return member.inputs <= self.bound and self._has(member.columns)

    def value(self, member: Expr) -> Expr:
        """An equality member, as its column if it has been computed."""
        return self.computed.get(member, member)

    def _has(self, names: frozenset[str]) -> bool:
        return names <= self.present

    def _due(self, admits: Admits, fallible_too: bool) -> list[Step]:
        """The steps until none is due: filters, then temporal filters, then table functions, which add columns."""
        steps: list[Step] = []
        while True:
            size = len(steps)
            for risky in (False, True) if fallible_too else (False,):
                self._filters(steps, admits, risky)
                self._temporals(steps, admits, risky)
                self._explodes(steps, admits, risky)
                if len(steps) > size:
                    break
            if len(steps) == size:
                return steps

    def _filters(self, steps: list[Step], admits: Admits, risky: bool) -> None:
        due: list[Expr] = []
        later: list[Known] = []
        for known in self._predicates:
            if known.fallible is risky and self._has(known.columns) and admits(known.inputs):
                due.append(known.expr)
            else:
                later.append(known)
        self._predicates = later
        for position, left, right in self.links.missing(lambda member: self._linkable(member, admits, risky)):
            null_safe = self.block.equalities[position].null_safe
            due.append(equality(self.value(left), self.value(right), null_safe))
        if due:
            steps.append(Filter(tuple(due)))

    def _linkable(self, member: Known, admits: Admits, risky: bool) -> bool:
        if isinstance(member.expr, Literal):
            return True
        if not self._has(member.columns) or (member.fallible and not risky and member.expr not in self.computed):
            return False
        return admits(member.inputs)

    def _temporals(self, steps: list[Step], admits: Admits, risky: bool) -> None:
        due = []
        for formula in list(self._temporal):
            names = frozenset[str]().union(*(columns_of(expr) for expr in expressions(formula)))
            inputs = frozenset[str]().union(*(self.owners[name] for name in names))
            if formula_fallible(formula) is risky and self._has(names) and admits(inputs):
                due.append(formula)
                self._temporal.remove(formula)
        if due:
            steps.append(Temporal(_all([*_taken_back(steps), *due] if risky else due)))

    def _explodes(self, steps: list[Step], admits: Admits, risky: bool) -> None:
        for function in list(self._functions):
            names = frozenset[str]().union(*(columns_of(arg) for arg in function.step.args))
            if explode_fallible(function.step) is risky and self._has(names) and admits(function.inputs):
                steps.append(function.step)
                self._functions.remove(function)
                self.present |= {column.name for column in function.columns}

    def _members(self, alone: Aliases, used: tuple[Expr, ...]) -> list[Step]:
        """Compute as columns the equality members and probes that read this input alone and may fail."""
        items = self._compared(lambda known: known.inputs == alone and known.expr not in used)
        return [Extend(items, members=True)] if items else []

    def _compared(self, admits: Callable[[Known], bool]) -> tuple[tuple[Column, Expr], ...]:
        """Columns of the equality members and probes that may fail, and have none yet."""
        items: list[tuple[Column, Expr]] = []
        every = (known for members in (*self.block.classes, *self.block.probes.values()) for known in members)
        for member in dict.fromkeys(known.expr for known in every if known.fallible and admits(known)):
            if member not in self.computed:
                column = Column(self._name(member), member.type)
                items.append((column, member))
                self.computed[member] = column
        self.present |= {column.name for column, _ in items}
        return tuple(items)

    def _name(self, expr: Expr) -> str:
        name = f"={render(expr)}"  # no collection has a column of this name
        taken = {column.name for column in self.computed.values()}
        while name in self.owners or name in taken:  # members that differ only in an implied cast render alike
            name += "'"
        return name


def _taken_back(steps: list[Step]) -> list[Formula]:
    """Take the predicates that may fail out of the filter just before, to put them into a temporal filter that may
    fail. At a time at which the temporal filter is false, they do not make the row an error."""
    last = steps[-1] if steps else None
    if not isinstance(last, Filter):
        return []
    steps.pop()
    safe = tuple(predicate for predicate in last.predicates if not fallible(predicate))
    if safe:
        steps.append(Filter(safe))
    return [Static(predicate) for predicate in last.predicates if fallible(predicate)]


def _all(formulas: list[Formula]) -> Formula:
    return formulas[0] if len(formulas) == 1 else Combination("and", tuple(formulas))


def through(block: Block, item: Input, member: Expr) -> tuple[Step, ...]:
    """The steps that compute the columns of `member` from an input's row: table functions and infallible filters."""
    steps = Agenda(block).arrive(item, report=False)
    wanted = columns_of(member)
    functions: list[Explode] = []
    for step in reversed(steps):
        if isinstance(step, Explode) and wanted & _made(step):
            wanted = wanted.union(*(columns_of(arg) for arg in step.args))
            functions.append(step)
    kept: list[Step] = []
    present = {column.name for column in item.columns}
    for step in steps[: steps.index(functions[0]) + 1]:
        if isinstance(step, Filter):
            safe = tuple(p for p in step.predicates if not fallible(p) and columns_of(p) <= present)
            kept += [Filter(safe)] if safe else []
        elif isinstance(step, Explode) and step in functions:
            kept.append(step)
            present |= _made(step)
    return tuple(kept)


def _made(step: Explode) -> set[str]:
    return {column.name for column in Function(step).columns}
