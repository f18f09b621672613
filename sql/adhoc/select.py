"""The layers of one SELECT of a query: its rows, its groups, its windows, its order. Each layer becomes steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from halfjoin.sql.adhoc.calls import Computed, Inputs, direction, window
from halfjoin.sql.adhoc.rows import Base
from halfjoin.sql.adhoc.script import Made, Steps, wrong
from halfjoin.sql.bind.context import Context
from halfjoin.sql.bind.function import list_calls
from halfjoin.sql.bind.output_names import output_name
from halfjoin.sql.bind.scalar import Scalars
from halfjoin.sql.bind.scope import Scope
from halfjoin.sql.bind.select import star
from halfjoin.sql.expr import Column, Expr, columns_of, substitute, walk
from halfjoin.sql.parse.locate import name_of
from halfjoin.sql.relation import Filter, Join, Relation, Scan


@dataclass(frozen=True)
class Item:
    """One output: its name, and the node that computes it, or the column if it comes from `*`."""

    name: str
    node: exp.Expr | None
    column: Expr | None = None


@dataclass(frozen=True)
class Key:
    """One key of ORDER BY or DISTINCT ON: the position of an output, or else an expression."""

    output: int | None
    node: exp.Expr
    direction: str = ""


@dataclass
class SelectRows:
    """The rows of a SELECT after the layers so far: a relation, and what nodes mean over it.

    `bound` maps the identity of nodes that are already computed to their values. `singles` holds the one-row tables of
    scalar subqueries, by column; a table is joined when a value first reads it. `base` holds the outer query's rows.
    """

    relation: Relation
    scopes: tuple[Scope, ...]
    context: Context
    base: Base | None = None
    bound: dict[int, Expr] = field(default_factory=dict)
    singles: dict[str, Scan] = field(default_factory=dict)

    @property
    def scalars(self) -> Scalars:
        """The binder of expressions over these rows."""
        return Scalars(self.context, self.scopes, self.bound)

    def over(self, relation: Relation, columns: Mapping[str, Column], bound: dict[int, Expr]) -> SelectRows:
        """The rows of the next layer; `columns` maps the names of the columns that it keeps to their new columns."""
        scopes = (self.scopes[0].mapped(columns), *self.scopes[1:])
        return SelectRows(relation, scopes, self.context, self.base, bound, self.singles)

    def with_singles(self, values: Sequence[Expr]) -> Relation:
        """The relation, joined with the scalar subqueries that the values read."""
        known = {column.name for column in self.relation.columns}
        read = {name for value in values for name in columns_of(value)}
        added = tuple(scan for name, scan in self.singles.items() if name in read - known)
        return Join((self.relation, *added)) if added else self.relation

    def filter(self, predicate: Expr) -> None:
        """Keep the rows for which the predicate is true."""
        self.relation = Filter(self.with_singles([predicate]), predicate)

    def evaluate(self, steps: Steps, values: Sequence[Expr]) -> Made:
        """Add a step that evaluates the values for these rows."""
        return steps.evaluate(self.with_singles(values), values)


def items_of(query: exp.Select, rows: SelectRows) -> list[Item]:
    """The outputs, with `*` expanded to columns; a call that returns rows becomes part of the relation."""
    rows.relation, calls = list_calls(query.expressions, rows.relation, rows.scalars)
    rows.bound.update(calls)
    items: list[Item] = []
    for node in query.expressions:
        columns = star(node, rows.scopes[0], rows.context)
        if columns is None:
            items.append(Item(output_name(node), node.unalias()))
        else:
            items += [Item(name, None, column) for name, column in columns]
    return items


def key_of(node: exp.Expr, items: Sequence[Item], context: Context, written: str = "") -> Key:
    """A key of ORDER BY: the position or name of an output, or else an expression over the rows."""
    if (place := position(node, items, context, "ORDER BY")) is not None:
        return Key(place, node, written)
    if isinstance(node, exp.Column) and not node.table:
        named = [number for number, item in enumerate(items) if item.name == name_of(node)]
        if len({repr((items[number].node, items[number].column)) for number in named}) > 1:
            raise wrong(node, context, f"ORDER BY {name_of(node)} is ambiguous", "write the position of the column")
        if named:
            return Key(named[0], node, written)
    return Key(None, node, written)


def position(node: exp.Expr, items: Sequence[Item], context: Context, clause: str) -> int | None:
    """The position, from 0, of the output that a number in GROUP BY or ORDER BY means; None for other nodes."""
    if not isinstance(node, exp.Literal) or node.is_string or not node.name.isdigit():
        return None
    if not 1 <= int(node.name) <= len(items):
        raise wrong(node, context, f"{clause} position {node.name} is not in the SELECT list")
    return int(node.name) - 1


def value_of(item: Item, rows: SelectRows) -> Expr:
    """The value of an output over the rows."""
    if item.node is not None:
        return rows.scalars.value(item.node)
    assert item.column is not None
    return item.column


def windows_in(nodes: Sequence[exp.Expr], bound: dict[int, Expr]) -> list[exp.Window]:
    """The window functions in the nodes."""
    found: list[exp.Window] = []
    for node in nodes:
        inner = node.walk(prune=lambda item: id(item) in bound or isinstance(item, (exp.Query, exp.Window)))
        found += [item for item in inner if isinstance(item, exp.Window) and id(item) not in bound]
    return found


def with_windows(rows: SelectRows, items: Sequence[Item], nodes: Sequence[exp.Expr],
                 steps: Steps) -> tuple[SelectRows, list[Item], dict[str, Expr]]:
    """The rows with their window functions computed, and the new columns of those that the outputs read."""
    inputs = Inputs()
    calls = windows_in(nodes, rows.bound)
    tags = [rows.base.tag] if rows.base else []
    computed = [window(call, rows.scalars, inputs, tags) for call in calls]
    starred = [part for item in items if item.column is not None for part in walk(item.column)]
    read = [*starred, *(part for node in nodes for part in _read(node, rows))]
    carried = list(dict.fromkeys([*tags, *(part for part in read if isinstance(part, Column))]))
    names = [inputs.column(column) for column in carried]
    made = rows.evaluate(steps, inputs.values)
    parts = [part for call in computed for part in call.parts]
    types = [column.type for column in carried] + [type for _, type in parts]
    text = f'SELECT {named([*names, *(text for text, _ in parts)])} FROM "{made.name}"'
    scan = steps.compute(text, types).scan(rows.context.aliases)
    moved: dict[str, Expr] = {old.name: new for old, new in zip(carried, scan.columns, strict=False)}
    bound = {number: substitute(value, moved) for number, value in rows.bound.items()}
    bound.update(values_of(calls, computed, scan.columns[len(carried):]))
    outputs = [item if item.column is None else replace(item, column=substitute(item.column, moved)) for item in items]
    return SelectRows(scan, rows.scopes, rows.context, rows.base, bound, {}), outputs, moved


def _read(node: exp.Expr, rows: SelectRows) -> Iterator[Expr]:
    """The columns that a node reads outside its window functions, and the expressions that contain them."""
    if isinstance(node, exp.Window):
        return
    if id(node) in rows.bound or isinstance(node, exp.Column):
        yield from walk(rows.scalars.value(node))
        return
    for child in node.iter_expressions():
        yield from _read(child, rows)


def values_of(calls: Sequence[exp.Expr], computed: Sequence[Computed], columns: Sequence[Column]) -> dict[int, Expr]:
    """The value of each call over the columns of its parts, by the identity of its node."""
    values, start = {}, 0
    for call, made in zip(calls, computed, strict=True):
        values[id(call)] = made.value(columns[start:start + len(made.parts)])
        start += len(made.parts)
    return values


def named(texts: Sequence[str]) -> str:
    """The texts as columns `c1`, `c2`, ... of a SELECT list."""
    return ", ".join(f"{text} AS c{number}" for number, text in enumerate(texts, 1))


def last(rows: SelectRows, tag: Sequence[Expr], values: Sequence[Expr], keys: Sequence[tuple[Expr, str]],
         on: Sequence[Expr], distinct: bool, limit: Limit, steps: Steps) -> Made:
    """Add the last step: the outputs, distinct if `distinct`, ordered by `keys`, limited by `limit` within each tag."""
    outputs = [*tag, *values]
    if not keys and not on and not distinct and not limit:
        return rows.evaluate(steps, outputs)
    inputs = [*outputs, *on]
    ways = []
    for key, way in keys:
        if key not in inputs:
            if distinct:
                raise wrong(None, rows.context, "ORDER BY of SELECT DISTINCT takes its columns only", "select the key")
            inputs.append(key)
        ways.append(f"c{inputs.index(key) + 1}{way}")
    made = rows.evaluate(steps, inputs)
    within = ["c1"] if tag else []
    first = ", ".join([*within, *(f"c{len(outputs) + number}" for number in range(1, len(on) + 1))])
    columns = ", ".join(f"c{number}" for number in range(1, (len(inputs) if on else len(outputs)) + 1))
    word = f"DISTINCT ON ({first}) " if on else "DISTINCT " if distinct else ""
    every = columns if word else "*"
    text = f'SELECT {word}{every} FROM "{made.name}"'
    if on and ways:
        text += f" ORDER BY {', '.join(ways)}"
    columns = ", ".join(f"c{number}" for number in range(1, len(outputs) + 1))
    return steps.compute(limit.text(columns, f"({text})", within, ways),
                         [column.type for column in made.columns[:len(outputs)]])


def listed(made: Made) -> str:
    """The columns of a step's table, as text."""
    return ", ".join(column.name for column in made.columns)


