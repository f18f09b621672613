"""Sources: each record counts once, whatever stops its reader; a bad record costs itself alone, if it may."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

import halfjoin as hj
from halfjoin.console.bottleneck import bottleneck
from halfjoin.console.details import collections
from halfjoin.console.metrics import metrics
from halfjoin.console.watch import Look
from halfjoin.engine.feeds import sourcing
from tests.support.interrupting import Ender
from tests.support.listed import LOGS, Log

DDL = "CREATE TABLE t (k bigint PRIMARY KEY, x bigint CHECK (x < 100)); " \
      "CREATE MATERIALIZED VIEW v AS SELECT sum(x) AS n FROM t;"
SOURCE = "CREATE SOURCE s FROM LIST (log 'a') INTO t"


@pytest.fixture
def log() -> Iterator[Log]:
    LOGS["a"] = Log([{"k": k, "x": k} for k in range(8)])
    yield LOGS["a"]
    LOGS.clear()


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[hj.Engine]:
    with hj.Engine(tmp_path / "w") as made:
        made.execute(DDL)
        yield made


def keys(engine: hj.Engine) -> list[int]:
    return sorted(engine.read("t").column("k").to_pylist())


def shown(engine: hj.Engine) -> dict[str, Any]:
    (row,) = engine.execute("SHOW SOURCES").to_pylist()
    return dict(row)


def until(what: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not what():
        assert time.monotonic() < deadline, "it does not come"
        time.sleep(0.01)


def test_a_source_fills_its_table_and_the_views_over_it(engine: hj.Engine, log: Log) -> None:
    engine.execute(SOURCE)
    assert engine.run_sources(0) == 3
    assert keys(engine) == list(range(8)) and engine.read("v").to_pylist() == [{"n": 28}]
    assert shown(engine) == {
        "name": "s", "kind": "LIST", "into": "t", "options": '{"log": "a"}', "state": "stopped", "position": "8",
        "rows": 8, "bad": 0, "lag": None, "error": None,
    }  # fmt: skip
    assert engine.run_sources(0) == 0


def test_a_source_goes_on_where_it_stopped(tmp_path: Path, log: Log) -> None:
    with hj.Engine(tmp_path / "w") as engine:
        engine.execute(DDL + SOURCE)
        engine.run_sources(0)
    log.records += [{"k": 8, "x": 0}]
    log.asked.clear()
    with hj.Engine(tmp_path / "w") as engine:
        assert engine.run_sources(0) == 1 and keys(engine) == list(range(9))
    assert log.asked[0] == "8"
    assert log.opened == log.closed == 2


def test_what_is_durable_is_acknowledged_again_after_opening(tmp_path: Path, log: Log) -> None:
    with hj.Engine(tmp_path / "w") as engine:
        engine.execute(DDL + SOURCE)
        engine.run_sources(0)
    log.acknowledged.clear()
    with hj.Engine(tmp_path / "w") as engine:
        engine.run_sources(0)
    assert log.acknowledged == ["8"]


def test_sources_run_in_the_background_until_the_engine_closes(tmp_path: Path, log: Log) -> None:
    engine = hj.Engine(tmp_path / "w")
    engine.start_sources()
    engine.execute(DDL + SOURCE)
    until(lambda: len(keys(engine)) == 8)
    log.records += [{"k": 8, "x": 1}]
    until(lambda: len(keys(engine)) == 9)
    until(lambda: shown(engine)["lag"] == "0 records")
    assert shown(engine)["state"] == "running"
    with pytest.raises(hj.Conflict, match="being read already"):
        engine.run_sources(0)
    engine.close()
    assert log.opened == log.closed


def test_a_paused_source_waits_and_goes_on(engine: hj.Engine, log: Log) -> None:
    engine.execute(SOURCE + "; ALTER SOURCE s PAUSE")
    assert engine.run_sources(0) == 0 and shown(engine)["state"] == "paused"
    engine.execute("ALTER SOURCE s RESUME")
    assert engine.run_sources(0) == 3 and len(keys(engine)) == 8


def test_a_source_that_fails_says_so_and_tries_again(engine: hj.Engine, log: Log) -> None:
    log.trouble = [hj.StorageError("the list is away"), ValueError("a library's")]
    engine.execute(SOURCE)
    engine.start_sources()
    until(lambda: shown(engine)["state"] == "failing")
    assert shown(engine)["error"] in ("the list is away", "ValueError(\"a library's\")")
    until(lambda: len(keys(engine)) == 8)
    until(lambda: shown(engine)["state"] == "running" and shown(engine)["error"] is None)
    assert log.opened >= 3


def test_a_source_without_a_thread_is_read_after_the_next_definition(
    engine: hj.Engine, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its definition is kept, so it has not failed."""

    def no_thread(self: Thread) -> None:
        raise RuntimeError("can't start new thread")

    engine.start_sources()
    with monkeypatch.context() as without:
        without.setattr(Thread, "start", no_thread)
        engine.execute(SOURCE)
        assert shown(engine)["state"] == "stopped"
        engine.execute("DROP SOURCE s")
        engine.execute(SOURCE)
    engine.execute("CREATE TABLE another (k bigint)")
    until(lambda: len(keys(engine)) == 8)


