"""The present, absent and padded inputs of a join: how they are looked up, and how their own paths see the join.

State law. Such an input is looked up with its whole key bound, never scanned, and its path never fills a view. Its own
change is its rows, if it is padded, and a row for each key that comes to be there or goes. A default row does not hold
the key that it stands for, so the path carries the key in columns of its own.

Wrong: to take a predicate above the join that reads a padded input's columns for a condition on its rows. `a LEFT JOIN
b ... WHERE b.x IS NULL` asks for keys that are not there, not for rows with a NULL. Wrong, too: to make an equality of
what a padded input is matched by. `b.k = a.k` is not true in a default row, where `b.k` is NULL.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from halfjoin.errors import UnsupportedSQL
from halfjoin.planner.agenda import Agenda
from halfjoin.planner.block import Aliases, Block, Equality, Input, inputs_of
from halfjoin.planner.equalities import merged
from halfjoin.planner.fallibility import explode_fallible
from halfjoin.planner.linear import Extend, Filter, Linear, Step
from halfjoin.planner.lookups import aligned
from halfjoin.planner.plan import ArrangementKey, HalfJoin, InputKind, Version
from halfjoin.planner.rules.sides import unguarded
from halfjoin.sql.expr import Cast, Column, Expr, Literal, columns_of, substitute
from halfjoin.sql.functions import fallible, render
from halfjoin.sql.types import looks_vary


@dataclass(frozen=True, slots=True)
class PathJoin:
    """A join as the path of one of its inputs sees it.

    `inner`: the padded inputs whose default rows cannot be part of what this path makes. The path looks them up as
    plain inputs, by any of their columns.
    """

    block: Block
    inner: Aliases = frozenset()

    def is_plain(self, item: Input) -> bool:
        """Whether this path looks an input up as a plain one."""
        return item.kind is InputKind.PLAIN or item.alias in self.inner


def check(block: Block) -> None:
    """Refuse keys by which an input cannot be looked up.

    Raises:
        UnsupportedSQL: a probe may fail and reads several inputs, or one that is not plain, so no single row would be
            the error; or a key is an array of intervals, and equal intervals can look different.
    """
    plain = {item.alias for item in block.inputs if item.kind is InputKind.PLAIN}
    late = {column.name: one for one in block.functions for column in one.columns
            if explode_fallible(one.step) and not (len(one.inputs) == 1 and one.inputs <= plain)}  # fmt: skip
    for match in (match for item in block.inputs for match in item.on):
        text = f"{render(match.key)} = {render(match.probe)}"
        read = inputs_of(match.probe, block.owners)
        if fallible(match.probe) and not (len(read) == 1 and read <= plain):
            raise UnsupportedSQL(
                f"{render(match.probe)} in {text} may fail, and reads more than one table or an outer join's side",
                remedy="compute it in a materialized view below, and join by its column",
            )
        for one in (late[name] for name in sorted(columns_of(match.probe) & late.keys())):
            raise UnsupportedSQL(
                f"{text} reads {one.step.function}, which may fail, of more than one table or of an outer join's side",
                remedy="compute it in a materialized view below, and join by its column",
            )
        if looks_vary(match.key.type):
            raise UnsupportedSQL(f"{text} compares arrays of intervals, which cannot be a key",
                                 remedy="compare them as text: ...::text")  # fmt: skip


def seen_from(block: Block, start: Input) -> PathJoin:
    """The join as the path of an input that is not plain sees it: with columns for its key, which are equal to the
    probes.

    If such an equality is false for every default row of another padded input, that input's own key makes equalities,
    too.
    """
    keys = key_columns(start)
    columns = start.columns if start.kind is InputKind.PADDED else ()
    inner, due = set[str](), list[tuple[Input, Sequence[Expr]]]([(start, [column for column, _ in keys])])
    equalities, predicates = list(block.equalities), list(block.predicates)
    while due:
        item, own = due.pop()
        for (condition, match), key in zip(map(unguarded, item.on), own, strict=True):
            predicates += [] if condition is None else [condition]
            equalities.append(Equality((key, match.probe), match.null_safe))
            found = [other for other in block.inputs if other.alias not in {*inner, start.alias}
                     and other.kind is InputKind.PADDED and not match.null_safe
                     and _is_null(match.probe, other.default_row)]  # fmt: skip
            inner |= {other.alias for other in found}
            due += [(other, [match.key for match in other.on]) for other in found]
    seen = replace(start, columns=(*columns, *(column for column, _ in keys)), default=())
    inputs = tuple(seen if item is start else item for item in block.inputs)
    seen_block = replace(block, inputs=inputs, predicates=tuple(predicates), equalities=merged(equalities))
    return PathJoin(seen_block, frozenset(inner))


def source(item: Input) -> list[Step]:
    """The first steps of an input's own rows: its conditions, and the columns for its key."""
    steps: list[Step] = [Filter(item.conditions)] if item.conditions else []
    keys = key_columns(item)
    return [*steps, Extend(keys, members=True)] if keys else steps


def is_ready(agenda: Agenda, item: Input) -> bool:
    """Whether the whole key of an input is bound."""
    return all(map(agenda.usable, agenda.block.probes[item.alias]))


def looked_up(agenda: Agenda, item: Input, number: int, version: Version) -> HalfJoin:
    """The half-join of an input that is not plain, still without `fetch`."""
    probes = [aligned(match.key, agenda.value(match.probe))[1] for match in item.on]
    return _half_join(item, number, item.kind, version, probes)


def asked(item: Input, number: int) -> HalfJoin:
    """The half-join by which an input's own path asks which of its keys are there."""
    return _half_join(item, number, InputKind.PRESENT, Version.AFTER, [column for column, _ in key_columns(item)])


def key_columns(item: Input) -> tuple[tuple[Column, Expr], ...]:
    """A column for each part of an input's key, and the expression that computes it."""
    found: dict[str, tuple[Column, Expr]] = {}
    for match in item.on:
        key, _ = aligned(match.key, match.probe)
        name = f"={render(match.key)}"  # no collection has a column of this name
        while name in found:
            name += "'"
        found[name] = Column(name, key.type), key
    return tuple(found.values())


def _half_join(
    item: Input, number: int, kind: InputKind, version: Version, probes: Sequence[Expr]
) -> HalfJoin:
    names = {column.name: Column(item.bare(column.name), column.type, column.nullable) for column in item.columns}
    keys = [substitute(key, names) for _, key in key_columns(item)]
    order = sorted(range(len(keys)), key=lambda i: (render(keys[i]), i))
    conditions = tuple(substitute(condition, names) for condition in item.conditions)
    through = Linear((Filter(conditions),)) if conditions else None
    arrangement = ArrangementKey(item.collection, tuple(keys[i] for i in order), through, item.constant)
    null_safe = tuple(item.on[i].null_safe for i in order)
    return HalfJoin(number, item.alias, arrangement, tuple(probes[i] for i in order), null_safe, version, (), kind)


def _is_null(expr: Expr, row: Mapping[str, Literal]) -> bool:
    """Whether an expression is certainly NULL if these columns have these values."""
    match expr:
        case Column(name):
            return name in row and row[name].value is None
        case Cast(arg):
            return _is_null(arg, row)
        case _:
            return False

