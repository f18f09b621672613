"""The keys of GROUP BY and its sets of keys: GROUPING SETS, ROLLUP and CUBE.

Several sets are a UNION ALL of one aggregate for each set, over the same rows. A key that is not in a set is NULL in
its rows, and `grouping()` is a constant of each set.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import TypeGuard

from sqlglot import exp

from halfjoin.sql.bind.aggregates import aggregates_in
from halfjoin.sql.bind.context import Context
from halfjoin.sql.bind.direct import unmarked
from halfjoin.sql.bind.outputs import Output, named, position
from halfjoin.sql.bind.quantified import QUERIES
from halfjoin.sql.bind.row_values import row_of
from halfjoin.sql.bind.scalar import Scalars
from halfjoin.sql.bind.selected import known, qualified
from halfjoin.sql.expr import Column, Expr, Literal
from halfjoin.sql.functions.order import check_equality
from halfjoin.sql.parse.locate import name_of, only
from halfjoin.sql.relation import Aggregate, AggregateCall, Project, Relation, UnionAll
from halfjoin.sql.types import INTEGER

MOST_SETS = 4096  # as in PostgreSQL
MOST_GROUPING = 31  # the arguments of one grouping(), whose result is an integer

Set = tuple[int, ...]  # the positions of a set's keys


@dataclass
class Keys:
    """The keys over the rows, each once, and the sets of them to group by."""

    values: list[Expr]
    sets: list[Set]

    def common(self) -> list[Expr]:
        """The keys that all sets have."""
        shared = set(self.sets[0]).intersection(*self.sets[1:])
        return [self.values[place] for place in sorted(shared)]

    def add_everywhere(self, value: Expr) -> None:
        """Add a key to all sets."""
        if value not in self.values:
            self.values.append(value)
            self.sets = [(*one, len(self.values) - 1) for one in self.sets]


def keys_of(group: exp.Group | None, outputs: Sequence[Output], rows: Scalars) -> Keys:
    """The keys of GROUP BY. Its parts combine: each set of one part with each set of the next."""
    keys = Keys([], [()])
    if group is None:
        return keys
    context = rows.context
    only(group, context.sql, "GROUP BY", ("expressions", "all"))
    if group.args.get("all") and not group.expressions:
        raise context.refuse(group, "GROUP BY ALL is not supported", "name the keys")

    named_by: dict[int, int] = {}  # the output whose name or position means a key

    def key(node: exp.Expr) -> int:
        value, output = _key(node, outputs, rows)
        with context.at(node):
            check_equality(value.type)
        if value not in keys.values:
            keys.values.append(value)
        place = keys.values.index(value)
        if output is not None and named_by.setdefault(place, output) != output and _has_sets(group):
            raise context.refuse(node, "two outputs that are the same key of grouping sets", "name one of them")
        return place

    def simple(node: exp.Expr) -> Set:
        node = _without_parentheses(node)
        if isinstance(node, exp.Tuple):
            return sum(map(simple, node.expressions), ())
        output = key_output(node, outputs, rows)
        row = row_of(node if output is None else outputs[output].node, rows)
        # Of several sets, one may have a row and not its members.
        return (key(node),) if row is None or _has_sets(group) else tuple(map(key, row.keys))

    def sets(node: exp.Expr) -> Iterator[Set]:
        match node:
            case exp.GroupingSets():
                for part in node.expressions:
                    yield from sets(part)
            case exp.Rollup() | exp.Cube():
                parts = [simple(part) for part in node.expressions]
                for count in range(len(parts), -1, -1):
                    for some in [parts[:count]] if isinstance(node, exp.Rollup) else combinations(parts, count):
                        yield sum(some, ())
            case _:
                yield simple(node)

    for node in group.expressions:
        if isinstance(node, exp.Cube) and len(node.expressions) > MOST_SETS.bit_length():
            raise context.wrong(node, "CUBE is limited to 12 elements")
        keys.sets = [(*before, *after) for before, after in product(keys.sets, list(sets(node)))]
        if len(keys.sets) > MOST_SETS:
            raise context.wrong(group, f"too many grouping sets present (maximum {MOST_SETS})")
    keys.sets = [tuple(dict.fromkeys(one)) for one in keys.sets]
    if group.args.get("all") is False:  # GROUP BY DISTINCT
        keys.sets = list({frozenset(one): one for one in reversed(keys.sets)}.values())[::-1]
    return keys


def _without_parentheses(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _has_sets(group: exp.Group) -> bool:
    return group.find(exp.GroupingSets, exp.Rollup, exp.Cube) is not None


def _key(node: exp.Expr, outputs: Sequence[Output], rows: Scalars) -> tuple[Expr, int | None]:
    """A key over the rows, and the output that it is by its position or name."""
    context = rows.context
    written, node = node, _without_parentheses(node)
    place = key_output(node, outputs, rows)
    if place is not None:
        node = outputs[place].node
    if aggregates_in([node], rows):
        raise context.wrong(written, "aggregate functions are not allowed in GROUP BY")
    if any(isinstance(part, exp.Window) for part in node.walk(prune=lambda part: isinstance(part, QUERIES))):
        raise context.wrong(written, "window functions are not allowed in GROUP BY")
    return rows.value(node), place


def key_output(node: exp.Expr, outputs: Sequence[Output], rows: Scalars) -> int | None:
    """The output that a key is by its position, or by a name that no column of the rows has."""
    if isinstance(node, exp.Column) and not node.args.get("table"):
        with rows.context.at(node):
            column = rows.scopes[0].column(name_of(node))
        return named(node, outputs, "GROUP BY", rows) if column is None else None
    return position(node, len(outputs), "GROUP BY", rows.context)


def groupings_in(node: exp.Expr) -> Iterator[exp.Anonymous]:
    """The calls of grouping() outside subqueries."""
    for part in node.walk(prune=lambda part: isinstance(part, exp.Query)):
        if is_grouping(part):
            yield part


def is_grouping(node: exp.Expr) -> TypeGuard[exp.Anonymous]:
    """Whether a node is a call of grouping()."""
    return isinstance(node, exp.Anonymous) and node.name.lower() == "grouping"


def grouping(node: exp.Anonymous, keys: Keys, rows: Scalars) -> list[int]:
    """The value of a call of grouping() in each set: one bit for each argument, 1 if the set does not have the key."""
    if not 1 <= len(node.expressions) <= MOST_GROUPING:
        raise rows.context.wrong(node, f"GROUPING must have from 1 to {MOST_GROUPING} arguments")
    places = []
    for part in node.expressions:
        value = rows.value(part)
        if value not in keys.values:
            raise rows.context.wrong(part, "arguments to GROUPING must be grouping expressions of the associated query "
                                           "level")
        places.append(keys.values.index(value))
    return [sum(1 << bit for bit, place in enumerate(reversed(places)) if place not in one) for one in keys.sets]


def aggregate(rows: Relation, one: Set, columns: Mapping[Expr, Column],
              calls: Mapping[AggregateCall, Column]) -> Aggregate:
    """The groups of one set of keys. `columns`: the column of each key, in the keys' order."""
    values = list(columns)
    keyed = tuple((columns[values[place]], known(values[place])) for place in one)
    made = Aggregate(rows, keyed, tuple((column, call) for call, column in calls.items()))
    return unmarked(made, [value for place, value in enumerate(values) if place not in one])


