"""Indexes and runs: every search agrees with a scan, every merge with a new index."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfjoin.engine.arrange import index as module
from halfjoin.engine.arrange.index import build, build_from_codes
from halfjoin.engine.arrange.keys import key_columns
from halfjoin.engine.arrange.merging import merge_runs
from halfjoin.engine.arrange.run import make_run
from halfjoin.engine.updates import limits
from halfjoin.engine.updates.updates import Updates
from halfjoin.planner.plan import ArrangementKey
from halfjoin.sql.expr import Column
from halfjoin.sql.types import BIGINT
from tests.support.kernels import both_ways  # noqa: F401

CODES = st.lists(st.one_of(st.integers(-3, 3), st.integers(-(2**63), 2**63 - 1)), max_size=200)
KEY = ArrangementKey("t", (Column("k", BIGINT),))
COLUMNS = {KEY: key_columns(KEY, {})}


@given(CODES, CODES, st.booleans(), st.sampled_from([1, 2, 7, 1 << 20]))
def test_find_agrees_with_a_scan(codes, probes, guided, most):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "PIECE_ROWS", most)
        if guided:  # as for an index of millions of entries
            patch.setattr(module, "_GUIDE_FROM", 1)
            patch.setattr(module, "_GUIDED_FROM", 0)
            patch.setattr(module, "_FEW", 0)
        index = build_from_codes(np.array(codes, np.int64), None, True)
        pieces = list(index.find(np.array(probes, np.int64)))
    pairs = [pair for positions, rows in pieces for pair in zip(positions.tolist(), rows.tolist(), strict=True)]
    assert max((len(rows) for _, rows in pieces), default=0) <= max(most, len(probes))
    found = sorted(pairs)
    assert [position for position, _ in pairs] == [position for position, _ in found]
    assert found == [(i, j) for i, probe in enumerate(probes) for j, code in enumerate(codes) if code == probe]
    assert index.distinct() == len(set(codes))


@pytest.mark.parametrize("count", [2, 48, 49, 5000])
@pytest.mark.parametrize("kind", ["near", "few", "far", "hashes", "same bits", "one far", "one very far", "falling"])
def test_codes_are_sorted_whatever_tells_them_apart(kind, count, both_ways):  # noqa: F811
    random, ends = np.random.default_rng(count), (-(2**63), 2**63 - 1)
    codes = {
        "near": random.integers(2_450_000, 2_452_000, count),
        "few": random.integers(-1, 2, count),
        "far": random.integers(0, 2**40, count) // 1000 * 1000,
        "hashes": random.integers(*ends, count),
        "same bits": random.integers(0, 9, count) * 2**57 + random.integers(0, 100, count),  # the first ones
        "one far": np.append(random.integers(0, 50, count - 1), 2**40),
        "one very far": np.append(random.integers(0, 2**62, count - 1), ends[0]),
        "falling": np.arange(count)[::-1],
    }[kind]
    index, order = build([pa.array(codes)], None, count), codes.argsort(kind="stable")
    assert index.codes.tolist() == codes[order].tolist()
    assert codes[index.rows].tolist() == codes[order].tolist()
    assert sorted(index.rows.tolist()) == list(range(count))


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5)), max_size=30))
def test_a_row_has_one_entry_for_a_code(entries):
    rows, values = (np.array([entry[side] for entry in entries], np.int64) for side in (0, 1))
    index = build([pa.array(values)], rows, len(rows))
    found = list(zip(index.codes.tolist(), index.rows.tolist(), strict=True))
    assert found == sorted({(value, row) for row, value in entries})


def test_an_index_takes_at_most_16_bytes_a_row():
    index = build([pa.array(np.random.default_rng(1).integers(0, 10**6, 1 << 21))], None, 1 << 21)
    assert index.guide is not None and index.nbytes <= 16 * len(index)


ROWS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9), st.sampled_from([1, 1, -1])), max_size=20)


def run_of(rows, upper=0):
    updates = Updates(
        {"k": pa.array([row[0] for row in rows], pa.int64())},
        np.array([row[1] for row in rows], np.int64),
        np.array([row[2] for row in rows], np.int64),
    )
    return make_run(updates, upper)


def contents(run, time):
    total = {}
    for k, t, diff in zip(run.updates.columns["k"].to_pylist(), run.updates.time, run.updates.diff, strict=True):
        if t <= time:
            total[k] = total.get(k, 0) + int(diff)
    return {k: count for k, count in total.items() if count}


@given(st.lists(ROWS, min_size=1, max_size=4), st.integers(0, 9), st.integers(0, 9))
def test_compaction_law_for_merged_runs(parts, since, upper):
    runs = [run_of(rows) for rows in parts]
    for run in runs:
        run.index(KEY, COLUMNS[KEY])
    whole = run_of([row for rows in parts for row in rows])
    merged = merge_runs(runs, since, upper, COLUMNS, final=True)
    for time in range(since, 10):
        assert contents(merged, time) == contents(whole, time)
    assert not len(merged) or merged.updates.time.min() >= since
    fresh = build([merged.updates.columns["k"]], None, len(merged))
    kept = merged.indexes[KEY]
    pairs = [sorted(zip(i.codes.tolist(), i.rows.tolist(), strict=True)) for i in (fresh, kept)]
    assert pairs[0] == pairs[1]


@given(ROWS, st.integers(0, 9), st.integers(0, 9))
def test_what_closes_is_found_by_time(rows, upper, later):
    run = run_of(rows, upper)
    high = upper + later
    closing = run.closing(upper, high)
    assert sorted(closing.time.tolist()) == sorted(time for _, time, _ in rows if upper <= time < high)
    run = run.closed(high)
    assert (run.future is None) == all(time < high for _, time, _ in rows) or not rows
