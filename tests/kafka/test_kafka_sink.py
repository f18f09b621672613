"""Sinks into topics: each closed batch is in the topic once, whole, whatever fails between its two ends."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import halfjoin as hj
from tests.support.kafka import Brokers

TABLE = "CREATE TABLE t (k bigint PRIMARY KEY, v bigint, n numeric(30,2), b bytea, at timestamptz)"
SUMS = "CREATE MATERIALIZED VIEW w AS SELECT v, count(*) AS n FROM t GROUP BY v"


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[hj.Engine]:
    with hj.Engine(tmp_path / "warehouse", clock="own") as engine:
        engine.execute(f"{TABLE}; {SUMS}")
        yield engine


def sink(
    engine: hj.Engine, brokers: Brokers, source: str = "w", key: str = "v", *, topic: str = "", more: str = ""
) -> str:
    """Make a sink; returns its topic. The mock brokers make topics when somebody asks for them, and not otherwise."""
    topic = topic or brokers.topic()
    positions = f"p{topic}"
    if not brokers.real:
        brokers.admin.list_topics(positions, timeout=60)
    given = f", key '{key}'" if key else ""
    engine.execute(f"CREATE OR REPLACE SINK s FROM {source} INTO KAFKA (brokers '{brokers.address}', topic '{topic}', "
                   f"positions '{positions}'{given}{more})")  # fmt: skip
    return topic


def put(engine: hj.Engine, time: int, **rows: int | None) -> None:
    """Set values by keys: `k1=5`; None deletes."""
    given = {int(name[1:]): value for name, value in rows.items()}
    gone = [{"k": k} for k, v in given.items() if v is None]
    engine.apply({"t": hj.upserts([{"k": k, "v": v} for k, v in given.items() if v is not None])}, time=time,
                 close=not gone)  # fmt: skip
    if gone:
        engine.apply({"t": hj.deletes(gone)}, time=time)


def shown(messages: list[tuple[Any, Any]]) -> dict[str, Any]:
    """What upserts leave."""
    found = {json.dumps(key): value for key, value in messages}
    return {key: value for key, value in found.items() if value is not None}


def test_upserts_say_the_row_of_each_key(brokers: Brokers, engine: hj.Engine) -> None:
    put(engine, 1, k1=5, k2=5, k3=6)
    topic = sink(engine, brokers)
    put(engine, 2, k4=6)
    put(engine, 3, k1=9, k2=9)
    put(engine, 4, k3=6)  # changes nothing
    engine.flush()
    found = brokers.read(topic)
    assert Counter(map(str, found)) == Counter(map(str, [
        ({"v": 5}, {"v": 5, "n": 2}), ({"v": 6}, {"v": 6, "n": 1}), ({"v": 6}, {"v": 6, "n": 2}),
        ({"v": 5}, None), ({"v": 9}, {"v": 9, "n": 2}),
    ]))  # fmt: skip
    assert shown(found) == {'{"v": 6}': {"v": 6, "n": 2}, '{"v": 9}': {"v": 9, "n": 2}}
    assert engine.execute("SHOW SINKS").to_pylist()[0]["into"] == topic


def test_debezium_says_the_row_before_and_after(brokers: Brokers, engine: hj.Engine) -> None:
    put(engine, 1, k1=5)
    topic = sink(engine, brokers, more=", envelope 'debezium', partitions 1")
    put(engine, 2, k2=5)
    put(engine, 3, k1=None, k2=None)
    engine.flush()
    found = brokers.read(topic)
    assert [key for key, _ in found] == [{"v": 5}] * 4 and found[-1][1] is None
    said = [value for _, value in found[:-1]]
    assert [(one["op"], one["before"], one["after"]) for one in said] == [
        ("r", None, {"v": 5, "n": 1}), ("u", {"v": 5, "n": 1}, {"v": 5, "n": 2}), ("d", {"v": 5, "n": 2}, None)
    ]  # fmt: skip
    assert [one["source"] for one in said] == [
        {"connector": "halfjoin", "table": "w", "upper": upper} for upper in (2, 3, 4)
    ]


def test_without_a_key_each_copy_of_a_row_is_a_message(mock: Brokers, engine: hj.Engine) -> None:
    engine.execute("CREATE MATERIALIZED VIEW all_v AS SELECT v FROM t")
    put(engine, 1, k1=5, k2=5)
    topic = sink(engine, mock, "all_v", "", more=", envelope 'debezium'")
    put(engine, 2, k1=None, k2=6)
    engine.flush()
    counts: Counter[str] = Counter()
    for key, value in mock.read(topic):
        counts[json.dumps(key)] += 1 if value["after"] is not None else -1
    assert {key: count for key, count in counts.items() if count} == {'{"v": 6}': 1}


def test_values_keep_their_digits(mock: Brokers, engine: hj.Engine) -> None:
    engine.apply({"t": [{"k": 2**60, "v": None, "n": "12345678901234567890.12", "b": b"\1\xff",
                         "at": "2024-01-02 03:04:05+01"}]}, time=1)  # fmt: skip
    topic = sink(engine, mock, "t", "")
    engine.flush()
    ((key, value),) = mock.raw(topic)
    assert key == b'{"k":1152921504606846976}'
    assert value == (b'{"k":1152921504606846976,"v":null,"n":12345678901234567890.12,"b":"Af8=",'
                               b'"at":"2024-01-02T02:04:05+00:00"}')  # fmt: skip


def test_a_sink_feeds_a_source(mock: Brokers, engine: hj.Engine) -> None:
    from halfjoin.engine.feeds.kafka.reader import KAFKA
    from halfjoin.engine.feeds.source import Opening

    engine.apply({"t": [{"k": 1, "v": 2, "n": "0.10", "b": b"\0", "at": "2024-01-02 03:04:05+00"}, {"k": 2}]}, time=1)
    for envelope in ("upsert", "debezium"):
        topic = sink(engine, mock, "t", "", more=f", envelope '{envelope}'")
        told = {"format": "debezium", "encodings": "b base64"} if envelope == "debezium" else {"key": "json"}
        options = KAFKA.options(brokers=mock.address, topic=topic, **told)
        reader = KAFKA.open(Opening("s", "id", options, [engine._state.catalog.tables["t"]]))
        found = reader.poll(None, 5)
        reader.close()
        assert found is not None and not found.bad
        rows = sorted(found.batches["t"].drop_columns("__diff").to_pylist(), key=lambda row: row["k"])
        assert rows == sorted(engine.read("t").to_pylist(), key=lambda row: row["k"])


@pytest.mark.parametrize("step", ["begin", "send", "commit", "answer"])
def test_what_fails_at_any_step_is_there_once(
    real: Brokers, engine: hj.Engine, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    put(engine, 1, k1=1)
    topic = sink(engine, real)
    from confluent_kafka import KafkaError, KafkaException, Producer

    failed: list[str] = []

    class Failing(Producer):  # type: ignore[misc]
        def _fail(self, here: str) -> None:
            if step == here and not failed:
                failed.append(here)
                raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "on purpose"))

        def begin_transaction(self, *given: Any) -> None:
            self._fail("begin")
            super().begin_transaction(*given)

        def produce(self, topic: str, *given: Any, **more: Any) -> None:
            super().produce(topic, *given, **more)
            if topic.startswith("p"):
                self._fail("send")

        def commit_transaction(self, *given: Any) -> None:
            self._fail("commit")
            super().commit_transaction(*given)
            self._fail("answer")

    monkeypatch.setattr("confluent_kafka.Producer", Failing)
    engine._sinks._couriers["s"][1]._table.is_open = False
    put(engine, 2, k2=1)
    put(engine, 3, k3=2)
    engine.flush()
    assert failed == [step]
    assert Counter(map(str, real.read(topic))) == Counter(map(str, [
        ({"v": 1}, {"v": 1, "n": 1}), ({"v": 1}, {"v": 1, "n": 2}), ({"v": 2}, {"v": 2, "n": 1})
    ]))  # fmt: skip


def test_a_sink_goes_on_after_a_restart(brokers: Brokers, tmp_path: Path) -> None:
    with hj.Engine(tmp_path / "a", clock="own") as engine:
        engine.execute(f"{TABLE}; {SUMS}")
        put(engine, 1, k1=1)
        topic = sink(engine, brokers)
    for time in range(2, 5):
        with hj.Engine(tmp_path / "a") as engine:
            put(engine, time, **{f"k{time}": 1})
    assert [value["n"] for _, value in brokers.read(topic)] == [1, 2, 3, 4]


def test_the_transaction_of_a_killed_writer_is_taken_back(
    real: Brokers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from confluent_kafka import KafkaError, KafkaException, Producer

    kept: list[Producer] = []

    class Killed(Producer):  # type: ignore[misc]
        """Sends all of a transaction, and never ends it."""

        def commit_transaction(self, *_: Any) -> None:
            self.flush()
            kept.append(self)
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "killed"))

        def abort_transaction(self, *_: Any) -> None:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "killed"))

    with hj.Engine(tmp_path / "a", clock="own") as engine:
        engine.execute(f"{TABLE}; {SUMS}")
        put(engine, 1, k1=1)
        topic = sink(engine, real)
    monkeypatch.setattr("confluent_kafka.Producer", Killed)
    with hj.Engine(tmp_path / "a") as engine:
        put(engine, 2, k2=1)
    monkeypatch.undo()
    with hj.Engine(tmp_path / "a") as engine:
        engine.flush()
    assert [value["n"] for _, value in real.read(topic)] == [1, 2]
    with pytest.raises(KafkaException, match=r"(?i)fenced|newer|invalid producer"):
        super(Killed, kept[0]).commit_transaction(10)


def test_a_topic_is_brought_to_the_contents_when_history_is_gone(brokers: Brokers, tmp_path: Path) -> None:
    for more, name in (("", "a"), (", envelope 'debezium'", "b")):
        with hj.Engine(tmp_path / name, clock="own", retain=0) as engine:
            engine.execute(f"{TABLE}; {SUMS}")
            put(engine, 1, k1=1, k2=2, k3=3)
            topic = sink(engine, brokers, more=more)
        with hj.Engine(tmp_path / name) as engine:
            put(engine, 2, k1=7, k4=3)
            engine.execute("CREATE OR REPLACE MATERIALIZED VIEW w AS SELECT v, count(*) + 1 AS n FROM t GROUP BY v")
            engine.flush()
        found = brokers.read(topic)
        values = {key["v"]: value if value is None or not more else value["after"] for key, value in found}
        assert values == {1: None, 2: {"v": 2, "n": 2}, 3: {"v": 3, "n": 3}, 7: {"v": 7, "n": 2}}


def test_what_a_topic_shows_is_compared_digit_by_digit(mock: Brokers, tmp_path: Path) -> None:
    """As floats, the numbers before and after would be equal."""
    with hj.Engine(tmp_path / "a", clock="own", retain=0) as engine:
        engine.execute(f"{TABLE}; CREATE MATERIALIZED VIEW n AS SELECT k, n, 'x' AS t FROM t")
        engine.apply({"t": [{"k": 1, "n": "12345678901234567890.12"}]}, time=1)
        topic = sink(engine, mock, "n", "k", more=", envelope 'debezium'")
    with hj.Engine(tmp_path / "a") as engine:
        engine.execute("CREATE OR REPLACE MATERIALIZED VIEW n AS SELECT k, n + 0.01 AS n, 'x' AS t FROM t")
        engine.flush()
    with_digits = json.loads(mock.raw(topic)[-1][1] or b"", parse_float=str)
    assert (with_digits["before"]["n"], with_digits["after"]["n"]) == (
        "12345678901234567890.12", "12345678901234567890.13"
    )  # fmt: skip


def test_a_warehouse_that_was_put_back_brings_its_topic_back(mock: Brokers, tmp_path: Path) -> None:
    with hj.Engine(tmp_path / "a", clock="own") as engine:
        engine.execute(f"{TABLE}; {SUMS}")
        put(engine, 1, k1=1)
        topic = sink(engine, mock)
    shutil.copytree(tmp_path / "a", tmp_path / "backup")
    with hj.Engine(tmp_path / "a") as engine:
        put(engine, 5, k1=2, k2=2)
    with hj.Engine(tmp_path / "backup") as engine:
        put(engine, 2, k3=1)
        engine.flush()
    assert shown(mock.read(topic)) == {'{"v": 1}': {"v": 1, "n": 2}}


def test_topics_of_others_are_left_alone(mock: Brokers, engine: hj.Engine) -> None:
    topic = mock.topic()
    mock.put(topic, {"whose": "mine"})
    with pytest.raises(hj.HalfjoinError, match=r"has messages that no sink of this warehouse wrote"):
        sink(engine, mock, topic=topic)
    assert engine.execute("SHOW SINKS").num_rows == 0
    assert len(mock.read(topic)) == 1


@pytest.mark.parametrize(("text", "why"), [
    ("FROM w INTO KAFKA (brokers 'b', topic 't', key 'n')", "the columns n need not tell the rows of w apart"),
    ("FROM w INTO KAFKA (brokers 'b', topic 't')", "a sink of upserts needs a key"),
    ("FROM w INTO KAFKA (brokers 'b', topic 't', key 'x')", "unknown column 'x' of w"),
    ("FROM w INTO KAFKA (topic 't', key 'v')", "brokers: is missing"),
    ("FROM w INTO KAFKA (brokers 'b', topic 't', key 'v', kafka.transactional.id 'x')", "is the engine's to set"),
    ("FROM w INTO KAFKA (brokers 'b', topic 't', key 'v', envelope 'plain')", "envelope: "),
    ("FROM w INTO KAFKA", "a sink INTO KAFKA needs options"),
])  # fmt: skip
def test_sinks_that_cannot_work_are_refused(engine: hj.Engine, text: str, why: str) -> None:
    with pytest.raises(hj.HalfjoinError, match=why):
        engine.execute(f"CREATE SINK s {text}")
    assert engine.execute("SHOW SINKS").num_rows == 0


def test_brokers_that_make_no_topic_are_named(
    mock: Brokers, engine: hj.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("halfjoin.engine.feeds.kafka.topics.WAIT", 0.5)
    with pytest.raises(hj.StorageError, match="the topic nowhere cannot be made: the brokers have not answered"):
        engine.execute(f"CREATE SINK s FROM w INTO KAFKA (brokers '{mock.address}', topic '{mock.topic()}', "
                       "positions 'nowhere', key 'v')")  # fmt: skip


@pytest.mark.parametrize(("query", "key", "told"), [
    ("SELECT k, v FROM t WHERE v > 2", "k", True),
    ("SELECT v, count(*) AS n FROM t GROUP BY v", "v", True),
    ("SELECT DISTINCT v, n FROM t", "v, n", True),
    ("SELECT DISTINCT v, n FROM t", "v", False),
    ("SELECT DISTINCT ON (v) v, k FROM t ORDER BY v, k", "v", True),
    ("SELECT t.k, u.k AS uk FROM t JOIN t AS u ON t.v = u.v", "k, uk", True),
    ("SELECT t.k, u.k AS uk FROM t JOIN t AS u ON t.v = u.v", "k", False),
    ("SELECT k + 0 AS k FROM t", "k", False),
    ("SELECT k FROM t UNION ALL SELECT v FROM t", "k", False),
])  # fmt: skip
def test_a_key_must_tell_the_rows_apart(engine: hj.Engine, query: str, key: str, told: bool) -> None:
    engine.execute(f"CREATE MATERIALIZED VIEW x AS {query}")
    refused = pytest.raises(hj.UnsupportedSQL, match="need not tell the rows of x apart")
    unreached = pytest.raises(hj.StorageError, match="the topic t cannot be")
    with pytest.MonkeyPatch.context() as patch, unreached if told else refused:
        patch.setattr("halfjoin.engine.feeds.kafka.topics.WAIT", 0.1)
        engine.execute(f"CREATE SINK s FROM x INTO KAFKA (brokers '127.0.0.1:1', topic 't', key '{key}')")