def test_a_bad_record_stops_the_source_before_its_batch(engine: hj.Engine, log: Log) -> None:
    log.records[4] = "what is this"
    engine.execute(SOURCE)
    with pytest.raises(hj.InvalidRow, match=r"list:4: is a text; mend it, or create s WITH \(errors = 'table'\)"):
        engine.run_sources(0)
    assert keys(engine) == [0, 1, 2] and shown(engine)["position"] == "3"
    log.records[4] = {"k": 4, "x": 4}
    engine.run_sources(0)
    assert keys(engine) == list(range(8))


def test_a_row_that_the_table_refuses_is_named_by_its_place(engine: hj.Engine, log: Log) -> None:
    log.records[4] = {"k": 4, "x": 400}
    engine.execute(SOURCE)
    with pytest.raises(hj.InvalidRow, match="t: list:4: violates check constraint"):
        engine.run_sources(0)
    assert keys(engine) == [0, 1, 2]


@pytest.mark.parametrize("mode", ["rows", "upserts"])
def test_bad_records_go_to_their_table_and_no_good_one(engine: hj.Engine, log: Log, mode: Any) -> None:
    log.mode = mode
    log.records += ["a text", {"k": 9, "x": 900}, {"k": None, "x": 1}, {"k": 10, "x": 1}, {"k": 3, "x": 50},
                    {"k": 11, "x": None}]  # fmt: skip
    engine.execute("CREATE SOURCE s FROM LIST (log 'a', most 100) INTO t WITH (errors = 'table')")
    assert engine.run_sources(0) == 1
    found = {row["place"]: row for row in engine.read("s_errors").to_pylist()}
    double = ["list:12"] if mode == "rows" else []
    assert sorted(found) == ["list:10", *double, "list:8", "list:9"]
    assert found["list:8"]["text"] == "a text" and found["list:8"]["reason"] == "is a text"
    assert found["list:9"]["text"] == '{"k": 9, "x": 900}' and "t_x_check" in found["list:9"]["reason"]
    assert "NOT NULL" in found["list:10"]["reason"] and found["list:10"]["time"] is not None
    assert keys(engine) == [*range(8), 10, 11] and shown(engine)["bad"] == len(found)
    assert shown(engine)["rows"] == 13 - len(found) + 1


def test_rows_that_break_constraints_together_keep_the_most(engine: hj.Engine, log: Log) -> None:
    engine.execute("CREATE TABLE c (t bigint REFERENCES t, n bigint UNIQUE)")
    engine.execute("CREATE SOURCE s FROM LIST (log 'a', most 50) INTO t, c WITH (errors = 'table')")
    log.records = [{"table": "c", "t": 7, "n": 1}, {"table": "c", "t": 8, "n": 2}, {"table": "c", "t": 9, "n": 2},
                   {"k": 7, "x": 1}, {"k": 7, "x": 2}, {"k": 9, "x": 3}, {"table": "c", "t": 9, "n": 1}]  # fmt: skip
    engine.run_sources(0)
    assert keys(engine) == [7, 9]
    assert sorted(map(tuple, (row.values() for row in engine.read("c").to_pylist()))) == [(7, 1), (9, 2)]
    assert sorted(engine.read("s_errors").column("place").to_pylist()) == ["list:1", "list:4", "list:6"]


