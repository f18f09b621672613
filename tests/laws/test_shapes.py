"""The law of shapes: a query that is asked with other values answers, and fails, as one that is made anew."""

from __future__ import annotations

import datetime as dt
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

import halfjoin as hj
from halfjoin.engine.statements import remembered, shapes
from halfjoin.engine.statements.evaluating import filled
from halfjoin.engine.statements.remembered import MOST
from halfjoin.sql.parse.prepared import prepared
from halfjoin.sql.types import BIGINT, BOOLEAN, DATE, INTEGER, SMALLINT, TEXT, Kind, SqlType
from halfjoin.sql.unseen import Looked, Unseen
from tests.laws.test_remembered_queries import Forgetful

TABLES = """
CREATE TABLE t (k bigint PRIMARY KEY, i integer, s smallint, n numeric(8,2), f double precision, x text, v varchar(3),
                c char(4), d date, m timestamp, z timestamptz, u uuid, y bytea, b boolean, a integer[], j jsonb);
CREATE TABLE o (id integer PRIMARY KEY, k bigint, i integer, x text);
CREATE INDEX ON t (i); CREATE INDEX ON t (x); CREATE INDEX ON o (k); CREATE INDEX ON o (x);
SET TIME = 1; INSERT INTO t SELECT g, g % 5, g % 3, g % 4 + 0.5, g % 7, chr(97 + g % 6), chr(97 + g % 4),
    chr(97 + g % 3), date '2024-01-01' + g % 9,
    timestamp '2024-01-01' + g % 9 * interval '1 day',
    timestamptz '2024-01-01 00:00+00' + g % 9 * interval '1 day',
    ('00000000-0000-0000-0000-00000000000' || abs(g) % 8)::uuid, ('\\x0' || abs(g) % 8)::bytea, g % 2 = 0,
    ARRAY[g % 3, 1], ('{"a": ' || g % 3 || '}')::jsonb
    FROM generate_series(-2, 40) AS series (g);
SET TIME = 2; INSERT INTO t (k) VALUES (100);
SET TIME = 3; INSERT INTO o SELECT g, g % 20, g % 6, chr(97 + g % 5) FROM generate_series(1, 60) AS series (g);
CREATE MATERIALIZED VIEW w AS SELECT i, count(*) AS n, sum(k) AS total FROM t GROUP BY i;
CREATE INDEX ON w (i);
"""
COLUMNS = "kisnfxvcdmzuybaj"
DAY = dt.date(2024, 1, 3)
VALUES: list[Any] = [
    0, 1, 2, 3, 5, -1, -2, 40, 100, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**63 - 1, 2**63, -(2**63), 10**30,
    "0", "1", "2", "-1", " 3 ", "1.5", "abc", "", "a", "b", "e", "a  ", "abcdef", "2024-01-03", "2024-01-03 00:00:00",
    "now", "today", "infinity", "{1,1}", "{}", '{"a": 1}', "t", "true", "nan", "\\x01", "99999999999", "1e2", "0x10",
    "00000000-0000-0000-0000-000000000003", "x\0", "\ud800",
    1.0, 1.5, -0.0, float("nan"), float("inf"), Decimal(1), Decimal("1.50"), Decimal("1e3"), Decimal("NaN"), True,
    False, None, DAY, dt.date(9999, 12, 31), dt.datetime(2024, 1, 3), dt.datetime(2024, 1, 3, tzinfo=dt.UTC),
    dt.datetime(2024, 1, 3, 12, tzinfo=dt.timezone(dt.timedelta(hours=2))), dt.time(1, 2),
    dt.timedelta(days=1, hours=2), UUID(int=3), b"\x01", b"", [1], [1, 2], [1, 2, 2**40],
    [-1, 3], ["1", "a"], [None, 1], [], [[1], [2]], [1.5], [DAY],
    (0, 1), [True], {"a": 1}, 3j,
]  # fmt: skip
ONE = [
    "SELECT k, x FROM t WHERE {c} = $1", "SELECT k FROM t WHERE $1 = {c}", "SELECT k FROM t WHERE {c} IN ($1, 2)",
    "SELECT k FROM t WHERE {c} = ANY ($1)", "SELECT k FROM t WHERE {c} <= $1", "SELECT k FROM t WHERE {c} <> $1",
    "SELECT k FROM t WHERE {c} = $1 AND {c} = $1", "SELECT k FROM t WHERE {c} IS NOT DISTINCT FROM $1",
    "SELECT k FROM t WHERE {c} = $1 OR k = 3", "SELECT k FROM t WHERE {c} = $1 AND k = 3",
    "SELECT t.k, o.id FROM t JOIN o ON t.k = o.k WHERE t.{c} = $1", "SELECT count(*) AS r FROM t WHERE {c} = $1",
    "SELECT t.k, o.id FROM t LEFT JOIN o ON t.k = o.k AND o.i = 2 WHERE t.{c} = $1",
    "SELECT t.k, o.id FROM t LEFT JOIN o ON t.k = o.k AND t.{c} = $1 WHERE t.k < 4",
    "SELECT i, sum(k) AS r FROM t WHERE {c} = $1 GROUP BY i", "SELECT DISTINCT x FROM t WHERE {c} = $1",
    "SELECT k FROM t WHERE {c} = $1 ORDER BY k DESC LIMIT 2", "SELECT k FROM t WHERE {c} = $1::text",
    "SELECT k FROM t WHERE {c}::text = $1", "SELECT k FROM t WHERE {c} = CAST($1 AS integer)", "SELECT $1 AS r",
    "SELECT $1 AS r, {c} FROM t WHERE k = 1", "SELECT {c} = $1 AS r FROM t WHERE k < 3", "SELECT $1",
    "SELECT coalesce({c}, $1) AS r FROM t", "SELECT {c} + $1 AS r FROM t WHERE k = 1", "SELECT k / $1 AS r FROM t",
    "SELECT k FROM t WHERE {c} BETWEEN $1 AND $1", "SELECT k FROM t WHERE NOT {c} = $1", "SELECT k FROM t WHERE $1",
    "SELECT CASE WHEN {c} = $1 THEN 1 ELSE 2 END AS r FROM t", "SELECT k FROM t WHERE {c} LIKE $1",
    "SELECT k FROM t ORDER BY k LIMIT $1", "SELECT k FROM t ORDER BY k OFFSET $1", "SELECT k FROM t ORDER BY $1",
    "SELECT i, count(*) AS r FROM t GROUP BY i, $1", "SELECT k FROM (SELECT * FROM t WHERE {c} = $1) AS q WHERE i = 1",
    "WITH q AS (SELECT * FROM t WHERE {c} = $1) SELECT q.k, r.k FROM q, q AS r WHERE q.i = r.i",
    "SELECT k FROM t WHERE EXISTS (SELECT 1 FROM o WHERE o.k = t.k AND o.i = $1)", "SELECT n FROM w WHERE i = $1",
    "SELECT k FROM t WHERE k IN (SELECT k FROM o WHERE o.x = $1)", "SELECT k FROM t WHERE {c} = nullif($1, 2)",
    "SELECT k FROM (SELECT k, row_number() OVER (ORDER BY k) AS r FROM t) AS q WHERE r <= $1",
    "SELECT k FROM t WHERE {c} = $1 UNION ALL SELECT id FROM o WHERE i = $1", "SELECT 1 AS r WHERE 3 = $1",
    "SELECT lag(k, $1) OVER (ORDER BY k) AS r FROM t", "SELECT sum(k) OVER (ORDER BY k ROWS $1 PRECEDING) AS r FROM t",
    "SELECT k FROM t AS OF $1", "SELECT g FROM generate_series(1, $1) AS series (g) LIMIT 5", "SELECT a[$1] FROM t",
    "WITH RECURSIVE q (n) AS (SELECT 1 UNION SELECT n + 1 FROM q WHERE n < $1 AND n < 9) SELECT n FROM q",
    "SELECT j -> $1 AS r FROM t", "SELECT left(x, $1) AS r FROM t", "SELECT date_trunc($1, m) AS r FROM t",
    "SELECT r FROM (VALUES ($1)) AS q (r)", "SELECT k FROM t, (VALUES ($1)) AS q (r) WHERE t.{c} = q.r",
    "SELECT 6 / (k - $1) AS r FROM t WHERE {c} = $1", "SELECT k FROM t WHERE k = $1 AND 6 / (i - 1) > 0",
    "SELECT round(n, $1) AS r FROM t", "SELECT string_agg(x, $1 ORDER BY k) AS r FROM t", "SELECT $1::boolean AS r",
    "SELECT percentile_disc($1) WITHIN GROUP (ORDER BY k) AS r FROM t", "SELECT k FROM nowhere WHERE k = $1",
    "SELECT x || $1 AS r FROM t", "SELECT $1 || $1 AS r", "SELECT interval '1 day' * $1 AS r",
    "SELECT x FROM t WHERE (k, i) = ($1, 2)", "SELECT x FROM t WHERE (k, i) IN (($1, 2), (3, 3))",
    "SELECT k + $1 AS r, count(*) AS n FROM t GROUP BY k + $1", "SELECT m + $1 AS r FROM t",
    "SELECT $1::varchar(1) AS r",
    "WITH RECURSIVE q AS (SELECT k FROM t WHERE {c} = $1 UNION SELECT o.id FROM q JOIN o ON o.k = q.k) SELECT k FROM q",
    "WITH RECURSIVE q AS (SELECT k, 0 AS n FROM t WHERE k < 3 "
    "UNION ALL SELECT t.k, q.n + $1 FROM q JOIN t ON t.i = q.k "
    "WHERE q.n < 2) SELECT n, count(*) AS r FROM q GROUP BY n",
]  # fmt: skip
TWO = [
    "SELECT k FROM t WHERE {c} = $1 AND {d} = $2", "SELECT k FROM t WHERE {c} IN ($1, $2)",
    "SELECT k FROM t WHERE {c} = $1 OR {c} = $2", "SELECT k FROM t WHERE {c} = $1 AND {c} = $2",
    "SELECT k FROM t WHERE {c} = $1 ORDER BY k LIMIT $2", "SELECT k FROM t WHERE {c} BETWEEN $1 AND $2",
    "SELECT k + $1 AS r, count(*) AS n FROM t GROUP BY k + $2", "SELECT k FROM t WHERE {c} = ANY (ARRAY[$1, $2])",
    "SELECT t.k, o.id FROM t JOIN o ON t.k = o.k WHERE t.{c} = $1 AND o.i = $2", "SELECT 1 AS r WHERE $1 = $2",
    "SELECT $1 AS p, $2 AS q FROM t WHERE k = 1", "SELECT DISTINCT i + $1 AS r FROM t ORDER BY i + $2",
    "SELECT t.k FROM t, o WHERE t.{c} = $1 AND o.i = $2 AND t.i = o.i AND t.k = o.k",
    "SELECT i, sum(k) FILTER (WHERE {c} = $1) AS r FROM t GROUP BY i HAVING count(*) > $2",
    "SELECT k FROM t WHERE coalesce({c}, $1) = $2", "SELECT greatest($1, $2) AS r FROM t",
    "WITH RECURSIVE q AS (SELECT k FROM t WHERE {c} = $1 UNION SELECT o.id FROM q JOIN o ON o.k = q.k AND o.i <> $2), "
    "r AS (SELECT k FROM t WHERE {c} = $2 UNION SELECT o.id FROM r JOIN o ON o.k = r.k AND o.i <> $1) "
    "SELECT q.k, r.k AS l FROM q JOIN r ON r.k = q.k",
]  # fmt: skip


