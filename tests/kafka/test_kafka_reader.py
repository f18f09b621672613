"""The reader of a topic: every message once, from any position, in JSON, Avro and Debezium's envelopes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from io import BytesIO
from typing import Any

import fastavro
import pytest
from confluent_kafka.schema_registry import Schema

import halfjoin as hj
from halfjoin.catalog.models import Table
from halfjoin.engine.feeds.kafka import decoding
from halfjoin.engine.feeds.kafka.consuming import TopicConsumer
from halfjoin.engine.feeds.kafka.reader import KAFKA, KafkaReader
from halfjoin.engine.feeds.source import Opening, Polled
from tests.support.kafka import Brokers

PLAIN = "CREATE TABLE t (id bigint, v text)"
KEYED = "CREATE TABLE t (id bigint PRIMARY KEY, v text)"
Open = Callable[..., KafkaReader]


def table(sql: str) -> Table:
    with hj.Engine() as engine:
        engine.execute(sql)
        return engine._state.catalog.tables["t"]


@pytest.fixture
def opened() -> Iterator[Open]:
    """Opens readers, and closes them in the end."""
    readers: list[KafkaReader] = []

    def open_one(brokers: Brokers, topic: str, sql: str = PLAIN, **others: Any) -> KafkaReader:
        given = {"kafka.fetch.wait.max.ms": 20, **others}
        opening = Opening("s", "id", KAFKA.options(brokers=brokers.address, topic=topic, **given), [table(sql)])
        assert KAFKA.check is not None
        KAFKA.check(opening)
        reader = KAFKA.open(opening)
        assert isinstance(reader, KafkaReader)
        readers.append(reader)
        return reader

    yield open_one
    for reader in readers:
        reader.close()


def at_the_end(reader: KafkaReader) -> bool:
    """Whether a reader is behind all messages. The brokers are asked: it knows of the last ones when they have come."""
    consumer = reader._consumer
    assert consumer is not None
    return all(max(offset, 0) >= consumer._watermarks(one)[1] for one, offset in consumer._next.items())


def all_rows(reader: KafkaReader, position: str | None = None) -> tuple[list[Any], str | None, list[Polled]]:
    """What a reader gives until it has come to where the brokers end, without `__diff` 1."""
    rows, polls = [], []
    while True:
        found = reader.poll(position, 0.1)
        if found is None:
            if at_the_end(reader):
                return rows, position, polls
            continue
        polls.append(found)
        position = found.position
        for batch in found.batches.values():
            for row in batch.to_pylist():
                diff = row.pop("__diff")
                rows.append(row if diff == 1 else (row, diff))


def test_every_position_goes_on_behind_its_messages(brokers: Brokers, opened: Open) -> None:
    topic = brokers.topic()
    brokers.put(topic, *({"id": i, "v": str(i)} for i in range(10)))
    brokers.put(topic, *({"id": i, "v": str(i)} for i in range(10, 20)), partition=1)
    rows, _, polls = all_rows(opened(brokers, topic, rows=3))
    assert sorted(row["id"] for row in rows) == list(range(20))
    assert max(len(poll.batches["t"]) for poll in polls) <= 3
    seen = 0
    for poll in polls:
        seen += len(poll.batches["t"])
        again, _, _ = all_rows(opened(brokers, topic, rows=7), poll.position)
        assert {row["id"] for row in again}.isdisjoint(row["id"] for row in rows[:seen])
        assert len(again) == 20 - seen


def test_an_older_position_is_read_again_by_the_same_reader(brokers: Brokers, opened: Open) -> None:
    topic = brokers.topic()
    brokers.put(topic, {"id": 1})
    reader = opened(brokers, topic)
    first, position, _ = all_rows(reader)
    brokers.put(topic, {"id": 2})
    assert [all_rows(reader, at)[0] for at in (position, position, None)] == [
        [{"id": 2, "v": None}], [{"id": 2, "v": None}], [*first, {"id": 2, "v": None}]
    ]  # fmt: skip
    assert reader.poll(all_rows(reader, position)[1], 0.1) is None


def test_a_key_says_which_row_is_replaced_or_deleted(brokers: Brokers, opened: Open) -> None:
    topic = brokers.topic()
    brokers.put(topic, ({"id": 1}, {"id": 1, "v": "a"}), (2, {"v": "b"}), (2, {"v": "c", "new": [1]}),
                ({"id": 1}, None))  # fmt: skip
    rows, _, polls = all_rows(opened(brokers, topic, KEYED, key="json"))
    assert rows == [{"id": 1, "v": "a"}, {"id": 2, "v": "b"}, {"id": 2, "v": "c"}, ({"id": 1, "v": None}, 0)]
    assert polls[0].mode == "upserts"


def test_of_members_with_one_name_the_key_s_counts_and_then_the_last(mock: Brokers, opened: Open) -> None:
    topic = mock.topic()
    mock.put(topic, (b'{"id": 0.25, "id": 1.25}', b'{"id": 2.75, "v": 1.5, "v": 2.5}'),
             (b"2.50", b'{"id": 9.5, "v": 3}'))  # fmt: skip
    rows, _, _ = all_rows(opened(mock, topic, "CREATE TABLE t (id numeric(9,2) PRIMARY KEY, v numeric(9,2))",
                                 key="json"))  # fmt: skip
    assert [tuple(map(str, row.values())) for row in rows] == [("1.25", "2.50"), ("2.50", "3.00")]


def test_a_key_of_text_is_a_value_of_its_column(mock: Brokers, opened: Open) -> None:
    topic = mock.topic()
    mock.put(topic, (b'say "a"', {"v": 1}), (b"b", None))
    rows, _, _ = all_rows(opened(mock, topic, "CREATE TABLE t (id text PRIMARY KEY, v bigint)", key="text"))
    assert rows == [{"id": 'say "a"', "v": 1}, ({"id": "b", "v": None}, 0)]


def test_values_keep_their_digits_and_moments(mock: Brokers, opened: Open) -> None:
    topic = mock.topic()
    value = b"""{"n": 12345678901234567890.12, "m": "0.10", "j": {"b": [1e2, 12345678901234567890.5, null], "a": "x"},
                 "p": "2024-01-02T03:04:05.6+01:00", "x": "AQI=", "a": [1, null], "d": "2024-02-29", "k": 3}"""
    mock.put(topic, (b"the key", value))
    rows, _, _ = all_rows(opened(
        mock, topic, "CREATE TABLE t (n numeric(30,2), m numeric(4,2), j jsonb, p timestamptz, x bytea, a int[], "
        "d date, at timestamptz, o bigint, k text, e timestamp)", include="offset o, key k, partition n, timestamp at",
    ))  # fmt: skip
    (row,) = rows
    assert row["n"] == Decimal("0.00") and row["m"] == Decimal("0.10")  # the part of the message comes first
    assert row["j"] == '{"a": "x", "b": [100, 12345678901234567890.5, null]}'
    assert row["p"].isoformat() == "2024-01-02T02:04:05.600000+00:00" and row["x"] == b"\1\2" and row["a"] == [1, None]
    assert str(row["d"]) == "2024-02-29" and (row["o"], row["k"], row["e"]) == (0, "the key", None)
    assert row["at"].year >= 2024


def test_one_bad_message_does_not_spoil_the_others(mock: Brokers, opened: Open) -> None:
    topic = mock.topic()
    mock.put(topic, {"id": 1}, b"{", {"id": "x"}, b"\xff\0", [1], None, {"id": 2**70}, {"id": 3})
    rows, _, (poll,) = all_rows(opened(mock, topic))
    assert [row["id"] for row in rows] == [1, 3]
    found = {int(bad.place.split("/")[-1]): (bad.text, bad.reason) for bad in poll.bad}
    assert list(found) == [1, 2, 3, 4, 5, 6]
    assert found[1] == ("{", "its value is not JSON")
    assert found[2] == ('{"id": "x"}', "id: 'x' is not a valid bigint")
    assert found[3][0] == "\\xff\\x00" and "is not UTF-8" in found[3][1]
    assert found[4][1] == "its value is not an object in JSON, but array"
    assert found[5][1] == "it has no value, and the table has no PRIMARY KEY, so there is no row to delete"
    assert poll.origin is not None and poll.origin("t", 1) == (f"{topic}/0/7", '{"id": 3}')


def test_what_follows_many_bad_messages_waits_for_the_next_poll(
    mock: Brokers, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decoding, "MOST_BAD", 3)
    topic = mock.topic()
    bad: list[Any] = [b"{", {"id": "x"}, {"id": None}]
    mock.put(topic, {"id": 0}, *bad, {"id": 1}, *bad, *bad, {"id": 2})
    mock.put(topic, *bad, {"id": 3}, partition=1)
    rows, _, polls = all_rows(opened(mock, topic, "CREATE TABLE t (id bigint NOT NULL)"))
    assert sorted(row["id"] for row in rows) == [0, 1, 2, 3]
    assert len({one.place for poll in polls for one in poll.bad}) == sum(len(poll.bad) for poll in polls) == 12
    assert len(polls) > 2


def avro(registry: Any, schema: Any, value: Any) -> bytes:
    """A message as Confluent's serializer writes it."""
    number = registry.register_schema("s", Schema(json.dumps(schema), "AVRO"))
    stream = BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(schema), value)
    return b"\0" + number.to_bytes(4, "big") + stream.getvalue()


