"""Statements that once ended in an error of Python, Arrow or DuckDB now give an answer or a reason."""

from __future__ import annotations

import io
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import halfjoin as hj


def engine_of(sql: str = "CREATE TABLE t (x integer); INSERT INTO t VALUES (1), (2)") -> hj.Engine:
    engine = hj.Engine()
    engine.execute(sql)
    return engine


def rows(table: Any) -> list[tuple[Any, ...]]:
    return [tuple(column[i].as_py() for column in table.columns) for i in range(table.num_rows)]


def test_an_expression_joined_as_integer_and_as_numeric() -> None:
    engine = engine_of("CREATE TABLE t (x integer); CREATE TABLE a (n numeric(10,2)); CREATE TABLE c (i integer)")
    engine.execute("CREATE MATERIALIZED VIEW v AS SELECT t.x, a.n FROM t, a, c WHERE -t.x = a.n AND -t.x = c.i")
    engine.execute("INSERT INTO t VALUES (-1), (-2); INSERT INTO a VALUES (1), (2); INSERT INTO c VALUES (1)")
    assert rows(engine.read("v")) == [(-1, Decimal("1.00"))]
    engine.execute("DELETE FROM t WHERE x = -1; INSERT INTO c VALUES (2)")
    assert rows(engine.read("v")) == [(-2, Decimal("2.00"))]


@pytest.mark.parametrize("call", ["array_length(NULL, 1)", "cardinality(NULL)"])
def test_an_array_of_no_type_is_refused(call: str) -> None:
    with pytest.raises(hj.UnsupportedSQL, match="the type of an argument is not known"):
        engine_of().query(f"SELECT {call}")
    assert rows(engine_of().query(f"SELECT {call.replace('NULL', 'NULL::integer[]')}")) == [(None,)]


@pytest.mark.parametrize(("first", "step"), [
    ("2024-01-31", "1 month -30 days"), ("2024-02-01", "1 month -29 days"), ("2023-02-01", "1 month -29 days"),
    ("2024-03-01", "-1 month 30 days"),
])  # fmt: skip
def test_a_series_that_does_not_move_on_fails(first: str, step: str) -> None:
    last = "2024-04-01" if step.startswith("1") else "2023-01-01"
    with pytest.raises(hj.DataError, match="step size cannot equal zero"):
        engine_of().query(f"SELECT * FROM generate_series(timestamp '{first}', timestamp '{last}', interval '{step}')")


def test_a_series_by_months_and_days_goes_on() -> None:
    found = engine_of().query("SELECT g::date::text FROM generate_series(timestamp '2024-01-31', "
                              "timestamp '2024-03-10', interval '1 month -10 days') g")
    assert rows(found) == [("2024-01-31",), ("2024-02-19",), ("2024-03-09",)]


@pytest.mark.parametrize(("sql", "answer"), [
    ("SELECT 7 FROM t HAVING true", [(7,)]), ("SELECT 7 FROM t HAVING false", []), ("SELECT 7 HAVING true", [(7,)]),
    ("SELECT 7 FROM t WHERE false HAVING count(*) = 0", [(7,)]),
])  # fmt: skip
def test_having_without_aggregates_is_of_one_group(sql: str, answer: list[tuple[int]]) -> None:
    assert rows(engine_of().query(sql)) == answer


@pytest.mark.parametrize(("fraction", "reason"), [
    ("1.5", "percentile value 1.5 is not between 0 and 1"), ("-0.1", "percentile value -0.1 is not between 0 and 1"),
    ("'a'", "invalid input syntax for type double precision"), ("x", "must appear in the GROUP BY clause"),
])
def test_percentiles_take_a_number_from_0_to_1(fraction: str, reason: str) -> None:
    with pytest.raises(hj.UnsupportedSQL, match=reason):
        engine_of().query(f"SELECT percentile_cont({fraction}) WITHIN GROUP (ORDER BY x) FROM t")


def test_what_is_nested_too_deep_is_refused() -> None:
    sets = " INTERSECT ".join(["SELECT x FROM t"] * 1000)
    correlated = "".join(f"(SELECT max(t{i}.x) + " for i in range(150)) + "t0.x" + "".join(
        f" FROM t t{i})" for i in reversed(range(150)))
    for sql in (sets, f"SELECT {correlated}"):
        with pytest.raises(hj.UnsupportedSQL, match="nested too deep"):
            engine_of().query(sql)