@dataclass(frozen=True)
class Limit:
    """LIMIT and OFFSET; true if there is either."""

    count: int | None = None
    offset: int = 0

    def __bool__(self) -> bool:
        return self.count is not None or self.offset > 0

    def text(self, columns: str, table: str, within: Sequence[str], ways: Sequence[str]) -> str:
        """DuckDB's text for the limited rows of a table, ordered by `ways`; within each tag if there are tags."""
        order = f" ORDER BY {', '.join(ways)}" if ways else ""
        if not within or not self:
            count = "" if self.count is None else f" LIMIT {self.count}"
            offset = f" OFFSET {self.offset}" if self.offset else ""
            return f"SELECT {columns} FROM {table} AS made{order}{count}{offset}"
        last = "" if self.count is None else f" AND place <= {self.offset + self.count}"
        placed = f"SELECT *, row_number() OVER (PARTITION BY {', '.join(within)}{order}) AS place FROM {table} AS made"
        return f"SELECT {columns} FROM ({placed}) AS placed WHERE place > {self.offset}{last}{order}"


def limit_of(query: exp.Expr, context: Context) -> Limit:
    """LIMIT and OFFSET of a query; UnsupportedSQL unless they are constants."""
    limit, offset = query.args.get("limit"), query.args.get("offset")
    count: int | None = None
    if limit is not None:
        options = limit.args.get("limit_options")
        written = limit.args.get("count") if isinstance(limit, exp.Fetch) else limit.expression
        if options and (options.args.get("with_ties") or options.args.get("percent")):
            raise context.refuse(query, "FETCH ... WITH TIES is not supported", "write LIMIT")
        count = None if _is_all(written) else _count(written, context)
    return Limit(count, 0 if offset is None or _is_all(offset.expression) else _count(offset.expression, context))


def _is_all(node: exp.Expr | None) -> bool:
    return isinstance(node, exp.Null) or (isinstance(node, exp.Var) and node.name.upper() == "ALL")


def _count(node: exp.Expr | None, context: Context) -> int:
    if node is None:
        return 1
    if isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit() and int(node.name) < 2**63:
        return int(node.name)
    raise context.refuse(node, "LIMIT and OFFSET take a number")


def keys_of(order: exp.Expr | None, items: Sequence[Item], context: Context) -> list[Key]:
    """The keys of ORDER BY."""
    nodes = order.expressions if order is not None else []
    return [key_of(node.this, items, context, direction(node)) for node in nodes]
