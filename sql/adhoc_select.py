"""One SELECT of a query, in layers: its rows, its groups, its windows, its order. Between them values are computed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from halfjoin.sql.adhoc_calls import Computed, Inputs, aggregate, direction, is_aggregate, window
from halfjoin.sql.adhoc_script import Made, Steps, wrong
from halfjoin.sql.bind_context import Context
from halfjoin.sql.bind_function import list_calls
from halfjoin.sql.bind_scalar import HANDLERS, Scalars
from halfjoin.sql.bind_select import star
from halfjoin.sql.expr import Column, Expr, columns_of, substitute, walk
from halfjoin.sql.locate import name_of, only
from halfjoin.sql.output_names import output_name
from halfjoin.sql.relation import Filter, Join, Relation, Scan
from halfjoin.sql.scope import Scope

GROUPED = "add it to GROUP BY, or put it into an aggregate"


@dataclass(frozen=True)
class Item:
    """One output: its name, and the node that gives it, or the column that `*` stands for."""

    name: str
    node: exp.Expr | None
    column: Expr | None = None


@dataclass(frozen=True)
class Key:
    """One key of ORDER BY or DISTINCT ON: an output by its position, or an expression."""

    output: int | None
    node: exp.Expr
    direction: str = ""


@dataclass
class Rows:
    """The rows of a SELECT as far as it is taken apart: a relation, and what nodes mean over it.

    `bound` holds the meaning of nodes that are computed already, by identity; `singles` the tables of one row that
    scalar subqueries became, by their column, joined where one is first read.
    """

    relation: Relation
    scopes: tuple[Scope, ...]
    context: Context
    bound: dict[int, Expr] = field(default_factory=dict)
    singles: dict[str, Scan] = field(default_factory=dict)

    @property
    def scalars(self) -> Scalars:
        """The binder of expressions over these rows."""
        return Scalars(self.context, self.scopes, self.bound)

    def with_singles(self, values: Sequence[Expr]) -> Relation:
        """The relation, with the scalar subqueries beside it that the values read."""
        known = {column.name for column in self.relation.columns}
        read = {name for value in values for name in columns_of(value)}
        added = tuple(scan for name, scan in self.singles.items() if name in read - known)
        return Join((self.relation, *added)) if added else self.relation

    def filter(self, predicate: Expr) -> None:
        """Keep the rows for which the predicate is true."""
        self.relation = Filter(self.with_singles([predicate]), predicate)

    def evaluate(self, steps: Steps, values: Sequence[Expr]) -> Made:
        """A step that evaluates the values for these rows."""
        return steps.evaluate(self.with_singles(values), values)


def items_of(query: exp.Select, rows: Rows) -> list[Item]:
    """The outputs, `*` as the columns it stands for; a call that returns rows becomes a part of the relation."""
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
    """A key of ORDER BY: the position or the name of an output, or else an expression over the rows."""
    if (position := _position(node, items, context, "ORDER BY")) is not None:
        return Key(position, node, written)
    if isinstance(node, exp.Column) and not node.table:
        named = [number for number, item in enumerate(items) if item.name == name_of(node)]
        if len({repr((items[number].node, items[number].column)) for number in named}) > 1:
            raise wrong(node, context, f"ORDER BY {name_of(node)} is ambiguous", "write the position of the column")
        if named:
            return Key(named[0], node, written)
    return Key(None, node, written)


def group_keys(query: exp.Select, items: Sequence[Item], rows: Rows) -> list[Expr]:
    """The values of GROUP BY: expressions over the rows, positions, or else names of outputs."""
    group = query.args.get("group")
    if group is None:
        return []
    only(group, rows.context.sql, "GROUP BY", ("expressions",))
    keys = []
    for node in group.expressions:
        position = _position(node, items, rows.context, "GROUP BY")
        if isinstance(node, exp.Column) and not node.table:
            name = name_of(node)
            if not any(scope.column(name) for scope in rows.scopes):
                named = [number for number, item in enumerate(items) if item.name == name]
                position = named[0] if named else None
        if position is None:
            keys.append(rows.scalars.value(node))
        else:
            keys.append(value_of(items[position], rows))
    return keys


def _position(node: exp.Expr, items: Sequence[Item], context: Context, clause: str) -> int | None:
    if not isinstance(node, exp.Literal) or node.is_string or not node.name.isdigit():
        return None
    if not 1 <= int(node.name) <= len(items):
        raise wrong(node, context, f"{clause} position {node.name} is not in the SELECT list")
    return int(node.name) - 1


def value_of(item: Item, rows: Rows) -> Expr:
    """An output over the rows."""
    if item.node is not None:
        return rows.scalars.value(item.node)
    assert item.column is not None
    return item.column


def group(rows: Rows, keys: Sequence[Expr], items: Sequence[Item], nodes: Sequence[exp.Expr],
          steps: Steps) -> tuple[Rows, list[Item]]:
    """One row per group: its keys, and the aggregates in `nodes`."""
    inputs = Inputs()
    by = [inputs.column(key) for key in keys]
    calls = [call for node in nodes for call in _topmost(node, rows.bound)]
    computed = [aggregate(call, rows.scalars, inputs) for call in calls]
    made = rows.evaluate(steps, inputs.values)
    parts = [part for call in computed for part in call.parts]
    texts = [*by, *(text for text, _ in parts)] or ["count(*)"]
    types = [made.columns[int(name[1:]) - 1].type for name in by] + [type for _, type in parts]
    text = f'SELECT {_named(texts)} FROM "{made.name}"'
    if by:
        text += f" GROUP BY {', '.join(dict.fromkeys(by))}"
    scan = steps.compute(text, types).scan(rows.context.aliases)
    columns = dict(zip(keys, scan.columns, strict=False))
    bound = {**rows.bound, **_values(calls, computed, scan.columns[len(keys):])}
    after = Rows(scan, (Scope(),), rows.context, bound, rows.singles)
    for node in nodes:
        _mark(node, rows, columns, bound)
    outputs = [item if item.column is None else replace(item, column=_grouped(item, columns, rows)) for item in items]
    return after, outputs


def _grouped(item: Item, columns: dict[Expr, Column], rows: Rows) -> Expr:
    if item.column not in columns:
        raise wrong(None, rows.context, f"column {item.name} is neither grouped nor in an aggregate", GROUPED)
    return columns[item.column]


def _mark(node: exp.Expr, rows: Rows, columns: dict[Expr, Column], bound: dict[int, Expr]) -> None:
    """Bind what is a key of the groups, top down; a column that is not is refused."""
    if id(node) in bound:
        return
    value = _value_before(node, rows)
    if value in columns:
        bound[id(node)] = columns[value]
        return
    if isinstance(node, exp.Column):
        rows.scalars.value(node)  # an unknown name is reported as such
        written = node.sql("materialize")
        raise wrong(node, rows.context, f"column {written} is neither grouped nor in an aggregate", GROUPED)
    for child in node.iter_expressions():
        _mark(child, rows, columns, bound)


def _value_before(node: exp.Expr, rows: Rows) -> Expr | None:
    """The node's value over the rows before they are grouped; None where it is a constant, or not a value there."""
    if type(node) not in HANDLERS or isinstance(node, (exp.Literal, exp.Null, exp.Boolean)):
        return None
    inner = node.walk(prune=lambda item: id(item) in rows.bound)
    if any(is_aggregate(item) or _is_window(item) for item in inner if id(item) not in rows.bound):
        return None
    return rows.scalars.value(node)


