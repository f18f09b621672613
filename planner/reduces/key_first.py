"""Queries: GROUP BY columns of tables that are joined by their unique keys groups by these keys first.

In `SELECT c.name, c.country, sum(s.price) FROM sale s JOIN customer c ON c.id = s.customer GROUP BY c.name, c.country`
all rows of one customer are in one group. So a first reduce adds the rows of `sale` up by `s.customer`, without the
join. Its groups are joined with `customer`, and a second reduce adds them up by the texts. The first adds up integers
for each row; only the few groups are joined and have texts. Several tables may be joined so late: the first reduce then
groups by all their keys.

What the reduces hand on are kept sums, which are exact. So the results are those of one reduce, also of averages and
floats. A group whose key is NULL or has no partner finds none in the join, as its rows would not.

A sum may depend on the late tables, too, if it does not count a row: `sum(CASE WHEN d.day = 1 THEN s.price END)` is
the sum of `s.price` by the first key, which counts where the condition holds.

Conditions on a late table leave out rows of the others. Such a table is joined twice: its rows that meet the conditions
are few, so they are joined below the first reduce as well, where each row has one partner or none.

Aggregates without groups that differ in the conditions on one table, as `SELECT count(*) ... WHERE hour = 8` beside one
with `hour = 9`, read the same groups of its keys. So one first reduce reads the rows for all of them.

What is put before the late join may fail for rows without a partner, for which the query does not compute it. Then the
query is asked again, with one reduce: whatever fails there has failed before, too.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import isqrt, prod
from typing import NamedTuple, TypeAlias, TypeGuard

from halfjoin.planner.facts import Facts
from halfjoin.planner.group_functions import Aggregates, Sums
from halfjoin.planner.predicates import fewest, told
from halfjoin.planner.reduces.coarser import added_up
from halfjoin.planner.reduces.items import Columns, Lowered
from halfjoin.planner.reduces.lower import lowered
from halfjoin.planner.reduces.parted import parted
from halfjoin.planner.rules.fold_constants import fold
from halfjoin.planner.rules.inline import inlined
from halfjoin.sql.bind.context import Aliases
from halfjoin.sql.bind.reading import expressions
from halfjoin.sql.expr import (
    Call,
    Column,
    Expr,
    Literal,
    columns_of,
    conjunction,
    conjuncts,
    is_temporal,
    replaced,
    rewrite,
)
from halfjoin.sql.functions import fallible
from halfjoin.sql.relation import Aggregate, Filter, Join, Project, Relation, Scan, every_part
from halfjoin.sql.types import BIGINT, BYTEA, STRINGS, looks_vary

_PAYS = 4  # so many rows for each row of the joined table, at least
_LESS = 2  # so many rows for each group of the first reduce, at least, if conditions leave out as many of both
_FEW = 16  # so many rows for each group, at least, if a table only has to be joined with groups instead of rows
_SHARED = 4  # so many aggregates must share a first reduce, at least, if they have no groups
_COLUMNS = 2  # keys of groups and conditions of sums that are its own, at least, or one text
_Link: TypeAlias = tuple[Column, Expr]  # a column of a late table, and what it is equal to of the others


@dataclass(frozen=True, slots=True)
class _Part:
    """A kept sum of the first reduce. `gate`: of the joined tables, whether it counts."""

    kind: str
    args: tuple[Expr, ...]
    gate: Expr | None


@dataclass(frozen=True, slots=True)
class KeyFirst:
    """`rows`: what the first reduce takes, `keys` of whose columns are its keys."""

    rows: Project
    keys: int
    low: Lowered
    joined: tuple[Scan, ...]
    condition: Expr
    shown: tuple[Expr, ...]  # the keys of the second reduce, over the joined tables and the first one's keys
    dares: bool  # whether something may fail
    parts: tuple[_Part, ...]

    def first(self, columns: Columns) -> Aggregates:
        """The function of the first reduce, over its input's columns."""
        taken = {column.name for column in columns}
        place = {expr: number for number, (_, expr) in enumerate(self.rows.items)}
        names = (name for number in range(len(columns) + len(self.parts) + 1)
                 for name in [f"#first:{number}"] if name not in taken)  # fmt: skip
        count = Column(next(names), BIGINT, nullable=False)
        return Aggregates(count, tuple(
            Sums(Column(next(names), BIGINT if kind == "count" else BYTEA), kind,
                 tuple(columns[place[arg]] for arg in args))
            for kind, args in self._sums()))  # fmt: skip

    def second(self, scan: Scan) -> Project:
        """What the second reduce takes, given a scan of the first one's output: the keys, the count, and the sums."""
        keys = {expr: column for (_, expr), column in zip(self.rows.items, scan.columns[: self.keys], strict=False)}
        count, *sums = scan.columns[self.keys :]
        by_sum = dict(zip(self._sums(), sums, strict=True))
        kept = [_gated(part.gate, by_sum[part.kind, part.args]) for part in self.parts]
        items = [*(replaced(expr, keys) for expr in self.shown), count, *kept]
        joined = Filter(Join((scan, *self.joined)), replaced(self.condition, keys))
        return Project(joined, tuple((Column(f"first.{number}", expr.type), expr) for number, expr in enumerate(items)))

    def function(self, columns: Columns) -> Aggregates:
        """The function of the second reduce, over its input's columns: it adds kept sums up."""
        return added_up(self.low, columns)

    def _sums(self) -> list[tuple[str, tuple[Expr, ...]]]:
        """The different sums that the first reduce keeps."""
        return [*dict.fromkeys((part.kind, part.args) for part in self.parts)]


