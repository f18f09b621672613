"""Files and row groups left out by the range of a change's keys: never one that holds a key, also on early days."""

from __future__ import annotations

import datetime as dt
import re
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import functions as F

import halfjoin as hj
from halfjoin.engine.spark import probing, runner
from halfjoin.engine.spark.frames import read
from halfjoin.engine.spark.pruning import Range, range_of
from halfjoin.engine.storage import parquet
from halfjoin.engine.storage.place import LocalPlace
from halfjoin.engine.storage.stored_run import StoredRun
from halfjoin.engine.updates.updates import Updates
from tests.oracle.rows import Bag, bag

EPOCH = dt.date(1970, 1, 1)
EARLY = [dt.date(1, 1, 1), dt.date(4, 2, 29), dt.date(1500, 2, 28), dt.date(1582, 10, 4), dt.date(1582, 10, 10),
         dt.date(1582, 10, 15), dt.date(1582, 12, 31), dt.date(1583, 1, 1), dt.date(1969, 12, 31)]  # fmt: skip
DAYS = [(day - EPOCH).days for day in (*EARLY, EPOCH, dt.date(2024, 2, 29), dt.date(9999, 12, 31))]
BEYOND = [DAYS[0] - 1, DAYS[-1] + 1]  # days that are no dates to Python


@pytest.fixture(autouse=True)
def _small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "GROUP_ROWS", 3)


def _stored(folder: str | Path, parts: list[list[int | None]], kind: pa.DataType, sort: bool) -> StoredRun:
    """Store a file per part that has rows."""
    place, schema, files = LocalPlace(Path(folder)), {"k": kind}, list[parquet.StoredFile]()
    for values in filter(None, parts):
        ones = np.ones(len(values), np.int64)
        updates = Updates({"k": pa.array(values, pa.int32() if kind == pa.date32() else kind).cast(kind)}, ones, ones)
        files.extend(parquet.write(place, updates, schema, ["k"] if sort else []))
    return StoredRun(place, tuple(files), schema)


def _groups(run: StoredRun) -> dict[str, list[list[int]]]:
    """The values in each file's row groups, without NULLs."""
    found = {}
    for file in run.files:
        source = pq.ParquetFile(str(run.place / file.name))
        columns = [source.read_row_group(i)["k"].drop_null() for i in range(source.num_row_groups)]
        found[file.name] = [column.combine_chunks().cast(pa.int32()).to_pylist() for column in columns]
    return found


VALUES = st.lists(st.lists(st.none() | st.integers(-9, 9), max_size=12), max_size=4)


@given(VALUES, st.integers(-12, 12), st.integers(0, 9), st.sampled_from([pa.int32(), pa.date32()]), st.booleans())
def test_what_is_left_out_holds_none_of_the_values(
    parts: list[list[int | None]], low: int, width: int, kind: pa.DataType, sort: bool
) -> None:
    sought = range(low, low + width + 1)
    span = Range(kind, sought[0], sought[-1])
    with tempfile.TemporaryDirectory() as folder:
        run = _stored(folder, parts, kind, sort)
        kept, skips, own = span.files(run, "k"), span.skips(run, "k"), range_of(run, "k", kind)
        groups = _groups(run)
    assert isinstance(kept, StoredRun)
    names = {file.name for file in kept.files}
    bounds = {name: [(min(one), max(one)) for one in inside if one] for name, inside in groups.items()}
    for name, inside in groups.items():
        assert name in names or not any(value in sought for one in inside for value in one)
    everything = [value for inside in groups.values() for one in inside for value in one]
    assert own is not None or not run.files
    assert own is None or all(own.low <= value <= own.high for value in everything)
    apart = [low > sought[-1] or high < sought[0] for inside in bounds.values() for low, high in inside]
    if all(one for inside in groups.values() for one in inside):  # bounds of NULLs alone are taken for wider
        assert skips == any(apart)
        assert names == {name for name, inside in bounds.items()
                         if min(inside)[0] <= sought[-1] and max(high for _, high in inside) >= sought[0]}  # fmt: skip
        assert own is None or (own.low, own.high) == (min(everything), max(everything))
    else:
        assert skips >= any(apart)


def test_the_range_of_other_types_is_not_known(tmp_path: Path) -> None:
    assert range_of(_stored(tmp_path, [[1]], pa.int64(), True), "k", pa.string()) is None
    assert range_of(_stored(tmp_path, [[1]], pa.int64(), True), "k", pa.int64()) == Range(pa.int64(), 1, 1)


