"""Texts and bytes as Arrow's plain arrays, of which one has less than 2 GiB; views and large ones may have more."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as pt

from halfjoin.engine.updates.updates import TOO_LONG
from halfjoin.errors import InvalidRow


def plain_texts(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Texts (`wanted`: string) or bytes (binary) of any kind as plain ones.

    Raises:
        InvalidRow: they have more bytes than one array can. Arrow's cast from a view would not notice.
    """
    if array.type == wanted:
        return array
    try:
        return array.cast(pa.large_string() if pt.is_string(wanted) else pa.large_binary()).cast(wanted)
    except pa.ArrowInvalid:
        raise too_long() from None


def too_long() -> InvalidRow:
    """The error of rows of which a column has more bytes than one array can have."""
    return InvalidRow(TOO_LONG, remedy="submit the rows in several batches")
