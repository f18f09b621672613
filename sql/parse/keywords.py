"""Key words are no names of columns unless they are quoted; `user` and `current_role` are the user who asks."""

from __future__ import annotations

from sqlglot import exp

from halfjoin.sql.parse.labels import RESERVED
from halfjoin.sql.parse.locate import refuse

ASKERS = frozenset(("user", "current_role"))  # sqlglot reads these two as columns


def check(tree: exp.Expr, text: str) -> None:
    """Mark the columns that are the user who asks, and refuse key words as names of new columns."""
    for column in tree.find_all(exp.Column):
        name = column.this
        if len(column.parts) == 1 and isinstance(name, exp.Identifier) and not name.args.get("quoted") and (
                name.name.lower() in ASKERS):  # fmt: skip
            column.meta["asker"] = True
    for made in tree.find_all(exp.ColumnDef):
        said = made.this.name if isinstance(made.this, exp.Identifier) else made.this.sql("halfjoin")
        if not made.this.args.get("quoted") and said.upper() in RESERVED:
            raise refuse(made, text, f"syntax error at {said.lower()!r}", f'write "{said.lower()}"').with_(code="42601")
