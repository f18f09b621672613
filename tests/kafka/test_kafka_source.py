"""Sources FROM KAFKA inside an engine: each message counts once, through errors, restarts and kills."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import halfjoin as hj
from halfjoin.engine.feeds.kafka.reader import KafkaReader
from tests.support.kafka import Brokers

DDL = "CREATE TABLE t (id bigint PRIMARY KEY, v bigint); CREATE MATERIALIZED VIEW w AS SELECT sum(v) AS s FROM t"
PLAIN = "CREATE TABLE t (id bigint, v bigint); CREATE MATERIALIZED VIEW w AS SELECT sum(v) AS s FROM t"


def source(brokers: Brokers, topic: str, more: str = "", errors: str = "") -> str:
    return (f"CREATE SOURCE s FROM KAFKA (brokers '{brokers.address}', topic '{topic}', kafka.fetch.wait.max.ms 20"
            f"{more}) INTO t{errors}")  # fmt: skip


def total(engine: hj.Engine) -> Any:
    return engine.read("w").to_pylist()[0]["s"]


def status(engine: hj.Engine) -> dict[str, Any]:
    (row,) = engine.execute("SHOW SOURCES").to_pylist()
    return dict(row)


def test_upserts_and_deletions_by_key(brokers: Brokers) -> None:
    topic = brokers.topic()
    with hj.Engine() as engine:
        engine.execute(f"{DDL}; {source(brokers, topic, ', key json')}")
        brokers.put(topic, ({"id": 1}, {"v": 5}), ({"id": 2}, {"v": 6}), ({"id": 1}, {"v": 7}))
        engine.run_sources(0.1)
        assert total(engine) == 13
        brokers.put(topic, ({"id": 2}, None))
        engine.run_sources(0.1)
        assert engine.read("t").to_pylist() == [{"id": 1, "v": 7}]
        assert status(engine)["rows"] == 4


def test_each_message_counts_once_through_restarts_and_failures(
    mock: Brokers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader fails before and after each batch is durable; the sum of a table without a key shows any message that
    counts twice or not at all."""
    topic = mock.topic()
    sent = 0
    with hj.Engine(tmp_path / "a") as engine:
        engine.execute(f"{PLAIN}; {source(mock, topic, ', rows 3')}")
    poll, acknowledge, luck, failed = KafkaReader.poll, KafkaReader.acknowledge, random.Random(1), list[str]()

    def failing(where: str) -> None:
        if luck.random() < 0.4:
            failed.append(where)
            raise hj.StorageError("on purpose")

    def polled(self: KafkaReader, position: str | None, seconds: float) -> Any:
        found = poll(self, position, seconds)
        if found is not None:
            failing("before")
        return found

    def acknowledged(self: KafkaReader, position: str) -> None:
        failing("after")
        acknowledge(self, position)

    monkeypatch.setattr(KafkaReader, "poll", polled)
    monkeypatch.setattr(KafkaReader, "acknowledge", acknowledged)
    for start in range(0, 24, 8):
        mock.put(topic, *({"id": i, "v": 1 << i} for i in range(start, start + 4)))
        mock.put(topic, *({"id": i, "v": 1 << i} for i in range(start + 4, start + 8)), partition=1)
        sent += sum(1 << i for i in range(start, start + 8))
        for _ in range(100):
            with hj.Engine(tmp_path / "a") as engine:
                try:
                    engine.run_sources(0.1)
                    break
                except hj.StorageError as problem:
                    assert "on purpose" in str(problem)
        with hj.Engine(tmp_path / "a") as engine:
            assert total(engine) == sent
    assert {*failed} == {"before", "after"}


def test_bad_messages_go_to_the_table_of_errors(mock: Brokers) -> None:
    topic = mock.topic()
    mock.put(topic, {"id": 1, "v": 1}, b"{", {"id": 2, "v": "x"}, {"id": None, "v": 1}, {"id": 3, "v": 2})
    with hj.Engine() as engine:
        engine.execute(f"{DDL}; {source(mock, topic, errors=chr(32) + 'WITH (errors = table)')}")
        engine.run_sources(0.1)
        assert total(engine) == 3
        found = engine.execute("SELECT * FROM s_errors ORDER BY place").to_pylist()
        assert [(row["place"], row["reason"]) for row in found] == [
            (f"{topic}/0/1", "its value is not JSON"), (f"{topic}/0/2", "v: 'x' is not a valid bigint"),
            (f"{topic}/0/3", "id: is NULL, and the column is NOT NULL"),
        ]  # fmt: skip


