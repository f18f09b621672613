"""What queries see of runs that cancel each other: each row once, as often as it counts, and nothing that has gone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import product
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import halfjoin as hj
from halfjoin.engine.arrange import current as current_module
from halfjoin.engine.arrange.current import NOTHING, CurrentRun, across
from halfjoin.engine.arrange.keys import key_columns
from halfjoin.engine.arrange.part import present
from halfjoin.engine.arrange.run import Run, make_run
from halfjoin.engine.updates.updates import MINIMUM, Updates
from halfjoin.planner.plan import ArrangementKey
from halfjoin.sql.expr import Column
from halfjoin.sql.types import BIGINT

KEY = ArrangementKey("t", (Column("k", BIGINT),))
COLUMNS = {KEY: key_columns(KEY, {})}
UPDATE = st.tuples(st.integers(0, 2), st.integers(0, 1), st.integers(0, 9), st.sampled_from([1, 1, -1, -1, 2, -3]))
RUNS = st.lists(st.lists(UPDATE, max_size=8), min_size=1, max_size=5)


def _run(rows: Sequence[tuple[int, int, int, int]], netted: int, *, indexed: bool) -> Run:
    k, v, time, diff = np.array(rows, np.int64).reshape(-1, 4).T
    run = make_run(Updates({"k": pa.array(k), "v": pa.array(v)}, time, diff), netted).netted(netted)
    if indexed:
        run.build(KEY, COLUMNS[KEY])
    return run


def _sums(pieces: Sequence[Updates], closed: int) -> Counter[tuple[int, int, int]]:
    """How often each row counts: below `closed`, and at each later time."""
    found: Counter[tuple[int, int, int]] = Counter()
    for piece in pieces:
        cells = (piece.columns["k"].to_pylist(), piece.columns["v"].to_pylist(), piece.time.tolist(),
                 piece.diff.tolist())  # fmt: skip
        for k, v, time, diff in zip(*cells, strict=True):
            found[k, v, max(time, closed - 1)] += diff
    return Counter({row: count for row, count in found.items() if count})


@settings(max_examples=100)  # most have nothing that cancels in different runs
@given(RUNS, st.integers(0, 10), st.integers(0, 10), st.integers(0, 5), st.booleans(), st.booleans())
def test_nets_across_runs_keep_every_sum_and_hide_what_cancels(
    rows: list[list[tuple[int, int, int, int]]], one: int, other: int, first: int, indexed: bool, few: bool
) -> None:
    """Whether an index tells what may cancel or the codes of all columns do, or the runs are few rows; whether the
    first runs were seen before at an earlier time, or not."""
    netted, closed = min(one, other), max(one, other)
    runs = [_run(each, netted, indexed=indexed) for each in rows]
    with patch.object(current_module, "_FEW", current_module._FEW if few else 0):
        early = NOTHING.after(runs[:first], netted, lambda: COLUMNS)
        seen = early.after(runs, closed, lambda: COLUMNS).seen()
    expected = _sums([run.updates for run in runs], closed)
    left = [piece for run in seen for piece in run.present(closed)]
    assert _sums(left, closed) == expected
    for apart in (False, True):
        assert _sums(list(present(seen, closed, apart=apart)), closed) == expected
    shown = {row for piece in left for row in _rows_of(piece, closed) if row[2] < closed}
    assert len(runs) < 2 or shown <= expected.keys(), "what cancels in different runs was shown"
    for probe, below in product(range(3), (closed, MINIMUM)):  # nothing is added up for a lookup that tells times apart
        found = []
        for run in seen:
            for _, numbers, _ in run.find(KEY, COLUMNS[KEY], np.array([probe]), below):
                some = run.updates.take(numbers)
                found.append(Updates(some.columns, some.time, run.diffs(numbers, below)))
        assert _sums(found, closed) == Counter({row: count for row, count in expected.items() if row[0] == probe})


def _rows_of(piece: Updates, closed: int) -> list[tuple[int, int, int]]:
    times = np.maximum(piece.time, closed - 1).tolist()
    return list(zip(piece.columns["k"].to_pylist(), piece.columns["v"].to_pylist(), times, strict=True))


def test_the_entries_of_an_order_are_those_of_rows_that_remain() -> None:
    runs = [_run([(1, 0, 0, 1), (1, 1, 0, 1), (2, 0, 0, 1)], 1, indexed=True), _run([(1, 1, 1, -1)], 2, indexed=True)]
    first, second = NOTHING.after(runs, 2, lambda: COLUMNS).seen()
    assert isinstance(first, CurrentRun) and isinstance(second, CurrentRun)
    assert first.index(KEY, COLUMNS[KEY]) is first.index(KEY, COLUMNS[KEY])
    assert [first.live(KEY, COLUMNS[KEY])[1].tolist(), second.live(KEY, COLUMNS[KEY])[1].tolist()] == [[0, 2], []]
    assert first.at_once().updates.time.tolist() == [MINIMUM] * 3
    assert (first.hidden, second.hidden, first.alone().hidden) == (1, 1, 0)


@pytest.mark.parametrize("key", ["PRIMARY KEY", ""])
def test_what_cancels_is_found_once_for_all_queries_until_the_next_batch(key: str) -> None:
    with hj.Engine() as engine:
        engine.execute(f"CREATE TABLE t (k BIGINT {key}, v BIGINT)")
        engine.execute("INSERT INTO t SELECT x, x % 10 FROM generate_series(1, 10000) AS g (x)")
        engine.execute("UPDATE t SET v = v + 100 WHERE k <= 500")
        asked = "SELECT v FROM t ORDER BY v DESC LIMIT 2"
        with patch.object(current_module, "across", side_effect=across) as counted:
            for _ in range(3):
                assert engine.query(asked).to_pylist() == [{"v": 109}, {"v": 109}]
            assert counted.call_count == 1
            engine.execute("INSERT INTO t VALUES (10001, 500)")
            assert engine.query(asked).to_pylist() == [{"v": 500}, {"v": 109}]
            assert counted.call_count == 2
