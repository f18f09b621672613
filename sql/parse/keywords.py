"""Key words are no names of tables and columns unless they are quoted; `user` and `current_role` are who asks."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from halfjoin.sql.parse.labels import RESERVED
from halfjoin.sql.parse.locate import refuse

ASKERS = frozenset(("user", "current_role"))  # sqlglot reads these two as columns


def mark_askers(tree: exp.Expr) -> None:
    """Mark the columns that are the user who asks."""
    for column in tree.find_all(exp.Column):
        if len(column.parts) == 1 and _word(column.this).lower() in ASKERS:
            column.meta["asker"] = True


def check(tree: exp.Expr, text: str) -> None:
    """Mark the columns that are the user who asks, and refuse key words as names, and tables in parentheses."""
    mark_askers(tree)
    for name in _names(tree):
        if (word := _word(name)).upper() in RESERVED:
            raise refuse(name, text, f"syntax error at {word.lower()!r}", f'write "{word.lower()}"').with_(code="42601")
    for item in tree.find_all(exp.Subquery):
        table = item.this
        if isinstance(table, exp.Table) and not table.args.get("joins") and not isinstance(table.this, exp.Values):
            raise refuse(item, text, "parentheses of FROM hold a join or a query, not one table",
                         "leave the parentheses out").with_(code="42601")


def _names(tree: exp.Expr) -> Iterator[exp.Expr]:
    """The names of tables, of queries of WITH, and of the columns that they get."""
    for node in tree.find_all(exp.ColumnDef, exp.Table, exp.TableAlias):
        if not isinstance(node, exp.Table) or isinstance(node.this, exp.Identifier):  # not a call or VALUES
            yield node.this
        if isinstance(node, exp.TableAlias):
            yield from (one for one in node.args.get("columns") or () if isinstance(one, exp.Identifier))


def _word(name: exp.Expr | None) -> str:
    """The text of a name without quotes. sqlglot reads `current_date` as a call, of a column's definition as well."""
    if name is None or name.args.get("quoted"):
        return ""
    return name.name if isinstance(name, exp.Identifier) else name.sql("halfjoin")
