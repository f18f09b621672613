"""The contenders of `python -m tests.benchmarks.peers` hold the same rows: the benchmark compares equal work."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from examples.tpch import COLUMNS, Q3_COLUMNS, SEGMENTS, Changes
from halfjoin.engine.kernels import native
from tests.benchmarks.peers.alone import CONTENDERS, OURS, PATHWAY, raced, started
from tests.benchmarks.peers.churn import churned
from tests.benchmarks.peers.integers import Tables, checksum

SIZES = {1: 10, 100: 3, 1000: 1}
ROWS = sum(size * count for size, count in SIZES.items())
ORDERS, CUSTOMERS = 1500, 150


def tables() -> Tables:
    """Query 3's columns, with TPC-H's types and dates around those of its filters."""
    random, orders, lines = np.random.default_rng(5), np.arange(1, ORDERS + 1), np.arange(4 * ORDERS)
    days = np.datetime64("1994-12-01") + random.integers(0, 200, ORDERS)
    made = {
        "customer": [np.arange(1, CUSTOMERS + 1), random.choice(SEGMENTS, CUSTOMERS)],
        "orders": [orders, random.integers(1, CUSTOMERS + 1, ORDERS), days, random.integers(0, 3, ORDERS)],
        "lineitem": [orders.repeat(4), 1 + lines % 4, random.integers(100, 10**6, len(lines)),
                     random.integers(0, 11, len(lines)), days.repeat(4) + random.integers(0, 100, len(lines))],
    }  # fmt: skip
    return {name: _table(name, columns) for name, columns in made.items()}


def _table(name: str, columns: list[np.ndarray]) -> pa.Table:
    named = zip(Q3_COLUMNS[name], columns, strict=True)
    return pa.table({column: _typed(values, column, name) for column, values in named})


def _typed(values: np.ndarray, column: str, table: str) -> pa.Array:
    declared = COLUMNS[table][column]
    if "numeric" not in declared:
        return pa.array(values).cast(pa.int32() if " integer" in declared else pa.array(values).type)
    words = np.column_stack((values, np.zeros_like(values)))  # hundredths as 128 bits
    return pa.Array.from_buffers(pa.decimal128(15, 2), len(values), [None, pa.py_buffer(words.tobytes())])


@pytest.mark.parametrize("profile", ["uniform", "hot"])
@pytest.mark.parametrize("view", ["lines", "groups"])
def test_all_contenders_hold_the_same_rows(view: str, profile: str) -> None:
    given, holds = tables(), {}
    for name, (_, environment) in CONTENDERS.items():
        if name != PATHWAY:
            with native.used(not environment):
                changes = Changes(given, ROWS, seed=1, hot=profile == "hot")
                holds[name] = raced(started(name, given, view), changes, SIZES)["holds"]
    assert set(holds.values()) == {holds[OURS]}, holds
    assert not holds[OURS].startswith("0 rows")


def test_churn_leaves_nothing_behind() -> None:
    given = tables()
    churn = churned(given, "groups", Changes(given, ROWS, seed=1, hot=True))
    assert churn.compacted[:2] == churn.before[:2]


def test_the_checksum_tells_rows_apart_and_not_their_order() -> None:
    rows = {"a": np.array([1, 2, 3]), "b": np.array([4, 5, 6])}
    assert checksum(rows) == checksum({name: column[::-1] for name, column in rows.items()})
    assert checksum(rows) != checksum(rows | {"b": np.array([5, 4, 6])})
    assert checksum(rows) != checksum({name: column[:2] for name, column in rows.items()})