@pytest.mark.parametrize("kind", [pa.date32(), pa.int64()], ids=str)
def test_a_condition_is_true_for_just_the_values_in_the_range(spark: Any, tmp_path: Path, kind: pa.DataType) -> None:
    """Also for days on which the calendars of Java and Python disagree."""
    values = sorted({*DAYS, *BEYOND, *(day + near for day in DAYS[1:-1] for near in (-1, 1))})
    run = _stored(tmp_path, [[*values, None]], kind, True)
    frame = read(spark, [run], {"k": kind}, ["k"])
    edges = [BEYOND[0], *(DAYS[i] for i in (0, 4, 7, 9, -1)), BEYOND[1]]
    spans = [Range(kind, low, high) for low in edges for high in reversed(edges) if low <= high]
    number = F.unix_date("c0") if kind == pa.date32() else frame["c0"]
    answers = [span.condition(frame["c0"]).alias(f"s{i}") for i, span in enumerate(spans)]
    found = frame.select(number.alias("n"), *answers).toArrow()
    numbers = found["n"].to_pylist()
    assert sorted(number for number in numbers if number is not None) == values
    for i, span in enumerate(spans):
        expected = [None if number is None else span.low <= number <= span.high for number in numbers]
        assert found[f"s{i}"].to_pylist() == expected, span
    assert all(span.skips(run, "k") for span in spans if span.low == span.high)
    for span in spans[::4]:  # as Spark answers it from statistics
        kept = frame.where(span.condition(frame["c0"])).count()
        assert kept == sum(span.low <= value <= span.high for value in values), span


def test_a_condition_on_equal_days_skips_row_groups(
    spark: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    frame = read(spark, [_stored(tmp_path, [DAYS], pa.date32(), True)], {"k": pa.date32()}, ["k"])
    for low, high, pushed in ((DAYS[7], DAYS[-1], 2), (DAYS[4], DAYS[-1], 1), (DAYS[4], DAYS[5], 0)):
        frame.where(Range(pa.date32(), low, high).condition(frame["c0"])).explain()
        plan = capfd.readouterr().out
        assert len(re.findall(r"(?:Greater|Less)ThanOrEqual\(k,", plan)) == pushed, plan


DDL = """
    CREATE TABLE a (k integer, d date, x integer);
    CREATE TABLE b (k bigint, d date, y integer);
    CREATE MATERIALIZED VIEW numbers AS SELECT a.k, x, y FROM a JOIN b ON a.k = b.k;
    CREATE MATERIALIZED VIEW days AS SELECT b.d, x, y FROM a JOIN b ON a.d = b.d;
    CREATE MATERIALIZED VIEW same AS SELECT a.k, x, y FROM a JOIN b ON a.k IS NOT DISTINCT FROM b.k;
"""


def _rows(days: list[int], first: int, value: str) -> pa.Table:
    """Rows with ascending keys and days, and one row with NULLs."""
    keys = pa.array([*range(first, first + len(days)), None], pa.int32())
    cells = {"k": keys, "d": pa.array([*days, None], pa.int32()).cast(pa.date32())}
    return pa.table({**cells, value: pa.array(range(len(keys)), pa.int32())})


@pytest.mark.parametrize("joins", [True, False], ids=["joins", "lookups"])
@pytest.mark.parametrize(
    ("first", "days", "conditions"),
    [(80, DAYS[10:], 2), (0, DAYS[2:6], 2), (0, DAYS[:1], 2), (-3, DAYS[5:], 2), (0, DAYS, 1),
     (0, sorted(8 * DAYS), 0)],
    ids=["modern", "1582", "year one", "below zero", "all days", "all"],
)  # fmt: skip
def test_batches_answer_as_the_local_runner_does(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, joins: bool, first: int, days: list[int],
    conditions: int,
) -> None:  # fmt: skip
    monkeypatch.setattr(runner, "FEW", 0)
    if joins:
        monkeypatch.setattr(probing, "STREAM_ROWS", 0)
    seen, used = list[bool](), list[Range]()
    skips, condition = Range.skips, Range.condition
    monkeypatch.setattr(Range, "skips", lambda *given: (seen.append(skips(*given)), seen[-1])[1])
    monkeypatch.setattr(Range, "condition", lambda *given: (used.append(given[0]), condition(*given))[1])
    found: dict[str, list[Bag]] = {}
    for setting in ("local", "spark"):
        with hj.Engine(tmp_path / setting, spark=spark, runner="local", memory=1) as engine:
            engine.execute(DDL)
            engine.apply({"b": _rows([day for day in DAYS for _ in range(8)], 0, "y")}, time=1)
            engine.flush()
            engine._runners.setting = setting
            engine.apply({"a": _rows(days, first, "x")}, time=2)
            found[setting] = [bag(engine.read(view)) for view in ("numbers", "days", "same")]
    assert found["spark"] == found["local"] and all(found["local"])
    assert len(used) == joins * conditions and any(seen) == bool(used)
