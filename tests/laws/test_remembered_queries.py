"""The law of remembered queries: an engine that remembers queries answers as one that makes each query anew."""

from __future__ import annotations

import datetime as dt
import random
import re
from collections import Counter
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import halfjoin as hj
from halfjoin.engine.statements.asked import LONGEST
from halfjoin.engine.statements.execute import query as query_of
from halfjoin.engine.statements.remembered import MOST, Remembered
from halfjoin.sql.parse.prepared import prepared
from halfjoin.sql.types import INTEGER, TEXT
from tests.oracle.rows import tuples

NAMES = ["t", "u", "v", "s1.t", "s1.u", "pg_temp.t"]
COLUMNS = ["a", "b", "c"]
TYPES = ["integer", "bigint", "text", "numeric(8,2)", "positive", "mood"]
QUERIES = [
    "SELECT * FROM t ORDER BY 1", "SELECT a FROM t WHERE a = 1", "SELECT count(*) AS n FROM t", "SELECT * FROM u",
    "SELECT * FROM v", "SELECT t.a FROM t JOIN u ON t.a = u.a", "SELECT a, b FROM s1.t", "SELECT b FROM t WHERE a = $1",
    "SELECT count(*) AS n FROM u WHERE a IN (1, 2)", "SELECT a::text AS x FROM t", "SELECT 1::positive AS x",
    "SELECT 'ok'::mood AS x", "SELECT 'meh'::mood AS x", "SELECT x.y FROM t, twice(t.a) AS x (y)", "SELECT c FROM t",
    "SELECT total(a) AS n FROM t", "SELECT sum(a) AS n FROM t GROUP BY b", "SELECT a FROM t UNION SELECT a FROM u",
    "SELECT current_schema AS x", "SELECT current_setting('application_name') AS x", "SELECT 'a' || b AS x FROM u",
    "SELECT count(*) AS n FROM pg_class WHERE relname = 't'", "SELECT 't'::regclass::text AS x",
    "SELECT max(b) AS n FROM t",
]  # fmt: skip


class Forgetful(Remembered):
    """Remembers nothing."""

    def find(self, *_: Any) -> None:
        return None


def found_in(remembered: Remembered[Any]) -> list[Any]:
    """What is found from now on."""
    found, look = list[Any](), remembered.find

    def noted(*args: Any) -> Any:
        made = look(*args)
        if made is not None:
            found.append(made)
        return made

    remembered.find = noted  # type: ignore[method-assign]
    return found


def step(chosen: random.Random) -> list[str]:
    """A random statement or transaction; many fail."""
    pick = chosen.choice
    name, other, column, type = pick(NAMES), pick(NAMES), pick(COLUMNS), pick(TYPES)
    temporary = name.startswith("pg_temp.")
    columns = ", ".join(f"{one} {pick(TYPES[:3])}" for one in chosen.sample(COLUMNS, chosen.randrange(1, 4)))
    one = pick([
        f"CREATE {'TEMP ' if temporary else ''}TABLE {name.removeprefix('pg_temp.')} ({columns})",
        f"CREATE TABLE t (a {pick(TYPES[:2])} PRIMARY KEY, b text)", "CREATE TABLE t (a integer, b integer, c text)",
        f"DROP TABLE {name} CASCADE", f"DROP VIEW {name} CASCADE", f"DROP MATERIALIZED VIEW {name} CASCADE",
        f"ALTER TABLE {name} ADD COLUMN {column} {type}", f"ALTER TABLE {name} DROP COLUMN {column} CASCADE",
        f"ALTER TABLE {name} RENAME COLUMN {column} TO {pick(COLUMNS)}", f"ALTER TABLE {name} RENAME TO {pick('tuv')}",
        f"CREATE VIEW {pick('uv')} AS SELECT {column} AS a, 1 AS b FROM {other}",
        f"CREATE OR REPLACE VIEW v AS SELECT {column} AS a FROM {other}",
        f"CREATE MATERIALIZED VIEW {pick('uv')} AS SELECT a, count(*) AS b FROM {other} GROUP BY a",
        f"CREATE INDEX i ON {name} ({column})", "DROP INDEX i", "CREATE SCHEMA s1", "DROP SCHEMA s1",
        f"SET search_path = {pick(['public', 's1, public', 's1', 'public, s1'])}", "RESET search_path",
        f"SET application_name = '{pick('xy')}'", "CREATE DOMAIN positive AS integer CHECK (VALUE > 0)",
        "CREATE DOMAIN positive AS integer CHECK (VALUE > 1)", "DROP DOMAIN positive CASCADE",
        "CREATE TYPE mood AS ENUM ('ok')", "CREATE TYPE mood AS ENUM ('meh', 'ok')", "ALTER TYPE mood ADD VALUE 'meh'",
        "DROP TYPE mood CASCADE", "DISCARD TEMP",
        f"INSERT INTO {name} ({column}) VALUES ({pick(['1', '2', '3'])})", f"INSERT INTO {name} VALUES (1, 2), (2, 3)",
        f"DELETE FROM {name} WHERE {column} = 1", "INSERT INTO t SELECT n, n FROM generate_series(10, 400) AS s (n)",
    ])  # fmt: skip
    if chosen.random() < 0.25:
        inside = [one, *(pick(QUERIES).replace("$1", "1") for _ in range(2)), *step(chosen)[:1]]
        return ["BEGIN", *inside, pick(["COMMIT", "ROLLBACK"]), "ROLLBACK"]
    return [one]