def record(*fields: Any) -> dict[str, Any]:
    return {"type": "record", "name": "Row", "fields": [{"name": name, "type": type} for name, type in fields]}


def test_avro_is_read_by_the_schema_of_its_writer(mock: Brokers, opened: Open, registry: Any) -> None:
    topic = mock.topic()
    moment = {"type": "long", "logicalType": "timestamp-micros"}
    cents = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
    old = record(("id", "long"), ("v", ["null", "string"]), ("gone", "int"))
    new = record(("id", "long"), ("v", "string"), ("at", moment), ("n", ["null", cents]), ("f", "double"),
                 ("tags", {"type": "array", "items": "string"}), ("b", "bytes"))  # fmt: skip
    first = avro(registry, old, {"id": 1, "v": None, "gone": 7})
    mock.put(
        topic, first, avro(registry, new, {"id": 2, "v": "ä", "at": 1_700_000_000_000_001, "n": Decimal("-1.20"),
                                           "f": float("nan"), "tags": ["x"], "b": b"\xff"}), first,
        b"\0\0\0\0\x63x", first[:-1], first + b"\0", b"{}",
    )  # fmt: skip
    rows, _, (poll,) = all_rows(opened(
        mock, topic, "CREATE TABLE t (id bigint, v text, at timestamp, n numeric(10,2), f double precision, "
        "tags text[], b bytea)", format="avro", registry="mock://registry",
    ))  # fmt: skip
    nothing = dict.fromkeys(("v", "at", "n", "f", "tags", "b"))
    assert [row["id"] for row in rows] == [1, 2, 1] and rows[0] == {"id": 1, **nothing} == rows[2]
    assert str(rows[1]["at"]) == "2023-11-14 22:13:20.000001" and rows[1]["n"] == Decimal("-1.20")
    assert rows[1]["f"] != rows[1]["f"] and (rows[1]["v"], rows[1]["tags"], rows[1]["b"]) == ("ä", ["x"], b"\xff")
    assert [bad.reason.partition(":")[0] for bad in poll.bad] == [
        "its value has the schema 99, which the registry does not have",
        "its value is not a record of its schema", "its value has bytes behind the record of its schema",
        "its value does not begin with the number of a schema, as messages in Avro do",
    ]  # fmt: skip


