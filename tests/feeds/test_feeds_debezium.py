"""Debezium's messages: histories against a dictionary, every encoding of every type, and refused messages."""

from __future__ import annotations

import base64
import datetime as dt
import json
from collections import Counter
from decimal import Decimal
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import halfjoin as hj
from halfjoin.engine.feeds.encodings import KNOWN
from tests.oracle.rows import bag

Row = dict[str, Any]


def message(op: str, before: Row | None = None, after: Row | None = None, schema: list[Row] | None = None) -> str:
    """A message as Debezium sends it, with the columns' schema or without."""
    envelope: Row = {"before": before, "after": after, "source": {"table": "t"}, "op": op, "ts_ms": 5}
    if schema is None:
        return json.dumps(envelope)
    images = [{"type": "struct", "fields": schema, "optional": True, "field": name} for name in ("before", "after")]
    fields = [*images, {"type": "string", "optional": False, "field": "op"}]
    return json.dumps({"schema": {"type": "struct", "fields": fields, "name": "t.Envelope"}, "payload": envelope})


def _engine(ddl: str = "CREATE TABLE t (k bigint PRIMARY KEY, v text)") -> hj.Engine:
    engine = hj.Engine()
    engine.execute(ddl)
    return engine


STEP = st.tuples(st.sampled_from("cccuuuddtn"), st.integers(0, 3), st.integers(0, 3), st.sampled_from(["a", "b", None]))


def _history(steps: list[tuple[str, int, int, str | None]]) -> tuple[list[str | None], list[dict[int, str | None]]]:
    """The messages for a table's changes, and the table after each message."""
    table: dict[int, str | None] = {}
    messages: list[str | None] = []
    states = []
    for op, key, other, value in steps:
        row = {"k": key, "v": value}
        if op == "t":
            messages.append(message("t"))
            table = {}
        elif op == "n":
            messages.append(None)
        elif op == "d" and key in table:
            messages.append(message("d", {"k": key, "v": table.pop(key)}))
        elif key not in table:
            messages.append(message("c" if op == "c" else "r", None, row))
            table[key] = value
        elif other not in table and op == "u":  # the key changes
            messages.append(message("u", {"k": key, "v": table.pop(key)}, {"k": other, "v": value}))
            table[other] = value
        else:
            messages.append(message("u", {"k": key, "v": table[key]}, row))
            table[key] = value
        states.append(dict(table))
    return messages, states


def _rows(contents: dict[int, str | None]) -> Counter[Any]:
    return Counter(contents.items())


@given(st.lists(STEP, min_size=1, max_size=12), st.data())
def test_any_split_and_redelivery_gives_the_keyed_table(steps: Any, data: st.DataObject) -> None:
    messages, states = _history(steps)
    engine, done = _engine(), 0
    while done < len(messages):
        again = data.draw(st.integers(0, done))  # at least once: from a place that was committed
        done = data.draw(st.integers(done + 1, len(messages)))
        engine.apply({"t": hj.debezium(messages[again:done])}, time=done)
        assert bag(engine.read("t")) == _rows(states[done - 1])


@given(st.lists(STEP, min_size=1, max_size=12), st.data())
def test_without_a_key_images_go_and_come(steps: Any, data: st.DataObject) -> None:
    messages, states = _history(steps)
    engine, done = _engine("CREATE TABLE t (k bigint, v text)"), 0
    while done < len(messages):
        start, done = done, data.draw(st.integers(done + 1, len(messages)))
        engine.apply({"t": hj.debezium(messages[start:done])}, time=done)
        assert bag(engine.read("t")) == _rows(states[done - 1])