def said(ask: Any, *question: Any) -> Any:
    """The rows in their order and the columns with their types; or the error."""
    try:
        found = ask(*question)
    except hj.HalfjoinError as problem:
        return type(problem), str(problem), problem.sqlstate
    rows = found if found is None else [repr(list(one.values())) for one in found.to_pylist()]
    return None if found is None else (found.schema, sorted(rows))


@contextmanager
def engines() -> Iterator[tuple[hj.Engine, hj.Engine]]:
    """One that remembers, and one that does not."""
    with hj.Engine(clock="own") as one, hj.Engine(clock="own") as other:
        other._session.remembered = Forgetful()
        for engine in (one, other):
            engine.execute(TABLES)
        yield one, other


CLOCK = ("now", "today")  # two engines read them at two moments
FREE = [value for value in VALUES if value not in CLOCK]
OFTEN = [int, int, str, str, None]  # None: any type


def question(chosen: random.Random, pick: random.Random) -> tuple[str, list[Any]]:
    """A query of `chosen`, with values of types of `chosen`, most of the time."""
    two = chosen.random() < 0.35
    sql = chosen.choice(TWO if two else ONE)
    for column in ("{c}", "{d}"):
        sql = sql.replace(column, chosen.choice(COLUMNS))
    kinds = [chosen.choice(OFTEN) or type(chosen.choice(FREE)) for _ in range(1 + two)]
    return sql, [pick.choice([one for one in FREE if type(one) is kind or pick.random() < 0.002]) for kind in kinds]