def key_first(relation: Aggregate, low: Lowered, facts: Facts) -> KeyFirst | None:
    """How to group by keys first; None if there are no such keys, or it would not pay."""
    grouped, found = _grouped(low, facts) if low.keys else None, None
    if grouped is None:
        return None
    for scan in sorted(filter(_is_scan, grouped.inputs), key=lambda one: facts.rows(one.collection)):
        made = grouped.by((*(() if found is None else found.joined), scan))
        found = found if made is None else made
    return found


def shared_first(aggregates: Iterable[Aggregate], facts: Facts) -> dict[Aggregate, KeyFirst]:
    """How to group by a key first, for aggregates without groups of which many take the same groups of the key."""
    alone = [part for part in dict.fromkeys(aggregates) if not part.keys and parted(part, Aliases()) is None]
    found = dict[Hashable, dict[Aggregate, KeyFirst]]()
    for part in alone if len(alone) >= _SHARED else ():
        grouped = _grouped(lowered(part), facts)
        for scan in () if grouped is None else filter(_is_scan, grouped.inputs):
            made = None if grouped is None else grouped.by((scan,), shared=True)
            if made is not None:
                found.setdefault(_form(made.rows), {})[part] = made
    chosen = dict[Aggregate, KeyFirst]()
    for each in sorted(found.values(), key=len):
        if len(each) >= _SHARED:
            chosen |= each
    return chosen


class _Joined(NamedTuple):
    """The inputs of an inner join and its conditions. `meanings`: of the columns that projections below it compute."""

    inputs: list[Relation]
    conditions: list[Expr]
    meanings: dict[str, Expr]


