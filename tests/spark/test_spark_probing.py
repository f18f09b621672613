"""Half-joins by lookups in tasks: when they are chosen, in how many tasks, and that Spark's own joins agree."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import halfjoin as hj
from halfjoin.engine.arrange.run import Run
from halfjoin.engine.join.half_join import HalfJoinOperator
from halfjoin.engine.spark import flow, probing
from halfjoin.engine.storage.parquet import StoredFile
from halfjoin.engine.storage.place import LocalPlace
from halfjoin.engine.storage.stored_run import StoredRun
from halfjoin.engine.updates import limits
from halfjoin.engine.updates.updates import Updates, concat
from tests.oracle.rows import bag, updates

VIEW = """CREATE MATERIALIZED VIEW v AS
          SELECT a.k, b.y, c.z, 100 / c.z AS part FROM a, b, c WHERE a.k = b.k AND b.y = c.y AND a.x > 2"""
TABLES = ["CREATE TABLE a (k bigint, x bigint)", "CREATE TABLE b (k bigint, y bigint)",
          "CREATE TABLE c (y bigint, z bigint)"]  # fmt: skip


def _rows(salt: int, count: int, names: tuple[str, str]) -> pa.Table:
    values = [[(i * salt) % 11 for i in range(count)], [(i * i + salt) % 7 + 1 for i in range(count)]]
    return pa.table(values, names=list(names))


def _history(engine: hj.Engine) -> list[tuple[Any, ...]]:
    found = []
    for number in range(1, 4):
        batch = {
            "a": _rows(number, 20, ("k", "x")), "b": _rows(number + 1, 15, ("k", "y")),
            "c": _rows(number + 2, 5, ("y", "z")),
        }  # fmt: skip
        if number == 2:  # a row for which the view's expression fails, on complete tuples only
            batch["c"] = pa.table({"y": [1], "z": [0]})
        applied = engine.apply(batch, time=2 * number)
        found.append(sorted(map(repr, updates(applied.diffs["v"]))))
        if number == 2:
            with pytest.raises(hj.DataError, match="division by zero"):
                engine.read("v")
            engine.apply({"c": hj.deletes(batch["c"])}, time=2 * number + 1)
    return [*found, bag(engine.read("v"))]


@pytest.mark.parametrize(("stream", "share", "probes"), [
    (1 << 20, 1 << 20, True), (40, 1, True), (0, 1, False),
])  # fmt: skip
def test_lookups_by_tasks_and_joins_of_frames_agree(
    spark: Any, monkeypatch: pytest.MonkeyPatch, stream: int, share: int, probes: bool
) -> None:
    monkeypatch.setattr(probing, "STREAM_ROWS", stream)
    monkeypatch.setattr(probing, "SHARE_ROWS", share)
    made = []
    monkeypatch.setattr(flow, "Probe", lambda *given: made.append(given) or probing.Probe(*given))  # type: ignore[func-returns-value]
    with hj.Engine() as local, hj.Engine(spark=spark, runner="spark") as other:
        for engine in (local, other):
            for sql in (*TABLES, VIEW):
                engine.execute(sql)
        assert _history(other) == _history(local)
    assert bool(made) is probes
    assert not probes or any(len(shares) > 1 for _, shares, *_ in made) is (share == 1)


@pytest.mark.parametrize("limit", [0, 1 << 20])
def test_cross_joins_and_rows_that_fail_on_the_way(spark: Any, monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    monkeypatch.setattr(probing, "STREAM_ROWS", limit)
    monkeypatch.setattr(probing, "SHARE_ROWS", 1)
    answers = []
    for settings in ({"runner": "local"}, {"spark": spark, "runner": "spark"}):
        with hj.Engine(**settings) as engine:  # type: ignore[arg-type]
            for sql in (*TABLES[:2], "CREATE MATERIALIZED VIEW v AS SELECT a.k, b.y FROM a, b",
                        "CREATE MATERIALIZED VIEW w AS SELECT a.k, b.y FROM a, b WHERE a.k = b.k AND 10 / a.x > 1"):
                engine.execute(sql)
            engine.apply({"a": [{"k": k, "x": k % 3} for k in range(6)], "b": [{"k": k, "y": k} for k in range(3)]})
            engine.apply({"b": [{"k": 4, "y": 1}], "a": hj.deletes([{"k": 3, "x": 0}, {"k": 0, "x": 0}])})
            answers.append((bag(engine.read("v")), bag(engine.read("w"))))
    assert answers[0] == answers[1]
    assert answers[0][0] == Counter({(k, y): 1 for k in (1, 2, 4, 5) for y in (0, 1, 2, 1)} ) + Counter(
        {(k, 1): 1 for k in (1, 2, 4, 5)})  # fmt: skip


def test_rows_on_their_way_that_files_do_not_hold(spark: Any) -> None:
    """An interval that is computed between two half-joins."""
    view = """CREATE MATERIALIZED VIEW v AS SELECT a.k, c.at + i AS due FROM a JOIN b ON a.k = b.k
              CROSS JOIN unnest(ARRAY[b.at - timestamp '2020-01-01']) AS u (i) JOIN c ON b.j = c.j"""
    answers = []
    for settings in ({"runner": "local"}, {"spark": spark, "runner": "spark"}):
        with hj.Engine(**settings) as engine:  # type: ignore[arg-type]
            for name in "abc":
                engine.execute(f"CREATE TABLE {name} (k bigint, j bigint, at timestamp)")
            engine.execute(view)
            for salt in (1, 2):
                rows = [{"k": k, "j": k % 2, "at": f"2020-01-0{k + salt}"} for k in range(1, 4)]
                engine.apply(dict.fromkeys("abc", rows))
            answers.append(bag(engine.read("v")))
    assert answers[0] == answers[1]
    assert len(answers[0]) > 3


def test_what_meets_nothing_is_not_looked_up(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with hj.Engine(spark=spark, runner="spark") as engine:
        for sql in (*TABLES, VIEW):
            engine.execute(sql)
        monkeypatch.setattr(flow, "answers_by_number", None)
        monkeypatch.setattr(flow, "summed", None)
        applied = engine.apply({"a": _rows(1, 20, ("k", "x"))}, time=1)
        assert (applied.runner, updates(applied.diffs["v"])) == ("spark", [])


def test_wide_rows_are_not_sent_to_every_task() -> None:
    assert probing.is_small(1_000_000, 60)
    assert not probing.is_small(1_000_001, 1)
    assert not probing.is_small(100_000, 1_000)


def test_shares_have_every_file_once() -> None:
    files = [StoredFile(f"{n}", 1, rows, 0, "") for n, rows in enumerate([5, 5, 1 << 20, 3, 1 << 19, 1 << 19, 7])]
    runs = [StoredRun(LocalPlace(Path("/one")), tuple(files[:3]), {}), StoredRun(LocalPlace(Path("/two")),
            tuple(files[3:]), {})]  # fmt: skip
    found = probing.shares(runs)
    assert [file.name for share in found for run in share for file in run.files] == [file.name for file in files]
    assert [sum(map(len, share)) for share in found] == [10, 1 << 20, 3 + (1 << 19), 7 + (1 << 19)]
    assert all(share for share in found)
    assert probing.shares([]) == ()


def test_a_stream_finds_a_bounded_number_of_rows_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    with hj.Engine() as engine:
        for sql in (*TABLES[:2], "CREATE MATERIALIZED VIEW v AS SELECT a.x, b.y FROM a, b WHERE a.k = b.k"):
            engine.execute(sql)
        path = engine._state.views["v"].dataflow.branches[0][0]
    half_join = path.stages[0].lookup
    assert isinstance(half_join, HalfJoinOperator)
    keys = [None, *(k % 7 for k in range(50))]
    stream = _updates({"k": keys, "x": range(51)}).renamed(path.spec.fetch)
    some, more = {"k": [k % 5 for k in range(60)], "y": range(60)}, {"k": [6] * 30, "y": [0] * 30}
    runs = [Run(_updates(some)), Run(_updates(more))]
    whole = concat(list(half_join(stream, runs)))
    monkeypatch.setattr(limits, "PIECE_ROWS", 40)
    found = list(half_join(stream, runs))
    assert len(found) > 5
    assert max(map(len, found)) < 2 * 40
    assert bag(concat(found).table(changes=True)) == bag(whole.table(changes=True))


def _updates(columns: dict[str, Any]) -> Updates:
    arrays = {name: pa.array(values, pa.int64()) for name, values in columns.items()}
    count = len(next(iter(arrays.values())))
    return Updates(arrays, np.zeros(count, np.int64), np.ones(count, np.int64))