def _is_window(node: exp.Expr) -> bool:
    return isinstance(node, exp.Window) or (isinstance(node.parent, exp.Window) and node.arg_key == "this")


def _topmost(node: exp.Expr, bound: dict[int, Expr]) -> Iterator[exp.Expr]:
    """The aggregates in a node, outermost first, those inside subqueries and the functions of windows left out."""
    if id(node) in bound or isinstance(node, exp.Query):
        return
    if is_aggregate(node) and not isinstance(node.parent, exp.Window):
        yield node
        return
    for child in node.iter_expressions():
        yield from _topmost(child, bound)


def has_aggregates(nodes: Sequence[exp.Expr], bound: dict[int, Expr]) -> bool:
    """Whether any of the nodes aggregates rows."""
    return any(True for node in nodes for _ in _topmost(node, bound))


def windows_in(nodes: Sequence[exp.Expr], bound: dict[int, Expr]) -> list[exp.Window]:
    """The window functions in the nodes."""
    found: list[exp.Window] = []
    for node in nodes:
        inner = node.walk(prune=lambda item: id(item) in bound or isinstance(item, (exp.Query, exp.Window)))
        found += [item for item in inner if isinstance(item, exp.Window) and id(item) not in bound]
    return found


def with_windows(rows: Rows, items: Sequence[Item], nodes: Sequence[exp.Expr],
                 steps: Steps) -> tuple[Rows, list[Item], dict[str, Expr]]:
    """The rows with their window functions, and where the columns read by outputs are now."""
    inputs = Inputs()
    calls = windows_in(nodes, rows.bound)
    computed = [window(call, rows.scalars, inputs) for call in calls]
    starred = [part for item in items if item.column is not None for part in walk(item.column)]
    read = [*starred, *(part for node in nodes for part in _read(node, rows))]
    carried = list(dict.fromkeys(part for part in read if isinstance(part, Column)))
    names = [inputs.column(column) for column in carried]
    made = rows.evaluate(steps, inputs.values)
    parts = [part for call in computed for part in call.parts]
    types = [column.type for column in carried] + [type for _, type in parts]
    text = f'SELECT {_named([*names, *(text for text, _ in parts)])} FROM "{made.name}"'
    scan = steps.compute(text, types).scan(rows.context.aliases)
    moved: dict[str, Expr] = {old.name: new for old, new in zip(carried, scan.columns, strict=False)}
    bound = {number: substitute(value, moved) for number, value in rows.bound.items()}
    bound.update(_values(calls, computed, scan.columns[len(carried):]))
    outputs = [item if item.column is None else replace(item, column=substitute(item.column, moved)) for item in items]
    return Rows(scan, rows.scopes, rows.context, bound, {}), outputs, moved


