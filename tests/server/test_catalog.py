"""What clients ask PostgreSQL's catalog: their queries run, and say what a real PostgreSQL says of the same tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import halfjoin as hj
from halfjoin.catalog.system.system import FILLED
from halfjoin.sql.oids import FIRST_OWN

pytest_plugins = ("tests.support.postgres",)

FOLDER = Path(__file__).parent / "catalog"
DDL = (FOLDER / "tables.sql").read_text()
FILES = sorted(FOLDER.glob("*/*.sql"))
# What names things that an empty engine has not.
NAMING = re.compile(r'::(pg_catalog\.)?reg|to_reg|\{|FROM ("public"\.)?"?(orders|customer)')
OID = re.compile(r"\{(oid of|type) ([^}]*)\}")


def queries(file: Path) -> list[str]:
    """The queries of a file, which end in `;` at the end of a line."""
    return [part for part in re.split(r";\s*\n", file.read_text()) if part.strip()]


@pytest.fixture(scope="module")
def engine() -> hj.Engine:
    engine = hj.Engine()
    engine.execute(DDL)
    return engine


@pytest.fixture(scope="module")
def real(postgres_server: Any) -> Iterator[Any]:
    with postgres_server() as connection:
        connection.execute("CREATE ROLE halfjoin SUPERUSER LOGIN CREATEDB CREATEROLE BYPASSRLS")
        connection.execute("ALTER SCHEMA public OWNER TO halfjoin; SET SESSION AUTHORIZATION halfjoin")
        connection.execute(DDL)
        yield connection


def asking(found: re.Match[str]) -> str:
    """What tells the number for which `{oid of t}` or `{type t}` stands."""
    return f"SELECT '{found[2]}'::{'regtype' if found[1] == 'type' else 'regclass'}::oid"


def asked(engine: hj.Engine, query: str) -> list[tuple[Any, ...]]:
    """The rows of a query; the numbers in it are the engine's."""
    def number(found: re.Match[str]) -> str:
        return str(engine.query(asking(found)).column(0)[0])

    table = engine.execute(OID.sub(number, query))
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True)) if table is not None else []


@pytest.mark.parametrize("file", FILES, ids=[f"{file.parent.name}-{file.stem}" for file in FILES])
def test_every_query_of_clients_is_answered(engine: hj.Engine, file: Path) -> None:
    for query in queries(file):
        asked(engine, query)


def test_every_query_can_be_asked_of_an_empty_engine() -> None:
    empty = hj.Engine()
    for file in FILES:
        for query in queries(file):
            if not NAMING.search(query):
                asked(empty, query)


# Queries, by file and place, whose answers differ: PostgreSQL lists what only it has (languages, operators, indexes of
# its catalog), and writes the expressions of views, defaults and checks anew.
DIFFERS = {tuple(line.split()) for line in (FOLDER / "differs.txt").read_text().splitlines()}


@pytest.mark.parametrize("file", FILES, ids=[f"{file.parent.name}-{file.stem}" for file in FILES])
def test_the_answer_is_that_of_postgresql(engine: hj.Engine, real: Any, file: Path) -> None:
    for place, query in enumerate(queries(file), 1):
        if (f"{file.parent.name}/{file.stem}", str(place)) in DIFFERS:
            continue

        def number(found: re.Match[str]) -> str:
            return str(real.execute(asking(found)).fetchone()[0])

        expected = real.execute(OID.sub(number, query)).fetchall()
        assert plain(asked(engine, query)) == plain(expected), query


def plain(rows: list[tuple[Any, ...]]) -> list[str]:
    """The rows in one order; numbers of the user's things are all the same."""
    return sorted(repr([FIRST_OWN if isinstance(value, int) and value >= FIRST_OWN else
                        value.decode() if isinstance(value, bytes) else value for value in row]) for row in rows)


def test_the_page_names_the_tables_that_have_rows() -> None:
    page = (Path(__file__).parents[2] / "docs" / "catalog.md").read_text()
    for name in FILLED:
        assert f"`{name.partition('.')[2]}`" in page


