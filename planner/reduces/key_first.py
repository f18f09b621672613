"""Queries: GROUP BY columns of a table that is joined by its unique key groups by the key first.

In `SELECT c.name, c.country, sum(s.price) FROM sale s JOIN customer c ON c.id = s.customer GROUP BY c.name, c.country`
all rows of one customer are in one group. So a first reduce adds the rows of `sale` up by `s.customer`, without the
join. Its groups are joined with `customer`, and a second reduce adds them up by the texts. The first adds up integers
for each row; only the few groups are joined and have texts.

What the reduces hand on are kept sums, which are exact. So the results are those of one reduce, also of averages and
floats. A group whose key is NULL or has no partner finds none in the join, as its rows would not.

A sum may depend on the joined table, too, if it does not count a row: `sum(CASE WHEN d.day = 1 THEN s.price END)` is
the sum of `s.price` by the first key, which counts where the condition holds.

Nothing that is put before the join may fail, since rows without a partner would fail there, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from halfjoin.planner.facts import Facts
from halfjoin.planner.group_functions import Aggregates, Sums
from halfjoin.planner.reduces.coarser import added_up
from halfjoin.planner.reduces.items import Columns, Lowered
from halfjoin.planner.rules.fold_constants import fold
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
)
from halfjoin.sql.functions import fallible
from halfjoin.sql.relation import Aggregate, Filter, Join, Project, Relation, Scan, every_part
from halfjoin.sql.types import BIGINT, BYTEA, STRINGS, looks_vary

_PAYS = 4  # so many rows for each row of the joined table, at least
_LESS = 2  # so many rows for each group of the first reduce, at least, where no condition leaves out any of these
_COLUMNS = 2  # keys of groups and conditions of sums that are its own, at least, or one text


@dataclass(frozen=True, slots=True)
class _Part:
    """A kept sum of the first reduce. `gate`: of the joined table, whether it counts."""

    kind: str
    args: tuple[Expr, ...]
    gate: Expr | None


@dataclass(frozen=True, slots=True)
class KeyFirst:
    """`rows`: what the first reduce takes, `keys` of whose columns are its keys."""

    rows: Project
    keys: int
    low: Lowered
    joined: Scan
    condition: Expr
    shown: tuple[Expr, ...]  # the keys of the second reduce, over the joined table and the first one's keys
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
        joined = Filter(Join((scan, self.joined)), replaced(self.condition, keys))
        return Project(joined, tuple((Column(f"first.{number}", expr.type), expr) for number, expr in enumerate(items)))

    def function(self, columns: Columns) -> Aggregates:
        """The function of the second reduce, over its input's columns: it adds kept sums up."""
        return added_up(self.low, columns)

    def _sums(self) -> list[tuple[str, tuple[Expr, ...]]]:
        """The different sums that the first reduce keeps."""
        return [*dict.fromkeys((part.kind, part.args) for part in self.parts)]


def key_first(relation: Aggregate, low: Lowered, facts: Facts) -> KeyFirst | None:
    """How to group by a key first; None if there is no such key, or it would not pay."""
    function = low.function(low.input.columns)
    if not low.keys or not isinstance(function, Aggregates) or function.ordered:
        return None
    joined = _joined(low.input.input)
    if joined is None or any(is_temporal(one) or fallible(fold(one)) for one in _exprs(low)):
        return None
    inputs, conditions = joined
    found = [made for scan in inputs if isinstance(scan, Scan) and (made := _by(scan, inputs, conditions, low, function,
                                                                                facts)) is not None]  # fmt: skip
    return min(found, key=lambda one: _groups(one, inputs, facts), default=None)


def _by(
    scan: Scan, inputs: Sequence[Relation], conditions: Sequence[Expr], low: Lowered, function: Aggregates, facts: Facts
) -> KeyFirst | None:  # fmt: skip
    """The same, of one input of the join."""
    names = frozenset(column.name for column in scan.columns)
    others = tuple(one for one in inputs if one is not scan)
    about = [one for one in conditions if columns_of(one) & names]
    rest = [one for one in conditions if not columns_of(one) & names]
    probes = [_probe(one, names) for one in about]
    bare = {one[0].name.removeprefix(f"{scan.alias}.") for one in probes if one is not None}
    if None in probes or not any(bare >= {*key} for key in facts.unique_keys(scan.collection)):
        return None
    shown = tuple(expr for _, expr in low.input.items[: low.keys])
    late = [expr for expr in shown if columns_of(expr) and columns_of(expr) <= names]
    early = [expr for expr in shown if columns_of(expr) and not columns_of(expr) & names]
    constant = sum(not columns_of(expr) for expr in shown)
    if not late or len(late) + len(early) + constant < len(shown):
        return None
    keys = [*dict.fromkeys((*(one[1] for one in probes if one is not None), *early))]
    meaning = {column.name: expr for column, expr in low.input.items}
    parts = [_part(part, meaning, names) for part in function.sums]
    made = tuple(part for part in parts if part is not None)
    of_joined = len(late) + sum(part.gate is not None for part in made)
    if len(made) < len(parts) or any(looks_vary(expr.type) for expr in keys):
        return None
    if not (of_joined >= _COLUMNS or any(map(_is_text, late))) or not _pays(scan, others, facts):
        return None
    items = [*dict.fromkeys((*keys, *(arg for part in made for arg in part.args)))]
    below: Relation = others[0] if len(others) == 1 else Join(others)
    all_groups = not any(_is_of_one(one, others) for one in rest)
    if all_groups and _groups_of(scan, early, others, facts) * _LESS > _most(others, facts):
        return None
    rows = Project(Filter(below, conjunction(tuple(rest))) if rest else below, tuple(
        (Column(f"group.{number}", expr.type, not isinstance(expr, Column) or expr.nullable), expr)
        for number, expr in enumerate(items)))  # fmt: skip
    return KeyFirst(rows, len(keys), low, scan, conjunction(tuple(about)), shown, made)


