"""SEARCH and CYCLE of WITH RECURSIVE, as PostgreSQL defines them: both are columns that the query itself could keep.

    r AS (first UNION second) CYCLE a, b SET mark TO v DEFAULT w USING path

is a query whose rows also have the path of `(a, b)` that has led to them. A row that has been on its path is marked,
and leads no further. SEARCH keeps a column to order by: DEPTH FIRST the path, BREADTH FIRST the number of steps, then
the row. So each arm becomes a subquery, and what it selects gets the new columns:

    SELECT x.*, w, ARRAY[row(x.a, x.b)] FROM (first) x
    SELECT y.*, CASE WHEN row(y.a, y.b) = ANY(y.path) THEN v ELSE w END, array_append(y.path, row(y.a, y.b))
    FROM (second, with r.path, and WHERE r.mark <> v) y

There are no row types. An element of a path is the row's text as PostgreSQL writes it: `(1,"a b")`, in a text[]. Such
texts are equal if the rows are; NULL equals NULL there. The column of SEARCH is an array that orders as PostgreSQL's
does: a bigint[] if it searches by integers; otherwise a text[] of texts that order as the values, in which integers
have 20 digits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from halfjoin.errors import UnknownName
from halfjoin.sql.bind import select as bind_select  # for its parts: the two modules call each other
from halfjoin.sql.bind.context import Context
from halfjoin.sql.bind.recursion import held, reads
from halfjoin.sql.bind.scope import Scope
from halfjoin.sql.bind.selected import known
from halfjoin.sql.parse.locate import as_query, name_of
from halfjoin.sql.parse.parse import parse_query
from halfjoin.sql.parse.syntax import Cycle, OrderText, Search
from halfjoin.sql.types import BIGINT, INTEGERS, STRINGS, Kind, SqlType

SHOWN = (*STRINGS, Kind.UNKNOWN, Kind.BOOLEAN, Kind.UUID, Kind.BYTEA)  # types whose texts order as the values do
_ORDERED = "order_text"  # in text for the parser, in place of OrderText
_QUOTED = "[\\s\"\\\\(),]"  # what PostgreSQL quotes in the text of a row


@dataclass(frozen=True)
class Added:
    """New columns. `start`, `next`: their values in the two arms, given the alias of the arm's rows; `carried`: those
    that the second arm reads of the rows that led to its own. `ends`: what keeps these, given their alias."""

    names: tuple[str, ...]
    start: Callable[[str], Sequence[str]]
    next: Callable[[str], Sequence[str]]
    carried: tuple[str, ...]
    ends: Callable[[str], str] | None = None


def rewritten(
    item: exp.CTE, context: Context, outer: tuple[Scope, ...]
) -> tuple[exp.Query, tuple[exp.Identifier, ...]]:
    """A query of WITH and the names of its columns, without SEARCH and CYCLE."""
    clauses = [item.args[key] for key in ("search", "cycle") if item.args.get(key)]
    alias, query = item.args["alias"], item.this
    given = tuple(alias.args.get("columns") or ())
    if not clauses:
        return query, given
    name = name_of(alias.this)
    arms = [as_query(arm.unnest()) for arm in (query.this, query.expression)] if isinstance(query, exp.Union) else []
    if not arms or not reads(arms[1], name) or not all(isinstance(arm, exp.Select) for arm in arms):
        raise context.wrong(clauses[0], "SEARCH and CYCLE need a query that reads itself, and two SELECTs with UNION "
                                        f"between them: {name} is not one")  # fmt: skip
    first, second = arms
    selected = bind_select.select(first, context, None, outer)
    names = (*map(name_of, given), *selected.names[len(given):])
    types = dict(zip(names, (held(known(value).type) for value in selected.values), strict=False))
    added = [_searched(one, types, context) if isinstance(one, Search) else _cycled(one, types, context)
             for one in clauses]  # fmt: skip
    every = [*names, *(column for one in added for column in one.names)]
    for column in every:
        if every.count(column) > 1:
            raise context.wrong(clauses[0], f"{name} has two columns {column}")
    begin = _arm(first, "first", names, (), [value for one in added for value in one.start("first")])
    carried = [column for one in added for column in one.carried]
    inner = _leading(second, name, names, carried, added, clauses[0], context)
    go_on = _arm(inner, "next", names, carried, [value for one in added for value in one.next("next")])
    whole = exp.Union(this=begin, expression=go_on, distinct=query.args.get("distinct"))
    return whole, tuple(exp.to_identifier(column, quoted=True) for column in every)


def _arm(query: exp.Expr, alias: str, names: Sequence[str], more: Iterable[str], values: Sequence[str]) -> exp.Expr:
    """SELECT the names and values FROM the query, whose columns are the names and `more`."""
    found = _parsed(f"SELECT {', '.join([*(_of(alias, name) for name in names), *values])} FROM {alias}")
    columns = [exp.to_identifier(name, quoted=True) for name in (*names, *more)]
    below = exp.Subquery(this=query, alias=exp.TableAlias(this=exp.to_identifier(alias), columns=columns))
    found.args["from_"].set("this", below)
    return found


def _leading(
    second: exp.Expr, name: str, names: Sequence[str], carried: Iterable[str], added: Iterable[Added],
    clause: exp.Expr, context: Context,
) -> exp.Expr:  # fmt: skip
    """The second arm with the carried columns of the rows that it comes from, if these lead further."""
    tables = [second.args["from_"].this] if second.args.get("from_") else []
    tables += [join.this for join in second.args.get("joins") or ()]
    found = [table for table in tables if isinstance(table, exp.Table) and name_of(table) == name]
    if len(found) != 1:
        raise context.wrong(clause, f"SEARCH and CYCLE need {name} once in FROM of its second SELECT")
    alias = name_of(found[0].args["alias"].this) if found[0].alias else name
    own = [_value(_of(alias, column)) for column in names]
    query = second.copy()
    outputs: list[exp.Expr] = []
    for output in query.expressions:
        if isinstance(output, exp.Star) and (len(tables) > 1 or output.args.get("except_")):
            raise context.refuse(output, "* of several tables is not supported beside SEARCH and CYCLE",
                                 "write t.* for each of them, or name the columns")
        itself = isinstance(output, exp.Star) or (output.is_star and name_of(output.args["table"]) == alias)
        outputs += own if itself else [output]  # its other columns are not the user's
    query.set("expressions", [*outputs, *(_value(_of(alias, column)) for column in carried)])
    conditions = [_value(one.ends(alias)) for one in added if one.ends is not None]
    if query.args.get("where"):
        conditions.insert(0, exp.Paren(this=query.args["where"].this))
    if conditions:
        query.set("where", exp.Where(this=exp.and_(*conditions, copy=False)))
    return query


def _cycled(clause: Cycle, types: dict[str, SqlType], context: Context) -> Added:
    columns = _columns(clause, types, context)
    mark, path = name_of(clause.args["mark"]), name_of(clause.args["path"])
    yes, no = (clause.args[key].sql("postgres") if clause.args.get(key) else word
               for key, word in (("to", "true"), ("default", "false")))  # fmt: skip

    def row(alias: str) -> str:
        fields = " || ',' || ".join(_field(_of(alias, column), types[column]) for column in columns)
        return f"('(' || {fields} || ')')"

    return Added(
        (mark, path),
        lambda alias: (f"CASE WHEN false THEN {yes} ELSE {no} END", f"ARRAY[{row(alias)}]"),
        lambda alias: (f"CASE WHEN {row(alias)} = ANY({_of(alias, path)}) THEN {yes} ELSE {no} END",
                       f"array_append({_of(alias, path)}, {row(alias)})"),
        (path,),
        lambda alias: f"{_of(alias, mark)} <> {yes}",
    )  # fmt: skip


def _searched(clause: Search, types: dict[str, SqlType], context: Context) -> Added:
    columns, column = _columns(clause, types, context), name_of(clause.args["set"])
    whole = all(types[one].kind in INTEGERS for one in columns)

    def written(value: str, type: SqlType = BIGINT) -> str:
        if whole:
            return f"({value})::bigint"
        if type.kind in SHOWN:
            return f"({value})::text"
        if type.element is not None and type.element.kind in SHOWN:
            return f"{_ORDERED}(({value})::text[])"
        return f"{_ORDERED}(({value})::{BIGINT if type.kind in INTEGERS else type})"

    def row(alias: str) -> list[str]:
        return [written(_of(alias, one), types[one]) for one in columns]

    if clause.args["kind"] == "DEPTH":
        return Added(
            (column,),
            lambda alias: (f"ARRAY[{', '.join(row(alias))}]",),
            lambda alias: (f"array_cat({_of(alias, column)}, ARRAY[{', '.join(row(alias))}])",),
            (column,),
        )  # fmt: skip
    after = "{}[1] + 1" if whole else "{}[1]::numeric - 9223372036854775807"
    return Added(
        (column,),
        lambda alias: (f"ARRAY[{', '.join([written('0'), *row(alias)])}]",),
        lambda alias: (f"ARRAY[{', '.join([written(after.format(_of(alias, column))), *row(alias)])}]",),
        (column,),
    )  # fmt: skip


def _columns(clause: exp.Expr, types: dict[str, SqlType], context: Context) -> list[str]:
    columns = [name_of(node) for node in clause.expressions]
    for node, name in zip(clause.expressions, columns, strict=True):
        if name not in types:
            with context.at(node):
                raise UnknownName("column", name, types)
        if columns.count(name) > 1:
            raise context.wrong(node, f"column {name} is named twice")
    return columns


def _field(value: str, type: SqlType) -> str:
    """A value in the text of a row, as PostgreSQL writes it."""
    if type.kind is Kind.BOOLEAN:
        return f"CASE WHEN {value} THEN 't' WHEN NOT {value} THEN 'f' ELSE '' END"
    if type.kind in INTEGERS:
        return f"coalesce({value}::text, '')"
    text = f"({value} + 0)::text" if type.kind in (Kind.REAL, Kind.DOUBLE) else f"{value}::text"  # -0 equals 0
    inside = f"replace(replace({text}, '\\', '\\\\'), '\"', '\"\"')"
    return (f"CASE WHEN {value} IS NULL THEN '' WHEN {text} = '' OR {text} ~ '{_QUOTED}' "
            f"THEN '\"' || {inside} || '\"' ELSE {text} END")  # fmt: skip


def _of(alias: str, column: str) -> str:
    return ".".join('"' + part.replace('"', '""') + '"' for part in (alias, column))


def _value(text: str) -> exp.Expr:
    (value,) = _parsed(f"SELECT {text}").expressions
    found: exp.Expr = value
    return found


def _parsed(text: str) -> exp.Query:
    """A query that the user has not written: its nodes have no places."""
    query = parse_query(text)
    for node in query.walk():
        node.meta.pop("start", None)
        if isinstance(node, exp.Anonymous) and node.name == _ORDERED:
            node.replace(OrderText(this=node.expressions[0]))
    return query