def test_a_table_that_the_catalog_has_not_is_logged(engine: hj.Engine, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(hj.UnknownName, match=r"pg_catalog\.pg_nothing"):
        engine.query("SELECT * FROM pg_catalog.pg_nothing")
    assert "pg_catalog.pg_nothing" in caplog.text


@pytest.mark.parametrize("query", [
    "SELECT relname FROM pg_class", "SELECT 'customer'::regclass::oid AS o", "SELECT x::oid AS o FROM customer",
    "SELECT current_user AS u", "SELECT pg_get_viewdef('big') AS d",
])  # fmt: skip
def test_a_view_cannot_read_the_catalog(engine: hj.Engine, query: str) -> None:
    with pytest.raises((hj.UnsupportedSQL, hj.UnknownName)):
        engine.execute(f"CREATE MATERIALIZED VIEW no AS {query}")


def test_numbers_stay_when_a_warehouse_is_opened_again(tmp_path: Path) -> None:
    query = "SELECT oid, relname FROM pg_class ORDER BY oid"
    with hj.Engine(tmp_path) as first:
        first.execute(DDL)
        before = first.query(query)
    with hj.Engine(tmp_path) as again:
        assert again.query(query) == before


def test_names_may_have_the_database(engine: hj.Engine) -> None:
    assert engine.query("SELECT halfjoin.public.customer.id FROM halfjoin.public.customer").num_rows == 0
    with pytest.raises(hj.UnsupportedSQL, match="one database"):
        engine.query("SELECT 1 AS a FROM elsewhere.public.customer")


def test_sizes_are_those_of_what_is_held() -> None:
    engine = hj.Engine()
    engine.execute("CREATE TABLE t (a bigint PRIMARY KEY, b text); INSERT INTO t VALUES (1, 'x'), (2, 'y')")
    engine.execute("CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM t; CREATE VIEW w AS SELECT a FROM t")
    held = {one.name: one.row_bytes for one in engine.stats().collections}
    found = asked(engine, "SELECT relname, reltuples, pg_table_size(oid) FROM pg_class "
                          "WHERE relname IN ('t', 'v', 'w', 't_pkey') ORDER BY 1")  # fmt: skip
    assert [row[:2] for row in found] == [("t", 2), ("t_pkey", 2), ("v", 3), ("w", -1)]  # updates
    table, index, view, plain = (row[2] for row in found)
    assert (table, view, plain) == (held["t"], held["v"], 0) and index > 0
    ((total, parts, database),) = asked(engine, "SELECT pg_total_relation_size('t'), pg_relation_size('t') + "
                                                "pg_indexes_size('t'), pg_database_size('halfjoin')")  # fmt: skip
    assert held["t"] < total == parts < database


def test_sizes_read_as_in_postgresql(real: Any) -> None:
    query = """SELECT pg_size_pretty(x::bigint) FROM (VALUES (0), (10239), (10240), (20000), (-20000), (10485247),
               (10485248), (123456789012), (9223372036854775807), (NULL)) AS t(x)"""
    assert asked(hj.Engine(), query) == real.execute(query).fetchall()


def test_functions_are_named_with_their_arguments(engine: hj.Engine, real: Any) -> None:
    """Rails looks so for the types that are arrays."""
    for query in (
        "SELECT 'array_in(cstring,oid,integer)'::regprocedure::text, 'lower( TEXT )'::regprocedure::text",
        "SELECT to_regprocedure('array_in(cstring)')::oid, to_regprocedure('pg_catalog.repeat(text, int)')::text",
        "SELECT typname, typinput::regprocedure::text, typoutput::regprocedure::text, typreceive::regprocedure::text, "
        "typsend::regprocedure::text, typmodin::regprocedure::text FROM pg_type "
        "WHERE typname IN ('int4', '_int4', 'numeric', 'varchar', 'mood', '_mood', 'positive', 'record', 'interval')",
    ):
        assert plain(asked(engine, query)) == plain(real.execute(query).fetchall())
    with pytest.raises(hj.UnknownName, match=r"nothing\(text\)"):
        engine.query("SELECT 'nothing(text)'::regprocedure")


def test_lengths_and_digits_follow_from_modifiers(engine: hj.Engine, real: Any) -> None:
    """jOOQ asks for them, with whole rows as arguments."""
    type, size = (f"information_schema._pg_truetyp{part}(a.*, t)" for part in ("id", "mod"))
    told = ", ".join(f"information_schema._pg_{part}({type}, {size})" for part in (
        "char_max_length", "numeric_precision", "numeric_scale", "datetime_precision"))  # fmt: skip
    query = (f"SELECT attname, {told} FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid "
             "WHERE attrelid IN ('customer'::regclass, 'orders'::regclass) AND attnum > 0")  # fmt: skip
    assert plain(asked(engine, query)) == plain(real.execute(query).fetchall())


DEFAULTS = {
    "integer": ("5", "'7'", "'-7'", "NULL"), "boolean": ("TRUE", "'f'"), "text": ("'x'", "'it''s'", "''", "lower('x')"),
    "varchar(5)": ("'x'",), "char(3)": ("'abc'",), "jsonb": ("'{}'",), "text[]": ("'{}'",), "mood": ("'ok'",),
    "date": ("'2024-01-01'", "current_date"), "timestamp": ("'2024-01-01'",), "interval": ("'36:00'",),
    "timestamptz": ("now()", "'2024-01-01 00:00Z'", "CURRENT_TIMESTAMP"), "double precision": ("1.5", "'-1.5'"),
    "time": ("'12:00'",), "uuid": ("'F47AC10B58CC4372A5670E02B2C3D479'",), "bytea": (r"'\x00'",),
}  # fmt: skip


def test_constant_defaults_read_as_in_postgresql(postgres: Any) -> None:
    """Rails and others read the value of a default out of its text."""
    columns = [(type, default) for type, several in DEFAULTS.items() for default in several]
    sql = ("CREATE TYPE mood AS ENUM ('sad', 'ok'); CREATE TABLE t (" + ", ".join(
        f"c{number} {type} DEFAULT {default}" for number, (type, default) in enumerate(columns)) + ")")  # fmt: skip
    query = ("SELECT attname, atthasdef, pg_get_expr(adbin, adrelid), column_default FROM pg_attribute "
             "JOIN information_schema.columns ON table_name = 't' AND column_name = attname "
             "LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum "
             "WHERE attrelid = 't'::regclass AND attnum > 0")  # fmt: skip
    engine = hj.Engine()
    engine.execute(sql)
    postgres.execute(sql)
    expected = [text.replace("lower('x'::text)", "lower('x')") for text in plain(postgres.execute(query).fetchall())]
    assert plain(asked(engine, query)) == expected


def test_the_catalog_beside_tables_as_of_a_time() -> None:
    engine = hj.Engine()
    engine.execute("CREATE TABLE t (a text)")
    engine.apply({"t": [{"a": "t"}, {"a": "u"}]}, time=5)
    engine.apply({"t": [{"a": "v"}]}, time=9)
    query = "SELECT t.a, relkind FROM t LEFT JOIN pg_class ON relname = t.a ORDER BY 1"
    assert engine.query(query, as_of=5).to_pylist() == [{"a": "t", "relkind": "r"}, {"a": "u", "relkind": None}]
    assert engine.query(query).num_rows == 3


def test_statements_may_name_the_database() -> None:
    engine = hj.Engine()
    engine.execute('CREATE TABLE "halfjoin"."public"."t" (a integer)')
    for _ in range(2):
        engine.execute('CREATE MATERIALIZED VIEW IF NOT EXISTS "halfjoin"."public"."v" AS '
                       "SELECT a FROM halfjoin.public.t")
    engine.execute("INSERT INTO halfjoin.public.t VALUES (1)")
    assert engine.query("SELECT v.a FROM halfjoin.public.v").num_rows == 1
    engine.execute('DROP MATERIALIZED VIEW IF EXISTS "halfjoin"."public"."v" CASCADE')
    engine.execute('ALTER TABLE "halfjoin"."public"."t" RENAME TO "u"')
    assert engine.query("SELECT a FROM u").num_rows == 1


def test_clients_that_read_materialized_views_in_either_place_find_them_once(engine: hj.Engine) -> None:
    """Grafana looks into information_schema alone. Metabase puts pg_class beside it."""
    engine.execute("CREATE TABLE seen (k bigint); CREATE MATERIALIZED VIEW seen_often AS SELECT k FROM seen")
    alone = engine.query("SELECT column_name FROM information_schema.columns WHERE table_name = 'seen_often'")
    assert alone["column_name"].to_pylist() == ["k"]
    found = engine.query((FOLDER / "metabase" / "03.sql").read_text())
    names = list(zip(found["table-name"].to_pylist(), found["name"].to_pylist(), strict=True))
    assert names.count(("seen_often", "k")) == 1 and len(names) == len(set(names))


def test_operators_and_functions_are_described() -> None:
    engine = hj.Engine()
    found = engine.query("SELECT obj_description(o.oid, 'pg_operator') AS d, n.oprname AS n FROM pg_operator o "
                         "JOIN pg_operator n ON n.oid = o.oprnegate WHERE o.oprname = '='").to_pylist()  # fmt: skip
    assert found == [{"d": "Equal", "n": "<>"}]
    assert engine.query("SELECT oid FROM pg_operator GROUP BY oid HAVING count(*) > 1").num_rows == 0
    for table in ("pg_proc", "pg_operator"):
        plain = engine.query(f"SELECT oid FROM {table} WHERE obj_description(oid, '{table}') IS NOT NULL")
        rows = engine.query(f"SELECT t.oid FROM {table} t JOIN pg_description d ON d.objoid = t.oid "
                            f"AND d.classoid = '{table}'::regclass")  # fmt: skip
        assert plain.num_rows == rows.num_rows > 100


def test_a_name_as_text_may_have_blanks_around_its_parts() -> None:
    engine = hj.Engine()
    engine.execute('CREATE TABLE made (a integer); CREATE TABLE "M y" (a integer)')
    for text, shown in (('"public" . "made"', "made"), (" Made ", "made"), ('public . "M y"', '"M y"')):  # ADBC's
        rows = engine.query(f"SELECT '{text}'::regclass::text AS a, to_regclass('{text}')::text AS b").to_pylist()
        assert rows == [{"a": shown, "b": shown}]
    for text in ('"MADE"', "", "a.b.c", '"made'):
        assert engine.query(f"SELECT to_regclass('{text}') IS NULL AS none")["none"].to_pylist() == [True], text


def test_numbers_stay_when_definitions_change() -> None:
    """pgAdmin goes on with the number that it knows after it has renamed a view or set a sequence."""
    engine = hj.Engine()
    engine.execute("CREATE TABLE t (a integer); CREATE SEQUENCE q; CREATE VIEW v AS SELECT a FROM t; "
                   "CREATE MATERIALIZED VIEW m AS SELECT a FROM t")  # fmt: skip
    numbers = "SELECT oid FROM pg_class WHERE oid >= 16384 ORDER BY oid"
    before = engine.query(numbers)
    engine.execute("ALTER SEQUENCE q RESTART 7; ALTER VIEW v RENAME TO w; ALTER MATERIALIZED VIEW m RENAME TO n; "
                   "ALTER TABLE t RENAME TO u")  # fmt: skip
    engine.execute("SELECT setval('q', 20)")
    engine.execute("ALTER SEQUENCE q RENAME TO r; CREATE OR REPLACE VIEW w AS SELECT a, 1 AS b FROM u")
    assert engine.query(numbers) == before
    engine.execute("CREATE VIEW v AS SELECT a FROM u; CREATE SEQUENCE q")
    assert engine.query(numbers).num_rows == before.num_rows + 2


def test_a_sequence_is_a_table_of_one_row(postgres: Any) -> None:
    engine = hj.Engine()
    columns = "SELECT last_value, is_called FROM"
    for sql in ("CREATE SEQUENCE q START 5 INCREMENT 2", f"{columns} q", "SELECT nextval('q')", f"{columns} public.q",
                "SELECT nextval('q')", f"{columns} q AS x WHERE x.last_value > 5", "SELECT setval('q', 20)",
                f"{columns} q", "CREATE TABLE t (a serial, b integer)", f"{columns} t_a_seq",
                "INSERT INTO t (b) VALUES (1), (2)", f"{columns} t_a_seq",
                "SELECT a, last_value FROM t JOIN t_a_seq ON last_value = a",
                "SELECT (SELECT last_value FROM t_a_seq) - max(a) FROM t",
                "SELECT refobjid::regclass::text FROM pg_depend JOIN pg_attrdef d ON objid = d.oid "
                "AND classid = 'pg_attrdef'::regclass WHERE adrelid = 't'::regclass AND deptype = 'n'",
                "SELECT seqstart, last_value FROM pg_sequence, q WHERE seqrelid = 'q'::regclass"):  # fmt: skip
        ours, theirs = engine.execute(sql), postgres.execute(sql)
        if sql.startswith("SELECT"):
            assert ours is not None
            assert [tuple(row.values()) for row in ours.to_pylist()] == theirs.fetchall(), sql
    with pytest.raises(hj.UnsupportedSQL, match="a view cannot read a sequence"):
        engine.execute("CREATE VIEW v AS SELECT last_value FROM q")


def test_functions_whose_rows_are_those_of_a_table() -> None:
    engine = hj.Engine()
    for function, table in (("pg_show_all_settings", "pg_settings"), ("pg_timezone_names", "pg_timezone_names")):
        rows = engine.query(f"SELECT s.* FROM {function}() AS s")
        assert rows == engine.query(f"SELECT * FROM {table}") and rows.num_rows
        assert engine.query(f"SELECT {function}.name FROM pg_catalog.{function}()").num_rows == rows.num_rows
    assert asked(engine, "SELECT set_config('bytea_output', 'hex', false) FROM pg_show_all_settings() "
                         "WHERE name = 'bytea_output'") == [("hex",)]  # fmt: skip


def test_functions_named_as_types_cast(postgres: Any) -> None:
    engine = hj.Engine()
    engine.execute("CREATE TABLE t (a text)")
    for sql in ("SELECT bpchar('a'), pg_catalog.bpchar('a ') = 'a'", "SELECT timestamptz('2024-01-01')::text",
                "SELECT uuid('F47AC10B58CC4372A5670E02B2C3D479')::text, jsonb('{}')::text, json('[]')::text",
                "SELECT pg_catalog.substring('foobar', 'o(.)b') AS p, pg_catalog.substring('foobar', 2, 3) AS n",
                "SELECT bytea('x')::text"):  # fmt: skip
        assert [tuple(row.values()) for row in engine.query(sql).to_pylist()] == postgres.execute(sql).fetchall(), sql