def test_keys_in_avro_delete(mock: Brokers, opened: Open, registry: Any) -> None:
    topic = mock.topic()
    key = avro(registry, {**record(("id", "long")), "name": "Key"}, {"id": 5})
    mock.put(topic, (key, avro(registry, record(("v", "string")), {"v": "a"})), (key, None))
    rows, _, _ = all_rows(opened(mock, topic, KEYED, format="avro", key="avro", registry="mock://registry"))
    assert rows == [{"id": 5, "v": "a"}, ({"id": 5, "v": None}, 0)]


def test_debezium_in_json_and_in_avro(mock: Brokers, opened: Open, registry: Any) -> None:
    moment = {"type": "long", "connect.name": "io.debezium.time.MicroTimestamp"}
    value = {"type": "record", "name": "Value", "namespace": "db.t", "fields": [
        {"name": "id", "type": "long"}, {"name": "v", "type": ["null", "string"]}, {"name": "at", "type": moment},
    ]}  # fmt: skip
    schema = {"type": "record", "name": "Envelope", "namespace": "db.t", "fields": [
        {"name": "before", "type": ["null", value]}, {"name": "after", "type": ["null", "Value"]},
        {"name": "op", "type": "string"},
    ]}  # fmt: skip
    one, two = {"id": 1, "v": "a", "at": 1_000_001}, {"id": 1, "v": "b", "at": 2}
    events = [{"op": "c", "before": None, "after": one}, {"op": "u", "before": one, "after": two},
              {"op": "d", "before": two, "after": None}]  # fmt: skip
    sql = "CREATE TABLE t (id bigint{}, v text, at timestamp)"
    made = [{"op": "c", "before": None, "after": {**one, "more": 1}}, *events[1:], (1, None)]
    for format, sent in (("debezium", made), ("debezium_avro", [*(avro(registry, schema, e) for e in events), None])):
        topic = mock.topic()
        mock.put(topic, *sent)
        told = {"encodings": "at MicroTimestamp"} if format == "debezium" else {"registry": "mock://registry"}
        keyed, _, polls = all_rows(opened(mock, topic, sql.format(" PRIMARY KEY"), format=format, **told))
        assert [str(row["at"])[-6:] if isinstance(row, dict) else row[1] for row in keyed] == [
            "000001", 0, "000002", 0
        ] and not any(poll.bad for poll in polls)
        plain, _, _ = all_rows(opened(mock, topic, sql.format(""), format=format, **told))
        assert [row["v"] if isinstance(row, dict) else (row[0]["v"], row[1]) for row in plain] == [
            "a", ("a", -1), "b", ("b", -1)
        ]  # fmt: skip