def test_a_long_chain_of_unions_is_answered() -> None:
    assert rows(engine_of().query(" UNION ".join(["SELECT x FROM t"] * 300) + " ORDER BY 1")) == [(1,), (2,)]


@pytest.mark.parametrize(("sql", "why"), [
    ("WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n FROM r) SELECT * FROM r", "r changes after 20 rounds"),
    ("WITH RECURSIVE r AS (SELECT x FROM t UNION ALL SELECT r.x FROM r, t) SELECT * FROM r", "r make more than 500 c"),
])  # fmt: skip
def test_a_query_that_reads_itself_ends(sql: str, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = engine_of()
    monkeypatch.setattr("halfjoin.sql.bind.loops.MOST_ROUNDS", 20)
    monkeypatch.setattr("halfjoin.engine.loop.rounds.MOST_COPIES", 500)
    with pytest.raises(hj.DataError, match=why):
        engine.query(sql)


@pytest.mark.parametrize("type", ["cstring", "array"])
def test_a_type_that_is_not_only_a_name_is_refused(type: str) -> None:
    engine = engine_of()
    for sql in (f"SELECT '1'::{type}", f"SELECT CAST(x AS {type}) AS y FROM t", f"CREATE TABLE u (a {type})"):
        with pytest.raises(hj.UnsupportedSQL, match=f"type {type} is not supported"):
            engine.execute(sql)


def test_a_column_of_fields_of_an_interval_is_refused() -> None:
    with pytest.raises(hj.UnsupportedSQL, match="type interval day to second is not supported"):
        engine_of("CREATE TABLE t (a interval day to second)")


@pytest.mark.parametrize("sql", [
    "ALTER TABLE t ADD CONSTRAINT f FOREIGN KEY (x)",
    "ALTER TABLE t ADD CONSTRAINT f FOREIGN KEY (x) DEFAULT REFERENCES t (x)",
    "CREATE TABLE u (a integer, FOREIGN KEY (a))",
])  # fmt: skip
def test_a_foreign_key_says_what_it_references(sql: str) -> None:
    with pytest.raises(hj.UnsupportedSQL, match="FOREIGN KEY without REFERENCES"):
        engine_of().execute(sql)


_KEYLESS: dict[str, Any] = {"op": "c", "before": None, "after": {"x": 3}}


@pytest.mark.parametrize(("call", "words"), [
    (lambda e: e.create_source(None, "files", "t", path="x"), "None is not the name of a source"),
    (lambda e: e.create_source("s", None, "t", path="x"), "None is not the name of a kind of source"),
    (lambda e: e.create_source("s", "files", None, path="x"), "None is not the name of a table"),
    (lambda e: e.create_source("s", "files", ["t", 5], path="x"), "5 is not the name of a table"),
    (lambda e: e.create_source("s", "files", b"t", path="x"), "b't' is not the name of a table"),
    (lambda e: e.create_source("s", "files", "t", path=None), "the option path cannot be None"),
    (lambda e: e.create_source("s", "files", "t", path="x", settle={}), "settle cannot be {}|settle: "),
    (lambda e: e.run_sources("2"), "'2' is not a number of seconds"),
    (lambda e: e.run_sources(float("nan")), "nan is not a number of seconds"),
    (lambda e: e.run_sources(0, only=5), "5 is not the name of a source"),
    (lambda e: e.sink("t", time=5), "5 says no times; give the name of a column"),
    (lambda e: e.sink("t", name=5), "5 is not the name of a sink"),
    (lambda e: e.follow("t", "x", columns=5), "5 is not the name of a column"),
    (lambda e: e.create_table(None, like={}), "None is not the name of a table"),
    (lambda e: e.create_table("u", like=e.read("t"), key=5), "5 is not the name of a column"),
    (lambda e: e.copy_from("COPY t FROM STDIN", None), "COPY reads bytes or text, not NoneType"),
    (lambda e: e.copy_to("COPY t TO STDOUT", 5), "COPY writes to a binary stream, not to int"),
    (lambda e: e.apply({"t": hj.debezium([_KEYLESS], encodings=5)}), "5 is not a dict of encodings"),
    (lambda e: e.apply({"t": hj.debezium([_KEYLESS], encodings={"x": 5})}), "unknown encoding 5"),
    (lambda e: e.apply({"t": hj.debezium([_KEYLESS], columns=5)}), "5 is not the name of a column"),
])  # fmt: skip
def test_what_is_no_name_is_said(call: Any, words: str) -> None:
    engine = engine_of()
    with pytest.raises(hj.HalfjoinError, match=words):
        call(engine)
    assert rows(engine.read("t")) == [(1,), (2,)]


def test_all_places_of_rows_are_all_rows() -> None:
    query = "SELECT x FROM t WHERE ctid BETWEEN '(0,0)'::tid AND '(4294967295,0)'::tid"
    assert rows(engine_of().query(query)) == [(1,), (2,)]
    with pytest.raises(hj.UnknownName, match="ctid"):
        engine_of().query(query.replace("4294967295", "7"))


@pytest.mark.parametrize("sql", ["SELECT ctid FROM t", "SELECT t.xmin FROM t", "DELETE FROM t WHERE ctid = '(0,1)'"])
def test_the_place_of_a_row_is_refused_with_the_key_as_remedy(sql: str) -> None:
    with pytest.raises(hj.UnknownName, match=r"unknown column.*\n.*\n.*\n.*name rows by their key"):
        engine_of().execute(sql)


@pytest.mark.parametrize(("statement", "said"), [
    ("INSERT INTO d VALUES ('12000-01-01')", r"a second row with the key \(day\) = \('12000-01-01'\)"),
    ("INSERT INTO m VALUES ('12000-01-01'), ('12000-01-01')", r"\(moment\) = \('12000-01-01 00:00:00'\)"),
    ("INSERT INTO r VALUES ('13000-01-01')", r"\(day\) = \('13000-01-01'\) is not in d"),
    ("DELETE FROM d", r"\(day\) = \('12000-01-01'\) is still referenced from r"),
    ("SELECT * FROM n", "0769-02-04 BC"),
])  # fmt: skip
def test_errors_name_days_that_python_has_not(statement: str, said: str) -> None:
    engine = engine_of("CREATE TABLE d (day date PRIMARY KEY); CREATE TABLE m (moment timestamp PRIMARY KEY); "
                       "CREATE TABLE r (day date REFERENCES d); CREATE TABLE n (day date)")  # fmt: skip
    engine.execute("INSERT INTO d VALUES ('12000-01-01'); INSERT INTO r VALUES ('12000-01-01')")
    engine.apply({"n": hj.deletes(pa.table({"day": pa.array([-(10**6)], pa.date32())}))})
    with pytest.raises(hj.HalfjoinError, match=said):
        engine.execute(statement)


@pytest.mark.parametrize(("column", "bad", "why", "code"), [
    ("k", "zz", 'invalid input syntax for type bigint: "zz"', "22P02"),
    ("k", "99999999999999999999", "bigint out of range: 99999999999999999999", "22003"),
    ("s", "abc", r"value too long for type varchar\(2\)", "22001"),
    ("d", "2020-02-30", 'date/time field value out of range: "2020-02-30"', "22008"),
    ("a", "{1,x}", 'invalid input syntax for type integer: "x"', "22P02"),
])  # fmt: skip
def test_copy_names_the_row_and_the_column(column: str, bad: str, why: str, code: str) -> None:
    """It named a row by its value alone, in a table of the engine's own, for a query that nobody wrote."""
    with hj.Engine() as engine:
        engine.execute("CREATE TABLE t (k bigint, s varchar(2), d date, a integer[])")
        data = io.BytesIO(f"\\N\n\\N\n{bad}\n\\N\n{bad}\n".encode())
        with pytest.raises(hj.InvalidRow, match=rf"^t\.{column}: row 2: {why}$") as caught:
            engine.copy_from(f"COPY t ({column}) FROM STDIN", data)
        assert caught.value.sqlstate == code


def test_copy_names_the_first_wrong_row_of_all_columns() -> None:
    with hj.Engine() as engine:
        engine.execute("CREATE TABLE t (k bigint, d date)")
        with pytest.raises(hj.InvalidRow, match=r"t\.d: row 1: "):
            engine.copy_from("COPY t FROM STDIN (FORMAT csv)", io.BytesIO(b"1,2020-01-01\n2,x\ny,2020-01-01\n"))