def of_sets(rows: Relation, keys: Keys, columns: Mapping[Expr, Column], calls: Mapping[AggregateCall, Column],
            bits: Sequence[tuple[Column, list[int]]], context: Context) -> Relation:
    """The groups of each set of keys, with the values of grouping() in each set."""
    shown = (*columns.values(), *calls.values(), *(column for column, _ in bits))
    arms = []
    for number, one in enumerate(keys.sets):
        inner = _under_an_alias([*columns.values(), *calls.values()], context)
        grouped = aggregate(rows, one, {value: inner[column.name] for value, column in columns.items()},
                            {call: inner[column.name] for call, column in calls.items()})
        there = frozenset(column.name for column in grouped.columns)
        values: list[Expr] = [
            column if column.name in there else Literal(None, column.type) for column in inner.values()]
        values += [Literal(made[number], INTEGER) for _, made in bits]
        names = _under_an_alias(shown, context).values() if len(keys.sets) > 1 else shown
        arms.append(Project(grouped, tuple(zip(names, values, strict=True))))
    return UnionAll(tuple(arms), shown) if len(arms) > 1 else arms[0]


def _under_an_alias(columns: Sequence[Column], context: Context) -> dict[str, Column]:
    """The columns under an alias of their own, by their names."""
    namer = qualified(context.aliases.fresh("group"))
    return {column.name: replace(column, name=namer(column.name.rpartition(".")[2])) for column in columns}
