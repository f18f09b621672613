"""INSERT of many rows of constants: the same rows and errors as one by one, and no parser that sees them all."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from random import Random
from typing import Any

import pytest

import halfjoin as hj
from halfjoin.sql.parse import literal_rows as rows_module
from halfjoin.sql.parse.dialect import Halfjoin
from halfjoin.sql.parse.literal_rows import FEWEST, literal_rows
from tests.support.seeds import first_seed
from tests.support.serving import serving

DEFINED = "CREATE TYPE mood AS ENUM ('sad', 'ok'); CREATE DOMAIN positive AS integer CHECK (value > 0);"
WRITTEN = {
    "integer": ("1", "-7", "2.5", "'3'", "'x'", "3000000000"), "bigint": ("5", "9223372036854775807", "1e5", "'6'"),
    "smallint": ("1", "70000"), "numeric": ("1", "1.5", "-.25", "1e-3", "'2.5'", "'2.5'::numeric"),
    "numeric(8,2)": ("1.005", "2", "'1.555'", "99999999"), "numeric(30,12)": ("'1.123456789012345'::numeric", "0.1"),
    "double precision": ("0.1", "-1", "1e-05", "'NaN'", "12345678901234567890123456789012345.5"),
    "real": ("1.1", "2"), "text": ("'a'", "'it''s (1, 2), '", "'x::y'", "5", "1.50", "true"),
    "varchar(3)": ("'abc'", "'abcd'", "12"), "char(4)": ("'a'", "'b '"),
    "date": ("'2024-01-31'", "'2024-01-31'::date", "'2024-02-30'"), "boolean": ("true", "FALSE", "'t'", "1"),
    "timestamp": ("'2024-01-01 10:00:00.5'", "'2024-01-01'::date"), "timestamptz": ("'2024-01-01 10:00:00+02'",),
    "uuid": ("'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'",), "bytea": (r"'\x0102'", r"'\x01'::bytea"),
    "integer[]": ("'{1,2}'",),
    "jsonb": ("""'{"a": 1}'""", "'['", "1"), "interval": ("'1 day'",), "mood": ("'ok'", "'bad'"),
    "positive": ("3", "-3"),
}  # fmt: skip


@pytest.fixture
def tokens(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The numbers of tokens of all texts that are taken apart."""
    found = list[int]()
    tokenize = Halfjoin.tokenize

    def counted(self: Halfjoin, sql: str, **options: Any) -> Any:
        made = tokenize(self, sql, **options)
        found.append(len(made))
        return made

    monkeypatch.setattr(Halfjoin, "tokenize", counted)
    yield found


def carried_out(defined: str, sql: str) -> tuple[str, list[str]]:
    """What a statement answers, and the rows after it."""
    with hj.Engine() as engine:
        engine.execute(DEFINED + defined)
        try:
            found = str(engine.execute(sql))
        except hj.HalfjoinError as problem:
            found = f"{type(problem).__name__}: {problem}"
        return found, sorted(map(repr, engine.query("SELECT * FROM t").to_pylist()))


