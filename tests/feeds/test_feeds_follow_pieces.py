"""Versions that come in pieces: restarts between any two, refused rows, and other threads meanwhile."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from threading import Thread
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, WriterProperties, write_deltalake

import halfjoin as hj
from tests.oracle.rows import bag
from tests.support.following import FEED, Source, opened, rows_of


@pytest.mark.parametrize("died_after", [1, 2, 3])
def test_many_rows_come_in_pieces_across_restarts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, died_after: int
) -> None:
    source = Source(tmp_path / "source", {1: 1}, FEED)
    for value in (2, 3, 4):
        source.step("insert", 1, value)
    monkeypatch.setattr("halfjoin.engine.feeds.delta_source.READ_BYTES", 1)
    with opened(tmp_path / "warehouse") as engine, monkeypatch.context() as patch:
        apply, left = engine.apply, died_after

        def dying(*args: Any, **named: Any) -> hj.Applied:
            nonlocal left
            applied = apply(*args, **named)
            left -= 1
            if not left:
                raise SystemError("died")
            return applied

        patch.setattr(engine, "apply", dying)
        with pytest.raises(SystemError):
            engine.follow("t", source.path)
    source.step("update", 1, 9)
    with opened(tmp_path / "warehouse") as engine:
        assert engine.stats().upper == 0  # nothing of a part is seen
        applied = engine.follow("t", source.path)
        assert len(applied) == 4 - died_after + 2
        assert bag(engine.read("t", as_of=applied[-3].time)) == Counter(source.at[-2].items())
        assert bag(engine.read("t", as_of=applied[-1].time - 1)) == Counter(source.at[-2].items())
        assert bag(engine.read("t")) == Counter(source.rows.items())
        assert engine.follow("t", source.path) == []


ROW_GROUPS = WriterProperties(max_row_group_size=10)


def _wide_change(path: Path) -> Any:
    """A table of 100 keys, and a version that changes 90 of them and deletes 10."""
    write_deltalake(path, rows_of(dict.fromkeys(range(100), 0)), configuration=FEED, writer_properties=ROW_GROUPS)
    new = rows_of(dict.fromkeys(range(100), 1))
    merge = DeltaTable(path).merge(new, "s.k = t.k", source_alias="s", target_alias="t", writer_properties=ROW_GROUPS)
    return merge.when_matched_delete("s.k < 10").when_matched_update_all()


@pytest.mark.parametrize("died_after", [1, 3, 10, 15, 18])
@pytest.mark.parametrize("key", ["", " PRIMARY KEY"])
def test_a_large_version_comes_in_pieces_across_restarts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, died_after: int, key: str
) -> None:
    """Nobody ever sees a part of the version, and no key conflicts with its old row."""
    change = _wide_change(tmp_path / "source")
    before, after = {(k, 0): 1 for k in range(100)}, {(k, 1): 1 for k in range(10, 100)}
    with hj.Engine(tmp_path / "warehouse") as engine:
        engine.execute(f"CREATE TABLE t (k bigint{key}, v bigint)")
        engine.execute("CREATE MATERIALIZED VIEW w AS SELECT k, v FROM t")
        (first,) = engine.follow("t", tmp_path / "source")
    change.execute()
    monkeypatch.setattr("halfjoin.engine.feeds.delta_source.READ_BYTES", 1)
    with hj.Engine(tmp_path / "warehouse") as engine, monkeypatch.context() as patch:
        apply, taken = engine.apply, list[int]()

        def dying(batches: Any, *args: Any, **named: Any) -> hj.Applied:
            taken.append(len(batches["t"]))
            applied = apply(batches, *args, **named)
            if len(taken) == died_after:
                raise SystemError("died")
            return applied

        patch.setattr(engine, "apply", dying)
        with pytest.raises(SystemError):
            engine.follow("t", tmp_path / "source")
        assert max(taken) <= 10
    with hj.Engine(tmp_path / "warehouse") as engine:
        assert bag(engine.read("t")) == bag(engine.read("w")) == before
        applied = engine.follow("t", tmp_path / "source")
        assert len(applied) > 1
        assert len({one.time for one in applied}) == 1
        assert bag(engine.read("t")) == bag(engine.read("w")) == after
        for time in (first.time, applied[0].time - 1):
            assert bag(engine.read("t", as_of=time)) == bag(engine.read("w", as_of=time)) == before
        assert engine.follow("t", tmp_path / "source") == []
        assert Counter(engine.read("t").column("v").to_pylist()) == {1: 90}


def test_texts_of_a_feed_come_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Delta's writers give them as string views, which Arrow cannot filter."""
    rows = pa.table({"k": [1, 2, 3], "v": ["a", "b", None], "b": [b"1", b"2", None], "l": [["x"], [None], None]})
    write_deltalake(tmp_path / "source", rows, configuration=FEED)
    with hj.Engine() as engine:
        engine.execute("CREATE TABLE t (k bigint, v text, b bytea, l text[])")
        engine.follow("t", tmp_path / "source")
        monkeypatch.setattr("halfjoin.engine.feeds.delta_source.READ_BYTES", 1)
        DeltaTable(tmp_path / "source").update(updates={"v": "'c'"}, predicate="k > 1")
        assert len(engine.follow("t", tmp_path / "source")) == 2
        assert bag(engine.read("t")) == bag(rows.set_column(1, "v", pa.array(["a", "c", "c"])))