@given(st.lists(STEP, min_size=1, max_size=12), st.randoms())
def test_kafka_s_offsets_are_the_order(steps: Any, random: Any) -> None:
    messages, states = _history(steps)
    rows = [{"value": None if m is None else m.encode(), "partition": 0, "offset": i} for i, m in enumerate(messages)]
    random.shuffle(rows)
    schema = pa.schema([("value", pa.binary()), ("partition", pa.int32()), ("offset", pa.int64())])
    engine = _engine()
    engine.apply({"t": hj.debezium(pa.Table.from_pylist(rows, schema))}, time=1)
    assert bag(engine.read("t")) == _rows(states[-1])


def test_views_see_one_change_of_the_row() -> None:
    engine = _engine()
    engine.execute("CREATE MATERIALIZED VIEW w AS SELECT v FROM t")
    engine.apply({"t": hj.debezium([message("c", None, {"k": 1, "v": "a"})])}, time=1)
    updates = [message("u", {"k": 1, "v": "a"}, {"k": 1, "v": v}) for v in "bc"]
    applied = engine.apply({"t": hj.debezium(updates)}, time=2)
    assert sorted((row["v"], row["__diff"]) for row in applied.diffs["w"].to_pylist()) == [("a", -1), ("c", 1)]


def test_the_forms_of_messages_are_one() -> None:
    texts = [message("c", None, {"k": 1, "v": "a"}), message("u", {"k": 1, "v": "a"}, {"k": 1, "v": "é"}), None]
    encoded = [None if text is None else text.encode() for text in texts]
    forms = [texts, encoded, [text and json.loads(text) for text in texts], pa.array(texts), pa.chunked_array([texts]),
             pa.table({"m": texts}), pa.table({"key": ["", "", ""], "value": encoded}), pd.DataFrame({"value": texts}),
             pl.DataFrame({"value": texts}), pl.Series(texts), pa.array(texts).dictionary_encode(),
             pa.RecordBatch.from_pydict({"m": texts}), pa.array(texts, pa.string_view())]  # fmt: skip
    engine = _engine()
    for form in forms:  # the same content, so the same batch
        engine.apply({"t": hj.debezium(form)}, time=1, batch_id="one")
    assert engine.read("t").to_pylist() == [{"k": 1, "v": "é"}]


