"""Binds GROUP BY, HAVING and aggregates: the groups of a query, and what expressions mean over them.

An expression above the groups is bound over the rows first. Where it equals a key, it reads the key's column; a call of
an aggregate is already a column of the groups. What is left may not read the rows' columns.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Self

from sqlglot import exp

from halfjoin.errors import UnknownName, UnsupportedSQL
from halfjoin.sql.bind.aggregates import aggregate_call, aggregates_in
from halfjoin.sql.bind.context import Context
from halfjoin.sql.bind.grouping_sets import (
    Keys,
    aggregate,
    grouping,
    groupings_in,
    is_grouping,
    key_output,
    keys_of,
    of_sets,
)
from halfjoin.sql.bind.outputs import Output
from halfjoin.sql.bind.row_values import row_of
from halfjoin.sql.bind.scalar import Scalars
from halfjoin.sql.bind.selected import Namer, column_for, known, qualified
from halfjoin.sql.expr import TRUE, Column, Expr, columns_of, replaced, walk
from halfjoin.sql.functions.record_values import is_record, member, members
from halfjoin.sql.relation import AggregateCall, Filter, Join, Outer, Relation, Scan, Semi, TableFunction
from halfjoin.sql.types import INTEGER


@dataclass(frozen=True, kw_only=True)
class Grouped(Scalars):
    """Binds expressions over the groups of a query. `rows` binds them over the rows; both know the same nodes."""

    rows: Scalars
    keys: Mapping[Expr, Expr]  # the column of each key, or a member of it, by the value over the rows
    hidden: frozenset[str]  # the columns of the rows

    def binding(self, more: Mapping[int, Expr]) -> Self:
        """The binder that knows the expressions of more nodes, which are over the groups."""
        return replace(super().binding(more), rows=self.rows.binding(more))

    def value(self, node: exp.Expr) -> Expr:
        """The expression over the groups."""
        value = self.rows.value(node)
        if value in self.keys:
            return self.keys[value]
        value = replaced(value, self.keys)
        if lost := columns_of(value) & self.hidden:
            raise self._ungrouped(node, lost)
        return value

    def _ungrouped(self, node: exp.Expr, lost: frozenset[str]) -> UnsupportedSQL:
        """The error for the first part of the node that reads one of the columns `lost`."""
        part = next((part for part in read_parts(node, self.bound) if columns_of(self.rows.value(part)) & lost), node)
        found = columns_of(self.rows.value(part)) & lost
        names = (f"{source.name}.{name}" for source in self.rows.scopes[0].sources for name, column in source.columns
                 if column.name in found)
        return self.context.wrong(part, f'column "{next(names, min(found))}" must appear in the GROUP BY clause or be '
                                        "used in an aggregate function", "or write any_value(...) of it")


def read_parts(node: exp.Expr, bound: Mapping[int, Expr]) -> Iterator[exp.Expr]:
    """The columns that a node reads outside subqueries, and the nodes inside it that are bound already."""
    for part in node.walk(prune=lambda part: id(part) in bound or isinstance(part, exp.Query)):
        if isinstance(part, exp.Column) or id(part) in bound:
            yield part


def is_grouped(query: exp.Select, nodes: Sequence[exp.Expr], scalars: Scalars) -> bool:
    """Whether a query has groups: GROUP BY, HAVING, or an aggregate in one of the nodes."""
    return bool(query.args.get("group") or query.args.get("having") or aggregates_in(nodes, scalars))


def grouped_nodes(clause: exp.Group | None, outputs: Sequence[Output], scalars: Scalars) -> list[exp.Expr]:
    """The expressions of GROUP BY, and the outputs that are keys by their names or positions."""
    if clause is None:
        return []
    meant = (key_output(key, outputs, scalars) for key in clause.find_all(exp.Column, exp.Literal) if is_key(key))
    return [clause, *(outputs[place].node for place in dict.fromkeys(meant) if place is not None)]


def is_key(node: exp.Expr) -> bool:
    """Whether a node is a key of GROUP BY itself, not a part of one."""
    around = node.parent
    while isinstance(around, exp.Paren | exp.Tuple | exp.Rollup | exp.Cube | exp.GroupingSets):
        around = around.parent
    return isinstance(around, exp.Group)


def group(query: exp.Select, outputs: Sequence[Output], nodes: Sequence[exp.Expr], lifted: Sequence[exp.Expr],
          relation: Relation, scalars: Scalars) -> tuple[Relation, Grouped]:
    """The groups of the rows, and the binder of expressions over them.

    `nodes`: all expressions over the groups, with HAVING and QUALIFY; their aggregates are computed.
    `lifted`: those in subqueries that are aggregates of this query.
    """
    context = scalars.context
    keys = keys_of(query.args.get("group"), outputs, scalars)
    namer = qualified(context.aliases.fresh("group"))
    calls: dict[AggregateCall, Column] = {}
    bound: dict[int, Expr] = {}
    direct: list[exp.Expr] = []
    for node in (*aggregates_in(nodes, scalars), *itertools.filterfalse(is_grouping, lifted)):
        made = aggregate_call(node, scalars)
        for call in made.calls:
            _check_own(node, call, relation, context)
            if call not in calls:
                calls[call] = Column(namer(call.function), call.type, call.function not in ("count", "regr_count"))
        bound[id(node)] = made.value([calls[call] for call in made.calls])
        direct += made.direct
    asked = [*(node for item in nodes for node in groupings_in(item) if id(node) not in scalars.bound),
             *filter(is_grouping, lifted)]
    groupings = {id(node): grouping(node, keys, scalars) for node in asked}
    bits = {number: Column(namer("grouping"), INTEGER, nullable=False) for number in groupings}
    bound |= bits
    rows = scalars.binding(bound)
    _add_dependent(keys, [*nodes, *direct], relation, rows)
    several = len(keys.sets) > 1
    columns = {value: _key_column(value, namer, several) for value in keys.values}
    rows = rows.binding(_rows_as_keys(nodes, columns, rows))
    if several or bits:
        groups: Relation = of_sets(relation, keys, columns, calls, [(bits[i], groupings[i]) for i in bits], context)
    else:
        groups = aggregate(relation, keys.sets[0], columns, calls)
    visible = {value.name: column for value, column in columns.items() if isinstance(value, Column)}
    scopes = (replace(scalars.scopes[0].mapped(visible), rows=scalars.scopes[0]), *scalars.scopes[1:])
    hidden = frozenset(column.name for column in relation.columns)
    context = replace(context, lifted={**context.lifted, **{id(node): bound[id(node)] for node in lifted}})
    grouped = Grouped(context, scopes, rows.bound, rows=rows, keys={**_members(columns), **columns}, hidden=hidden)
    grouped.values(direct)  # refused unless they read keys only
    return groups, grouped


def _rows_as_keys(nodes: Sequence[exp.Expr], columns: Mapping[Expr, Column], rows: Scalars) -> dict[int, Expr]:
    """The rows in the nodes that are keys as a whole: where a set does not have such a key, it is NULL as a whole."""
    if not any(map(is_record, columns)):
        return {}
    parts = (part for node in nodes for part in node.walk(
        prune=lambda part: id(part) in rows.bound or isinstance(part, exp.Query)))
    values = {id(part): rows.value(part) for part in parts if id(part) not in rows.bound and row_of(part, rows)}
    return {place: columns[value] for place, value in values.items() if value in columns}


def _members(columns: Mapping[Expr, Column]) -> dict[Expr, Expr]:
    """The members of keys that are rows."""
    return {part: member(column, number) for value, column in columns.items() if is_record(value)
            for number, part in enumerate(members(value))}


def _key_column(value: Expr, namer: Namer, missing: bool) -> Column:
    """The column of a key; it is nullable if the key may be missing from a set."""
    name = value.name.rpartition(".")[2] if isinstance(value, Column) else "key"
    column = column_for(namer(name), known(value))
    return replace(column, nullable=True) if missing else column


def _check_own(node: exp.Expr, call: AggregateCall, relation: Relation, context: Context) -> None:
    """Refuse an aggregate that reads columns of an outer query only, since it belongs to that query."""
    values = [*call.args, *(key.expr for key in call.order), call.condition or TRUE]
    read: frozenset[str] = frozenset().union(*(columns_of(value) for value in values))
    if read and read.isdisjoint(column.name for column in relation.columns):
        raise context.refuse(node, "an aggregate over columns of an outer query only belongs to that query, "
                                   "which does not allow it at this place", "compute it in a subquery in FROM")


def _add_dependent(keys: Keys, nodes: Sequence[exp.Expr], relation: Relation, rows: Scalars) -> None:
    """Add the columns to the keys that the nodes read and a grouped primary key decides."""
    decided = _decided(relation, keys.common(), rows.context)
    if not decided:
        return
    for node in nodes:
        for part in node.walk(prune=lambda part: id(part) in rows.bound):
            if isinstance(part, exp.Column) or id(part) in rows.bound:
                with suppress(UnknownName, UnsupportedSQL):  # a name of a subquery
                    value = rows.value(part)
                    for column in walk(value):
                        if isinstance(column, Column) and column.name in decided:
                            keys.add_everywhere(column)


def _decided(relation: Relation, keys: Sequence[Expr], context: Context) -> frozenset[str]:
    """The columns of the tables in FROM whose primary key is among the keys."""
    match relation:
        case Join(inputs=inputs):
            return frozenset().union(*(_decided(item, keys, context) for item in inputs))
        case Outer(left=left, right=right):
            return _decided(left, keys, context) | _decided(right, keys, context)
        case Filter(input=item) | TableFunction(input=item) | Semi(input=item):
            return _decided(item, keys, context)
        case Scan(collection=collection, alias=alias, columns=columns):
            primary = context.schema.primary_key(collection)
            grouped = {key.name for key in keys if isinstance(key, Column)}
            if primary and grouped.issuperset(f"{alias}.{name}" for name in primary):
                return frozenset(column.name for column in columns)
    return frozenset()