def _pays(scan: Scan, others: Iterable[Relation], facts: Facts) -> bool:
    """Whether many rows have one key."""
    return _PAYS * max(1, facts.rows(scan.collection)) <= _most(others, facts)


def _most(inputs: Iterable[Relation], facts: Facts) -> int:
    """The rows of the largest collection."""
    return max((facts.rows(one.collection) for one in _scans(inputs)), default=0)


def _scans(inputs: Iterable[Relation]) -> list[Scan]:
    return [part for one in inputs for part in every_part(one) if isinstance(part, Scan)]


def _is_of_one(condition: Expr, inputs: Iterable[Relation]) -> bool:
    """Whether a condition is about one of some inputs, so that it leaves out groups; others join them."""
    read = columns_of(condition)
    return any(read <= {column.name for column in one.columns} for one in inputs)


def _groups(first: KeyFirst, inputs: Iterable[Relation], facts: Facts) -> int:
    """About how many groups the first reduce has, if no condition leaves any out."""
    own = frozenset(column.name for column in first.joined.columns)
    early = [expr for expr in first.shown if columns_of(expr) and not columns_of(expr) & own]
    return _groups_of(first.joined, early, inputs, facts)


def _groups_of(scan: Scan, early: Iterable[Expr], inputs: Iterable[Relation], facts: Facts) -> int:
    places = {column.name: one for one in _scans(inputs) for column in one.columns}
    groups = max(1, facts.rows(scan.collection))
    for expr in early:
        for name in columns_of(expr) & places.keys():
            one = places[name]
            groups *= facts.values(one.collection, name.removeprefix(f"{one.alias}.")) or 1
    return groups


def _joined(relation: Relation) -> tuple[list[Relation], list[Expr]] | None:
    """The inputs of an inner join, and its conditions; None: it is something else."""
    match relation:
        case Filter(input, predicate):
            made = _joined(input)
            return None if made is None else (made[0], [*made[1], *conjuncts(predicate)])
        case Join(inputs):
            found, conditions = list[Relation](), list[Expr]()
            for one in inputs:
                made = _joined(one)
                if made is None:
                    found.append(one)
                else:
                    found, conditions = [*found, *made[0]], [*conditions, *made[1]]
            return found, conditions
        case _:
            return None


def _exprs(low: Lowered) -> Iterator[Expr]:
    yield from (expr for _, expr in low.input.items)
    for part in every_part(low.input.input):
        yield from expressions(part)


def _probe(condition: Expr, names: frozenset[str]) -> tuple[Column, Expr] | None:
    """The column of the joined table, and what it is equal to of the other inputs; None: it is another condition."""
    if isinstance(condition, Call) and condition.function == "=":
        for column, expr in (condition.args, condition.args[::-1]):
            read = columns_of(expr)
            if isinstance(column, Column) and column.name in names and read and not read & names:
                return column, expr
    return None


def _part(part: Sums, meaning: Mapping[str, Expr], names: frozenset[str]) -> _Part | None:
    """The kept sum of the first reduce for one of the second; None: it depends on the joined table otherwise."""
    args, gates = list[Expr](), list[Expr]()
    for column in part.args:
        match meaning[column.name]:
            case expr if columns_of(expr) and not columns_of(expr) & names:
                args.append(expr)
            case Call("case", (gate, expr) | (gate, expr, Literal(None))) if (
                columns_of(gate) <= names and columns_of(expr) and not columns_of(expr) & names
            ):
                args.append(expr)
                gates.append(gate)
            case _:
                return None
    return _Part(part.kind, tuple(args), conjunction(tuple(dict.fromkeys(gates))) if gates else None)


def _gated(gate: Expr | None, column: Column) -> Expr:
    return column if gate is None else Call("case", (gate, column, Literal(None, column.type)), column.type)


def _is_text(expr: Expr) -> bool:
    return expr.type.kind in STRINGS
