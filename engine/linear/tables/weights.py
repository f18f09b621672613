"""repeat_row(n): one row with weight `n`, not `n` rows. A negative weight deletes; 0 and NULL give nothing."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from halfjoin.engine.linear.tables.exploded import Exploded


def repeat_row(arguments: list[pa.Array], length: int) -> Exploded:
    """Argument: n (bigint). Gives one result of weight n, without columns, for each row with n not 0 and not NULL."""
    weights = arguments[0].cast(pa.int64()).fill_null(0).to_numpy()
    rows = np.flatnonzero(weights)
    return Exploded(rows, diff=weights[rows])
