"""`information_schema._pg_expandarray`, which numbers the elements of an array: rewritten to unnest WITH ORDINALITY.

It gives rows of two fields, `x` and `n`. In a SELECT list it becomes an item of FROM. A column that holds its rows
becomes two columns, one for each field.
"""

from __future__ import annotations

from sqlglot import exp

NAME, FIELDS = "_pg_expandarray", ("x", "n")
ALIAS = "_expanded"


def expanded(tree: exp.Expr) -> exp.Expr:
    """The tree without calls of the function."""
    calls = [call for call in tree.find_all(exp.Anonymous) if call.name.lower() == NAME]
    if not calls:
        return tree
    held = {name for call in calls if (name := _in_list(call))}
    for node in list(tree.find_all(exp.Dot)):
        column = node.this.unnest()
        if isinstance(column, exp.Column) and column.name.lower() in held and node.name.lower() in FIELDS:
            field = exp.to_identifier(f"{column.name.lower()} {node.name.lower()}", quoted=True)
            node.replace(exp.column(field, column.args.get("table")))
    return tree


def _in_list(call: exp.Anonymous) -> str | None:
    """Move a call to FROM; the name of the column that held its rows, if one did."""
    if isinstance(call.parent, exp.Table):
        _numbered(call.parent, call)
        return None
    query = call.find_ancestor(exp.Select)
    if query is None:
        return None
    rows = exp.Table(this=call.copy())
    _numbered(rows, rows.this)
    if not any(join.this.alias == ALIAS for join in query.args.get("joins") or []):
        query.append("joins", exp.Join(this=rows, kind="CROSS"))
    around = call.parent.parent if isinstance(call.parent, exp.Paren) else None
    if isinstance(around, exp.Dot):
        around.replace(exp.column(around.name.lower(), ALIAS))
        return None
    item = call.parent if isinstance(call.parent, exp.Alias) else call
    name = item.alias.lower() if isinstance(item, exp.Alias) else NAME
    columns = [exp.alias_(exp.column(field, ALIAS), f"{name} {field}", quoted=True) for field in FIELDS]
    query.set("expressions", [new for one in query.expressions for new in (columns if one is item else [one])])
    return name


def _numbered(table: exp.Table, call: exp.Anonymous) -> None:
    """Make a table of the call one of unnest, with numbers."""
    call.set("this", "unnest")
    table.set("ordinality", True)
    given = table.args.get("alias")
    alias = exp.TableAlias(this=exp.to_identifier(ALIAS)) if given is None else given
    if not alias.args.get("columns"):
        alias.set("columns", [exp.to_identifier(field) for field in FIELDS])
    table.set("alias", alias)
