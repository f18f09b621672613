"""`UPDATE t SET r.a = 1`: a row with other values in some of its fields."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from halfjoin.errors import UnknownName
from halfjoin.sql import functions
from halfjoin.sql.expr import TRUE, Expr
from halfjoin.sql.functions.record_values import is_record, members, record
from halfjoin.sql.parse.locate import name_of
from halfjoin.sql.parse.syntax import FieldChange

if TYPE_CHECKING:
    from halfjoin.sql.bind.scalar import Scalars


def changed_fields(scalars: Scalars, node: FieldChange) -> Expr:
    """The row of a column with the new values. Of a row that is not there, the other fields are NULL.

    Raises:
        UnsupportedSQL: the column holds no rows, or no row has such a field.
    """
    value = scalars.value(node.this)
    for change in node.expressions:
        path = [name_of(part) for part in change.this.expressions]
        with scalars.context.at(change.this.expressions[0]):
            value = _changed(scalars, node, value, path, scalars.value(change.expression))
    return value


def _changed(scalars: Scalars, node: FieldChange, value: Expr, path: Sequence[str], new: Expr) -> Expr:
    if not is_record(value):
        raise scalars.context.wrong(
            node, f'cannot assign to field "{path[0]}" of column "{name_of(node.this)}" because its type {value.type} '
                  "is not a composite type").with_(code="42804")
    names = [name for name, _ in value.type.fields]
    if path[0] not in names:
        raise UnknownName("field", path[0], names, code="42703")
    place, parts = names.index(path[0]), list(members(value))
    parts[place] = (_changed(scalars, node, parts[place], path[1:], new) if path[1:]
                    else functions.cast(new, parts[place].type))  # fmt: skip
    return record(names, parts, TRUE, value.type.named)