@dataclass(frozen=True, slots=True)
class _Grouped:
    """Rows of a join that are grouped. `shown`: the keys. `values`: about how many a column has that keys read."""

    low: Lowered
    inputs: Sequence[Relation]
    conditions: Sequence[Expr]
    shown: tuple[Expr, ...]
    sums: Sequence[tuple[str, tuple[Expr, ...]]]
    dares: bool
    values: Callable[[str], int]
    facts: Facts

    def by(self, late: tuple[Scan, ...], *, shared: bool = False) -> KeyFirst | None:
        """How to group by the keys of these tables first. `shared`: as aggregates do that have other conditions on
        them."""
        names = _names(late)
        own = {scan.alias: [one for one in self.conditions if columns_of(one) and columns_of(one) <= _names((scan,))]
               for scan in late}  # fmt: skip
        tested = [one for each in own.values() for one in each]
        about = [one for one in self.conditions if columns_of(one) & names and one not in tested]
        rest = [one for one in self.conditions if not columns_of(one) & names]
        probes = [_probe(one, names) for one in about]
        before = [one for one in self.shown if columns_of(one) and not columns_of(one) & names]
        after = [one for one in self.shown if columns_of(one) and columns_of(one) <= names]
        mixed = any(one not in before and one not in after for one in self.shown if columns_of(one))
        found = [_part(kind, args, names) for kind, args in self.sums]
        parts = tuple(part for part in found if part is not None)
        if None in probes or mixed or len(parts) < len(found):
            return None
        links = tuple(one for one in probes if one is not None)
        keys = [*dict.fromkeys((*(one[1] for one in links), *before))]
        if any(looks_vary(expr.type) for expr in keys):
            return None
        others = tuple(one for one in self.inputs if one not in late)
        groups, most = self._groups(late, before), _most(others, self.facts)
        if groups * _LESS > most or not all(self._pays(scan, links, others) for scan in late):
            return None
        few = groups * _FEW <= most
        if not all(bool(own[scan.alias]) if shared else _costs(scan, after, parts) or (few and not own[scan.alias])
                   for scan in late):  # fmt: skip
            return None
        items = [*dict.fromkeys((*keys, *(arg for part in parts for arg in part.args)))]
        twice = [scan for scan in late if own[scan.alias] and not shared]
        below = (*others, *twice)
        also = [one for scan in twice for one in (*own[scan.alias], *_about(about, scan))]
        joined: Relation = below[0] if len(below) == 1 else Join(below)
        tests = conjunction((*rest, *also))
        rows = Project(Filter(joined, tests) if rest or also else joined, tuple(
            (Column(f"group.{number}", expr.type, not isinstance(expr, Column) or expr.nullable), expr)
            for number, expr in enumerate(items)))  # fmt: skip
        return KeyFirst(rows, len(keys), self.low, late, conjunction((*about, *tested)), self.shown,
                        self.dares, parts)  # fmt: skip

    def _pays(self, scan: Scan, links: Iterable[_Link], others: Iterable[Relation]) -> bool:
        """Whether a table has one row for many of the others."""
        names = _names((scan,))
        bare = {column.name.removeprefix(f"{scan.alias}.") for column, _ in links if column.name in names}
        if not any(bare >= {*key} for key in self.facts.unique_keys(scan.collection)):
            return False
        return _PAYS * max(1, self.facts.rows(scan.collection)) <= _most(others, self.facts)

    def _groups(self, late: Iterable[Scan], before: Iterable[Expr]) -> int:
        """About how many groups the first reduce has, if no condition on the late tables leaves any out."""
        groups = prod(max(1, self.facts.rows(scan.collection)) for scan in late)
        return groups * prod(self.values(name) for name in frozenset[str]().union(*map(columns_of, before)))


def _grouped(low: Lowered, facts: Facts) -> _Grouped | None:
    """The rows that are grouped and added up; None: they are no inner join, or more is done with them."""
    function, joined = low.function(low.input.columns), _joined(low.input.input)
    if not isinstance(function, Aggregates) or function.ordered or joined is None or any(map(is_temporal, _exprs(low))):
        return None
    meaning = {column.name: inlined(expr, joined.meanings) for column, expr in low.input.items}
    conditions = [inlined(one, joined.meanings) for one in joined.conditions]
    read = frozenset[str]().union(*map(columns_of, (*meaning.values(), *conditions)))
    if not read <= _names(joined.inputs):  # a column has another name somewhere
        return None
    sums = [(part.kind, tuple(meaning[column.name] for column in part.args)) for part in function.sums]
    shown = tuple(meaning[column.name] for column, _ in low.input.items[: low.keys])
    places = {column.name: one for one in _scans(joined.inputs) for column in one.columns}
    folded = [fold(one) for one in conditions]
    equal, alone = fewest(*map(told, folded)), [columns_of(one) for one in folded]

    def values(name: str) -> int:
        one = places.get(name)
        known = None if one is None else facts.values(one.collection, name.removeprefix(f"{one.alias}."))
        asked = [len(constants) for expr, constants in equal.items() if isinstance(expr, Column) and expr.name == name]
        known = isqrt(known) if known and not asked and {name} in alone else known  # as many as a range leaves, perhaps
        return max(1, min([*asked, known or 1]))

    return _Grouped(low, joined.inputs, conditions, shown, sums,
                    any(fallible(fold(one)) for one in _exprs(low)), values, facts)  # fmt: skip


