"""Kernels that treat each element of an array."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from halfjoin.engine.scalar.arrow_types import arrow_type
from halfjoin.engine.scalar.failures import Failed
from halfjoin.engine.scalar.values import Datum, Kernel, on_arrays, valid
from halfjoin.sql.types import SqlType


def over_elements(element: Kernel, target: SqlType) -> Kernel:
    """The kernel of arrays of type `target` from that of their elements. An element that fails makes its row fail."""
    type = arrow_type(target)

    @on_arrays
    def run(array: Any) -> Datum:
        values = array.flatten()
        lengths = array.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
        try:
            values = element(values)
        except Failed as error:
            if error.mask is None:
                raise
            bad = np.zeros(len(array), np.bool_)
            bad[np.repeat(np.arange(len(array)), lengths)[error.mask]] = True
            raise Failed(error.message, bad) from None
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        mask = pa.array(~valid(array)) if array.null_count else None
        return pa.ListArray.from_arrays(pa.array(offsets), values, mask=mask).cast(type)

    return run
