"""GROUP BY of queries: finds its sets of keys, and computes one row for each group of each set."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations, product

from sqlglot import exp

from halfjoin.sql import functions
from halfjoin.sql.adhoc.calls import Inputs, aggregate, is_aggregate
from halfjoin.sql.adhoc.script import Made, Steps, wrong
from halfjoin.sql.adhoc.select import Item, SelectRows, named, position, value_of, values_of
from halfjoin.sql.bind.scalar import HANDLERS
from halfjoin.sql.expr import Column, Expr, columns_of
from halfjoin.sql.parse.locate import name_of, only, written
from halfjoin.sql.relation import Filter, Join
from halfjoin.sql.types import BIGINT, INTEGER

GROUPED = "add it to GROUP BY, or use it inside an aggregate"
_MOST_SETS = 4096

Set = tuple[int, ...]  # the positions of a set's keys


def keys_of_groups(query: exp.Select, items: Sequence[Item], rows: SelectRows) -> tuple[list[Expr], list[Set]]:
    """The keys of GROUP BY, and its sets of keys: each combination of the sets of its parts."""
    group = query.args.get("group")
    if group is None:
        return [], [()]
    only(group, rows.context.sql, "GROUP BY", ("expressions", "all"))
    if group.args.get("all"):
        raise rows.context.refuse(group, "GROUP BY ALL is not supported", "name the keys")
    keys: list[Expr] = []

    def key(node: exp.Expr) -> int:
        value = _key(node, items, rows)
        if value not in keys:
            keys.append(value)
        return keys.index(value)

    def simple(node: exp.Expr) -> Set:
        nodes = node.expressions if isinstance(node, exp.Tuple) else [node]
        return tuple(key(part) for part in nodes)

    def sets(node: exp.Expr) -> list[Set]:
        match node:
            case exp.GroupingSets():
                return [made for part in node.expressions for made in sets(part)]
            case exp.Rollup():
                parts = [simple(part) for part in node.expressions]
                return [sum(parts[:count], ()) for count in range(len(parts), -1, -1)]
            case exp.Cube():
                parts = [simple(part) for part in node.expressions]
                if 2 ** len(parts) > _MOST_SETS:
                    raise wrong(node, rows.context, f"GROUP BY has more than {_MOST_SETS} sets of keys")
                return [sum(some, ()) for count in range(len(parts), -1, -1) for some in combinations(parts, count)]
        return [simple(node)]

    made: list[Set] = [()]
    for node in group.expressions:
        made = [(*before, *after) for before, after in product(made, sets(node))]
        if len(made) > _MOST_SETS:
            raise wrong(group, rows.context, f"GROUP BY has more than {_MOST_SETS} sets of keys")
    made = [tuple(dict.fromkeys(one)) for one in made]
    if group.args.get("all") is False:  # GROUP BY DISTINCT
        made = list({frozenset(one): one for one in made}.values())
    return keys, made


def _key(node: exp.Expr, items: Sequence[Item], rows: SelectRows) -> Expr:
    """The value of a key: a position of an output, a column or expression over the rows, or else an output's name."""
    if isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
        raise rows.context.refuse(node, "GROUP BY of a whole row is not supported", "name its columns")
    number = position(node, items, rows.context, "GROUP BY")
    if isinstance(node, exp.Column) and not node.table and not rows.scopes[0].column(name_of(node)):
        called = [place for place, item in enumerate(items) if item.name == name_of(node)]
        number = called[0] if called else None
    return rows.scalars.value(node) if number is None else value_of(items[number], rows)


def grouped_nodes(group: exp.Group | None, items: Sequence[Item], rows: SelectRows) -> list[exp.Expr]:
    """The nodes of GROUP BY, including the outputs that it names by position."""
    nodes: list[exp.Expr] = [] if group is None else [group]
    for node in group.expressions if group is not None else ():
        number = position(node, items, rows.context, "GROUP BY")
        if number is not None and (item := items[number].node) is not None:
            nodes.append(item)
    return nodes