def test_a_bad_message_stops_a_source_that_was_not_told_otherwise(mock: Brokers) -> None:
    topic = mock.topic()
    mock.put(topic, {"id": 1, "v": 1}, b"{")
    with hj.Engine() as engine:
        engine.execute(f"{DDL}; {source(mock, topic)}")
        with pytest.raises(hj.HalfjoinError, match="its value is not JSON"):
            engine.run_sources(0.1)
        assert engine.read("t").num_rows == 0


def test_debezium_inserts_updates_and_deletes(mock: Brokers) -> None:
    topic = mock.topic()
    one, two = {"id": 1, "v": 1}, {"id": 1, "v": 2}
    with hj.Engine() as engine:
        engine.execute(f"{DDL}; {source(mock, topic, ', format debezium')}")
        mock.put(topic, {"op": "c", "before": None, "after": one}, {"op": "u", "before": one, "after": two},
                 {"op": "c", "before": None, "after": {"id": 2, "v": 5}})  # fmt: skip
        engine.run_sources(0.1)
        assert total(engine) == 7
        mock.put(topic, ({"id": 1}, {"op": "d", "before": two, "after": None}), ({"id": 1}, None))
        engine.run_sources(0.1)
        assert total(engine) == 5
        mock.put(topic, {"op": "t", "before": None, "after": None}, {"op": "c", "before": None, "after": one})
        engine.run_sources(0.1)
        assert engine.read("t").to_pylist() == [one]


@pytest.mark.parametrize("rows", [1, 2, 100])
def test_a_deletion_has_the_time_of_what_came_before_it(mock: Brokers, rows: int) -> None:
    """It has no column of times. It stopped the source, and so did a message without a time beside errors = 'table'."""
    topic = mock.topic()
    mock.put(topic, ({"id": 8}, None), ({"id": 1}, {"v": 10}), ({"id": 2}, {"v": 12}), ({"id": 1}, None),
             ({"id": 9}, {"v": None}), ({"id": 3}, {"v": 20}), ({"id": 2}, None))  # fmt: skip
    with hj.Engine(clock="own") as engine:
        made = source(mock, topic, f", key json, time v, rows {rows}", " WITH (errors = 'table')")
        engine.execute(f"{DDL}; {made}")
        engine.run_sources(0.1)
        assert [row["id"] for row in engine.read("t").to_pylist()] == [3]
        assert [row["reason"] for row in engine.read("s_errors").to_pylist()] == [
            "v: is NULL, and gives the row its time"] * 2  # fmt: skip
        if rows == 100:
            assert [sorted(engine.read("t", as_of=time)["id"].to_pylist()) for time in (10, 12, 20)] == [[1], [2], [3]]


def test_times_of_messages_are_the_times_of_rows(mock: Brokers) -> None:
    topic = mock.topic()
    mock.put(topic, {"id": 1, "v": 10}, {"id": 2, "v": 20})
    with hj.Engine(clock="own") as engine:
        engine.execute(f"{DDL}; {source(mock, topic, ', time v')}")
        engine.run_sources(0.1)
        assert [engine.read("t", as_of=time).num_rows for time in (9, 10, 19, 20)] == [0, 1, 1, 2]
        mock.put(topic, {"id": 3, "v": 15})
        engine.run_sources(0.1)
        assert engine.read("t", as_of=21).num_rows == 3


def test_secrets_are_not_shown(mock: Brokers) -> None:
    with hj.Engine() as engine:
        engine.execute(f"{DDL}; {source(mock, 'x', ', kafka.sasl.password geheim, registry_password geheim')}")
        shown = status(engine)["options"]
        assert "geheim" not in shown and '"kafka.sasl.password": "***"' in shown
        with pytest.raises(hj.UnsupportedSQL, match=r"kafka\.ssl\.providers is not allowed") as caught:
            engine.execute("CREATE SOURCE s2 FROM KAFKA (brokers 'b', topic 't', kafka.ssl.providers geheim) INTO t")
        assert "geheim" not in caught.value.reason


def test_a_source_from_python(mock: Brokers) -> None:
    topic = mock.topic()
    mock.put(topic, {"id": 1, "v": 1})
    with hj.Engine() as engine:
        engine.execute(DDL)
        engine.create_source("s", "kafka", "t", brokers=mock.address, topic=topic)
        engine.run_sources(0.1)
        assert total(engine) == 1
