"""Refuses SQL that views do not maintain, and says what to write instead."""

from __future__ import annotations

from typing import NamedTuple

from sqlglot import exp

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.bind.context import Context
from halfjoin.sql.parse.locate import only, written

ON_TOP = "use it in a query (SELECT) over the view"
AGGREGATES = frozenset((
    "array_agg", "avg", "bit_and", "bit_or", "bool_and", "bool_or", "count", "every", "jsonb_agg", "json_agg", "max",
    "min", "mode", "percentile_cont", "percentile_disc", "stddev", "stddev_pop", "stddev_samp", "string_agg", "sum",
    "var_pop", "var_samp", "variance",
))
WINDOW_FUNCTIONS = frozenset((
    "cume_dist", "dense_rank", "first_value", "lag", "last_value", "lead", "nth_value", "ntile", "percent_rank", "rank",
    "row_number",
))


class Unmaintained(NamedTuple):
    """SQL that views do not maintain: its name with a verb (`ORDER BY is`), and a reason (`: a view has no order`)."""

    what: str
    why: str = " yet"


REFUSED_CLAUSES = {  # queries refuse them as well
    "qualify": ("PostgreSQL has no QUALIFY", "write a subquery in FROM, and WHERE over it"),
    "locks": ("FOR UPDATE is not supported", "leave it out: a read never sees half a batch"),
    "into": ("SELECT INTO is not supported", "write CREATE MATERIALIZED VIEW ... AS SELECT"),
    "laterals": ("LATERAL VIEW is not supported", "write a table function in FROM"),
}
CLAUSES: dict[str, tuple[str | Unmaintained, str]] = {
    "distinct": (Unmaintained("DISTINCT is"), ON_TOP),
    "group": (Unmaintained("GROUP BY is"), ON_TOP),
    "having": (Unmaintained("HAVING is"), ON_TOP),
    "windows": (Unmaintained("window functions are"), ON_TOP),
    "order": (Unmaintained("ORDER BY is", ": a view has no order"), "leave it out, or " + ON_TOP),
    "limit": (Unmaintained("LIMIT is"), ON_TOP),
    "offset": (Unmaintained("OFFSET is"), ON_TOP),
    "fetch": (Unmaintained("FETCH is"), ON_TOP),
    **{key: REFUSED_CLAUSES[key] for key in ("locks", "into", "laterals")},
}
SET_OPERATIONS: dict[type[exp.Expr], tuple[str | Unmaintained, str]] = {
    exp.Union: (Unmaintained("UNION is", " yet, since it removes duplicates"), "write UNION ALL, or " + ON_TOP),
    exp.Intersect: (Unmaintained("INTERSECT is"), "write a join, if one side has no duplicates, or " + ON_TOP),
    exp.Except: (Unmaintained("EXCEPT is"), ON_TOP),
}
EXPRESSIONS: dict[type[exp.Expr], tuple[str | Unmaintained, str | None]] = {
    exp.Subquery: (Unmaintained("a subquery as a value is"), "join with it in FROM"),
    exp.Select: (Unmaintained("a subquery as a value is"), "join with it in FROM"),
    exp.Union: (Unmaintained("a subquery as a value is"), "join with it in FROM"),
    exp.Exists: (Unmaintained("EXISTS is"), "join with the table on its key, or " + ON_TOP),
    exp.All: (Unmaintained("ALL (subquery) is"), ON_TOP),
    exp.Window: (Unmaintained("window functions are"), ON_TOP),
    exp.Filter: (Unmaintained("aggregates are"), ON_TOP),
    exp.WithinGroup: (Unmaintained("aggregates are"), ON_TOP),
    exp.SimilarTo: ("SIMILAR TO is not supported", "write a regular expression: a ~ '^(...)$'"),
    exp.Placeholder: ("parameters are not supported", "write the value"),
    exp.Parameter: ("parameters are not supported", "write the value"),
    exp.Star: ("* is not a value", "name the columns"),
    exp.Tuple: ("a row of values is not a value", "compare its members one by one"),
}