def said(engine: hj.Engine, sql: str, *, params: Any = None, reads: bool = False) -> Any:
    try:
        found = engine.query(sql, params) if reads else engine.execute(sql, params)
        if found is None:
            return None
        return found.schema.names, list(map(str, found.schema.types)), Counter(tuples(found))
    except hj.HalfjoinError as problem:
        return type(problem), re.sub(r"as of \d+", "as of then", str(problem))  # the clock


def registered(engine: hj.Engine, times: int) -> None:
    """A table function and an aggregate under names that others have had."""
    def repeated(batch: pa.RecordBatch) -> pa.RecordBatch:
        values = [value for value in batch.column(0).to_pylist() for _ in range(times)]
        rows = [row for row in range(batch.num_rows) for _ in range(times)]
        return pa.record_batch({"y": pa.array(values, pa.int64()), "__row": pa.array(rows, pa.int64())})

    try:
        engine.register_table_function("twice", repeated, returns={"y": "bigint"})
        engine.register_aggregate("total", takes=["bigint"], returns="bigint",
                                  function=lambda rows, counts: times * rows.num_rows)  # fmt: skip
    except hj.HalfjoinError:
        pass


@pytest.mark.parametrize("seed", range(12))
def test_definitions_change_what_a_query_means(seed: int) -> None:
    chosen = random.Random(seed)
    with hj.Engine() as engine, hj.Engine() as plain:
        plain._session.remembered = Forgetful()
        found = found_in(engine._session.remembered)
        for number in range(30):
            if number % 10 == 7:
                times = chosen.randrange(1, 4)
                registered(engine, times)
                registered(plain, times)
            for sql in step(chosen):
                assert said(engine, sql) == said(plain, sql), sql
            for sql in chosen.sample(QUERIES, 5):
                params = [chosen.randrange(3)] if "$1" in sql else None
                reads = chosen.random() < 0.5
                for _ in range(2):
                    assert said(engine, sql, params=params, reads=reads) == said(
                        plain, sql, params=params, reads=reads), (number, sql)
        assert found


def test_what_a_query_means_only_now_is_not_remembered() -> None:
    engine = hj.Engine()
    engine.execute("CREATE TABLE t (k integer); CREATE SEQUENCE q; INSERT INTO t VALUES (1), (2)")
    for expression in (
        "now()", "current_timestamp", "current_timestamp(3)", "localtimestamp", "clock_timestamp()", "random()",
        "gen_random_uuid()", "nextval('q')", "currval('q')", "lastval()", "age(timestamp '2000-01-01')",
        "current_setting('application_name')", "set_config('application_name', 'x', false)", "current_schema",
        "current_user", "session_user", "current_database()", "pg_backend_pid()", "'t'::regclass", "1::regclass::text",
        "pg_get_userbyid(10)", "to_regclass('t')", "current_schemas(true)", "obj_description(1, 'pg_class')",
        "format_type(23, NULL)", "(SELECT count(*) FROM pg_class)",
        "(SELECT count(*) FROM information_schema.tables)", "current_date", "current_time IS NULL",
        "'now'::timestamp", "timestamptz 'now'", "'today'::date", "date 'yesterday'", "CAST('tomorrow' AS timestamp)",
        "'now'::time", "'now'::text::timestamp", "date_trunc('hour', 'now'::timestamptz)",
    ):  # fmt: skip
        before = len(engine._session.remembered)
        for from_rows in ("", " FROM t"):
            said(engine, f"SELECT {expression} AS x{from_rows}")
            said(engine, f"SELECT 1 AS x FROM t WHERE ({expression}) IS NOT NULL")
            said(engine, f"WITH w AS (SELECT {expression} AS y) SELECT w.y AS x FROM w")
        assert len(engine._session.remembered) == before, expression
    seen = {engine.execute("SELECT nextval('q') AS n").column(0)[0].as_py() for _ in range(5)}
    assert len(seen) == 5
    assert len({engine.query("SELECT random() AS x").column(0)[0].as_py() for _ in range(5)}) == 5
    engine.execute("CREATE VIEW chance AS SELECT k FROM t")
    assert engine.query("SELECT now() AS x") != engine.query("SELECT now() AS x")