def group(rows: SelectRows, keys: Sequence[Expr], sets: Sequence[Set], items: Sequence[Item], nodes: Sequence[exp.Expr],
          steps: Steps) -> tuple[SelectRows, list[Item]]:
    """Compute one row per group: its keys, and the aggregates in `nodes`."""
    inputs = Inputs()
    tags = [inputs.column(rows.base.tag)] if rows.base else []
    by = [inputs.column(key) for key in keys]
    calls = topmost_of(nodes, rows.bound)
    for call in calls:
        _check_own(call, rows)
    computed = [aggregate(call, rows.scalars, inputs) for call in calls]
    parts = [part for call in computed for part in call.parts] or [("count(*)", BIGINT)]
    made = rows.evaluate(steps, inputs.values)
    types = [made.columns[int(name[1:]) - 1].type for name in (*tags, *by)] + [type for _, type in parts]
    asked = [call for node in nodes for call in _groupings(node, rows.bound)]
    members = [[_member(node, keys, rows) for node in call.expressions] for call in asked]
    texts = []
    for one in sets:
        values = [*(text for text, _ in parts), *(_grouping(member, one) for member in members)]
        texts.append(_text(made, tags, by, one, values, rows, steps))
    types += [INTEGER] * len(asked)
    scan = steps.compute(" UNION ALL ".join(texts), types).scan(rows.context.aliases)
    found = scan.columns[len(tags):]
    columns = dict(zip(keys, found, strict=False))
    bound = {**rows.bound, **values_of(calls, computed, found[len(keys):])}
    bound.update((id(call), column) for call, column in zip(asked, found[len(found) - len(asked):], strict=True))
    after = rows.over(scan, {key.name: column for key, column in columns.items() if isinstance(key, Column)}, bound)
    if rows.base is not None:  # join the outer query's columns back, by the number of their row
        equal = functions.resolve("=", (rows.base.tag, scan.columns[0]))
        after.relation = Filter(Join((rows.base.relation, scan)), equal)
    for node in nodes:
        _mark(node, rows, columns, after.bound)
    outputs = [item if item.column is None else replace(item, column=_grouped(item, columns, rows)) for item in items]
    return after, outputs


def _text(
    made: Made, tags: list[str], by: list[str], kept: Set, parts: list[str], rows: SelectRows, steps: Steps
) -> str:
    """DuckDB's text for the groups of one set. A set without keys has one group, even of no rows, for each tag."""
    columns = [*tags, *(name if place in kept else "NULL" for place, name in enumerate(by)), *parts]
    text = f'SELECT {named(columns)} FROM "{made.name}"'
    grouped = list(dict.fromkeys([*tags, *(by[place] for place in kept)]))
    if grouped:
        text += f" GROUP BY {', '.join(grouped)}"
    if kept or rows.base is None:
        return text
    every = steps.evaluate(rows.base.relation, [rows.base.tag])
    empty = f'SELECT {named(parts)} FROM "{made.name}" WHERE false'
    start = len(tags) + len(by)
    chosen = ["d.c1", *["NULL"] * len(by), *(
        f"CASE WHEN g.c1 IS NULL THEN e.c{place} ELSE g.c{start + place} END" for place in range(1, len(parts) + 1))]
    return f'SELECT {named(chosen)} FROM "{every.name}" d CROSS JOIN ({empty}) e LEFT JOIN ({text}) g ON g.c1 = d.c1'


def _groupings(node: exp.Expr, bound: dict[int, Expr]) -> Iterator[exp.Anonymous]:
    """The calls of GROUPING outside subqueries."""
    for part in node.walk(prune=lambda part: isinstance(part, exp.Query) or id(part) in bound):
        if isinstance(part, exp.Anonymous) and part.name.lower() == "grouping":
            yield part


def _member(node: exp.Expr, keys: Sequence[Expr], rows: SelectRows) -> int:
    value = rows.scalars.value(node)
    if value not in keys:
        raise wrong(node, rows.context, "GROUPING takes keys of GROUP BY only")
    return keys.index(value)