def test_times_of_records_and_of_columns_never_go_back(mock: Brokers, opened: Open) -> None:
    topic = mock.topic()
    mock.put(topic, {"id": 5}, {"id": 7}, {"id": 6}, {"id": 20})
    reader = opened(mock, topic, time="id", rows=2)
    found: list[list[int]] = []
    position = None
    while (poll := reader.poll(position, 1)) is not None:
        found.append(poll.batches["t"]["__time"].to_pylist())
        position = poll.position
    assert found == [[5, 7], [8, 20]]  # 6 comes late: its time was closed with the first batch
    poll = opened(mock, topic, time="record").poll(None, 5)
    assert poll is not None and min(poll.batches["t"]["__time"].to_pylist()) > 1_700_000_000_000


def test_a_new_source_may_begin_at_the_end(brokers: Brokers, opened: Open) -> None:
    topic = brokers.topic()
    brokers.put(topic, {"id": 1})
    reader = opened(brokers, topic, start="latest")
    rows, position, polls = all_rows(reader)
    assert rows == [] and len(polls) == 1 and polls[0].batches == {}
    brokers.put(topic, {"id": 2})
    assert all_rows(opened(brokers, topic, start="latest"), position)[0] == [{"id": 2, "v": None}]


def test_the_lag_is_what_is_left(mock: Brokers, opened: Open) -> None:
    topic = mock.topic()
    mock.put(topic, *({"id": i} for i in range(5)))
    reader = opened(mock, topic, rows=2)
    assert str(reader.lag()) == "unknown"
    position = None
    left = []
    while (poll := reader.poll(position, 1)) is not None:
        position = poll.position
        reader.acknowledge(position)
        left.append(reader.lag().amount)
    assert left[-1] == 0 and reader.lag().unit == "messages"


def test_what_is_no_longer_there_is_never_skipped(mock: Brokers, opened: Open) -> None:
    topic = mock.topic()
    mock.put(topic, {"id": 1})
    reader = opened(mock, topic)
    _, position, _ = all_rows(reader)
    assert position is not None
    ahead = json.loads(position)
    ahead["offsets"]["0"] = 9
    with pytest.raises(hj.HalfjoinError, match=r"no longer has the messages of partition 0 from offset 9 on.*DROP"):
        all_rows(opened(mock, topic), json.dumps(ahead))
    ahead["offsets"]["77"] = 1
    with pytest.raises(hj.HalfjoinError, match="was deleted and made again"):
        all_rows(opened(mock, topic), json.dumps(ahead))
    with pytest.raises(hj.HalfjoinError, match="is not a position in a Kafka topic"):
        all_rows(opened(mock, topic), "{}")