@pytest.mark.parametrize("seed", range(12))
def test_other_values_answer_and_fail_as_anew(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen, found = random.Random(seed), list[object]()
    monkeypatch.setattr(remembered, "filled", lambda *made: (found.append(made), filled(*made))[1])
    with engines() as (one, other):
        for value in (1, 2, 3):
            assert said(one.query, ONE[0].format(c="k"), [value]) == said(other.query, ONE[0].format(c="k"), [value])
        for _ in range(12):
            asked = chosen.randrange(2**32)
            for _ in range(6):
                sql, values = question(random.Random(asked), chosen)
                named = chosen.random() < 0.2
                given: Any = {f"p{n}": value for n, value in enumerate(values, 1)} if named else values
                text = sql.replace("$", ":p") if named else sql
                way = chosen.choice(["query", "execute"])
                assert said(getattr(one, way), text, given) == said(getattr(other, way), text, given), (text, given)
    assert found


TYPES = [None, None, TEXT, SMALLINT, INTEGER, BIGINT, DATE, BOOLEAN, SqlType(Kind.NUMERIC), SqlType(Kind.UUID)]


@pytest.mark.parametrize("seed", range(6))
def test_other_texts_of_a_client_answer_and_fail_as_anew(seed: int) -> None:
    chosen = random.Random(seed)
    texts = [one for one in FREE if isinstance(one, str) and one.isascii() and "\0" not in one]
    with engines() as (one, other):
        mine, others = one.connect(), other.connect()
        others._session.remembered = Forgetful()
        for _ in range(8):
            sql, values = question(chosen, chosen)
            types = [chosen.choice(TYPES) for _ in values]
            try:
                statement = prepared(sql)
            except hj.HalfjoinError:
                continue
            for _ in range(6):
                given = [chosen.choice([*texts, None]) for _ in values]
                assert said(answer(mine), statement, given, types) == said(answer(others), statement, given, types), (
                    sql, given, types)  # fmt: skip


def answer(connection: Any) -> Callable[..., Any]:
    return lambda *question: connection.run(*question).rows


NEW_VALUES: list[tuple[str, list[Any]]] = [
    ("SELECT x FROM t WHERE k = $1", [1, 2, 3, -1]),
    ("SELECT x FROM t WHERE k = $1", ["1", "2", "3", "-1"]),
    ("WITH RECURSIVE q AS (SELECT k FROM t WHERE k = $1 UNION SELECT o.id FROM q JOIN o ON o.k = q.k) SELECT k FROM q",
     [1, 2, 3, -1]),
    ("SELECT k FROM t WHERE x = $1", ["a", "b", "c"]),
    ("SELECT k FROM t WHERE i = ANY ($1)", [[1, 2], [3, 4], [0, 2]]),
    ("SELECT k FROM t WHERE d = $1", [DAY, DAY + dt.timedelta(days=1), dt.date(1, 1, 1)]),
    ("SELECT k FROM t WHERE u = $1", [UUID(int=1), UUID(int=2), UUID(int=3)]),
    ("SELECT k FROM t WHERE i IN ($1, 4)", [1, 2, 3]),
    ("SELECT k FROM t WHERE k > $1 ORDER BY k LIMIT 3", [1, 2, 3]),
    ("SELECT o.id FROM t JOIN o ON t.k = o.k WHERE t.k = $1", [1, 2, 3]),
    ("SELECT i, sum(k) AS r FROM t WHERE i = $1 GROUP BY i", [1, 2, 3]),
    ("SELECT k FROM t WHERE EXISTS (SELECT 1 FROM o WHERE o.k = t.k AND o.i = $1)", [1, 2, 3]),
    ("SELECT n FROM w WHERE i = $1", [1, 2, 3]), ("SELECT k + $1 AS r FROM t WHERE k = 1", [1, 2, 3]),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "values"), NEW_VALUES)
