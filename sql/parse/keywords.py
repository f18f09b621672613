"""Key words are no names unless they are quoted; `user` and `current_role` are the user who asks."""

from __future__ import annotations

from typing import cast

from sqlglot import exp

from halfjoin.sql.parse import syntax
from halfjoin.sql.parse.labels import RESERVED
from halfjoin.sql.parse.locate import refuse

ASKERS = frozenset(("user", "current_role"))  # sqlglot reads these two as columns
# Where a word is the name of a setting, of a kind of thing, or a value.
FREE = (exp.Set, syntax.Reset, syntax.ShowObjects, syntax.Maintain, syntax.Deallocate)
NAMING = (exp.Column, exp.Table, exp.ColumnDef, exp.Schema, exp.TableAlias, exp.Constraint, exp.Index)
TARGETS = (exp.RenameColumn, exp.Update, exp.Ordered)


def check(tree: exp.Expr, text: str) -> None:
    """Mark the columns that are the user who asks, and refuse every other key word that is used as a name."""
    if isinstance(tree, FREE):
        return
    for name in tree.find_all(exp.Identifier):
        if name.args.get("quoted") or name.name.upper() not in RESERVED or not _is_first(name):
            continue
        if name.name.lower() not in ASKERS or not isinstance(name.parent, exp.Column) or _is_target(name.parent):
            raise refuse(name, text, f"syntax error at {name.name!r}", f'write "{name.name}"').with_(code="42601")
        name.parent.meta["asker"] = True
    for made in tree.find_all(exp.ColumnDef):
        if not isinstance(made.this, exp.Identifier):
            said = made.this.sql("halfjoin").lower()
            raise refuse(made, text, f"syntax error at {said!r}", f'write "{said}"').with_(code="42601")


def _is_first(name: exp.Identifier) -> bool:
    """Whether it names a thing, and is no part after a dot: those may be key words. So may DEFAULT as a value."""
    parent = name.parent
    if not isinstance(parent, NAMING) or (isinstance(parent, exp.Column) and name.name.upper() == "DEFAULT"):
        return False
    return not isinstance(parent, exp.Column | exp.Table) or parent.parts[0] is name


def _is_target(column: exp.Column) -> bool:
    """Whether a statement changes this column, or the rows are kept by it."""
    parent = cast(exp.Expr, column.parent)
    return isinstance(parent, TARGETS) or (isinstance(parent.parent, exp.Update) and column.arg_key == "this"
                                           and parent.arg_key == "expressions")
