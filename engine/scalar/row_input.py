"""Rows, and arrays of rows, as Python gives them: tuples, lists, or dicts by the names of the fields. JSON texts stand
for their lists and objects."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from halfjoin.engine.scalar.python_values import listed
from halfjoin.engine.updates.structs import struct_of
from halfjoin.sql.types import SqlType, field_names

Convert = Callable[[Any, SqlType], Any]  # Python values of a type without rows to an Arrow array


def of_python(given: Sequence[Any], kind: SqlType, plain: Convert) -> Any:
    """An Arrow array of a type with rows in it; `plain` converts the values inside. A field that a dict leaves out is
    NULL.

    Raises:
        TypeError: a value is neither a row nor None.
        ValueError: a row has too many or too few members, or a name that is no field.
    """
    given = [_parsed(listed(one)) for one in given]
    if kind.element is not None:
        if not all(one is None or isinstance(one, (list, tuple)) for one in given):
            raise TypeError("not an array")
        offsets = np.cumsum([0, *(0 if one is None else len(one) for one in given)]).astype(np.int32)
        values = plain([item for one in given for item in one or ()], kind.element)
        mask = pa.array([one is None for one in given], pa.bool_())
        return pa.ListArray.from_arrays(pa.array(offsets), values, mask=mask)
    names = field_names(kind)
    rows = [None if one is None else _members(one, names) for one in given]
    columns = [plain([None if row is None else row[place] for row in rows], field)
               for place, (_, field) in enumerate(kind.fields)]  # fmt: skip
    made = pa.struct([(name, column.type) for name, column in zip(names, columns, strict=True)])
    return struct_of(made, columns, np.array([row is None for row in rows], np.bool_), len(rows))


def _parsed(value: Any) -> Any:
    """What a JSON text of an object or a list stands for, with all digits of its numbers; another value itself."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        return json.loads(value, parse_float=Decimal)
    return value


def _members(row: Any, names: Sequence[str]) -> Sequence[Any]:
    """The members of a row in the order of the fields."""
    if isinstance(row, dict):
        if not row.keys() <= set(names):
            raise ValueError("a name is no field")
        return [row.get(name) for name in names]
    if not isinstance(row, (tuple, list)):
        raise TypeError("not a row")
    if len(row) != len(names):
        raise ValueError("another number of members")
    return row
