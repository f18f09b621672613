"""Refuses SQL that views do not maintain, and says what to write instead."""

from __future__ import annotations

from typing import NamedTuple

from sqlglot import exp

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.bind.context import ON_TOP, Context
from halfjoin.sql.functions.aggregates import is_aggregate_name
from halfjoin.sql.functions.refused import FOREIGN
from halfjoin.sql.functions.table import ALIASES, ENTRIES
from halfjoin.sql.functions.window_functions import WINDOW_FUNCTIONS
from halfjoin.sql.parse.locate import only, written
from halfjoin.sql.parse.syntax import TableArgument
from halfjoin.sql.relation import Relation
from halfjoin.sql.schema import Schema


class Unmaintained(NamedTuple):
    """SQL that views do not maintain: its name with a verb (`EXISTS is`), and a reason."""

    what: str
    why: str = " yet"


REFUSED_CLAUSES = {  # queries refuse them as well, but for locks
    "locks": ("a view locks no rows", "leave FOR UPDATE out: a read never sees half a batch"),
    "into": ("SELECT INTO is not supported", "write CREATE MATERIALIZED VIEW ... AS SELECT"),
    "laterals": ("LATERAL VIEW is not supported", "write a table function in FROM"),
}
_INSTEAD = {  # joins of other dialects
    "SEMI": "write WHERE EXISTS (SELECT FROM u WHERE ...)", "ANTI": "write WHERE NOT EXISTS (SELECT FROM u WHERE ...)",
    "ASOF": "write LEFT JOIN LATERAL (SELECT ... FROM u WHERE u.at <= t.at ORDER BY u.at DESC LIMIT 1) AS u ON true",
}  # fmt: skip
CLAUSES = ("distinct", "group", "having", "windows", "qualify", "order", "limit", "offset")
EXPRESSIONS: dict[type[exp.Expr], tuple[str | Unmaintained, str | None]] = {
    exp.Subquery: (Unmaintained("a subquery as a value is"), "join with it in FROM"),
    exp.Select: (Unmaintained("a subquery as a value is"), "join with it in FROM"),
    exp.Union: (Unmaintained("a subquery as a value is"), "join with it in FROM"),
    exp.Exists: (Unmaintained("EXISTS is"), "join with the table on its key, or " + ON_TOP),
    exp.All: (Unmaintained("ALL (subquery) is"), ON_TOP),
    exp.Any: ("ANY stands behind a comparison or LIKE only", "write OR between conditions, or one pattern: s ~ 'a|b'"),
    exp.Placeholder: ("there is no value for this parameter", "give it to execute(sql, params) or query(sql, params)"),
    exp.Parameter: ("there is no value for this parameter", "give it to execute(sql, params) or query(sql, params)"),
    exp.Star: ("* is not a value", "name the columns"),
    TableArgument: ("TABLE is the argument of a reduce, in FROM", "name columns"),
    exp.BitString: ("bit strings are not supported", "write an integer, or a bytea: '\\x05'"),
}


def refuse_clauses(query: exp.Select, context: Context) -> None:
    """Refuse a SELECT with a clause that is not supported."""
    for key, (reason, instead) in REFUSED_CLAUSES.items():
        if query.args.get(key) and (key != "locks" or context.now is None):
            raise context.refuse(_where(query, key), reason, instead)
    only(query, context.sql, "a view", ("expressions", "from_", "joins", "where", "with_", "locks", *CLAUSES))


def _where(query: exp.Expr, key: str) -> exp.Expr:
    """The clause if it has a place in the text, or else the query."""
    value = query.args[key]
    node: exp.Expr = value[0] if isinstance(value, list) else value
    return node if node.find(exp.Identifier, exp.Literal) else query


def _refusal(node: exp.Expr, reason: str | Unmaintained, remedy: str | None, context: Context) -> UnsupportedSQL:
    if isinstance(reason, Unmaintained):
        return context.unmaintained(node, reason.what, remedy, reason.why)
    return context.refuse(node, reason, remedy)


def refuse_set_operation(query: exp.SetOperation, context: Context) -> None:
    """Refuse clauses of a set operation that are not supported."""
    only(query, context.sql, "a view", ("this", "expression", "with_", "distinct", "order", "limit", "offset"))


def refuse_lateral(base: Relation | None, query: exp.Expr, context: Context) -> None:
    """Refuse a LATERAL subquery that groups, orders or limits the rows for each row to its left."""
    if base is not None:
        raise context.unmaintained(query, "LATERAL with aggregates, windows, DISTINCT or LIMIT is", ON_TOP)


def side_of(join: exp.Join) -> str:
    """LEFT, RIGHT, FULL, or nothing for an inner join."""
    return str(join.text("side") or "").upper()


