"""Random views: SELECT-FROM-WHERE as halfjoin reads it, beside the same view for the oracle.

The oracle's text computes one column more, `__w`: the product of the weights of the rows that a result row is made
of. So negative counts and `repeat_row` have an answer too, and nothing of halfjoin's own bookkeeping is reused.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tests.oracle.choice import Choices, chance
from tests.oracle.expressions import LITERALS, Bound, equality, for_halfjoin, predicate, scalar, temporal
from tests.oracle.schema import TABLES

Columns = tuple[tuple[str, str], ...]  # (name, kind)


@dataclass(frozen=True)
class Query:
    """A query in both texts."""

    columns: Columns
    sql: str
    oracle: str


@dataclass(frozen=True)
class View:
    """CREATE [MATERIALIZED] VIEW name AS query."""

    name: str
    query: Query
    materialized: bool

    @property
    def ddl(self) -> str:
        """The statement as halfjoin reads it."""
        return f"CREATE {'MATERIALIZED ' if self.materialized else ''}VIEW {self.name} AS {self.query.sql}"


@dataclass
class _Input:
    """An item of FROM."""

    alias: str
    columns: Columns
    sql: str
    oracle: str
    weight: str | None

    @property
    def scope(self) -> tuple[Bound, ...]:
        return tuple(Bound(f"{self.alias}.{name}", kind) for name, kind in self.columns)


@dataclass
class _Block:
    """One SELECT under construction."""

    choices: Choices
    names: Iterator[int]
    depth: int
    views: Sequence[View]
    inputs: list[_Input] = field(default_factory=list)
    group: list[_Input] = field(default_factory=list)  # what an ON clause may name
    sql: str = ""
    oracle: str = ""
    where: list[str] = field(default_factory=list)
    weights: list[str] = field(default_factory=list)
    ctes: list[tuple[str, Query]] = field(default_factory=list)

    @property
    def scope(self) -> tuple[Bound, ...]:
        return tuple(bound for item in self.inputs for bound in item.scope)


def random_view(choices: Choices, name: str, views: Sequence[View], materialized: bool) -> View:
    """A view over the tables and the views made so far."""
    names = itertools.count()
    arms = choices.one_of((1, 1, 1, 1, 2, 3))
    first = _select(choices, names, 1, views, None)
    queries = [first] + [_select(choices, names, 1, views, first.columns) for _ in range(arms - 1)]
    if arms == 1:
        return View(name, Query(first.columns, for_halfjoin(first.sql), first.oracle), materialized)
    sql = " UNION ALL ".join(f"({query.sql})" for query in queries)
    oracle = " UNION ALL ".join(f"({query.oracle})" for query in queries)
    return View(name, Query(first.columns, for_halfjoin(sql), oracle), materialized)


def _select(
    choices: Choices, names: Iterator[int], depth: int, views: Sequence[View], wanted: Columns | None
) -> Query:
    """One SELECT; `wanted` fixes the names and kinds of its columns."""
    block = _Block(choices, names, depth, views)
    count = choices.one_of((1, 1, 2, 2, 2, 3, 3, 4) if depth else (1, 1, 2))
    for _ in range(count):
        _add_input(block)
    for _ in range(choices.one_of((0, 0, 0, 1, 1, 2) if depth else (0, 0, 0, 1))):
        _add_function(block)
    for _ in range(choices.one_of((0, 0, 1, 1, 2) if depth else (0, 0, 1))):
        block.where.append(predicate(choices, block.scope))
    for _ in range(choices.one_of((0, 0, 0, 0, 1, 1, 2) if depth else (0, 0, 0, 1))):
        block.where.append(temporal(choices, block.scope))
    return _finish(block, wanted)


def _add_input(block: _Block) -> None:
    """One more table, view, subquery or VALUES, joined in one of the ways there are."""
    choices = block.choices
    item = _input(block)
    if not block.inputs:
        block.sql, block.oracle = item.sql, item.oracle
    else:
        how = choices.one_of((",", ",", ",", "JOIN", "JOIN", "USING", "CROSS JOIN"))
        shared = _common_names(block.group, item)
        if how == "USING" and not shared:
            how = "JOIN"
        tail = ""
        if how == "JOIN":
            scope = tuple(bound for other in block.group for bound in other.scope)
            tail = " ON " + equality(choices, scope, item.scope)
            if chance(choices, 20):
                tail += " AND " + predicate(choices, scope + item.scope, 0)
        elif how == "USING":
            tail = f" USING ({choices.one_of(shared)})"
        elif chance(choices, 85 if len(block.inputs) < 3 else 100):
            block.where.append(equality(choices, block.scope, item.scope))
        if how == ",":
            block.group = []
        keyword = {",": ", ", "CROSS JOIN": " CROSS JOIN "}.get(how, " JOIN ")
        block.sql += keyword + item.sql + tail
        block.oracle += keyword + item.oracle + tail
    block.inputs.append(item)
    block.group.append(item)
    if item.weight:
        block.weights.append(item.weight)


def _input(block: _Block) -> _Input:
    choices, alias = block.choices, f"t{next(block.names)}"
    kind = choices.one_of(("table",) * 7 + ("view",) * 4 + ("subquery",) * 2 + ("cte", "values"))
    if kind == "view" and block.views:
        view = choices.one_of(block.views)
        text = f"{view.name} AS {alias}"
        return _Input(alias, view.query.columns, text, text, f"{alias}.__w")
    if kind in ("subquery", "cte") and block.depth:
        query = _select(choices, block.names, block.depth - 1, block.views, None)
        if kind == "cte":
            name = f"q{next(block.names)}"
            block.ctes.append((name, query))
            return _Input(alias, query.columns, f"{name} AS {alias}", f"{name} AS {alias}", f"{alias}.__w")
        return _Input(alias, query.columns, f"({query.sql}) AS {alias}", f"({query.oracle}) AS {alias}", f"{alias}.__w")
    if kind == "values":
        rows = ", ".join(choices.one_of(("(1, 'a')", "(2, NULL)", "(NULL, 'b')", "(3, 'ab')"))
                         for _ in range(choices.integer(1, 3)))
        text = f"(VALUES (0, ''), {rows}) AS {alias}(v, w)"
        return _Input(alias, (("v", "int"), ("w", "text")), text, text, None)
    table = choices.one_of(TABLES)
    text = f"{table.name} AS {alias}"
    return _Input(alias, tuple((c.name, c.kind) for c in table.columns), text, text, f"{alias}.__w")


def _common_names(group: list[_Input], item: _Input) -> list[str]:
    """The columns of the item that exactly one input to its left also has, with the same kind."""
    left = [column for other in group for column in other.columns]
    return [name for name, kind in item.columns
            if kind != "array" and [n for n, _ in left].count(name) == 1 and (name, kind) in left]


def _add_function(block: _Block) -> None:
    """A table function over the inputs to its left."""
    choices, alias = block.choices, f"f{next(block.names)}"
    arrays = [bound.text for bound in block.scope if bound.kind == "array"]
    small = [b.text for b in block.scope if b.kind == "int" and not b.text.endswith((".lo", ".hi"))]
    form = choices.one_of(("repeat_row", "generate_series", "generate_series", "unnest"))
    block.group = []
    lateral = choices.one_of(("", "LATERAL "))
    if form == "repeat_row" and small:
        n = choices.one_of(small)
        named = f" AS {alias}" if " repeat_row(" in block.sql else ""
        block.sql += f", {lateral}repeat_row({n}){named}"
        block.weights.append(f"coalesce({n}, 0)")
        return
    if form == "unnest" and arrays:
        array = choices.one_of(arrays)
        if chance(choices, 40):
            block.sql += f", {lateral}unnest({array}) WITH ORDINALITY AS {alias}(u, o)"
            oracle = f"SELECT unnest({array}) AS u, unnest(range(1, len({array}) + 1)) AS o"
            columns: Columns = (("u", "int"), ("o", "int"))
        else:
            block.sql += f", {lateral}unnest({array}) AS {alias}(u)"
            oracle, columns = f"SELECT unnest({array}) AS u", (("u", "int"),)
    else:
        start, stop = (choices.one_of(small) if small and chance(choices, 60) else d for d in ("0", "2"))
        step = choices.one_of(("", "", ", 2", ", -1"))
        block.sql += f", {lateral}generate_series({start}, {stop}{step}) AS {alias}(g)"
        oracle = f"SELECT unnest(generate_series({start}::bigint, {stop}::bigint{step})) AS g"
        columns = (("g", "int"),)
    block.oracle += f", LATERAL ({oracle}) AS {alias}"
    item = _Input(alias, columns, "", "", None)
    if len(block.inputs) > 1 and chance(choices, 50):
        block.where.append(equality(choices, block.scope, item.scope))
    block.inputs.append(item)


def _finish(block: _Block, wanted: Columns | None) -> Query:
    choices, scope = block.choices, block.scope
    items = _items(choices, block, wanted)
    columns: Columns = tuple((name, kind) for name, kind, _, _ in items)
    weight = " * ".join(block.weights) or "1"
    listed = ", ".join(f"{sql} AS {name}" for name, _, sql, _ in items)
    if wanted is None and len(block.inputs) == 1 and chance(choices, 40):
        items = [(bound.text.split(".")[1], bound.kind, bound.text, bound.text) for bound in scope]
        columns = tuple((name, kind) for name, kind, _, _ in items)
        listed = choices.one_of(("*", f"{block.inputs[0].alias}.*"))
    where = f" WHERE {' AND '.join(block.where)}" if block.where else ""
    sql = f"SELECT {listed} FROM {block.sql}{where}"
    answers = ", ".join(f"{oracle} AS {name}" for name, _, _, oracle in items)
    oracle = f"SELECT {answers}, {weight} AS __w FROM {block.oracle}{where}"
    if block.ctes:
        sql = "WITH " + ", ".join(f"{name} AS ({query.sql})" for name, query in block.ctes) + f" {sql}"
        oracle = "WITH " + ", ".join(f"{name} AS ({query.oracle})" for name, query in block.ctes) + f" {oracle}"
    return Query(columns, sql, oracle)


def _items(choices: Choices, block: _Block, wanted: Columns | None) -> list[tuple[str, str, str, str]]:
    """(name, kind, halfjoin's text, the oracle's text) of each result column."""
    scope = block.scope
    if wanted is None:
        kinds = [bound.kind for bound in scope]
        wanted = tuple((f"c{i}", choices.one_of(kinds)) for i in range(choices.integer(1, 4)))
    items = []
    for name, kind in wanted:
        if kind == "array":
            arrays = [bound.text for bound in scope if bound.kind == "array"]
            text = choices.one_of(arrays) if arrays else "ARRAY[1, 2]"
            items.append((name, kind, text, text))
        elif any(bound.kind == kind for bound in scope):
            text = scalar(choices, scope, kind)
            items.append((name, kind, text, text))
        else:
            text = choices.one_of(LITERALS[kind])
            items.append((name, kind, text, text))
    if items[-1][1] == "int" and chance(choices, 8):
        name, kind, text, _ = items[-1]
        items[-1] = (name, kind, f"generate_series(1, {text})", f"unnest(generate_series(1, ({text})::bigint))")
    return items