def _grouping(members: Sequence[int], kept: Set) -> str:
    """The value of GROUPING: one bit for each argument, the first the highest, set if the key is not in the set."""
    return str(sum(1 << place for place, key in enumerate(reversed(members)) if key not in kept))


def _check_own(call: exp.Expr, rows: SelectRows) -> None:
    """Refuse an aggregate that reads only columns of an outer query, since it belongs to that query."""
    if rows.base is None:
        return
    around = {column.name for column in rows.base.relation.columns}
    read = [columns_of(rows.scalars.value(node)) for node in call.find_all(exp.Column)]
    if read and all(names <= around for names in read):
        raise rows.context.refuse(call, "an aggregate over columns of an outer query is not supported",
                                  "compute it in that query, in a subquery in FROM")


def _grouped(item: Item, columns: dict[Expr, Column], rows: SelectRows) -> Expr:
    if item.column not in columns:
        raise wrong(None, rows.context, f"column {item.name} is neither grouped nor in an aggregate", GROUPED)
    return columns[item.column]


def _mark(node: exp.Expr, rows: SelectRows, columns: dict[Expr, Column], bound: dict[int, Expr]) -> None:
    """Bind the keys in a node to the groups' columns, top down; refuse other columns. Subqueries are bound later."""
    if id(node) in rows.bound:
        known = rows.bound[id(node)]
        if known in columns:
            bound[id(node)] = columns[known]
        elif columns_of(known) & {column.name for column in rows.relation.columns}:
            raise wrong(node, rows.context, "a value is neither grouped nor in an aggregate", GROUPED)
        return
    if id(node) in bound or isinstance(node, exp.Query):
        return
    value = _value_before(node, rows)
    if value in columns:
        bound[id(node)] = columns[value]
        return
    if isinstance(node, exp.Column):
        own = rows.scalars.value(node)  # an unknown name raises here
        if rows.base is not None and columns_of(own) <= {column.name for column in rows.base.relation.columns}:
            bound[id(node)] = own
            return
        raise wrong(node, rows.context, f"column {written(node)} is neither grouped nor in an aggregate", GROUPED)
    for child in node.iter_expressions():
        _mark(child, rows, columns, bound)


def _value_before(node: exp.Expr, rows: SelectRows) -> Expr | None:
    """The node's value over the rows before grouping; None for a constant, and for a node that is not a value there."""
    if type(node) not in HANDLERS or isinstance(node, (exp.Literal, exp.Null, exp.Boolean)):
        return None
    inner = node.walk(prune=lambda item: id(item) in rows.bound)
    if any(is_aggregate(item) or isinstance(item, exp.Query) or _is_window(item)
           for item in inner if id(item) not in rows.bound):
        return None
    return rows.scalars.value(node)


def _is_window(node: exp.Expr) -> bool:
    return isinstance(node, exp.Window) or (isinstance(node.parent, exp.Window) and node.arg_key == "this")


def topmost(node: exp.Expr, bound: dict[int, Expr]) -> Iterator[exp.Expr]:
    """The outermost aggregates in a node, except those inside subqueries and those used as window functions."""
    if id(node) in bound or isinstance(node, exp.Query):
        return
    if is_aggregate(node) and not isinstance(node.parent, exp.Window):
        yield node
        return
    beside = []
    while is_aggregate(node) and isinstance(node, (exp.Filter, exp.WithinGroup)):
        beside.append(node.expression)
        node = node.this
    for child in [*node.iter_expressions(), *beside]:
        yield from topmost(child, bound)


def topmost_of(nodes: Sequence[exp.Expr], bound: dict[int, Expr]) -> list[exp.Expr]:
    """The topmost aggregates of several nodes."""
    return [call for node in nodes for call in topmost(node, bound)]


def has_aggregates(nodes: Sequence[exp.Expr], bound: dict[int, Expr]) -> bool:
    """Whether any of the nodes contains an aggregate."""
    return bool(topmost_of(nodes, bound))
