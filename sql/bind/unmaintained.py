"""What SQL has and views do not: one place that says so, and what to write instead."""

from __future__ import annotations

from sqlglot import exp

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
CLAUSES = {
    "distinct": ("DISTINCT is not maintained yet", ON_TOP),
    "group": ("GROUP BY is not maintained yet", ON_TOP),
    "having": ("HAVING is not maintained yet", ON_TOP),
    "windows": ("window functions are not maintained yet", ON_TOP),
    "order": ("ORDER BY is not maintained: a view has no order", "leave it out, or " + ON_TOP),
    "limit": ("LIMIT is not maintained yet", ON_TOP),
    "offset": ("OFFSET is not maintained yet", ON_TOP),
    "fetch": ("FETCH is not maintained yet", ON_TOP),
    "locks": ("FOR UPDATE is not supported", "leave it out: a read never sees half a batch"),
    "into": ("SELECT INTO is not supported", "write CREATE MATERIALIZED VIEW ... AS SELECT"),
    "laterals": ("LATERAL VIEW is not supported", "write a table function in FROM"),
}
REFUSED_CLAUSES = {  # by queries, too
    "qualify": ("PostgreSQL has no QUALIFY", "write a subquery in FROM, and WHERE over it"),
    **{key: CLAUSES[key] for key in ("locks", "into", "laterals")},
}
SET_OPERATIONS = {
    exp.Union: ("UNION is not maintained yet, since it removes duplicates", "write UNION ALL, or " + ON_TOP),
    exp.Intersect: ("INTERSECT is not maintained yet", "write a join, if one side has no duplicates, or " + ON_TOP),
    exp.Except: ("EXCEPT is not maintained yet", ON_TOP),
}
EXPRESSIONS: dict[type[exp.Expr], tuple[str, str | None]] = {
    exp.Subquery: ("a subquery as a value is not maintained yet", "join with it in FROM"),
    exp.Select: ("a subquery as a value is not maintained yet", "join with it in FROM"),
    exp.Union: ("a subquery as a value is not maintained yet", "join with it in FROM"),
    exp.Exists: ("EXISTS is not maintained yet", "join with the table on its key, or " + ON_TOP),
    exp.All: ("ALL (subquery) is not maintained yet", ON_TOP),
    exp.Window: ("window functions are not maintained yet", ON_TOP),
    exp.Filter: ("aggregates are not maintained yet", ON_TOP),
    exp.WithinGroup: ("aggregates are not maintained yet", ON_TOP),
    exp.SimilarTo: ("SIMILAR TO is not supported", "write a regular expression: a ~ '^(...)$'"),
    exp.Placeholder: ("parameters are not supported", "write the value"),
    exp.Parameter: ("parameters are not supported", "write the value"),
    exp.Star: ("* is not a value", "name the columns"),
    exp.Tuple: ("a row of values is not a value", "compare its members one by one"),
}


def refuse_clauses(query: exp.Select, context: Context) -> None:
    """Refuse a SELECT with a clause that is not maintained."""
    for key, (reason, instead) in CLAUSES.items():
        if value := query.args.get(key):
            where = value[0] if isinstance(value, list) else value
            raise context.refuse(where if where.find(exp.Identifier, exp.Literal) else query, reason, instead)
    only(query, context.sql, "a view", ("expressions", "from_", "joins", "where", "with_"))


def refuse_set_operation(query: exp.SetOperation, context: Context) -> None:
    """Refuse what is not UNION ALL, and clauses after it."""
    for kind, (reason, instead) in SET_OPERATIONS.items():
        if isinstance(query, kind) and (query.args.get("distinct") or kind is not exp.Union):
            raise context.refuse(query.expression, reason, instead)
    for key, (reason, instead) in CLAUSES.items():
        if query.args.get(key):
            raise context.refuse(query.args[key], reason, instead)
    only(query, context.sql, "a view", ("this", "expression", "with_"))


def refuse_join(join: exp.Join, context: Context) -> None:
    """Refuse what is not an inner or cross join with its condition."""
    side, kind = (join.text("side") or "").upper(), (join.text("kind") or "").upper()
    if side or kind == "OUTER":
        raise context.refuse(join.this, f"{' '.join(filter(None, (side, kind)))} JOIN is not maintained yet",
                             "use it in a query (SELECT) over the views")
    if kind not in ("", "INNER", "CROSS") or join.text("method") not in ("", "NATURAL"):
        raise context.refuse(join.this, f"{kind or join.text('method')} JOIN is not supported", "write JOIN ... ON")
    only(join, context.sql, "a join", ("this", "on", "using", "kind", "method"))
    conditions = bool(join.args.get("on")) + bool(join.args.get("using")) + bool(join.text("method"))
    if kind == "CROSS" and conditions:
        raise context.refuse(join.this, "CROSS JOIN takes no condition", "write JOIN ... ON")
    if kind != "CROSS" and not join.meta.get("comma") and conditions != 1:
        raise context.refuse(join.this, "JOIN needs ON or USING", "write JOIN ... ON condition, or CROSS JOIN")


def refuse_expression(node: exp.Expr, context: Context) -> Exception:
    """The error for an expression that the binder has no rule for."""
    if isinstance(node, exp.Exists) and isinstance(node.parent, exp.Not):
        return context.refuse(node, "NOT EXISTS is not maintained yet", ON_TOP)
    if isinstance(node, exp.Query) or type(node) in EXPRESSIONS:
        reason, instead = EXPRESSIONS.get(type(node), EXPRESSIONS[exp.Subquery])
        return context.refuse(node, reason, instead)
    text = written(node)
    return context.refuse(node, f"{text if len(text) <= 60 else node.key} is not supported")


def refuse_function(name: str, node: exp.Expr, context: Context) -> None:
    """Refuse a call of an aggregate or window function, and of one that other dialects have."""
    if name in AGGREGATES:
        raise context.refuse(node, f"aggregates ({name}) are not maintained yet", ON_TOP)
    if name in WINDOW_FUNCTIONS:
        raise context.refuse(node, f"window functions ({name}) are not maintained yet", ON_TOP)
    if name == "if":
        raise context.refuse(node, "PostgreSQL has no function if", "write CASE WHEN condition THEN a ELSE b END")