def test_a_new_value_is_not_parsed_bound_or_planned(
    sql: str, values: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    with engines() as (one, other):
        expected = [said(other.query, sql, [value]) for value in values]
        assert [said(one.query, sql, [value]) for value in values[:2]] == expected[:2]
        cannot_be_made(monkeypatch)
        last = [*values[:2], values[2]]
        assert [said(one.query, sql, [value]) for value in last] == expected[:3]
        assert [said(one.execute, sql, [value]) for value in last] == expected[:3]


def cannot_be_made(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any, **__: Any) -> Any:
        raise AssertionError("it is made again")

    for place in ("execute.trees_of", "execute.statement_of", "querying.bind_query", "evaluating.plan_of_query"):
        monkeypatch.setattr(f"halfjoin.engine.statements.{place}", refused)


def test_a_new_text_of_a_client_is_not_bound_or_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    with engines() as (one, other):
        statement, connection = prepared("SELECT x FROM t WHERE k = $1 AND i >= $2"), one.connect()
        asked = [([str(n), "1"], types) for types in ([BIGINT, SMALLINT], [None, INTEGER]) for n in range(5)]
        expected = [said(answer(other.connect()), statement, *one) for one in asked]
        for question in (*asked[:2], *asked[5:7]):
            said(answer(connection), statement, *question)
        cannot_be_made(monkeypatch)
        assert [said(answer(connection), statement, *question) for question in asked] == expected


def test_the_work_for_a_new_value_is_bounded() -> None:
    with engines() as (one, _):
        sql = "SELECT x FROM t WHERE k = $1"
        for value in range(3):
            one.query(sql, [value])
        calls = 0

        def counted(_: Any, event: str, __: Any) -> None:
            nonlocal calls
            calls += event == "call"

        before = sys.getprofile()
        sys.setprofile(counted)
        try:
            one.query(sql, [3])
        finally:
            sys.setprofile(before)
        assert calls < 1000, calls  # of Python functions; made anew it takes 5,000


def test_a_value_that_is_looked_at_belongs_to_the_shape() -> None:
    with engines() as (one, _):
        sql = "SELECT k FROM t WHERE i = $1 ORDER BY k LIMIT $2"
        for count in (2, 3, 2, 3):
            for value in range(4):
                assert one.query(sql, [value, count]).num_rows == count
        assert set(one._session.remembered._looked.values()) == {frozenset({"2"})}


def test_what_is_noted_of_shapes_is_bounded() -> None:
    with engines() as (one, _):
        for number in range(MOST + 20):
            one.query(f"SELECT $1 + {number} AS r", [number])
        notes = one._session.remembered
        assert len(notes._looked) == len(notes._asked) == len(notes) == MOST


def test_an_unseen_value_cannot_be_looked_at() -> None:
    value: Any = Unseen("p", 0, INTEGER)
    looks: list[Callable[[], object]] = [
        lambda: isinstance(value, int), lambda: value == 1, lambda: value != 1, lambda: value in (1, 2),
        lambda: value > 1, lambda: f"{value}", lambda: str(value), lambda: value.isdigit(), lambda: not value,
        lambda: {value}, lambda: int(value), lambda: value + 1, lambda: 2 - value, lambda: -value, lambda: [*value],
        lambda: value.cast(BOOLEAN, explicit=True), lambda: len(value), lambda: value[0], lambda: float(value),
    ]  # fmt: skip
    for look in looks:
        with pytest.raises(Looked, match="p"):
            look()
    with pytest.raises(Looked):
        match value:
            case int() | str():
                pass


def test_a_definition_that_changes_leaves_no_shape_behind() -> None:
    with engines() as (one, other):
        sql = "SELECT * FROM o WHERE k = $1"
        for number, change in enumerate(("", "ALTER TABLE o ADD COLUMN y text", "DROP INDEX o_k_idx",
                                         "ALTER TABLE o RENAME COLUMN i TO h", "DROP TABLE o",
                                         "CREATE TABLE o (k text)", "INSERT INTO o VALUES ('1'), ('2')")):  # fmt: skip
            for engine in (one, other):
                engine.execute(f"SET TIME = {10 + number}")
                if change:
                    engine.execute(change)
            for value in (1, 2, 3, 4, "1", "2", "3"):
                assert said(one.query, sql, [value]) == said(other.query, sql, [value]), change


def test_a_place_that_cannot_be_found_is_no_place() -> None:
    unseen = Unseen("p", 0, INTEGER)
    with pytest.raises(shapes.Unfit):
        shapes.fill_of((f"#{unseen!r}",))
    with pytest.raises(shapes.Unfit):
        shapes.fill_of(object())