def refuse_join(join: exp.Join, context: Context) -> None:
    """Refuse a cross join with a condition, and another join without one."""
    side, kind = side_of(join), (join.text("kind") or "").upper()
    if kind == "OUTER" and not side:
        raise context.unmaintained(join.this, f"{' '.join(filter(None, (side, kind)))} JOIN is",
                                   "use it in a query (SELECT) over the views")
    if kind not in ("", "INNER", "CROSS", "OUTER") or join.text("method") not in ("", "NATURAL"):
        word = kind or join.text("method")
        raise context.refuse(join.this, f"{word} JOIN is not supported", _INSTEAD.get(word, "write JOIN ... ON"))
    only(join, context.sql, "a join", ("this", "on", "using", "kind", "method", "side"))
    conditions = bool(join.args.get("on")) + bool(join.args.get("using")) + bool(join.text("method"))
    if kind == "CROSS" and conditions:
        raise context.refuse(join.this, "CROSS JOIN takes no condition", "write JOIN ... ON")
    if kind != "CROSS" and not join.meta.get("comma") and conditions != 1:
        raise context.refuse(join.this, "JOIN needs ON or USING", "write JOIN ... ON condition, or CROSS JOIN").with_(
            code="42601")


def refuse_expression(node: exp.Expr, context: Context) -> Exception:
    """The error for an expression that the binder has no rule for."""
    if isinstance(node, exp.Exists) and isinstance(node.parent, exp.Not):
        return context.unmaintained(node, "NOT EXISTS is", ON_TOP)
    if isinstance(node, (exp.Window, exp.Filter, exp.WithinGroup)):
        return misplaced_call(node, context)
    if isinstance(node, exp.Query) or type(node) in EXPRESSIONS:
        reason, instead = EXPRESSIONS.get(type(node), EXPRESSIONS[exp.Subquery])
        return _refusal(node, reason, instead, context)
    text = written(node)
    return context.refuse(node, f"{text if len(text) <= 60 else node.key} is not supported",
                          "`halfjoin functions` lists the functions and operators")


def refuse_function(name: str, node: exp.Expr, context: Context) -> None:
    """Refuse a call of an aggregate or window function, or of `if`, which other dialects have."""
    if is_aggregate_name(name, context.schema) or name in WINDOW_FUNCTIONS:
        raise misplaced_call(node, context)
    if context.schema.reduce(name) is not None:
        raise context.refuse(node, f"{name} is a reduce, which is not a value",
                             f"write it in FROM: FROM {name}(TABLE t PARTITION BY k)")
    if name == "grouping":
        raise context.wrong(node, "arguments to GROUPING must be grouping expressions of the associated query level",
                            "write grouping(k) in a query with GROUP BY k")
    if name == "if":
        raise context.refuse(node, "PostgreSQL has no function if", "write CASE WHEN condition THEN a ELSE b END")


def misplaced_call(node: exp.Expr, context: Context) -> UnsupportedSQL:
    """The error for an aggregate or a window function at a place that does not allow it, in PostgreSQL's words."""
    call = node
    while not isinstance(call, exp.Anonymous):
        call = call.this
    name = call.name.lower()
    aggregate = is_aggregate_name(name, context.schema)
    window = isinstance(node, exp.Window) or not aggregate
    if context.now is not None and context.schema.aggregate(name) is not None:
        return context.refuse(node, f"a query cannot call {name}, an aggregate of the user's",
                              "call it in a materialized view, and query the view")
    if not aggregate and name not in WINDOW_FUNCTIONS:
        clause, kind = "FILTER", "not an aggregate function"
        if isinstance(node, exp.WithinGroup):
            clause = "WITHIN GROUP"
        if isinstance(node, exp.Window):
            clause, kind = "OVER", "neither a window function nor an aggregate function"
        code = "42809" if name in (*ENTRIES, *ALIASES) else "42883"
        instead = f"PostgreSQL has no such function; write {FOREIGN[name]}" if name in FOREIGN else None
        return context.wrong(node, f"{clause} specified, but {name} is {kind}", instead).with_(code=code)
    if not aggregate and not isinstance(node, exp.Window):
        return context.wrong(node, f"window function {name} requires an OVER clause", f"write {name}(...) OVER (...)")
    return context.wrong(node, _misplaced(node, "window" if window else "aggregate", context.schema))


def _is_known(name: str, schema: Schema) -> bool:
    return is_aggregate_name(name, schema) or name in WINDOW_FUNCTIONS


def _misplaced(node: exp.Expr, kind: str, schema: Schema) -> str:
    """Why the call may not be here, from what is around it."""
    parent = node.parent
    while parent is not None and not isinstance(parent, (exp.Query, exp.Values)):
        match parent:
            case exp.Where() if isinstance(parent.parent, exp.Filter):
                return f"{kind} functions are not allowed in FILTER"
            case exp.Where() | exp.Having():
                return f"{kind} functions are not allowed in {parent.key.upper()}"
            case exp.Group():
                return f"{kind} functions are not allowed in GROUP BY"
            case exp.Join():
                return f"{kind} functions are not allowed in JOIN conditions"
            case exp.Anonymous() if _is_known(parent.name.lower(), schema):
                around: exp.Expr = parent
                while isinstance(around.parent, (exp.Filter, exp.IgnoreNulls, exp.RespectNulls)):
                    around = around.parent
                if isinstance(around.parent, exp.Window) or kind == "aggregate":
                    return f"{kind} function calls cannot be nested"
                return "aggregate function calls cannot contain window function calls"
            case exp.Window():
                return f"{kind} function calls cannot be nested"
        parent = parent.parent
    return f"{kind} functions are not allowed here"
