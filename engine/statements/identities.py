"""ALTER COLUMN ... ADD, SET and DROP IDENTITY, and RESTART."""

from __future__ import annotations

from halfjoin.catalog.models import ColumnModel, Table
from halfjoin.engine.batch.state import State
from halfjoin.engine.statements.sequence_options import new_sequence
from halfjoin.engine.statements.sequences import alter_sequence
from halfjoin.engine.statements.tables import free_sequence
from halfjoin.errors import UnknownName, UnsupportedSQL
from halfjoin.sql.definitions import AlterAction
from halfjoin.sql.named import AlterSequence
from halfjoin.sql.types import INTEGERS


def alter_identity(state: State, table: Table, action: AlterAction) -> None:
    """Carry out a change of the identity of a column. The rows stay as they are.

    Raises:
        UnknownName: there is no such column. UnsupportedSQL: the column cannot have an identity, or has none.
    """
    columns = {column.name: column for column in table.columns}
    if action.name not in columns:
        raise UnknownName(f"column of {table.name}", action.name, columns)
    column = columns[action.name]
    if action.kind == "add identity":
        made = _added(state, table, column, action)
    elif not column.sequence:
        if action.lenient:
            return
        raise UnsupportedSQL(f"column {column.name} of {table.name} is not an identity column", code="55000")
    elif action.kind == "restart identity":
        alter_sequence(state.catalog, AlterSequence(column.sequence, restart=True, at=action.restart))
        return
    elif action.kind == "alter identity":
        assert action.identity is not None
        alter_sequence(state.catalog, AlterSequence(column.sequence, options=action.identity.options))
        return
    elif action.kind == "set identity":
        made = column.model_copy(update={"always": action.to == "always"})
    else:
        del state.catalog.sequences[column.sequence]
        made = column.model_copy(update={"sequence": "", "always": False})
    kept = tuple(made if one.name == made.name else one for one in table.columns)
    state.catalog.tables[table.name] = table.model_copy(update={"columns": kept})


def _added(state: State, table: Table, column: ColumnModel, action: AlterAction) -> ColumnModel:
    identity = action.identity
    assert identity is not None
    if column.sequence or column.default is not None or column.generated is not None:
        raise UnsupportedSQL(f"column {column.name} of {table.name} already has an identity or a default value",
                             remedy="drop that first", code="55000")  # fmt: skip
    if column.type.kind not in INTEGERS:
        raise UnsupportedSQL("identity column type must be smallint, integer, or bigint", code="22023")
    if not column.not_null:
        raise UnsupportedSQL(f"column {column.name} of {table.name} must be declared NOT NULL before identity can be "
                             "added", remedy=f"ALTER TABLE {table.name} ALTER {column.name} SET NOT NULL", code="55000")
    name = free_sequence(state.catalog, table.name, column.name, identity)
    state.catalog.sequences[name] = new_sequence(state.catalog, name, identity.options, table.name)
    return column.model_copy(update={"sequence": name, "always": identity.always})
