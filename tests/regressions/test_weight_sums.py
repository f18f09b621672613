"""Sums of weights are exact, however they are added up. A sum past an int64 is an error, never a wrong answer."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

import halfjoin as hj
from halfjoin.engine.updates.consolidate import cancel, consolidate
from halfjoin.engine.updates.updates import MAXIMUM, MINIMUM, Updates, concat, constant, product

BIG = 2**62
LISTS = [[BIG] * 2, [-BIG] * 4, [BIG] * 4, [MINIMUM] * 3, [MAXIMUM, 1], [MINIMUM, -1, 5], [BIG, BIG, -5, BIG, -BIG]]
FITTING = [[BIG] * 3 + [-BIG] * 3 + [5], [MINIMUM, MAXIMUM], [MAXIMUM, MAXIMUM, MINIMUM], [-BIG, -BIG], [MINIMUM]]


def weights(diffs: list[int], seed: int = 0) -> Updates:
    """One row with these weights, among others, in random order."""
    pairs = [(1, diff) for diff in diffs] + [(2, 1), (3, -1), (2, -1)]
    Random(seed).shuffle(pairs)
    columns = {"k": pa.array([k for k, _ in pairs], pa.int64())}
    return Updates(columns, constant(0, len(pairs)), np.array([diff for _, diff in pairs], np.int64))


def totals(updates: Updates) -> dict[int, int]:
    total: Counter[int] = Counter()
    for key, diff in zip(updates.columns["k"].to_pylist(), updates.diff.tolist(), strict=True):
        total[key] += diff
    return {key: count for key, count in total.items() if count}


@pytest.mark.parametrize("diffs", LISTS + FITTING, ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_a_sum_is_the_same_in_any_order_and_split(diffs: list[int], seed: int) -> None:
    given, random = weights(diffs, seed), Random(seed)
    cuts = sorted(random.choices(range(len(given) + 1), k=2))
    parts = [given.slice(*ends) for ends in zip([0, *cuts], [*cuts, len(given)], strict=True)]
    once, twice = consolidate(given), consolidate(concat([consolidate(part) for part in parts]))
    cancelled = cancel(concat([cancel(part) for part in parts]))
    assert totals(once) == totals(twice) == totals(cancelled) == totals(given)
    assert sorted(once.diff.tolist()) == sorted(twice.diff.tolist()), "what does not fit has one form"
    assert len(once) <= len(given)


@pytest.mark.parametrize("diffs", LISTS, ids=str)
@pytest.mark.parametrize("add", [consolidate, cancel])
def test_contents_that_no_int64_holds_are_an_error(diffs: list[int], add) -> None:
    if add is cancel and min(diffs) > 0:
        return  # rows that nothing cancels stay apart
    if MINIMUM <= sum(diffs) <= MAXIMUM:
        return
    with pytest.raises(hj.DataError, match="int64"):
        add(weights(diffs), by_time=False)


@pytest.mark.parametrize("diffs", FITTING, ids=str)
@pytest.mark.parametrize("add", [consolidate, cancel])
def test_contents_that_fit_at_last_are_an_answer(diffs: list[int], add) -> None:
    for seed in range(3):
        assert totals(add(weights(diffs, seed), by_time=False)).get(1, 0) == sum(diffs)


def test_products_are_exact_for_the_least_weight_too() -> None:
    assert product(np.array([MINIMUM, MAXIMUM]), np.array([1, -1])).tolist() == [MINIMUM, -MAXIMUM]
    assert product(np.array([MINIMUM, MAXIMUM]), np.array([-1, 1])).tolist() == [-MINIMUM, MAXIMUM]


def heavy(path: Path | None = None, weight: int = -BIG, **options: Any) -> hj.Engine:
    """A table with views over it, and four batches that each add the same row, whose `w` is a great weight."""
    engine = hj.Engine(path, **options)
    engine.execute("CREATE TABLE t (k bigint, w bigint)")
    engine.execute("CREATE MATERIALIZED VIEW copy AS SELECT k FROM t")
    engine.execute("CREATE MATERIALIZED VIEW many AS SELECT t.k FROM t, repeat_row(t.w)")
    for time in range(4):
        engine.apply({"t": [{"k": 1, "w": weight, "__diff": 1}, {"k": 2, "w": 1, "__diff": 1}]}, time=time)
    return engine


def assert_unreadable(engine: hj.Engine, name: str) -> None:
    for read in (
        lambda: engine.read(name),
        lambda: engine.read(name, multiplicity=True),
        lambda: engine.query(f"SELECT * FROM {name}"),
        lambda: engine.query(f"SELECT DISTINCT k FROM {name}"),
        lambda: engine.query(f"SELECT k, count(*) FROM {name} GROUP BY k"),
    ):
        with pytest.raises(hj.DataError):
            read()


@pytest.mark.parametrize("weight", [-BIG, BIG])
def test_reads_of_a_sum_past_int64_are_errors(weight: int) -> None:
    engine = heavy(weight=weight)
    assert_unreadable(engine, "many")
    assert len(engine.read("copy")) == 8
    engine.compact()
    assert_unreadable(engine, "many")
    engine.apply({"t": hj.deletes([{"k": 1, "w": weight}] * 4)}, time=9)
    assert engine.read("many")["k"].to_pylist() == [2] * 4


def test_compaction_and_reopening_keep_a_sum_past_int64(tmp_path: Path) -> None:
    with heavy(tmp_path / "w") as engine:
        for time in (10, 11, 12):
            engine.apply({"t": [{"k": 3, "w": BIG}]}, time=time)
            engine.flush()
        engine.advance(to=5_000_000)  # all that is below since by now meets where files are merged
        engine.compact()
        assert_unreadable(engine, "many")
    for memory in (None, 1):
        with hj.Engine(tmp_path / "w", memory=memory) as engine:
            assert_unreadable(engine, "many")
    with hj.Engine(tmp_path / "w") as engine:
        gone = [{"k": 1, "w": -BIG}] * 4 + [{"k": 3, "w": BIG}] * 3
        engine.apply({"t": hj.deletes(gone)}, time=6_000_000)
        engine.compact()
        assert engine.read("many")["k"].to_pylist() == [2] * 4


def test_a_change_past_int64_does_not_stop_a_batch() -> None:
    engine = heavy()
    applied = engine.apply({"t": [{"k": 1, "w": -BIG}] * 4}, time=10)
    found = applied.diffs["many"]
    assert sum(found["__diff"].to_pylist()) == -4 * BIG and set(found["k"].to_pylist()) == {1}
    engine.apply({"t": hj.deletes([{"k": 1, "w": -BIG}] * 8)}, time=11)
    assert engine.read("many")["k"].to_pylist() == [2] * 4


@pytest.mark.parametrize("weight", [-BIG, BIG])
def test_spark_sums_weights_as_this_process_does(spark: Any, weight: int) -> None:
    engine = heavy(weight=weight, runner="spark", spark=spark)
    engine.execute("CREATE MATERIALIZED VIEW late AS SELECT t.k FROM t, repeat_row(t.w)")
    for name in ("many", "late"):
        assert_unreadable(engine, name)
        with pytest.raises(PySparkException, match="DataError"):
            engine.dataframe(name).collect()
    engine.apply({"t": hj.deletes([{"k": 1, "w": weight}] * 4)}, time=9)
    for name in ("many", "late"):
        assert engine.read(name)["k"].to_pylist() == [2] * 4
