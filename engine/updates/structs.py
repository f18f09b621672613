"""Rows as values: Arrow structs, whose members are columns. A row that is NULL as a whole is not one of NULLs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
from numpy.typing import NDArray


def struct_of(kind: Any, members: Sequence[Any], null: NDArray[Any], length: int) -> Any:
    """Structs of members, NULL where `null` is true."""
    mask = pa.array(null) if null.any() else None
    if not members:
        bits = None if mask is None else pa.array(~null).buffers()[1]
        return pa.StructArray.from_buffers(kind, length, [bits], children=[])
    return pa.StructArray.from_arrays(list(members), fields=list(kind), mask=mask)


def with_members(array: Any, kind: Any, change: Callable[[Any, Any], Any]) -> Any:
    """Structs of a type from others: `change` turns a member into one of a type. Members go by their places."""
    members = [change(part, field.type) for part, field in zip(array.flatten(), kind, strict=True)]
    return struct_of(kind, members, array.is_null().to_numpy(zero_copy_only=False), len(array))