def _costs(scan: Scan, after: Iterable[Expr], parts: Iterable[_Part]) -> bool:
    """Whether a table has columns that cost more than a key."""
    names = _names((scan,))
    own = [expr for expr in after if columns_of(expr) & names]
    gates = sum(part.gate is not None and bool(columns_of(part.gate) & names) for part in parts)
    return len(own) + gates >= _COLUMNS or any(map(_is_text, own))


def _form(rows: Project) -> Hashable:
    """What rows are, whatever their inputs are called. Equal forms have the same name as a node."""
    scans = _scans((rows,))
    new = {column.name: f"{number}.{column.name.removeprefix(scan.alias)}"
           for number, scan in enumerate(scans) for column in scan.columns}  # fmt: skip
    exprs = [*(expr for _, expr in rows.items), *_exprs_below(rows.input)]
    told = (rewrite(expr, lambda node: replace(node, name=new.get(node.name, node.name))
                    if isinstance(node, Column) else node) for expr in exprs)  # fmt: skip
    return tuple(scan.collection for scan in scans), tuple(told)


def _names(inputs: Iterable[Relation]) -> frozenset[str]:
    return frozenset(column.name for one in inputs for column in one.columns)


def _is_scan(relation: Relation) -> TypeGuard[Scan]:
    return isinstance(relation, Scan)


def _about(conditions: Iterable[Expr], scan: Scan) -> list[Expr]:
    names = _names((scan,))
    return [one for one in conditions if columns_of(one) & names]


def _most(inputs: Iterable[Relation], facts: Facts) -> int:
    """The rows of the largest collection."""
    return max((facts.rows(one.collection) for one in _scans(inputs)), default=0)


def _scans(inputs: Iterable[Relation]) -> list[Scan]:
    return [part for one in inputs for part in every_part(one) if isinstance(part, Scan)]


def _joined(relation: Relation) -> _Joined | None:
    """What an inner join is made of; None: it is something else."""
    match relation:
        case Scan():
            return _Joined([relation], [], {})
        case Filter(input, predicate):
            made = _joined(input)
            return None if made is None else made._replace(conditions=[*made.conditions, *conjuncts(predicate)])
        case Project(input, items):
            made = _joined(input)
            if made is None:
                return None
            own = {column.name: inlined(expr, made.meanings) for column, expr in items}
            return made._replace(meanings={**made.meanings, **own})
        case Join(inputs):
            each = [(one, _joined(one)) for one in inputs]
            return _Joined([one for input, made in each for one in ([input] if made is None else made.inputs)],
                           [one for _, made in each if made is not None for one in made.conditions],
                           {key: expr for _, made in each if made is not None for key, expr in made.meanings.items()},
                           )  # fmt: skip
        case _:
            return None


def _exprs(low: Lowered) -> Iterator[Expr]:
    yield from (expr for _, expr in low.input.items)
    yield from _exprs_below(low.input.input)


def _exprs_below(relation: Relation) -> Iterator[Expr]:
    for part in every_part(relation):
        yield from expressions(part)


def _probe(condition: Expr, names: frozenset[str]) -> _Link | None:
    """A column of the late tables, and what it is equal to of the other inputs; None: it is another condition."""
    if isinstance(condition, Call) and condition.function == "=":
        for column, expr in (condition.args, condition.args[::-1]):
            read = columns_of(expr)
            if isinstance(column, Column) and column.name in names and read and not read & names:
                return column, expr
    return None


def _part(kind: str, exprs: Sequence[Expr], names: frozenset[str]) -> _Part | None:
    """The kept sum of the first reduce for one of the second; None: it depends on the late tables otherwise."""
    args, gates = list[Expr](), list[Expr]()
    for arg in exprs:
        match arg:
            case expr if columns_of(expr) and not columns_of(expr) & names:
                args.append(expr)
            case Call("case", (gate, expr) | (gate, expr, Literal(None))) if (
                columns_of(gate) <= names and columns_of(expr) and not columns_of(expr) & names
            ):
                args.append(expr)
                gates.append(gate)
            case _:
                return None
    return _Part(kind, tuple(args), conjunction(tuple(dict.fromkeys(gates))) if gates else None)


def _gated(gate: Expr | None, column: Column) -> Expr:
    return column if gate is None else Call("case", (gate, column, Literal(None, column.type)), column.type)


def _is_text(expr: Expr) -> bool:
    return expr.type.kind in STRINGS