def _read(node: exp.Expr, rows: Rows) -> Iterator[Expr]:
    """The columns of the rows that a node reads outside its window functions, and the parts they stand in."""
    if isinstance(node, exp.Window):
        return
    if id(node) in rows.bound or isinstance(node, exp.Column):
        yield from walk(rows.scalars.value(node))
        return
    for child in node.iter_expressions():
        yield from _read(child, rows)


def _values(calls: Sequence[exp.Expr], computed: Sequence[Computed], columns: Sequence[Column]) -> dict[int, Expr]:
    """What each call's node means over the columns of its parts."""
    values, start = {}, 0
    for call, made in zip(calls, computed, strict=True):
        values[id(call)] = made.value(columns[start:start + len(made.parts)])
        start += len(made.parts)
    return values


def _named(texts: Sequence[str]) -> str:
    return ", ".join(f"{text} AS c{number}" for number, text in enumerate(texts, 1))


def last(rows: Rows, values: Sequence[Expr], keys: Sequence[tuple[Expr, str]], on: Sequence[Expr], distinct: bool,
         limit: str, steps: Steps) -> Made:
    """The outputs, without duplicates if `distinct`, in the order of `keys`, as many as `limit` says."""
    if not keys and not on and not distinct and not limit:
        return rows.evaluate(steps, values)
    inputs = [*values, *on]
    ways = []
    for key, way in keys:
        if key not in inputs:
            if distinct:
                raise wrong(None, rows.context, "ORDER BY of SELECT DISTINCT takes its columns only", "select it, too")
            inputs.append(key)
        ways.append(f"c{inputs.index(key) + 1}{way}")
    made = rows.evaluate(steps, inputs)
    columns = ", ".join(f"c{number}" for number in range(1, len(values) + 1))
    first = ", ".join(f"c{len(values) + number}" for number in range(1, len(on) + 1))
    word = f"DISTINCT ON ({first}) " if on else "DISTINCT " if distinct else ""
    text = f'SELECT {word}{columns} FROM "{made.name}"'
    if ways:
        text += f" ORDER BY {', '.join(ways)}"
    return steps.compute(text + limit, [column.type for column in made.columns[:len(values)]])


def limit_of(query: exp.Expr, context: Context) -> str:
    """LIMIT and OFFSET as DuckDB writes them; constants only."""
    limit, offset, text = query.args.get("limit"), query.args.get("offset"), ""
    if limit is not None:
        options = limit.args.get("limit_options")
        count = limit.args.get("count") if isinstance(limit, exp.Fetch) else limit.expression
        if options and (options.args.get("with_ties") or options.args.get("percent")):
            raise context.refuse(query, "FETCH ... WITH TIES is not supported", "write LIMIT")
        text += f" LIMIT {_count(count, context)}" if not _is_all(count) else ""
    if offset is not None:
        text += f" OFFSET {_count(offset.expression, context)}"
    return text


def _is_all(node: exp.Expr | None) -> bool:
    return isinstance(node, exp.Null) or (isinstance(node, exp.Var) and node.name.upper() == "ALL")


def _count(node: exp.Expr | None, context: Context) -> str:
    if node is None:
        return "1"
    if isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit():
        return str(node.name)
    raise context.refuse(node, "LIMIT and OFFSET take a number")


def keys_of(order: exp.Expr | None, items: Sequence[Item], context: Context) -> list[Key]:
    """The keys of ORDER BY."""
    nodes = order.expressions if order is not None else []
    return [key_of(node.this, items, context, direction(node)) for node in nodes]