def test_a_bad_piece_refuses_the_version_before_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = Source(tmp_path / "source", dict.fromkeys(range(5), 1), FEED)
    with hj.Engine() as engine:
        engine.execute("CREATE TABLE t (k bigint, v smallint)")
        engine.follow("t", source.path)
        monkeypatch.setattr("halfjoin.engine.feeds.delta_source.READ_BYTES", 1)
        for k in range(5):
            source.step("update", k, 70_000)
        with pytest.raises(hj.InvalidRow, match="70000"):
            engine.follow("t", source.path)
        assert bag(engine.read("t")) == {(k, 1): 1 for k in range(5)}
        engine.advance()
        assert bag(engine.read("t")) == {(k, 1): 1 for k in range(5)}


def test_a_key_that_comes_twice_in_a_later_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody sees the pieces before it, and they go when the table starts anew."""
    write_deltalake(tmp_path / "source", rows_of({1: 1}), configuration=FEED)
    with hj.Engine(tmp_path / "warehouse") as engine:
        engine.execute("CREATE TABLE t (k bigint PRIMARY KEY, v bigint)")
        engine.follow("t", tmp_path / "source")
        monkeypatch.setattr("halfjoin.engine.feeds.delta_source.READ_BYTES", 1)
        twice = pa.table({"k": [*range(2, 30), 2], "v": [0] * 29})
        write_deltalake(tmp_path / "source", twice, mode="append", writer_properties=ROW_GROUPS)
        with pytest.raises(hj.InvalidRow, match=r"second row with the key \(k\) = \(2\)"):
            engine.follow("t", tmp_path / "source")
        assert bag(engine.read("t")) == {(1, 1): 1}
    with hj.Engine(tmp_path / "warehouse") as engine:
        assert bag(engine.read("t")) == {(1, 1): 1}
        monkeypatch.undo()
        write_deltalake(tmp_path / "source", rows_of({5: 6, 7: 7}), mode="overwrite")
        (applied,) = engine.follow("t", tmp_path / "source", restart=True)
        assert bag(engine.read("t")) == {(5, 6): 1, (7, 7): 1}
        assert bag(engine.read("t", as_of=applied.time - 1)) == {(1, 1): 1}


def test_batches_of_other_threads_wait_for_the_last_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    change = _wide_change(tmp_path / "source")
    with hj.Engine() as engine:
        engine.execute("CREATE TABLE t (k bigint PRIMARY KEY, v bigint); CREATE TABLE u (k bigint)")
        engine.follow("t", tmp_path / "source")
        change.execute()
        monkeypatch.setattr("halfjoin.engine.feeds.delta_source.READ_BYTES", 1)
        apply, others = engine.apply, list[Thread]()
        seen = list[int]()

        def watched(batches: Any, *args: Any, **named: Any) -> hj.Applied:
            applied = apply(batches, *args, **named)
            if "t" in batches and not others:
                others.append(Thread(target=lambda: apply({"u": [{"k": 1}]})))
                others.append(Thread(target=lambda: engine.execute("INSERT INTO u VALUES (2)")))
                others.append(Thread(target=engine.advance))
                for other in others:
                    other.start()
            for other in others[:1]:
                other.join(0.02)
            seen.append(engine.read("t").num_rows)
            return applied

        monkeypatch.setattr(engine, "apply", watched)
        pieces = engine.follow("t", tmp_path / "source")
        for other in others:
            other.join()
        assert seen[: len(pieces)] == [100] * (len(pieces) - 1) + [90]
        assert len({one.time for one in pieces}) == 1
        assert bag(engine.read("u")) == {(1,): 1, (2,): 1}


def test_two_threads_that_follow_one_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second thread goes on where the first stopped."""
    change = _wide_change(tmp_path / "source")
    with hj.Engine() as engine, ThreadPoolExecutor(1) as threads:
        engine.execute("CREATE TABLE t (k bigint PRIMARY KEY, v bigint)")
        engine.follow("t", tmp_path / "source")
        change.execute()
        monkeypatch.setattr("halfjoin.engine.feeds.delta_source.READ_BYTES", 1)
        apply, others = engine.apply, list[Future[list[hj.Applied]]]()

        def joined(*args: Any, **named: Any) -> hj.Applied:
            if not others:
                others.append(threads.submit(engine.follow, "t", tmp_path / "source"))
                wait(others, 0.2)
            return apply(*args, **named)

        monkeypatch.setattr(engine, "apply", joined)
        assert len(engine.follow("t", tmp_path / "source")) > 1
        assert others[0].result() == []
        assert bag(engine.read("t")) == {(k, 1): 1 for k in range(10, 100)}