def refuse_clauses(query: exp.Select, context: Context) -> None:
    """Refuse a SELECT with a clause that views do not maintain."""
    for key, (reason, instead) in CLAUSES.items():
        if value := query.args.get(key):
            where = value[0] if isinstance(value, list) else value
            raise _refusal(where if where.find(exp.Identifier, exp.Literal) else query, reason, instead, context)
    only(query, context.sql, "a view", ("expressions", "from_", "joins", "where", "with_"))


def _refusal(node: exp.Expr, reason: str | Unmaintained, remedy: str | None, context: Context) -> UnsupportedSQL:
    if isinstance(reason, Unmaintained):
        return context.unmaintained(node, reason.what, remedy, reason.why)
    return context.refuse(node, reason, remedy)


def refuse_set_operation(query: exp.SetOperation, context: Context) -> None:
    """Refuse set operations other than UNION ALL, and clauses after them."""
    for kind, (reason, instead) in SET_OPERATIONS.items():
        if isinstance(query, kind) and (query.args.get("distinct") or kind is not exp.Union):
            raise _refusal(query.expression, reason, instead, context)
    for key, (reason, instead) in CLAUSES.items():
        if query.args.get(key):
            raise _refusal(query.args[key], reason, instead, context)
    only(query, context.sql, "a view", ("this", "expression", "with_"))


def side_of(join: exp.Join) -> str:
    """LEFT, RIGHT, FULL, or nothing for an inner join."""
    return str(join.text("side") or "").upper()


def refuse_join(join: exp.Join, context: Context) -> None:
    """Refuse a cross join with a condition and another join without one; outside views, refuse outer joins."""
    side, kind = side_of(join), (join.text("kind") or "").upper()
    if (side and not context.maintains) or (kind == "OUTER" and not side):
        raise context.unmaintained(join.this, f"{' '.join(filter(None, (side, kind)))} JOIN is",
                                   "use it in a query (SELECT) over the views")
    if kind not in ("", "INNER", "CROSS", "OUTER") or join.text("method") not in ("", "NATURAL"):
        raise context.refuse(join.this, f"{kind or join.text('method')} JOIN is not supported", "write JOIN ... ON")
    only(join, context.sql, "a join", ("this", "on", "using", "kind", "method", "side"))
    conditions = bool(join.args.get("on")) + bool(join.args.get("using")) + bool(join.text("method"))
    if kind == "CROSS" and conditions:
        raise context.refuse(join.this, "CROSS JOIN takes no condition", "write JOIN ... ON")
    if kind != "CROSS" and not join.meta.get("comma") and conditions != 1:
        raise context.refuse(join.this, "JOIN needs ON or USING", "write JOIN ... ON condition, or CROSS JOIN")


def refuse_expression(node: exp.Expr, context: Context) -> Exception:
    """The error for an expression that the binder has no rule for."""
    if isinstance(node, exp.Exists) and isinstance(node.parent, exp.Not):
        return context.unmaintained(node, "NOT EXISTS is", ON_TOP)
    if isinstance(node, exp.Query) or type(node) in EXPRESSIONS:
        reason, instead = EXPRESSIONS.get(type(node), EXPRESSIONS[exp.Subquery])
        return _refusal(node, reason, instead, context)
    text = written(node)
    return context.refuse(node, f"{text if len(text) <= 60 else node.key} is not supported")


def refuse_function(name: str, node: exp.Expr, context: Context) -> None:
    """Refuse a call of an aggregate or window function, or of `if`, which other dialects have."""
    if name in AGGREGATES:
        raise context.unmaintained(node, f"aggregates ({name}) are", ON_TOP)
    if name in WINDOW_FUNCTIONS:
        raise context.unmaintained(node, f"window functions ({name}) are", ON_TOP)
    if name == "if":
        raise context.refuse(node, "PostgreSQL has no function if", "write CASE WHEN condition THEN a ELSE b END")
