"""The names that PostgreSQL gives to columns of a SELECT list without an alias."""

from __future__ import annotations

from sqlglot import exp

from halfjoin.sql.parse.locate import name_of

UNNAMED = "?column?"
TYPE_NAMES = {
    exp.DType.BOOLEAN: "bool", exp.DType.SMALLINT: "int2", exp.DType.INT: "int4", exp.DType.BIGINT: "int8",
    exp.DType.FLOAT: "float4", exp.DType.DOUBLE: "float8", exp.DType.DECIMAL: "numeric", exp.DType.CHAR: "bpchar",
    exp.DType.VARBINARY: "bytea",
}
FIXED: dict[type[exp.Expr], str] = {
    exp.Array: "array", exp.Tuple: "row", exp.Extract: "extract", exp.StrPosition: "position",
    exp.Substring: "substring", exp.AtTimeZone: "timezone", exp.CurrentDate: "current_date",
    exp.CurrentTimestamp: "current_timestamp", exp.Localtime: "localtime", exp.Localtimestamp: "localtimestamp",
    exp.Exists: "exists", exp.Overlay: "overlay",
    exp.CurrentUser: "current_user", exp.SessionUser: "session_user", exp.CurrentRole: "current_role",
    exp.CurrentCatalog: "current_catalog", exp.CurrentSchema: "current_schema",
}


def output_name(node: exp.Expr) -> str:
    """The alias, or else the name of the expression's column, function or type, or else `?column?`."""
    return _name(node)[0]


def _name(node: exp.Expr) -> tuple[str, bool]:
    """The name, and whether it is strong: a cast around the expression keeps a strong name."""
    if isinstance(node, exp.Alias):
        return name_of(node.args["alias"]), True
    if isinstance(node, exp.Column):
        return name_of(node), True
    if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier):
        return name_of(node.expression), True
    if isinstance(node, (exp.Paren, exp.Bracket, exp.Collate, exp.Window, exp.Filter, exp.WithinGroup)):
        return _name(node.this)
    if isinstance(node, exp.Cast):
        name, strong = _name(node.this)
        return (name, True) if strong else (_type_name(node.to), False)
    if isinstance(node, exp.Subquery):
        query = node.this
        while isinstance(query, (exp.SetOperation, exp.Subquery)):
            query = query.this
        if isinstance(query, exp.Select) and query.expressions:
            return _name(query.expressions[0])
    if isinstance(node, exp.Interval):
        return "interval", False
    if isinstance(node, exp.Case):
        name, strong = _name(node.args["default"]) if node.args.get("default") else (UNNAMED, False)
        return (name, True) if strong else ("case", False)
    if isinstance(node, exp.Anonymous):
        return node.name.lower(), True
    if isinstance(node, exp.Trim):
        return {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(node.text("position").upper(), "btrim"), True
    return (FIXED[type(node)], True) if type(node) in FIXED else (UNNAMED, False)


def _type_name(node: exp.DataType) -> str:
    if node.this is exp.DType.ARRAY and node.expressions:
        return _type_name(node.expressions[0])
    kind = node.this
    if kind is exp.DType.USERDEFINED and isinstance(node.args.get("kind"), exp.Expr):
        return name_of([*node.args["kind"].find_all(exp.Identifier, bfs=False)][-1])
    return TYPE_NAMES.get(kind, kind.value.lower()) if isinstance(kind, exp.DType) else UNNAMED  # the type is refused