def test_brokers_and_topics_that_are_not_there(mock: Brokers, opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("halfjoin.engine.feeds.kafka.consuming.WAIT", 0.2)
    with pytest.raises(hj.StorageError, match="Kafka cannot be reached"):
        opened(Brokers("127.0.0.1:1", False), "t").poll(None, 0.1)
    monkeypatch.setattr("halfjoin.engine.feeds.kafka.consuming.WAIT", 5)
    with pytest.raises(hj.StorageError, match=r"the topic nowhere cannot be read: .*Unknown topic"):
        opened(mock, "nowhere").poll(None, 0.1)


def test_a_topic_of_which_nothing_comes_is_not_taken_for_empty(
    mock: Brokers, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = opened(mock, mock.topic())
    assert reader._consumer is not None
    reader._consumer.go(None)
    with monkeypatch.context() as patch:
        patch.setattr("halfjoin.engine.feeds.kafka.consuming.WAIT", 0.2)
        patch.setattr(TopicConsumer, "_some", lambda *_: [])
        with pytest.raises(hj.StorageError, match="cannot be reached: no answer for partition 0, 1"):
            reader._consumer.take(0.1)
    assert all_rows(reader)[0] == []


@pytest.mark.parametrize(("given", "sql", "text"), [
    ({"format": "avro"}, PLAIN, "messages in Avro need their schemas; give the option registry"),
    ({"key": "json"}, PLAIN, "t has no PRIMARY KEY, so a message's key finds no row"),
    ({"include": "offset nowhere"}, PLAIN, "unknown column 'nowhere' of t"),
    ({"include": "header v"}, PLAIN, "a message has no 'header' to include"),
    ({"include": "offset"}, PLAIN, "include: 'offset' is not a pair of words"),
    ({"encodings": "id Sundial"}, PLAIN, "id: unknown encoding 'Sundial'"),
    ({"time": "at"}, PLAIN, "unknown column 'at' of t"),
    ({"time": "v"}, PLAIN, "the column v is text, which is no time; take a column"),
    ({"format": "debezium", "key": "json"}, KEYED, "Debezium's messages have their keys"),
    ({"kafka.no.such.setting": "1"}, PLAIN, "Kafka refuses the settings: No such configuration property"),
    ({"kafka.sasl.password": "env:HALFJOIN_TEST_UNSET"}, PLAIN, "HALFJOIN_TEST_UNSET is not set"),
])  # fmt: skip
def test_options_that_cannot_work_are_refused(mock: Brokers, opened: Open, given: Any, sql: str, text: str) -> None:
    with pytest.raises(hj.HalfjoinError, match=text):
        opened(mock, "t", sql, **given)


@pytest.mark.parametrize("name", ["auto.offset.reset", "plugin.library.paths", "sasl.kerberos.kinit.cmd",
                                  "ssl.providers"])  # fmt: skip
def test_settings_that_are_not_the_users_to_give(name: str) -> None:
    with pytest.raises(ValueError, match=r"is the engine's to set|is not allowed") as caught:
        KAFKA.options(brokers="b", topic="t", **{f"kafka.{name}": "hidden"})
    assert "hidden" not in str(caught.value)


def test_passwords_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HALFJOIN_TEST_PASSWORD", "geheim")
    found = KAFKA.options(brokers="b", topic="t", **{"kafka.sasl.password": "env:HALFJOIN_TEST_PASSWORD",
                                                     "kafka.enable.ssl.certificate.verification": True})  # fmt: skip
    client = found.client()  # type: ignore[attr-defined]
    assert client["sasl.password"] == "geheim" and client["enable.ssl.certificate.verification"] == "true"
    assert "geheim" not in repr(found) and "geheim" not in found.model_dump_json()


def test_a_topic_that_was_made_again_is_another_topic(real: Brokers, opened: Open) -> None:
    topic = real.topic()
    real.put(topic, {"id": 1})
    _, position, _ = all_rows(opened(real, topic))
    real.admin.delete_topics([topic])[topic].result()
    from confluent_kafka.admin import NewTopic

    real.admin.create_topics([NewTopic(topic, 2, 1)])[topic].result()
    real.put(topic, {"id": 1}, {"id": 2})
    with pytest.raises(hj.HalfjoinError, match="was deleted and made again since it was read last"):
        all_rows(opened(real, topic), position)


def test_new_partitions_are_read_from_their_beginning(real: Brokers, opened: Open) -> None:
    from confluent_kafka.admin import NewPartitions

    topic = real.topic(1)
    real.put(topic, {"id": 1})
    reader = opened(real, topic)
    _, position, _ = all_rows(reader)
    real.admin.create_partitions([NewPartitions(topic, 2)])[topic].result()
    other = Brokers(real.address, True)
    other.put(topic, {"id": 2}, partition=1)
    assert all_rows(reader, position)[0] == [{"id": 2, "v": None}] == all_rows(opened(real, topic), position)[0]


def test_only_committed_messages_are_read(real: Brokers, opened: Open) -> None:
    from confluent_kafka import Producer

    topic = real.topic(1)
    producer = Producer({"bootstrap.servers": real.address, "transactional.id": topic})
    producer.init_transactions()
    reader = opened(real, topic)
    position = None
    rows: list[Any] = []
    for number, end in enumerate((producer.abort_transaction, producer.commit_transaction, producer.abort_transaction)):
        producer.begin_transaction()
        producer.produce(topic, json.dumps({"id": number}))
        producer.flush()
        assert reader.poll(position, 0.2) is None
        end()
        found, position, _ = all_rows(reader, position)
        rows += found
    assert rows == [{"id": 1, "v": None}] and reader.lag().amount == 0
