"""repeat_row(n): each row with weight `n`, never `n` copies of it. Negative takes away; 0 and NULL give nothing."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from halfjoin.engine.linear.tables.exploded import Exploded


def repeat_row(arguments: list[pa.Array], length: int) -> Exploded:
    """Arguments: n (bigint). No result columns, one result of weight n for each row where n is neither 0 nor NULL."""
    weights = arguments[0].cast(pa.int64()).fill_null(0).to_numpy()
    rows = np.flatnonzero(weights)
    return Exploded(rows, diff=weights[rows])
