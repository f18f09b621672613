"""How one job's work is shared out among tasks, and when its files are synced."""

from __future__ import annotations

import os
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import halfjoin as hj
from halfjoin.engine.spark import probing, writing
from halfjoin.engine.storage.place import LocalPlace
from halfjoin.engine.updates.updates import MAXIMUM, Updates
from tests.oracle.rows import bag


class _Frame:
    """Notes the kinds of tasks that are mapped over it, in order."""

    sparkSession = None

    def __init__(self, kinds: tuple[int, ...] = ()) -> None:
        self.kinds = kinds

    def mapInArrow(self, task: Any, _: object) -> _Frame:
        return _Frame((task.args[1],))

    def union(self, other: _Frame) -> _Frame:
        return _Frame(self.kinds + other.kinds)

    def collect(self) -> list[Any]:
        return []


@given(st.lists(st.tuples(st.integers(0, 100), st.integers(0, 3)), max_size=20), st.integers(1, 6))
def test_lots_have_each_part_once_and_are_alike(parts: list[tuple[int, int]], most: int) -> None:
    numbered = [(size, kind, number) for number, (size, kind) in enumerate(parts)]
    lots = writing.shared_out(numbered, most)
    found = [(kind, number) for lot in lots for kind, numbers in lot.items() for number in numbers]
    assert sorted(found) == sorted((kind, number) for _, kind, number in numbered)
    assert len(lots) == min(most, len(parts))
    loads = [sum(parts[number][0] for numbers in lot.values() for number in numbers) for lot in lots]
    assert max(loads, default=0) - min(loads, default=0) <= max((size for size, _ in parts), default=0)


@pytest.mark.parametrize(("written", "wanted"), [("7", 7), ("auto", MAXIMUM)])
def test_a_service_may_write_a_word_for_the_number_of_tasks(written: str, wanted: int) -> None:
    session = SimpleNamespace(conf={"spark.sql.shuffle.partitions": written})
    assert writing._wanted(session) == wanted


def test_a_task_begins_once_for_all_its_parts() -> None:
    begun = list[list[int]]()

    def task(batches: Any) -> Any:
        begun.append([number for batch in batches for number in batch.column(0).to_pylist()])
        yield from ()

    lots = writing.shared_out([(1, 0, number) for number in range(3)], 1)
    list(writing._ByNumber(lots, (task,))(iter([pa.record_batch([pa.array([0])], ["id"])])))
    assert begun == [[0, 1, 2]]


def test_tasks_of_the_largest_frame_start_first(monkeypatch: pytest.MonkeyPatch) -> None:
    seen, collected = list[_Frame](), writing._collected
    monkeypatch.setattr(writing, "translated", nullcontext)
    monkeypatch.setattr(writing, "_collected", lambda frame, kinds: seen.append(frame) or collected(frame, kinds))  # type: ignore[func-returns-value]
    for sizes in ((), (1, 7, 3)):
        writing.answers(*3 * [(_Frame(), iter)], sizes=sizes)
    assert [frame.kinds for frame in seen] == [(0, 1, 2), (1, 2, 0)]


def test_the_first_table_of_a_batch_has_its_error(spark: Any) -> None:
    with hj.Engine(spark=spark, runner="spark") as engine:
        engine.execute("CREATE TABLE a (k bigint); CREATE TABLE b (k bigint)")
        engine.apply({"b": [{"k": 1}]})  # now its tasks start first
        wrong = spark.createDataFrame(pa.table({"k": ["one"]}))
        with pytest.raises(hj.InvalidRow) as refused:
            engine.apply({"a": wrong, "b": wrong})
        assert refused.value.table == "a"


def test_the_session_says_how_many_tasks_share_the_lookups(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probing, "SHARE_ROWS", 1)
    made, shared_out = list[int](), writing.shared_out
    monkeypatch.setattr(writing, "shared_out", lambda *given: made.append(len(found := shared_out(*given))) or found)  # type: ignore[func-returns-value]
    name = "spark.sql.shuffle.partitions"
    before, lookups = spark.conf.get(name), []
    try:
        for wanted in ("1", "3", "200"):
            spark.conf.set(name, wanted)
            with hj.Engine(spark=spark, runner="spark") as engine:
                engine.execute("CREATE TABLE a (k bigint, x bigint); CREATE TABLE b (k bigint, y bigint)")
                engine.execute("CREATE MATERIALIZED VIEW v AS SELECT a.k, x, y FROM a, b WHERE a.k = b.k")
                engine.apply({"a": [{"k": -1, "x": 1}]})
                for start in range(0, 400, 100):
                    engine.apply({"b": [{"k": start + number, "y": number} for number in range(100)]})
                made.clear()
                engine.apply({"a": [{"k": 100 * number, "x": 1} for number in range(4)]})
                lookups += made
                assert len(bag(engine.read("v"))) == 4
    finally:
        spark.conf.set(name, before)
    assert lookups[0] == 1 < lookups[2]
    assert lookups[1] == min(3, lookups[2])


def test_only_files_that_stay_are_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced = list[str]()
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.readlink(f"/proc/self/fd/{handle}")))
    scratch, table = tmp_path / "scratch", tmp_path / "table"
    scratch.mkdir()
    table.mkdir()
    (answer,) = writing.in_files(scratch, Updates({"k": pa.array([1])}, np.array([0]), np.array([1])))
    assert synced == []
    (name,) = answer.column("name").to_pylist()
    LocalPlace(table).link(scratch, [name])
    assert synced == [str(scratch / name), str(table)]
