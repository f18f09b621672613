"""A client's query that was asked with other constants is not parsed again, and answers and fails as one that is."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from halfjoin.sql.parse.prepared import change_in, prepared
from tests.support.serving import Raw, Served, fields, served

__all__ = ["served"]

QUERY = "SELECT b FROM t WHERE a = {}"


@pytest.fixture
def raw(served: Served) -> Raw:
    made = Raw(served.port)
    made.query("CREATE TABLE t (a integer PRIMARY KEY, b text)")
    made.query("INSERT INTO t VALUES (1, 'one'), (2, 'two'), (3, 'three'), (4, NULL)")
    return made


def extended(raw: Raw, sql: str, *values: str, name: str = "") -> list[tuple[str, bytes]]:
    made = [struct.pack(">i", len(value)) + value.encode() for value in values]
    named = name.encode() + b"\0"
    raw.send(("P", named + sql.encode() + b"\0\0\0"), ("D", b"S" + named),
             ("B", b"\0" + named + b"\0\0" + struct.pack(">h", len(values)) + b"".join(made) + b"\0\0"),
             ("D", b"P\0"), ("E", b"\0" + struct.pack(">i", 0)), ("S", b""))  # fmt: skip
    return raw.until("Z")


def letters(found: list[tuple[str, bytes]]) -> str:
    return "".join(letter for letter, _ in found)


def texts(found: list[tuple[str, bytes]]) -> list[bytes]:
    return [body[6:] for letter, body in found if letter == "D"]


def not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any, **__: Any) -> Any:
        raise AssertionError("it is parsed again")

    for place in ("sql.parse.prepared.trees_of", "server.client.split", "engine.statements.execute.statement_of",
                  "engine.statements.describing.bind_query", "engine.statements.evaluating.plan_of_query"):
        monkeypatch.setattr(f"halfjoin.{place}", refused)


def test_a_new_constant_of_a_client_is_not_parsed(raw: Raw, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in (1, 2):
        raw.query(QUERY.format(number))
    not_parsed(monkeypatch)
    for number, expected in ((3, b"three"), (2, b"two"), (1, b"one")):
        assert texts(raw.query(QUERY.format(number) + " ;\n")) == [expected]
        assert texts(extended(raw, QUERY.format(number))) == [expected]
        assert letters(extended(raw, QUERY.format(number))) == "1tT2TDCZ"
    assert raw.query(QUERY.format(9))[-2] == ("C", b"SELECT 0\0")


def test_a_new_value_of_an_unnamed_statement_is_not_parsed(raw: Raw, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in "12":
        extended(raw, QUERY.format("$1"), number)
    monkeypatch.setattr("halfjoin.sql.parse.prepared.trees_of", None)
    monkeypatch.setattr("halfjoin.engine.statements.describing.bind_query", None)
    assert texts(extended(raw, QUERY.format("$1"), "3")) == [b"three"]


def test_a_wrong_constant_is_an_error_at_its_place(raw: Raw) -> None:
    expected = [fields(found[0][1]) for found in [raw.query(QUERY.format("'x1'"))]]
    for number in ("'1'", "'2'", "'3'"):
        raw.query(QUERY.format(number))
    found = raw.query(QUERY.format("'x1'"))
    assert [fields(found[0][1])] == expected and expected[0]["P"] == "27" and expected[0]["C"] == "22P02"
    assert fields(extended(raw, QUERY.format("'x1'"))[0][1])["P"] == "27"
    assert texts(raw.query(QUERY.format("'2'"))) == [b"two"]


def test_a_transaction_that_failed_answers_no_known_query(raw: Raw) -> None:
    for number in (1, 2, 3):
        raw.query(QUERY.format(number))
    raw.query("BEGIN")
    raw.query("SELECT nope")
    for found in (raw.query(QUERY.format(2)), extended(raw, QUERY.format(4))):
        assert fields(found[0][1])["C"] == "25P02"
    raw.query("ROLLBACK")
    assert texts(raw.query(QUERY.format(2))) == [b"two"]


def test_a_definition_that_changes_is_described_anew(raw: Raw) -> None:
    for number in "123":
        extended(raw, QUERY.format("$1"), number)
        extended(raw, QUERY.format(number))
    before = extended(raw, QUERY.format("$1"), "1")
    raw.query("DROP TABLE t; CREATE TABLE t (a integer PRIMARY KEY, b bigint); INSERT INTO t VALUES (1, 5)")
    for found in (extended(raw, QUERY.format("$1"), "1"), extended(raw, QUERY.format(1))):
        assert texts(found) == [b"5"]
        assert dict(found)["T"] != dict(before)["T"]


def test_a_known_query_sees_what_the_transaction_has_changed(raw: Raw) -> None:
    for number in (1, 2, 3):
        raw.query(QUERY.format(number))
    raw.query("BEGIN; INSERT INTO t VALUES (7, 'seven')")
    assert texts(raw.query(QUERY.format(7))) == [b"seven"]
    raw.query("ROLLBACK")
    assert texts(raw.query(QUERY.format(7))) == []


def test_a_query_of_the_past_changes_nothing() -> None:
    for sql in ("SELECT 1 AS OF 5", "VALUES (1) AS OF 5", "WITH q AS (SELECT 1) SELECT * FROM q AS OF 5"):
        tree = prepared(sql).tree
        assert tree is not None and change_in(tree) is None and prepared(sql).reads