def test_without_places_a_refused_row_stops_the_source(engine: hj.Engine, log: Log) -> None:
    log.places, log.records[4] = False, {"k": 4, "x": 400}
    engine.execute(SOURCE + " WITH (errors = 'table')")
    with pytest.raises(hj.InvalidRow, match="row 1: violates check"):
        engine.run_sources(0)
    assert keys(engine) == [0, 1, 2] and engine.read("s_errors").num_rows == 0


def test_what_is_wrong_with_the_whole_batch_is_no_bad_record(engine: hj.Engine, log: Log) -> None:
    log.records[4] = {"k": 4, "y": 400}
    engine.execute(SOURCE + " WITH (errors = 'table')")
    with pytest.raises(hj.UnknownName, match="y"):
        engine.run_sources(0)
    assert keys(engine) == [0, 1, 2] and engine.read("s_errors").num_rows == 0


def test_an_own_clock_needs_times_and_bad_records_close_none(tmp_path: Path, log: Log) -> None:
    with hj.Engine(tmp_path / "w", clock="own") as engine:
        engine.execute(DDL + SOURCE + " WITH (errors = 'table')")
        with pytest.raises(hj.InvalidTime, match=r"the rows of s have no times.*give the rows a column __time"):
            engine.run_sources(0)
        with pytest.raises(hj.UnsupportedSQL, match="the rows of a source FROM POSTGRES have no times"):
            engine.execute("CREATE SOURCE p FROM POSTGRES (connection '', publication 'p') INTO t")
        assert engine.read("s_errors").num_rows == 0 if engine.stats().upper else True
        log.records = ["bad", {"k": 1, "x": 1, "__time": 7}, "bad", {"k": 2, "x": 2, "__time": 3}, "bad"]
        log.most = 1
        engine.execute("DROP SOURCE s; CREATE SOURCE s FROM LIST (log 'a', most 1) INTO t WITH (errors = 'table')")
        engine.run_sources(0)
        assert keys(engine) == [1] and engine.stats().upper == 8
        engine.advance(9)
        found = engine.read("s_errors").sort_by("place").to_pylist()
        assert [row["place"] for row in found] == ["list:0", "list:2", "list:3", "list:4"]
        assert "closed" in found[2]["reason"]


def test_a_source_that_is_dropped_and_created_again_begins_anew(engine: hj.Engine, log: Log) -> None:
    engine.execute(SOURCE)
    engine.run_sources(0)
    engine.execute("DELETE FROM t; DROP SOURCE s; " + SOURCE)
    assert shown(engine)["position"] is None and shown(engine)["rows"] == 0
    engine.run_sources(0)
    assert keys(engine) == list(range(8))
    until(lambda: log.dropped == ["s"])


def test_a_source_that_is_dropped_during_a_poll_gives_nothing_more(engine: hj.Engine, log: Log) -> None:
    engine.execute(SOURCE)
    log.before = lambda: engine.execute("DROP SOURCE IF EXISTS s")
    assert engine.run_sources(0) == 0 and keys(engine) == []
    log.before = lambda: None
    engine.execute(SOURCE)
    changes = iter(["ALTER TABLE t ADD COLUMN y bigint DEFAULT 7"])
    log.before = lambda: [engine.execute(sql) for sql in changes] and None
    assert engine.run_sources(0) == 3 and keys(engine) == list(range(8))
    assert log.opened == log.closed == 3


def test_tables_keep_their_sources(engine: hj.Engine, log: Log) -> None:
    engine.execute(SOURCE + " WITH (errors = 'table')")
    engine.execute("DROP MATERIALIZED VIEW v")
    for name in ("t", "s_errors"):
        with pytest.raises(hj.Conflict, match=f"{name} is fed by source s"):
            engine.execute(f"DROP TABLE {name}")
    engine.execute("ALTER TABLE t RENAME TO u; ALTER TABLE s_errors RENAME TO bad")
    log.records[0] = "bad"
    engine.run_sources(0)
    assert engine.read("u").num_rows == 7 and engine.read("bad").num_rows == 1 and shown(engine)["into"] == "u"
    engine.execute("DROP TABLE u CASCADE")
    assert engine.execute("SHOW SOURCES").num_rows == 0 and engine.read("bad").num_rows == 1