@pytest.mark.parametrize("seed", range(first_seed(), first_seed() + 24))
def test_rows_mean_what_they_mean_one_by_one(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(seed)
    for _ in range(4):
        types = random.choices(list(WRITTEN), k=random.randint(1, 4))
        alike = [random.random() < 0.7 for _ in types]
        first = [random.choice(WRITTEN[type]) for type in types]
        cells = [["null" if random.random() < 0.1 else one if same else random.choice(WRITTEN[type])
                  for type, same, one in zip(types, alike, first, strict=True)]
                 for _ in range(FEWEST + 20)]  # fmt: skip
        rows = [f"({random.choice((', ', ',')).join(row)})" for row in cells]
        columns = [f"c{number} {type}" for number, type in enumerate(types)]
        defined = f"CREATE TABLE t ({', '.join(random.choice((columns, [*columns, 'n serial'])))})"
        names = random.choice(("", f" ({', '.join(f'c{number}' for number in range(len(types)))})"))
        sql = f"INSERT INTO t{names} VALUES {', '.join(rows)}{random.choice(('', ' RETURNING *', ' ;'))}"
        assert literal_rows(sql) is not None, sql
        together = carried_out(defined, sql)
        with monkeypatch.context() as patched:
            patched.setattr(rows_module, "FEWEST", len(rows) + 1)
            assert literal_rows(sql) is None
            assert carried_out(defined, sql) == together, sql


def test_no_parser_sees_the_rows(tokens: list[int]) -> None:
    rows = ", ".join(f"({number}, 'x{number}', {number}.5, NULL)" for number in range(2000))
    with serving() as server, server.psycopg() as client:
        server.engine.execute("CREATE TABLE t (a integer PRIMARY KEY, b text, c numeric(10, 1), d date)")
        tokens.clear()
        server.engine.execute(f"INSERT INTO t VALUES {rows}")
        client.execute(f"INSERT INTO t (a, b, c, d) VALUES {rows} ON CONFLICT (a) DO UPDATE SET b = excluded.b || '!'")
        again = client.execute("SELECT count(*), min(b), max(c), count(d) FROM t").fetchone()
    assert (again[0], again[1], str(again[2]), again[3]) == (2000, "x0!", "1999.5", 0)
    assert max(tokens) < 100


VALUES: dict[str, tuple[Any, ...]] = {
    "integer": (1, 70000, "5", 2.5, None, True), "bigint": (1, 2**40, Decimal(7)), "smallint": (1, 70000),
    "numeric": (1, Decimal("1.5"), Decimal("0.12345678912"), 2.5, "3.25"),
    "numeric(8,2)": (Decimal("1.005"), Decimal(10**7)), "double precision": (0.1, 1, Decimal("0.3"), float("nan")),
    "text": ("a", "it's", 5, 1.5, None, "\\x"), "varchar(3)": ("abc", "abcd"),
    "date": (date(2024, 1, 31), "2024-02-01", datetime(2024, 1, 1)), "boolean": (True, False, "t"),
    "timestamp": (datetime(2024, 1, 1, 10), "2024-01-01"), "bytea": (b"\0\1",), "integer[]": ([1, 2], []),
    "mood": ("ok", "bad"), "jsonb": ('{"a": 1}', "["),
}  # fmt: skip
CASTS = {"integer": ("", "::integer", "::text"), "numeric": ("", "::numeric", "::float8"), "text": ("", "::varchar"),
         "date": ("", "::date"), "double precision": ("", "::numeric")}  # fmt: skip


@pytest.mark.parametrize("seed", range(first_seed(), first_seed() + 24))
@pytest.mark.parametrize("binary", [False, True])
def test_parameters_mean_what_they_mean_one_by_one(seed: int, binary: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    psycopg = pytest.importorskip("psycopg")
    random = Random(seed)
    for _ in range(3):
        types = random.choices(list(VALUES), k=random.randint(1, 4))
        own = [random.choice((VALUES[type], VALUES[type][:1])) for type in types]
        mark = "%b" if binary else "%s"
        row = ", ".join(mark + random.choice(CASTS.get(type, ("",))) for type in types)
        count = FEWEST + 20
        given = [None if random.random() < 0.05 else random.choice(one) for _ in range(count) for one in own]
        names = ", ".join(f"c{number}" for number in range(len(types)))
        columns = ", ".join(f"c{number} {type}" for number, type in enumerate(types))
        sql = f"INSERT INTO t ({names}) VALUES {', '.join([f'({row})'] * count)} RETURNING *"

        def carried_out() -> tuple[str, list[Any]]:
            with serving() as server, server.psycopg() as client:
                client.execute(f"{DEFINED} CREATE TABLE t ({columns}, n serial)")  # noqa: B023
                try:
                    found = repr(client.execute(sql, given, prepare=bool(seed % 2)).fetchall())  # noqa: B023
                except psycopg.Error as problem:
                    found = f"{problem.sqlstate}: {problem}"
                return found, list(map(repr, client.execute("SELECT * FROM t ORDER BY n").fetchall()))

        together = carried_out()
        with monkeypatch.context() as patched:
            patched.setattr(rows_module, "FEWEST", count + 1)
            assert carried_out() == together, (sql, given)


def test_no_parser_sees_the_parameters(tokens: list[int]) -> None:
    with serving() as server, server.psycopg() as client:
        server.engine.execute("CREATE TABLE t (a integer PRIMARY KEY, b text, c numeric(10, 1), d date)")
        tokens.clear()
        row = "(%s, %s::VARCHAR, %s::NUMERIC, %s)"
        given = [value for n in range(2000) for value in (n * 40, f"x{n}", Decimal(n) / 2, date(2024, 1, 1 + n % 30))]
        client.execute(f"INSERT INTO t (a, b, c, d) VALUES {', '.join([row] * 2000)}", given)
        found = client.execute("SELECT sum(a), max(b), sum(c), count(DISTINCT d) FROM t").fetchone()
    assert [str(one) for one in found] == ["79960000", "x999", "999500.0", "30"]
    assert max(tokens) < 100


@pytest.mark.parametrize("rest", ["", " ;", "\n", "; SELECT 1", " RETURNING a", "; INSERT INTO t VALUES (1, 2)"])
def test_all_rows_reach_the_table_whatever_follows(rest: str) -> None:
    sql = "INSERT INTO t VALUES " + ", ".join(["(1, 2)"] * 40) + rest
    with serving() as server, server.psycopg() as client:
        server.engine.execute("CREATE TABLE t (a integer, b integer)")
        client.execute(sql)
        if ";" not in rest[:1]:
            client.execute(sql.replace("(1, 2)", "(%s, %s)"), [3, 4] * 40)
        found = client.execute("SELECT a, count(*) FROM t GROUP BY a ORDER BY a").fetchall()
    assert found == ([(1, 40), (3, 40)] if ";" not in rest[:1] else [(1, 40 + rest.count("INSERT"))])


def test_the_order_of_the_rows_counts() -> None:
    """The first row of a key stays, and a serial column numbers the rows as they are written."""
    with hj.Engine() as engine:
        engine.execute("CREATE TABLE t (k integer UNIQUE, v text, n serial)")
        rows = [(number % 7, f"v{number}") for number in range(20)]
        engine.execute(f"INSERT INTO t (k, v) VALUES {', '.join(map(str, rows))} ON CONFLICT DO NOTHING")
        assert engine.query("SELECT k, v FROM t ORDER BY n").to_pylist() == [{"k": k, "v": v} for k, v in rows[:7]]


@pytest.mark.parametrize(("rows", "said"), [
    (["(1, 'a')"] * 9 + ["(2)"], "a row of VALUES has 1 values"), (["(1, 'a', 3)"] * 9, "3 values"),
    (["(1, 'a')"] * 9 + ["(2, b)"], "b"), (["(1, 'a')"] * 9 + ["('x', 'a')"], "invalid input syntax for type integer"),
])  # fmt: skip
def test_a_wrong_row_is_told_at_its_place(rows: list[str], said: str) -> None:
    sql = f"INSERT INTO t VALUES\n{', '.join(rows[:-1])},\n{rows[-1]}"
    with hj.Engine() as engine:
        engine.execute("CREATE TABLE t (a integer, b text)")
        with pytest.raises(hj.HalfjoinError, match=said):
            engine.execute(sql)
        assert engine.query("SELECT * FROM t").num_rows == 0


@pytest.mark.parametrize("name", ['"My Mood"', '"select"', '"a-b"', 'app."My Mood"'])
def test_types_may_have_any_name(name: str) -> None:
    with hj.Engine() as engine:
        engine.execute(f"CREATE SCHEMA app; CREATE TYPE {name} AS ENUM ('A'); CREATE TABLE t (a {name}, b {name}[])")
        engine.execute("INSERT INTO t VALUES " + ", ".join(["('A', '{A}')"] * 40))
        engine.copy_from("COPY t FROM STDIN", "A\t{A}\n")
        assert engine.query("SELECT count(*) AS n FROM t").to_pylist() == [{"n": 41}]


@pytest.mark.parametrize("rest", ["RETURNING a + 1, nope", "; SELECT\n nope FROM t"])
def test_what_is_wrong_behind_the_rows_is_told_at_its_place(rest: str) -> None:
    sql = f"INSERT INTO t VALUES {', '.join(['(1)'] * 40)} {rest}"
    with hj.Engine() as engine:
        engine.execute("CREATE TABLE t (a integer)")
        with pytest.raises(hj.UnknownName) as raised:
            engine.execute(sql)
    line = sql[: sql.index("nope")].count("\n")
    assert (raised.value.line, raised.value.column) == (line + 1, sql.split("\n")[line].index("nope") + 1)


def test_a_type_after_a_value_is_found_by_the_search_path() -> None:
    rows = ", ".join(["('ok', 'ok'::mood)"] * 40)
    with hj.Engine() as engine:
        engine.execute("CREATE SCHEMA app; CREATE TYPE mood AS ENUM ('bad'); CREATE TYPE app.mood AS ENUM ('ok')")
        engine.execute("CREATE TABLE app.t (a app.mood, b text); SET search_path = app")
        engine.execute(f"INSERT INTO t VALUES {rows}")
        assert engine.query("SELECT count(*) AS n FROM app.t").to_pylist() == [{"n": 40}]
        with pytest.raises(hj.HalfjoinError, match="bad"):
            engine.execute(f"INSERT INTO t VALUES {rows.replace('ok', 'bad')}")


@pytest.mark.parametrize("sql", [
    "SELECT values FROM t WHERE a IN {}", "INSERT INTO t SELECT a FROM u WHERE a IN {}",
    "INSERT INTO t VALUES {}, (DEFAULT)", "INSERT INTO t VALUES {}, (1 + 1)", "INSERT INTO t VALUES {}, ('a' 'b')",
    "INSERT INTO t VALUES {}, (E'a')", "INSERT INTO t VALUES {}, ($1)", "INSERT INTO t VALUES {}, (2, 3)",
    "INSERT INTO t -- VALUES\n VALUES {}", "WITH x AS (SELECT 1) INSERT INTO t VALUES {}", "INSERT INTO t VALUES {},",
])  # fmt: skip
def test_other_rows_are_parsed(sql: str) -> None:
    assert literal_rows(sql.format(", ".join(["(1)"] * 40))) is None


def test_what_only_looks_like_rows_is_parsed_as_what_it_is() -> None:
    with hj.Engine() as engine:
        engine.execute("CREATE TABLE t (a integer)")
        with pytest.raises(hj.UnsupportedSQL):
            engine.execute(f"INSERT INTO t SELECT values {', '.join(['(1)'] * 40)}")
        assert engine.query("SELECT * FROM t").num_rows == 0
