"""Read decimals from bytes: a whole number in two's complement, the most significant byte first."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfjoin.sql.types import WORKING_DIGITS

_WIDTH = 32  # bytes of Arrow's widest decimal


def unscaled(blobs: pa.Array, scale: int) -> pa.Array:
    """Each blob's number, divided by `10 ** scale`, as Arrow's widest decimal.

    Raises:
            pa.ArrowInvalid: a number has more digits than Arrow's widest decimal.
    """
    lengths = pc.fill_null(pc.binary_length(blobs), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    if len(lengths) and int(lengths.max()) >= _WIDTH:
        raise pa.ArrowInvalid("more digits than a decimal has")
    offsets = np.cumsum(lengths) - lengths
    data = np.frombuffer(b"".join(blobs.drop_null().to_pylist()), np.uint8)
    row = np.repeat(np.arange(len(blobs)), lengths)
    place = np.arange(len(data)) - np.repeat(offsets, lengths)  # each byte's place in its blob, from the first byte
    first = np.zeros(len(blobs), np.uint8)
    first[lengths > 0] = data[offsets[lengths > 0]]
    wide = np.repeat(np.where(first >= 0x80, np.uint8(0xFF), np.uint8(0)), _WIDTH).reshape(len(blobs), _WIDTH)
    wide[row, lengths[row] - 1 - place] = data  # the least significant byte first
    valid = blobs.is_valid()
    buffers = [pa.array(valid.to_numpy(zero_copy_only=False)).buffers()[1], pa.py_buffer(wide.tobytes())]
    return pa.Array.from_buffers(pa.decimal256(WORKING_DIGITS, scale), len(blobs), buffers)
