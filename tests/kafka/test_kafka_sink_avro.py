"""Sinks into topics in Avro: an independent reader finds each value, and our own source makes the same table of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pytest
from confluent_kafka.schema_registry import SchemaRegistryError

import halfjoin as hj
from halfjoin.engine.sinks.kafka.avro_values import longs
from tests.kafka.test_kafka_sink import SUMS, TABLE, put, sink
from tests.support.kafka import Brokers

AVRO = ", format avro, registry 'mock://registry'"
EVERY = """CREATE TYPE mood AS ENUM ('sad', 'happy'); CREATE TABLE e (
    id bigint PRIMARY KEY, flag boolean, small smallint, whole integer, r real, d double precision, n numeric(30,2),
    wide numeric(38,10), t text, c varchar(9), b bytea, day date, clock time, at timestamp, atz timestamptz, u uuid,
    j jsonb, m mood, many integer[], texts text[], cents numeric(9,2)[])"""
ROWS: list[dict[str, Any]] = [
    {"id": 1},
    {"id": -(2**63), "flag": True, "small": -(2**15), "whole": 2**31 - 1, "r": 0.1, "d": -1e-300, "n": "-0.01",
     "wide": "9" * 28 + ".5", "t": "ä" * 70, "c": "", "b": b"\0\xff", "day": "1969-12-31", "clock": "23:59:59.999999",
     "at": "1969-12-31 23:59:59.999999", "atz": "2024-01-02 03:04:05+01", "u": "0b8f0d2e-1111-4222-8333-444455556666",
     "j": '{"a": [1, null]}', "m": "happy", "many": [1, None, -64], "texts": [], "cents": ["1.28", "-1.28"]},
    {"id": 2**63 - 1, "flag": False, "small": 64, "whole": -65, "r": float("nan"), "d": -float("inf"), "n": "1.27",
     "wide": "-" + "9" * 28, "t": "", "many": [], "texts": ["", "x" * 200], "cents": [None]},
]  # fmt: skip


@pytest.fixture
def engine(tmp_path: Path, registry: Any) -> Iterator[hj.Engine]:
    with hj.Engine(tmp_path / "warehouse", clock="own") as engine:
        engine.execute(f"{TABLE}; {SUMS}")
        yield engine


def read(registry: Any, blob: bytes | None) -> Any:
    """A message as fastavro reads it."""
    if blob is None:
        return None
    schema = json.loads(registry.get_schema(int.from_bytes(blob[1:5], "big")).schema_str)
    stream = BytesIO(blob[5:])
    found = fastavro.schemaless_reader(stream, fastavro.parse_schema(schema), None)
    assert blob[0] == 0 and stream.tell() == len(blob) - 5
    return found


def back(brokers: Brokers, topic: str, ddl: str, more: str) -> list[dict[str, Any]]:
    """What a source of our own makes of a topic, in a table of another engine."""
    with hj.Engine() as other:
        other.execute(ddl)
        name = other.execute("SHOW TABLES").to_pylist()[0]["name"]
        other.execute(f"CREATE SOURCE s FROM KAFKA (brokers '{brokers.address}', topic '{topic}', "
                      f"kafka.fetch.wait.max.ms 20, registry 'mock://registry'{more}) INTO {name}")  # fmt: skip
        other.run_sources(0.1)
        return by_first(other.read(name))


def by_first(rows: pa.Table) -> list[dict[str, Any]]:
    """Rows in the order of their first column."""
    return list(rows.sort_by(rows.column_names[0]).to_pylist())


def test_an_independent_reader_finds_every_value(mock: Brokers, engine: hj.Engine, registry: Any) -> None:
    engine.execute(EVERY)
    engine.apply({"e": ROWS}, time=1)
    topic = sink(engine, mock, "e", "", more=AVRO)
    engine.flush()
    found = {read(registry, key)["id"]: read(registry, value) for key, value in mock.raw(topic)}
    want = {row["id"]: row for row in engine.read("e").to_pylist()}
    assert found.keys() == want.keys()
    for number, row in want.items():
        for name, value in row.items():
            said = found[number][name]
            if name == "at" and value is not None:
                said = said.replace(tzinfo=None)
            assert str(said) == str(value) or said == pytest.approx(value, rel=1e-6), (name, said, value)


@pytest.mark.parametrize("envelope", ["upsert", "debezium"])
def test_our_own_source_makes_the_same_table(mock: Brokers, engine: hj.Engine, envelope: str) -> None:
    engine.execute(EVERY)
    engine.apply({"e": ROWS}, time=1)
    topic = sink(engine, mock, "e", "", more=f"{AVRO}, envelope '{envelope}'")
    engine.apply({"e": hj.upserts([{"id": 1, "t": "new", "n": "5"}])}, time=2)
    engine.apply({"e": hj.deletes([{"id": 2**63 - 1}])}, time=3)
    engine.apply({"e": [{"id": 7, "many": list(range(300))}]}, time=4)
    engine.flush()
    how = ", format avro, key avro" if envelope == "upsert" else ", format debezium_avro"
    assert back(mock, topic, EVERY, how) == by_first(engine.read("e"))


def test_a_views_key_may_be_null_in_avro(mock: Brokers, engine: hj.Engine, registry: Any) -> None:
    put(engine, 1, k1=5)
    engine.apply({"t": [{"k": 2}]}, time=2)
    topic = sink(engine, mock, more=AVRO)
    engine.flush()
    assert {(read(registry, key)["v"], read(registry, value)["n"]) for key, value in mock.raw(topic)} == {
        (5, 1), (None, 1)
    }  # fmt: skip
    key, value = (
        json.loads(registry.get_latest_version(f"{topic}-{part}").schema.schema_str) for part in ("key", "value")
    )
    assert key["name"] == "Key" and [field["name"] for field in value["fields"]] == ["v", "n"]
    assert all(field["type"][0] == "null" and field["default"] is None for field in value["fields"])


def test_without_a_key_each_copy_is_a_message_in_avro(mock: Brokers, engine: hj.Engine, registry: Any) -> None:
    engine.execute("CREATE MATERIALIZED VIEW all_v AS SELECT v FROM t")
    put(engine, 1, k1=5, k2=5)
    topic = sink(engine, mock, "all_v", "", more=f"{AVRO}, envelope 'debezium'")
    put(engine, 2, k1=None, k2=6)
    engine.flush()
    found = [(read(registry, key), read(registry, value)) for key, value in mock.raw(topic)]
    assert all(key == (value["after"] or value["before"]) for key, value in found)
    assert sorted(f"{value['op']}{key['v']}" for key, value in found) == ["c6", "d5", "d5", "r5", "r5"]
    assert {value["source"]["upper"] for _, value in found} == {2, 3}
    assert back(mock, topic, "CREATE TABLE b (v bigint)", ", format debezium_avro") == [{"v": 6}]


@pytest.mark.parametrize(("envelope", "key"), [("upsert", "v"), ("debezium", "v"), ("debezium", "")])
def test_a_topic_in_avro_is_brought_to_the_contents(
    mock: Brokers, tmp_path: Path, registry: Any, envelope: str, key: str
) -> None:
    """History is gone, and the view has another column: rows of the old schema are taken back in their own schema."""
    more = f"{AVRO}, envelope '{envelope}', partitions 1"
    with hj.Engine(tmp_path / "a", clock="own", retain=0) as engine:
        engine.execute(f"{TABLE}; {SUMS}")
        put(engine, 1, k1=1, k2=2, k3=3)
        topic = sink(engine, mock, key=key, more=more)
    with hj.Engine(tmp_path / "a") as engine:
        put(engine, 2, k1=7, k4=3)
        engine.flush()
        said = len(mock.raw(topic))
        sink(engine, mock, key=key, topic=topic, more=more)
        engine.flush()
        assert len(mock.raw(topic)) == said  # the same schema: the topic shows the contents already
        engine.execute("CREATE OR REPLACE MATERIALIZED VIEW w AS "
                       "SELECT v, count(*) AS n, 'x' AS more FROM t WHERE v > 2 GROUP BY v")  # fmt: skip
        engine.flush()
        want = by_first(engine.read("w"))
    how = "format avro, key avro" if envelope == "upsert" else "format debezium_avro"
    ddl = f"CREATE TABLE b (v bigint{' PRIMARY KEY' if key else ''}, n bigint, more text)"
    assert back(mock, topic, ddl, f", {how}") == want


def test_a_topic_in_another_format_is_refused(mock: Brokers, engine: hj.Engine) -> None:
    put(engine, 1, k1=5)
    for before, after in (("", AVRO), (AVRO, ""), (AVRO, f"{AVRO}, envelope 'debezium'")):
        topic = sink(engine, mock, more=before)
        with pytest.raises(hj.HalfjoinError, match="has messages in another format or envelope"):
            sink(engine, mock, topic=topic, more=after)


def test_what_the_registry_refuses_is_said(
    mock: Brokers, engine: hj.Engine, registry: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(problem: Exception) -> None:
        def register(*_: Any) -> int:
            raise problem

        monkeypatch.setattr(registry, "register_schema", register)

    failing(SchemaRegistryError(409, 409, "the new schema lacks n"))
    with pytest.raises(hj.HalfjoinError, match=r"the schema of t\w+-key does not fit .*the new schema lacks n"):
        sink(engine, mock, more=AVRO)
    failing(OSError("no route"))
    with pytest.raises(hj.StorageError, match="the schema registry mock://registry cannot be reached: no route"):
        sink(engine, mock, more=AVRO)
    assert engine.execute("SHOW SINKS").num_rows == 0


@pytest.mark.parametrize(("text", "why"), [
    ("FROM w INTO KAFKA (brokers 'b', topic 't', key 'v', format avro)", "need a schema registry; give the option"),
    ("FROM odd INTO KAFKA (brokers 'b', topic 't', key 'v', format avro, registry 'r')", "no field of the name 'a b'"),
])  # fmt: skip
def test_sinks_in_avro_that_cannot_work_are_refused(engine: hj.Engine, text: str, why: str) -> None:
    engine.execute('CREATE MATERIALIZED VIEW odd AS SELECT v, count(*) AS "a b" FROM t GROUP BY v')
    with pytest.raises(hj.UnsupportedSQL, match=why):
        engine.execute(f"CREATE SINK s {text}")


def test_whole_numbers_are_written_as_avro_writes_them() -> None:
    edges = [sign * (1 << bits) + more for bits in range(63) for sign in (-1, 1) for more in (-1, 0, 1)]
    numbers = np.array([*edges, 2**63 - 1, -(2**63)], np.int64)
    for number, blob in zip(numbers.tolist(), longs(numbers).to_pylist(), strict=True):
        stream = BytesIO()
        fastavro.schemaless_writer(stream, fastavro.parse_schema("long"), number)
        assert blob == stream.getvalue()
    assert longs(np.zeros(0, np.int64)).to_pylist() == []
