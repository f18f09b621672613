"""WITH queries that change rows: each becomes a statement of its own, and a table of what it returns.

`WITH gone AS (DELETE FROM t RETURNING *) INSERT INTO log SELECT * FROM gone` is two statements: the DELETE, and an
INSERT before which WITH says `gone AS (SELECT * FROM returned)`. All of them read the tables as they are before.
"""

from __future__ import annotations

from sqlglot import exp

from halfjoin.sql.parse.locate import name_of, refuse

RETURNED = "\0with."  # begins the name of the table with a query's rows; no user can write it
CHANGES = (exp.Insert, exp.Update, exp.Delete, exp.Merge)


def changes_in_with(node: exp.Expr) -> bool:
    """Whether the WITH of a statement changes rows."""
    clause = _place(node).args.get("with_")
    return type(clause) is exp.With and any(isinstance(item.this, CHANGES) for item in clause.expressions)


def _place(node: exp.Expr) -> exp.Expr:
    """What has the WITH of a statement: of INSERT, it may be the query."""
    if isinstance(node, exp.Insert) and node.args.get("with_") is None and isinstance(node.expression, exp.Query):
        return node.expression
    return node


def split(node: exp.Expr, text: str) -> tuple[list[tuple[str, exp.Expr]], exp.Expr] | None:
    """The changes in the statement's WITH, each under the name of its table; and the statement over these tables. None
    if there are none. The given tree is changed."""
    if not changes_in_with(node):
        return None
    place = _place(node)
    clause = place.args["with_"]
    parts: list[tuple[str, exp.Expr]] = []
    before: list[exp.Expr] = []
    for item in clause.expressions:
        change = item.this
        if not isinstance(change, CHANGES):
            before.append(item)
            continue
        name = name_of(item.args["alias"].this)
        table = RETURNED + name
        own = change.args.get("with_")
        if own is not None and any(isinstance(one.this, CHANGES) for one in own.expressions):
            raise refuse(own, text, "WITH clause containing a data-modifying statement must be at the top level")
        seen = [one.copy() for one in before] + ([] if own is None else own.expressions)
        recursive = clause.args.get("recursive") or (own is not None and own.args.get("recursive"))
        change.set("with_", exp.With(expressions=seen, recursive=recursive) if seen else None)
        parts.append((table, change))
        if change.args.get("returning"):
            rows = exp.Select(expressions=[exp.Star()],
                              from_=exp.From(this=exp.Table(this=exp.to_identifier(table, quoted=True))))  # fmt: skip
            before.append(exp.CTE(this=rows, alias=item.args["alias"]))
            continue
        for read in node.find_all(exp.Table):
            if name_of(read) == name and read.find_ancestor(*CHANGES) is not change:
                raise refuse(read, text, f"WITH query {name} does not have a RETURNING clause", "write RETURNING *")
    clause.set("expressions", before)
    if not before:
        place.set("with_", None)
    return parts, node