def test_parameters_of_different_types_are_different_questions() -> None:
    engine = hj.Engine()
    values = [1, 1.0, "1", True, Decimal(1), Decimal("1.0"), None, dt.date(2024, 1, 1), dt.datetime(2024, 1, 1), b"1",
              [1], [1.5], ["1"], -0.0, 0.0]  # fmt: skip
    for _ in range(2):
        for value in values:
            sql = "SELECT $1 AS x" if value is not None else "SELECT $1::text AS x"
            fresh = hj.Engine().query(sql, [value])
            assert engine.query(sql, [value]) == fresh and engine.query(sql, [value]).schema == fresh.schema, value
        both = "SELECT :x + :y AS z"
        assert engine.query(both, {"x": 1, "y": 2}) == engine.query(both, {"y": 2, "x": 1})


def test_parameters_of_a_connection_are_other_questions() -> None:
    engine = hj.Engine()
    connection, one = engine.connect(), prepared("SELECT $1 AS x")
    for values, types in ((["5"], [None]), (["5"], [INTEGER]), (["5"], [TEXT]), ([None], [TEXT]), (["None"], [None])):
        for _ in range(2):
            fresh = hj.Engine().connect().run(one, values, types)
            assert connection.run(one, values, types).rows == fresh.rows
            with pytest.raises(hj.UnsupportedSQL, match="no parameter of the statement takes"):
                engine.execute("SELECT $1 AS x", [*values, *map(repr, types)])


def test_few_queries_are_remembered_and_none_that_is_long() -> None:
    engine = hj.Engine()
    for number in range(MOST + 20):
        engine.query(f"SELECT {number} AS n")
    assert len(engine._session.remembered) == MOST
    engine.query("SELECT '" + "x" * LONGEST + "' AS x")
    engine.query("SELECT $1 AS x", ["x" * LONGEST])
    assert not any("x" * LONGEST in repr(key) for key in engine._session.remembered._kept)


def test_a_query_that_is_remembered_is_not_parsed_or_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = hj.Engine()
    engine.execute("CREATE TABLE t (k integer PRIMARY KEY, s text); INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    asked = ["SELECT s FROM t WHERE k = 1", "SELECT count(*) AS n FROM t", "SELECT k FROM t ORDER BY s DESC LIMIT 1"]
    first = [engine.query(sql).to_pylist() for sql in asked]

    def refused(*_: Any, **__: Any) -> Any:
        raise AssertionError("it is made again")

    for place in ("execute.trees_of", "querying.bind_query", "evaluating.plan_of_query", "evaluating.flow_of"):
        monkeypatch.setattr(f"halfjoin.engine.statements.{place}", refused)
    assert [engine.query(sql).to_pylist() for sql in asked] == first
    assert [engine.execute(sql).to_pylist() for sql in asked] == first  # type: ignore[union-attr]


def test_a_remembered_query_fails_as_a_fresh_one() -> None:
    engine = hj.Engine(clock="own")
    engine.execute("CREATE TABLE t (k integer)")
    engine.apply({"t": [{"k": 1}]}, time=1)
    assert engine.query("SELECT 6 / k AS x FROM t").to_pylist() == [{"x": 6}]
    engine.apply({"t": [{"k": 0}]}, time=2)
    for _ in range(2):
        with pytest.raises(hj.DataError, match="division by zero"):
            engine.query("SELECT 6 / k AS x FROM t")
    assert engine.query("SELECT 6 / k AS x FROM t", as_of=1).to_pylist() == [{"x": 6}]
    assert engine.query("SELECT 6 / k AS x FROM t AS OF 1").to_pylist() == [{"x": 6}]
    assert query_of(engine._session, engine._state, "SELECT 6 / k AS x FROM t AS OF 1", None).num_rows == 1
