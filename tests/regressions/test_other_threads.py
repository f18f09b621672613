"""The next call, in any thread, repairs what an interrupted call has left."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event, Thread

import pytest

import halfjoin as hj
from halfjoin.engine.storage.object_journal import ObjectJournal
from halfjoin.engine.storage.place import LocalPlace
from halfjoin.engine.system.starting import unless_starting
from tests.support.listed import LOGS, Log


class Ended(BaseException):
    """An interrupt."""


def elsewhere(work):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).exception()


@pytest.mark.parametrize("writes", [False, True])
def test_a_journal_made_torn_by_one_thread_is_read_by_another(writes, tmp_path: Path, monkeypatch):
    journal = ObjectJournal(LocalPlace(tmp_path))
    commit = journal._commit

    def interrupted(*args):
        commit(*args)
        raise Ended

    monkeypatch.setattr(journal, "_commit", interrupted)
    assert isinstance(elsewhere(lambda: journal.append({}, 7, None, None, {})), Ended)
    monkeypatch.undo()
    if writes:
        journal.append({}, 8, None, None, {})
    else:
        journal.recover()
    assert (journal.entry, journal.upper) == ((2, 8) if writes else (1, 7))
    assert ObjectJournal(LocalPlace(tmp_path), read_only=True).entry == journal.entry


def test_a_waiting_batch_begins_once_others_are_put_right(monkeypatch):
    with hj.Engine(clock="own") as engine:
        engine.execute("CREATE TABLE t (k int)")
        waits, wait = Event(), engine._changed.wait_for

        def wait_for(predicate, timeout=None):
            waits.set()
            return wait(predicate, timeout)

        monkeypatch.setattr(engine._changed, "wait_for", wait_for)
        later = Thread(target=lambda: engine.apply({"t": [{"k": 2}]}, time=2))
        with engine._turns.alone(True):
            waits.clear()
            later.start()
            assert waits.wait(60)
            settle = engine._commits.finish
            monkeypatch.setattr(type(engine._commits), "finish", ended)
            with pytest.raises(Ended):
                engine.apply({"t": [{"k": 1}]}, time=1)
            monkeypatch.setattr(type(engine._commits), "finish", settle.__func__)
        later.join()
        assert sorted(row["k"] for row in engine.read("t").to_pylist()) == [1, 2]


def ended(commits):
    if commits._under_way is not None:
        raise Ended


def test_nothing_fails_on_account_of_work_that_is_due_later(tmp_path, monkeypatch):
    with hj.Engine(tmp_path / "w", memory=1_000_000) as engine:
        engine.execute("CREATE TABLE t (k int)")
        engine.apply({"t": [{"k": 1}]})

        def flush(*args, **kwargs):
            raise hj.Conflict("the warehouse is being written by another")

        monkeypatch.setattr(engine._store._flusher, "flush", flush)
        monkeypatch.setattr(type(engine._memory), "allows", lambda memory, size: False)
        engine._store.do_due_work(engine._state)
        monkeypatch.undo()
        assert engine.read("t").num_rows == 1


def test_closing_goes_on_where_it_was_interrupted(tmp_path, monkeypatch):
    engine = hj.Engine(tmp_path / "w")
    monkeypatch.setattr(type(engine._runners), "close", interrupted)
    with pytest.raises(Ended):
        engine.close()
    monkeypatch.undo()
    with pytest.raises(hj.HalfjoinError, match="the engine is closed"):
        engine.execute("CREATE TABLE t (k int)")
    engine.close()
    hj.Engine(tmp_path / "w").close()


def test_threads_are_started_while_no_call_is_interrupted(tmp_path, monkeypatch):
    """Python 3.11 would raise the interrupt in the thread that is being started."""
    guarded, begin = {}, Thread.start

    def noted(thread):
        with ThreadPoolExecutor(1) as another:  # `unless_starting` asks what other threads do
            guarded[thread.name] = not another.submit(unless_starting, lambda: None).result()
        begin(thread)

    LOGS["a"] = Log([{"k": 1}])
    monkeypatch.setattr("halfjoin.engine.storage.upkeep.FLUSH_BYTES", 1)
    with hj.Engine(tmp_path / "w") as engine:
        monkeypatch.setattr(Thread, "start", lambda thread: (
            noted if thread.name.startswith("halfjoin") else begin)(thread))
        engine.execute("CREATE TABLE t (k int); CREATE SINK s FROM t INTO DELTA 's'")
        engine.apply({"t": [{"k": 1}]})
        engine.execute("CREATE SOURCE l FROM LIST (log 'a') INTO t")
        engine.start_sources()
        monkeypatch.undo()
    LOGS.clear()
    assert guarded == dict.fromkeys(("halfjoin-flush", "halfjoin-sink-s", "halfjoin-source-l"), True)


def interrupted(runners):
    raise Ended