def test_definitions_of_sources_that_cannot_work_are_refused(engine: hj.Engine, log: Log) -> None:
    engine.execute(SOURCE)
    for sql, error, words in [
        (SOURCE, hj.Conflict, "s is already a source"),
        ("CREATE SOURCE x FROM NOWHERE (log 'a') INTO t", hj.UnknownName, "LIST"),
        ("CREATE SOURCE x FROM LIST (log 'a', pasword 'secret') INTO t", hj.UnsupportedSQL, "pasword: is not an opti"),
        ("CREATE SOURCE x FROM LIST () INTO t", hj.UnsupportedSQL, "log: is missing; options: log, most"),
        ("CREATE SOURCE x FROM LIST (log 'a', most 'secret') INTO t", hj.UnsupportedSQL, "most: .*integer"),
        ("CREATE SOURCE x FROM LIST (log 'a') INTO v", hj.UnknownName, "materialized view"),
        ("CREATE SOURCE x FROM LIST (log 'a') INTO t, t", hj.UnsupportedSQL, "twice"),
        ("CREATE TABLE x_errors (a text); CREATE SOURCE x FROM LIST (log 'a') INTO t WITH (errors = 'table')",
         hj.Conflict, "x_errors"),
        ("ALTER SOURCE y PAUSE", hj.UnknownName, "y"),
    ]:  # fmt: skip
        with pytest.raises(error, match=words) as caught:
            engine.execute(sql)
        assert "secret" not in str(caught.value)
    engine.execute("CREATE SOURCE IF NOT EXISTS s FROM LIST (log 'b') INTO t; ALTER SOURCE IF EXISTS y PAUSE; "
                   "DROP SOURCE IF EXISTS y")  # fmt: skip
    assert [one.name for one in engine.stats().sources] == ["s"]


def test_secrets_are_not_shown(engine: hj.Engine, log: Log) -> None:
    engine.create_source("s", "list", "t", log="a", password="hidden")
    assert '"password": "***' in shown(engine)["options"] and "hidden" not in str(shown(engine))
    assert "hidden" not in str(engine.stats())


def test_metrics_and_the_console_tell_of_sources(engine: hj.Engine, log: Log) -> None:
    engine.execute(SOURCE)
    engine.run_sources(0)
    (found,) = collections(engine)["sources"]
    assert (found["name"], found["rows"], found["state"]) == ("s", 8, "stopped")
    text = metrics(Look(0.0, engine.stats(), engine.activity())).decode()
    assert 'halfjoin_source_rows{kind="LIST",name="s"} 8.0' in text
    log.trouble = [hj.StorageError("away")] * 50
    engine.start_sources()
    until(lambda: "The source s does not get on: away" in bottleneck(engine.stats(), []))


def test_sources_are_made_in_transactions(engine: hj.Engine, log: Log) -> None:
    engine.execute(f"BEGIN; CREATE TABLE u (k bigint, x bigint); {SOURCE.replace('INTO t', 'INTO u')}; ROLLBACK")
    assert engine.execute("SHOW SOURCES").num_rows == 0
    engine.execute(f"BEGIN; CREATE TABLE u (k bigint, x bigint); {SOURCE.replace('INTO t', 'INTO u')}; COMMIT")
    engine.run_sources(0)
    assert engine.read("u").num_rows == 8


def test_pieces_of_a_transaction_have_one_time_and_are_seen_together(engine: hj.Engine, log: Log) -> None:
    log.whole = 7
    engine.execute(SOURCE)
    seen: list[int] = []
    log.before = lambda: seen.append(engine.read("t").num_rows if engine.stats().upper else 0)
    other = hj.inserts([{"k": 100, "x": 0}])
    writer = Thread(target=lambda: engine.apply({"t": other}))

    def start() -> None:
        seen.append(engine.read("t").num_rows if engine.stats().upper else 0)
        if len(seen) == 2:
            writer.start()  # it has to wait for the last piece

    log.before = start
    assert engine.run_sources(0) == 1
    writer.join()
    assert seen[:3] == [0, 0, 0]
    found = engine.read("t", multiplicity=True)
    assert found.num_rows == 9
    upper = next(one for one in engine.stats().collections if one.name == "t").upper
    assert {keys_as_of(engine, time) for time in range(max(0, upper - 3), upper)} <= {0, 8, 9}