def _decimal(value: Decimal, scale: int) -> str:
    number = int(value.scaleb(scale))
    return base64.b64encode(number.to_bytes(number.bit_length() // 8 + 1, "big", signed=True)).decode()


def _field(kind: str, name: str | None = None, **parameters: str) -> Row:
    return {"type": kind, "optional": True, "field": "v"} | ({"name": name} if name else {}) | (
        {"parameters": parameters} if parameters else {})  # fmt: skip


DAY, NOON = dt.date(2024, 2, 29), dt.datetime(2024, 2, 29, 12, 0, 0, 123000)
MICROS = int(NOON.replace(tzinfo=dt.UTC).timestamp() * 1_000_000)
NUMBER = Decimal("-12345678901234567890123456.79")
TIME = "io.debezium.time."
CASES: list[tuple[str, Row, Any, Any]] = [
    ("boolean", _field("boolean"), True, True),
    ("smallint", _field("int16"), -5, -5),
    ("bigint", _field("int64"), 2**63 - 1, 2**63 - 1),
    ("bigint", _field("bytes", "org.apache.kafka.connect.data.Decimal", scale="0"), _decimal(Decimal(7), 0), 7),
    ("double precision", _field("double"), 0.1, 0.1),
    ("double precision", _field("double"), "NaN", float("inf")),
    ("real", _field("float"), 1.5, 1.5),
    ("text", _field("string"), "a\"'\\\n\u20ac", "a\"'\\\n\u20ac"),
    ("text", _field("string", "io.debezium.data.Json"), '{"a": 1}', '{"a": 1}'),
    ("uuid", _field("string", "io.debezium.data.Uuid"), "0" * 8 + "-0000-0000-0000-" + "0" * 12,
     "0" * 8 + "-0000-0000-0000-" + "0" * 12),
    ("bytea", _field("bytes"), base64.b64encode(b"\0\xff").decode(), b"\0\xff"),
    ("date", _field("int32", f"{TIME}Date"), 19782, DAY),
    ("date", _field("int32", "org.apache.kafka.connect.data.Date"), -1, dt.date(1969, 12, 31)),
    ("date", _field("string", f"{TIME}IsoDate"), "2024-02-29Z", DAY),
    ("time", _field("int32", f"{TIME}Time"), 3_600_001, dt.time(1, 0, 0, 1000)),
    ("time", _field("int64", f"{TIME}MicroTime"), 3_600_000_001, dt.time(1, 0, 0, 1)),
    ("time", _field("int64", f"{TIME}NanoTime"), 3_600_000_001_000, dt.time(1, 0, 0, 1)),
    ("time", _field("string", f"{TIME}ZonedTime"), "01:00:00Z", dt.time(1)),
    ("timestamp", _field("int64", f"{TIME}Timestamp"), MICROS // 1000, NOON),
    ("timestamp", _field("int64", f"{TIME}MicroTimestamp"), MICROS, NOON),
    ("timestamp", _field("int64", f"{TIME}NanoTimestamp"), MICROS * 1000, NOON),
    ("timestamp", _field("int64", "org.apache.kafka.connect.data.Timestamp"), MICROS // 1000, NOON),
    ("timestamptz", _field("string", f"{TIME}ZonedTimestamp"), "2024-02-29T14:00:00.123+02:00",
     NOON.replace(tzinfo=dt.UTC)),
    ("timestamptz", _field("string", f"{TIME}ZonedTimestamp"), "2024-02-29T12:00:00.123Z", NOON.replace(tzinfo=dt.UTC)),
    ("numeric(30,2)", _field("bytes", "org.apache.kafka.connect.data.Decimal", scale="2"), _decimal(NUMBER, 2), NUMBER),
    ("numeric(30,2)", _field("bytes", "org.apache.kafka.connect.data.Decimal", scale="1"), "fw==", Decimal("12.70")),
    ("numeric(30,2)", _field("struct", "io.debezium.data.VariableScaleDecimal"),
     {"scale": 2, "value": _decimal(NUMBER, 2)}, NUMBER),
    ("numeric(30,2)", _field("string"), str(NUMBER), NUMBER),
    ("numeric(30,2)", _field("double"), 12.5, Decimal("12.50")),
    ("numeric(30,2)", _field("bytes", "org.apache.kafka.connect.data.Decimal", scale="2"), 12.5, Decimal("12.50")),
    ("bigint", _field("bytes", "org.apache.kafka.connect.data.Decimal", scale="0"), 7, 7),
    ("double precision", _field("struct", "io.debezium.data.VariableScaleDecimal"), {"scale": 1, "value": "Dw=="}, 1.5),
    ("integer[]", _field("array") | {"items": {"type": "int32", "optional": True}}, [1, None, 3], [1, None, 3]),
    ("text[]", _field("array") | {"items": {"type": "string"}}, ["a,b", "[\"", ""], ["a,b", "[\"", ""]),
    ("date[]", _field("array") | {"items": {"type": "int32", "name": f"{TIME}Date"}}, [19782], [DAY]),
    ("numeric(8,1)[]", _field("array") | {
        "items": {"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "parameters": {"scale": "1"}},
    }, ["AX8="], [Decimal("38.3")]),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "field", "sent", "kept"), CASES)
def test_every_encoding_with_its_schema(kind: str, field: Row, sent: Any, kept: Any) -> None:
    if sent == "NaN":
        sent, kept = "Infinity", float("inf")
    engine = _engine(f"CREATE TABLE t (k bigint PRIMARY KEY, v {kind})")
    schema = [_field("int64") | {"field": "k"}, field]
    batch = [message("c", None, {"k": k, "v": v}, schema) for k, v in ((1, sent), (2, None), (3, sent))]
    engine.apply({"t": hj.debezium(batch)}, time=1)
    assert [row["v"] for row in sorted(engine.read("t").to_pylist(), key=lambda row: row["k"])] == [kept, None, kept]


@pytest.mark.parametrize(("kind", "encoding", "sent", "kept"), [
    ("timestamp", "MicroTimestamp", MICROS, NOON),
    ("timestamp", f"{TIME}Timestamp", MICROS // 1000, NOON),
    ("numeric(30,2)", "Decimal(2)", _decimal(NUMBER, 2), NUMBER),
    ("numeric(30,2)", "string", "12", Decimal("12.00")),
    ("bytea", "hex", "00ff", b"\0\xff"),
    ("timestamp[]", "MicroTimestamp", [MICROS], [NOON]),
    ("date", None, 19782, DAY),
    ("timestamptz", None, "2024-02-29T12:00:00.123Z", NOON.replace(tzinfo=dt.UTC)),
    ("bytea", None, "AP8=", b"\0\xff"),
])  # fmt: skip
def test_without_a_schema_the_user_says_what_cannot_be_told(kind: str, encoding: Any, sent: Any, kept: Any) -> None:
    engine = _engine(f"CREATE TABLE t (k bigint PRIMARY KEY, v {kind})")
    said = {"v": encoding} if encoding else {}
    engine.apply({"t": hj.debezium([message("c", None, {"k": 1, "v": sent})], encodings=said)}, time=1)
    assert engine.read("t").to_pylist() == [{"k": 1, "v": kept}]


def test_numbers_are_taken_digit_by_digit() -> None:
    engine = _engine("CREATE TABLE t (k bigint PRIMARY KEY, v numeric(38,10))")
    texts = ["12345678901234567890123456.7891234567", "0.1000000000", "-1e3", "1234567890.0000000001", "7"]
    batch = [f'{{"op": "c", "after": {{"k": {k}, "v": {text}}}}}' for k, text in enumerate(texts)]
    engine.apply({"t": hj.debezium(batch)}, time=1)
    assert {row["k"]: row["v"] for row in engine.read("t").to_pylist()} == dict(enumerate(map(Decimal, texts)))


def test_null_in_json_is_null_in_a_column_of_jsonb() -> None:
    """A string has the JSON null. So PostgreSQL's json_populate_record reads an object."""
    with hj.Engine() as engine:
        engine.execute("CREATE TABLE d (id bigint, j jsonb)")
        sent = [None, "null", [None], {"a": None}]
        engine.apply({"d": hj.debezium([{"op": "c", "before": None, "after": {"id": n, "j": j}}
                                        for n, j in enumerate(sent)])})  # fmt: skip
        found = [row["j"] for row in engine.read("d").sort_by("id").to_pylist()]
        assert found == [None, "null", "[null]", '{"a": null}']


def test_a_schema_may_change_between_messages() -> None:
    engine = _engine("CREATE TABLE t (k bigint PRIMARY KEY, v timestamp, w text[])")
    key, w = _field("int64") | {"field": "k"}, _field("array") | {"field": "w", "items": {"type": "string"}}
    millis, micros = _field("int64", f"{TIME}Timestamp"), _field("int64", f"{TIME}MicroTimestamp")
    batch = [
        message("c", None, {"k": 1, "v": MICROS, "w": ["1"]}, [key, micros, w]),
        message("c", None, {"k": 2, "v": MICROS // 1000, "w": ["2", "2"]}, [key, millis, w]),
        message("c", None, {"k": 3, "v": MICROS}, [key, micros]),
    ]
    engine.apply({"t": hj.debezium(batch)}, time=1)
    rows = sorted(engine.read("t").to_pylist(), key=lambda row: row["k"])
    assert [row["v"] for row in rows] == [NOON] * 3
    assert [row["w"] for row in rows] == [["1"], ["2", "2"], None]


def test_of_what_is_gone_the_key_alone_counts() -> None:
    engine = _engine("CREATE TABLE t (k bigint PRIMARY KEY, v text NOT NULL, d date)")
    engine.apply({"t": [{"k": 1, "v": "a"}, {"k": 2, "v": "b"}]}, time=1)
    gone = message("d", {"k": 1, "v": None, "d": "__debezium_unavailable_value"})
    engine.apply({"t": hj.debezium([gone, message("d", {"k": 9})])}, time=2)
    assert engine.read("t").to_pylist() == [{"k": 2, "v": "b", "d": None}]


def test_columns_chooses_among_fields() -> None:
    engine = _engine()
    batch = [message("c", None, {"k": 1, "v": "a", "secret": {"x": 1}})]
    with pytest.raises(hj.UnknownName, match="unknown column 'secret' of t"):
        engine.apply({"t": hj.debezium(batch)}, time=1)
    engine.apply({"t": hj.debezium(batch, columns=["k"])}, time=1)
    assert engine.read("t").to_pylist() == [{"k": 1, "v": None}]


WORD = b"__debezium_unavailable_value"


@pytest.mark.parametrize(("type", "value", "encoding"), [
    ("text", WORD.decode(), None), ("text[]", [WORD.decode()], None), ("jsonb", {WORD.decode(): WORD.decode()}, None),
    ("jsonb", json.dumps({WORD.decode(): WORD.decode()}, separators=(",", ":")), None),
    ("bytea", WORD.hex(), "hex"), ("bytea", base64.b64encode(WORD).decode(), None), ("bytea[]", [WORD.hex()], "hex"),
    ("integer[]", [*WORD], None), ("bigint[]", [*WORD], None),
    ("uuid[]", ["b68a35a7-17ad-35b3-af2a-ae46edb4545a"], None),
])  # fmt: skip
def test_a_value_that_was_not_sent_is_no_value(type: str, value: Any, encoding: str | None) -> None:
    engine = _engine(f"CREATE TABLE t (k bigint PRIMARY KEY, v {type})")
    encodings = {} if encoding is None else {"v": encoding}
    with pytest.raises(hj.InvalidRow, match=r"t\.v: message 0: is unchanged, and was not sent"):
        engine.apply({"t": hj.debezium([message("u", None, {"k": 1, "v": value})], encodings=encodings)}, time=1)


GOOD = message("c", None, {"k": 1, "v": "a"})


@pytest.mark.parametrize(("bad", "text"), [
    ("{bad", r"t: message 1: is not JSON: '\{bad'"),
    ("[1]", "t: message 1: is not a JSON object"),
    ('{"k": 1}', "t: message 1: has no op, .*ExtractNewRecordState"),
    (message("m"), "t: message 1: has the op 'm', which is not one of"),
    (message("c", {"k": 1}), "t: message 1: has the op 'c' and no row after it"),
    (message("d"), "t: message 1: has the op 'd' and no row before it; .*REPLICA IDENTITY"),
    (message("c", None, {"k": None}), "t.k: message 1: is NULL, and the column is NOT NULL"),
    (message("c", None, {"v": "a"}), "t.k: message 1: is NULL"),
    (message("c", None, {"k": "1"}), "t.k: message 1: '1' is not a valid bigint"),
    (message("c", None, {"k": 1.5}), "t.k: message 1: 1.5 is not a valid bigint"),
    (message("c", None, {"k": 2**63}), "t.k: message 1: .*bigint"),
    (message("c", None, {"k": 1, "v": 5}), "t.v: message 1: 5 is not a valid text"),
    (message("u", None, {"k": 1, "v": "__debezium_unavailable_value"}), "t.v: message 1: is unchanged, and was not"),
    (b"\xff", "t: message 1: is not a JSON text"),
    ({1, 2}, "t: message 1: is not a JSON text"),
    (message("c", None, {"k": 1, "a": "2024-13-01"}), "t.a: message 1: '2024-13-01' is not a valid date"),
    (message("c", None, {"k": 1, "a": 2**40}), "t.a: message 1: 1099511627776 is out of range for date"),
    (message("c", None, {"k": 1, "p": 17}), r"t.p: message 1: 17 is a number of an unknown unit; name the encoding: "
     r"hj.debezium\(messages, encodings=\{'p': 'Timestamp' or 'MicroTimestamp'\}\)"),
    (message("c", None, {"k": 1, "n": "12"}), "t.n: message 1: '12' may be a number in text or the base64"),
    (message("c", None, {"k": 1, "n": 1.234}), "t.n: message 1: '1.234' is not a valid numeric"),
    (message("c", None, {"k": 1, "b": "!"}), "t.b: message 1: '!' is not base64"),
    (message("c", None, {"k": 1, "e": [1, "x"]}), "t.e: message 1: 'x' is not a valid integer"),
    (message("c", None, {"k": 1, "e": {"a": 1}}), "t.e: message 1: .*not a valid integer"),
    (message("c", None, {"k": 1, "u": "x"}), "t.u: message 1: 'x' is not a valid uuid"),
])  # fmt: skip
def test_what_is_wrong_with_a_message_is_said_with_its_number(bad: Any, text: str) -> None:
    engine = _engine("CREATE TABLE t (k bigint PRIMARY KEY, v text, a date, p timestamp, n numeric(8,2), b bytea, "
                     "e integer[], u uuid)")  # fmt: skip
    with pytest.raises(hj.InvalidRow, match=text):
        engine.apply({"t": hj.debezium([GOOD, bad, GOOD])}, time=1)
    assert engine.read("t").num_rows == 0


DEEP = "[" * 3000 + "]" * 3000


def _texts(*images: str, schema: str | None = None) -> list[str]:
    """Messages that add rows; json.dumps does not write what is nested deep."""
    plain = ['{"op": "c", "after": ' + image + "}" for image in images]
    return plain if schema is None else [f'{{"schema": {schema}, "payload": {one}}}' for one in plain]


@pytest.mark.parametrize("schema", [None, "null"])
def test_a_field_that_is_nested_deep_leaves_the_others_as_they_are(schema: str | None) -> None:
    engine = _engine("CREATE TABLE t (k bigint PRIMARY KEY, n numeric(30,4), j jsonb)")
    values = '"n": 12345678901234567890.5, "j": {"x": 1.50, "k": "}"}}'
    good, deep = f'{{"d": [], "k": 1, {values}', f'{{"d": {DEEP}, "k": 2, {values}'
    engine.apply({"t": hj.debezium(_texts(good, deep, schema=schema), columns=["k", "n", "j"])}, time=1)
    number, json = Decimal("12345678901234567890.5"), '{"k": "}", "x": 1.5}'
    assert [tuple(row.values()) for row in engine.read("t").sort_by("k").to_pylist()] == [
        (1, number, json), (2, number, json)]  # fmt: skip
    bad = f'{{"k": 3, "j": {DEEP}}}'
    with pytest.raises(hj.InvalidRow, match=r"t.j: message 1: a json value has at most 200 levels"):
        engine.apply({"t": hj.debezium(_texts(good, bad, schema=schema), columns=["k", "n", "j"])}, time=2)


@pytest.mark.parametrize("schema", [
    '{"fields": 3}', '{"fields": [1]}', '{"fields": [{"field": "after", "fields": [{"field": "k"}]}]}', DEEP, "[]", "3",
    '{"fields": [{"field": "after", "fields": [{"field": "k", "type": "bytes", "parameters": {"scale": "x"}}]}]}',
], ids=["number", "numbers", "untyped", "deep", "list", "single", "scale"])  # fmt: skip
def test_a_schema_that_is_none_is_said_with_its_message(schema: str) -> None:
    engine = _engine("CREATE TABLE t (k bigint PRIMARY KEY, v text)")
    with pytest.raises(hj.InvalidRow, match="t: message 1: has a schema that is not one of Kafka Connect"):
        engine.apply({"t": hj.debezium([GOOD, *_texts('{"k": 2}', schema=schema)])}, time=1)


@pytest.mark.parametrize(("type", "encoding"), [("timestamp", "NanoTimestamp"), ("time", "NanoTime")])
def test_nanoseconds_say_what_to_do(type: str, encoding: str) -> None:
    engine = _engine(f"CREATE TABLE t (k bigint PRIMARY KEY, p {type})")
    with pytest.raises(hj.InvalidRow, match=r"t.p: message 0: .* is not a valid .*; declare the column bigint"):
        engine.apply({"t": hj.debezium([message("c", None, {"k": 1, "p": 10**12 + 1})], encodings={"p": encoding})})
    engine = _engine("CREATE TABLE t (k bigint PRIMARY KEY, p bigint)")
    engine.apply({"t": hj.debezium([message("c", None, {"k": 1, "p": 10**12 + 1})], encodings={"p": encoding})})
    assert engine.read("t").to_pylist() == [{"k": 1, "p": 10**12 + 1}]


def test_without_a_key_an_update_needs_the_row_before() -> None:
    engine = _engine("CREATE TABLE t (k bigint, v text)")
    with pytest.raises(hj.InvalidRow, match=r"message 0: has the op 'u' and no row before it; .*IDENTITY FULL"):
        engine.apply({"t": hj.debezium([message("u", None, {"k": 1, "v": "a"})])}, time=1)


@pytest.mark.parametrize(("call", "error", "text"), [
    (lambda: hj.debezium("{}"), hj.InvalidRow, "messages must be a list"),
    (lambda: hj.debezium(pa.table({"a": ["{}"], "b": ["{}"]})), hj.InvalidRow, "one called value among others"),
    (lambda: hj.debezium(pa.array([1])), hj.InvalidRow, "JSON texts, not int64"),
    (lambda: hj.debezium([GOOD], encodings={"v": "Timestam"}), hj.HalfjoinError, "unknown encoding 'Timestam'"),
    (lambda: hj.debezium([GOOD], encodings={"v": "Decimal"}), hj.HalfjoinError, r"Decimal as Decimal\(2\)"),
    (lambda: hj.debezium([GOOD], encodings={"w": "hex"}), hj.UnknownName, "'w'"),
    (lambda: hj.debezium([GOOD], columns=["w"]), hj.UnknownName, "'w'"),
])  # fmt: skip
def test_what_is_wrong_with_the_call(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        _engine().apply({"t": call()}, time=1)


def test_a_truncation_among_partitions_has_no_place() -> None:
    rows = pa.table({"value": [GOOD, message("t")], "partition": [0, 1], "offset": [5, 0]})
    with pytest.raises(hj.InvalidRow, match="truncates the table"):
        _engine().apply({"t": hj.debezium(rows)}, time=1)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
    | st.sampled_from(["2024-02-29", "12:00", "1.5", "AX8=", 2**40, -1, "__debezium_unavailable_value"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["scale", "value", "x"]), inner),
    max_leaves=4,
)  # fmt: skip
KINDS = list(dict.fromkeys(kind for kind, *_ in CASES))
ENCODINGS = [None, "Decimal(2)", *(name for name in KNOWN if name != "Decimal")]


@given(st.sampled_from(KINDS), st.sampled_from(ENCODINGS), st.lists(ANYTHING, min_size=1, max_size=3))
def test_whatever_is_sent_is_decoded_or_refused(kind: str, encoding: str | None, sent: list[Any]) -> None:
    engine = _engine(f"CREATE TABLE t (k bigint, v {kind})")
    batch = [message("c", None, {"k": k, "v": value}) for k, value in enumerate(sent)]
    try:
        engine.apply({"t": hj.debezium(batch, encodings={"v": encoding} if encoding else {})}, time=1)
    except hj.InvalidRow as problem:
        assert "t.v: message " in str(problem) or "is not JSON" in str(problem)
    else:
        assert engine.read("t").num_rows == len(sent)
