"""Takes `pg_catalog.` off the names of functions, operators and collations: they mean the same without it."""

from __future__ import annotations

from sqlglot import exp

from halfjoin.sql.parse.locate import name_of
from halfjoin.sql.system import PG_CATALOG, SCHEMAS

OPERATORS: dict[str, type[exp.Expr]] = {
    "=": exp.EQ, "<>": exp.NEQ, "!=": exp.NEQ, "<": exp.LT, "<=": exp.LTE, ">": exp.GT, ">=": exp.GTE,
    "+": exp.Add, "-": exp.Sub, "*": exp.Mul, "/": exp.Div, "||": exp.DPipe, "~": exp.RegexpLike, "~*": exp.RegexpILike,
    "~~": exp.Like, "~~*": exp.ILike, "&": exp.BitwiseAnd, "|": exp.BitwiseOr,
}  # fmt: skip
NEGATED = {"!~": "~", "!~*": "~*", "!~~": "~~", "!~~*": "~~*"}


def unqualified(tree: exp.Expr) -> exp.Expr:
    """The tree with bare names of functions, operators and collations."""
    for node in reversed(list(tree.walk())):
        made = _bare(node)
        if made is not node:
            if node is tree:
                return made
            node.replace(made)
    return tree


def _bare(node: exp.Expr) -> exp.Expr:
    match node:
        case exp.Dot(this=exp.Identifier() as schema, expression=exp.Func() as call) if name_of(schema) in SCHEMAS:
            return _substring(call) if call.name.lower() == "substring" else call
        case exp.Operator(this=left, expression=right):
            name = node.text("operator").rpartition(".")[2]
            kind = OPERATORS.get(NEGATED.get(name, name))
            if kind is not None:
                made = kind(this=left, expression=right)
                return exp.Not(this=made) if name in NEGATED else made
        case exp.Collate(expression=exp.Column(args={"table": exp.Identifier() as schema}) as collation):
            if name_of(schema) == PG_CATALOG:
                collation.set("table", None)
        case exp.Anonymous() if node.name.lower() == "json_build_object" and _only_catalog(node):
            node.set("this", "jsonb_build_object")  # there is no json; clients read both alike
        case exp.Table(this=exp.Func()) if node.args.get("db") and name_of(node.args["db"]) in SCHEMAS:
            node.set("db", None)
    return node


def _substring(call: exp.Func) -> exp.Func:
    """The call as it is parsed without a schema: its second argument may be a pattern."""
    named = dict(zip(("this", "start", "length"), call.expressions, strict=False))
    return exp.Substring(**named) if 1 < len(call.expressions) < 4 else call


def _only_catalog(node: exp.Expr) -> bool:
    """Whether the statement around reads the catalog's tables only."""
    tables = [table for table in node.root().find_all(exp.Table) if isinstance(table.this, exp.Identifier)]
    return all(table.args.get("db") and name_of(table.args["db"]) in SCHEMAS for table in tables)