def keys_as_of(engine: hj.Engine, time: int) -> int:
    return engine.read("t", as_of=time).num_rows


def test_a_transaction_cut_by_the_end_of_the_process_goes_on(tmp_path: Path, log: Log) -> None:
    log.whole = 8
    with hj.Engine(tmp_path / "w") as engine:
        engine.execute(DDL + SOURCE)
        log.before = lambda: log.asked[-1] == "3" and log.trouble.append(hj.StorageError("away"))
        with pytest.raises(hj.StorageError, match="away"):
            engine.run_sources(0)
        assert shown(engine)["position"] == "3" and engine.stats().upper == 0
    log.before = lambda: None
    with hj.Engine(tmp_path / "w") as engine:
        engine.run_sources(0)
        assert keys(engine) == list(range(8))
        assert engine.read("v", as_of=engine.stats().upper - 1).to_pylist() == [{"n": 28}]


def test_a_kind_may_make_its_tables(engine: hj.Engine, log: Log) -> None:
    engine.execute("CREATE SOURCE s FROM LIST (log 'a') INTO TABLES; CREATE SOURCE IF NOT EXISTS s FROM LIST (log 'a') "
                   "INTO TABLES")  # fmt: skip
    engine.run_sources(0)
    assert engine.read("made").num_rows == 8 and shown(engine)["into"] == "made"
    engine.execute("DROP SOURCE s; BEGIN; CREATE SOURCE s FROM LIST (log 'a') INTO TABLES; COMMIT; DROP SOURCE s; "
                   "DROP TABLE made; DROP TYPE mood")  # fmt: skip


def test_a_reader_of_the_warehouse_sees_how_far_sources_are(tmp_path: Path, engine: hj.Engine, log: Log) -> None:
    engine.execute(SOURCE)
    engine.run_sources(0)
    with hj.Engine(tmp_path / "w", read_only=True) as reader:
        assert shown(reader)["position"] == "8" and shown(reader)["state"] == "stopped"
        with pytest.raises(hj.HalfjoinError, match="read_only"):
            reader.run_sources(0)


@pytest.mark.parametrize("kind", [KeyboardInterrupt, MemoryError])
def test_an_interrupt_at_any_line_neither_doubles_nor_loses(tmp_path: Path, log: Log, kind: Any) -> None:
    log.records = []
    with hj.Engine(tmp_path / "w") as engine:
        engine.execute(DDL + SOURCE)

        def call() -> None:
            log.records.append({"k": len(log.records), "x": 1})
            engine.run_sources(0)

        ender = Ender(kind)
        for at in ender.points(call):
            ender.ends(call, at)
            found = keys(engine)
            assert found == list(range(len(found))), f"{ender.where}: {found}"
            assert len(found) == int(shown(engine)["position"] or 0) == shown(engine)["rows"], ender.where
        engine.run_sources(0)
        assert keys(engine) == list(range(len(log.records)))
        assert engine.read("v").to_pylist() == [{"n": len(log.records)}]


def test_sources_that_are_all_paused_are_waited_for_without_work(
    engine: hj.Engine, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.execute(SOURCE + "; ALTER SOURCE s PAUSE")
    looks, due = [0], sourcing.due

    def counted(*arguments: Any) -> Any:
        looks[0] += 1
        return due(*arguments)

    monkeypatch.setattr(sourcing, "due", counted)
    assert engine.run_sources(0.2) == 0 and looks[0] <= 3


def test_only_a_source_that_began_gives_back_what_it_holds_elsewhere(tmp_path: Path, log: Log) -> None:
    with hj.Engine(tmp_path / "w") as engine:
        engine.execute(DDL + SOURCE + "; DROP SOURCE s; " + SOURCE)
        engine.run_sources(0)
        engine.stop_sources()  # it waits for what was dropped
        assert log.dropped == [], "what has the name is another reader's"
    with hj.Engine(tmp_path / "w") as engine:
        engine.execute("DROP SOURCE s")
        engine.stop_sources()
        assert log.dropped == ["s"]
