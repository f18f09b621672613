"""The real drivers and psql against the server: what people use, from outside."""

from __future__ import annotations

import asyncio
import io
import shutil
import struct
import subprocess
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from uuid import UUID

import pyarrow as pa
import pytest

from tests.support.serving import Served, serving

DDL = """CREATE TABLE ty (i integer PRIMARY KEY, s smallint, b bigint, r real, d double precision, n numeric(12,3),
t text, v varchar(10), c char(4), y bytea, da date, ti time, ts timestamp, tz timestamptz, u uuid, j jsonb, iv interval,
bo boolean, ia integer[], ta text[])"""
MOMENT = datetime(2020, 1, 2, 3, 4, 5, 6, UTC)
ROW = (1, 2, 3, 1.5, 2.25, Decimal("-1234.500"), "é\n", "vv", "ab  ", b"\x00\xff", date(1999, 1, 2), time(1, 2, 3, 4),
       MOMENT.replace(tzinfo=None), MOMENT, UUID(int=7), {"a": [1]}, timedelta(days=1, seconds=5), True, [1, None, 3],
       ["a", 'b"c', None])  # fmt: skip


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with serving() as found:
        yield found


@pytest.fixture
def table(server: Served) -> Served:
    server.engine.execute(f"DROP TABLE IF EXISTS ty; {DDL}")
    return server


@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
def test_psycopg_values_come_back_as_they_went(table: Served, binary: bool) -> None:
    psycopg = pytest.importorskip("psycopg")
    mark = "%b" if binary else "%t"
    with table.psycopg() as connection:
        values = [psycopg.types.json.Jsonb(value) if isinstance(value, dict) else value for value in ROW]
        connection.execute(f"INSERT INTO ty VALUES ({', '.join([mark] * len(values))})", values)
        rows = connection.cursor(binary=binary).execute(f"SELECT * FROM ty WHERE i = {mark}", (1,)).fetchall()
    assert rows == [ROW]


@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
def test_psycopg_selects_a_value_of_no_place(table: Served, binary: bool) -> None:
    values = [Decimal("1.10"), Decimal("1e20"), 2**70, [Decimal("1.5"), None], [[1, 2], [3, 4]], 2**40, 1.5, b"\0", "x",
              True, None, MOMENT, date(2020, 1, 1), timedelta(1, 2, 3), UUID(int=7), [date(2020, 1, 1)]]  # fmt: skip
    with table.psycopg() as connection:
        for value in values:
            assert connection.cursor(binary=binary).execute("SELECT %s", [value]).fetchone() == (value,)


def test_psycopg_transactions_cursors_and_pipelines(table: Served) -> None:
    with table.psycopg() as connection:
        connection.cursor().executemany("INSERT INTO ty (i, t) VALUES (%s, %s)", [(n, str(n)) for n in range(100)])
        with connection.transaction():
            connection.execute("DELETE FROM ty WHERE i >= 50")
            with pytest.raises(KeyError), connection.transaction():
                connection.execute("DELETE FROM ty")
                raise KeyError
        with connection.transaction(), connection.cursor("named") as cursor:
            cursor.itersize = 7
            cursor.execute("SELECT i FROM ty WHERE i < %s ORDER BY i", (20,))
            assert [row[0] for row in cursor] == list(range(20))
        for _ in range(8):  # then it is prepared
            assert connection.execute("SELECT i + %s FROM ty WHERE t = %s", (1, "15")).fetchone() == (16,)
        with connection.pipeline():
            connection.execute("INSERT INTO ty (i) VALUES (500)")
            found = connection.execute("SELECT count(*) FROM ty")
        assert found.fetchone() == (51,)
        assert connection.execute("SELECT date_trunc(%s, %s::timestamp)", ("day", "2020-01-02 03:04")).fetchone() == (
            datetime(2020, 1, 2),)  # fmt: skip


@pytest.mark.parametrize("format", ["text", "csv", "binary"])
def test_psycopg_copies_rows_out_and_in(table: Served, format: str) -> None:
    types = ["int4", "text", "numeric", "timestamptz", "int4[]", "interval", "bool", "float8", "bytea", "date"]
    columns = "i, t, n, tz, ia, iv, bo, d, y, da"
    rows = [(k, None if k % 7 == 0 else "t" * (k % 5), Decimal(k) / 8, MOMENT, [k, None], timedelta(k), k % 2 == 0,
             k / 4, bytes([k % 256]), date(2020, 1, 1)) for k in range(300)]  # fmt: skip
    with table.psycopg() as connection:
        written = "text" if format == "csv" else format
        with connection.cursor().copy(f"COPY ty ({columns}) FROM STDIN (FORMAT {written})") as into:
            if format == "binary":
                into.set_types(types)
            for row in rows:
                into.write_row(row)
        found = connection.execute(f"SELECT {columns} FROM ty ORDER BY i").fetchall()
        assert found == rows
        with connection.cursor().copy(f"COPY (SELECT {columns} FROM ty ORDER BY i) TO STDOUT (FORMAT {format})") as out:
            if format != "csv":
                out.set_types(types)
                assert list(out.rows()) == rows
                return
            data = b"".join(out)
        assert data.count(b"\n") == 300
        connection.execute("DELETE FROM ty")
        with connection.cursor().copy(f"COPY ty ({columns}) FROM STDIN (FORMAT csv)") as into:
            into.write(data)
        assert connection.execute(f"SELECT {columns} FROM ty ORDER BY i").fetchall() == rows


def test_psycopg_copies_nothing(table: Served) -> None:
    with table.psycopg() as connection:
        for format in ("text", "binary"):
            with connection.cursor().copy(f"COPY ty (i) TO STDOUT (FORMAT {format})") as out:
                assert list(out.rows()) == []
            with connection.cursor().copy(f"COPY ty (i) FROM STDIN (FORMAT {format})"):
                pass
        assert connection.execute("SELECT count(*) FROM ty").fetchone() == (0,)


def test_psycopg2_uses_the_simple_protocol(table: Served) -> None:
    psycopg2 = pytest.importorskip("psycopg2", reason="pip install '.[test-server]'")
    connection = psycopg2.connect(**table.address)
    cursor = connection.cursor()
    cursor.execute("INSERT INTO ty (i, t, n, tz) VALUES (%s, %s, %s, %s)", (1, "o'k", Decimal("1.5"), MOMENT))
    cursor.execute("SELECT i, t, n, tz FROM ty")
    assert cursor.fetchall() == [(1, "o'k", Decimal("1.500"), MOMENT)]
    connection.rollback()
    cursor.copy_from(io.StringIO("1\tx\n2\t\\N\n"), "ty", columns=("i", "t"))
    out = io.StringIO()
    cursor.copy_expert("COPY ty (i, t) TO STDOUT WITH CSV HEADER", out)
    assert sorted(out.getvalue().split()) == ["1,x", "2,", "i,t"]
    named = connection.cursor("named")
    named.execute("SELECT i FROM ty ORDER BY i")
    assert named.fetchmany(1) == [(1,)]
    connection.commit()
    connection.close()


def test_pg8000_values_come_back_as_they_went(table: Served) -> None:
    pg8000 = pytest.importorskip("pg8000.dbapi", reason="pip install '.[test-server]'")
    connection = pg8000.connect("halfjoin", host="127.0.0.1", port=table.port, database="halfjoin")
    cursor = connection.cursor()
    row = [1, "x", Decimal("1.500"), MOMENT, [1, None], timedelta(1), True, b"\x01", date(2020, 1, 1)]
    cursor.execute("INSERT INTO ty (i, t, n, tz, ia, iv, bo, y, da) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)", row)
    cursor.execute("SELECT i, t, n, tz, ia, iv, bo, y, da FROM ty WHERE i < %s", (3,))
    assert [list(one) for one in cursor.fetchall()] == [row]
    connection.commit()
    connection.close()


def test_asyncpg_prepares_and_sends_binary(table: Served) -> None:
    asyncpg = pytest.importorskip("asyncpg", reason="pip install '.[test-server]'")
    columns = "i, s, b, r, d, n, t, y, da, ti, ts, tz, u, iv, bo"
    row = (*ROW[:7], *ROW[9:15], ROW[16], True)

    async def use() -> None:
        connection = await asyncpg.connect(host="127.0.0.1", port=table.port, user="halfjoin", database="halfjoin")
        marks = ", ".join(f"${n}" for n in range(1, len(row) + 1))
        assert await connection.execute(f"INSERT INTO ty ({columns}) VALUES ({marks})", *row) == "INSERT 0 1"
        found = await connection.fetchrow(f"SELECT {columns} FROM ty WHERE i = $1", 1)
        assert tuple(found) == row
        await connection.executemany("INSERT INTO ty (i, t) VALUES ($1, $2)", [(n, "q") for n in range(10, 110)])
        async with connection.transaction():
            cursor = connection.cursor("SELECT i FROM ty WHERE i >= $1 ORDER BY i", 100, prefetch=3)
            assert [record[0] async for record in cursor] == list(range(100, 110))
        with pytest.raises(asyncpg.UniqueViolationError):
            await connection.executemany("INSERT INTO ty (i) VALUES ($1)", [(1000,), (1,)])
        assert await connection.fetchval("SELECT count(*) FROM ty") == 101
        for type, value in (("integer[]", []), ("boolean[]", [None]), ("date[]", None), ("numeric", Decimal("1.10")),
                            ("integer[][]", [[1, 2], [3, 4]]), ("char(3)", "abc")):  # fmt: skip
            assert await connection.fetchval(f"SELECT $1::{type}", value) == value
        out = io.BytesIO()
        await connection.copy_from_query("SELECT i FROM ty WHERE i > $1", 107, output=out, format="csv")
        assert sorted(out.getvalue().split()) == [b"108", b"109"]
        await connection.close()

    asyncio.run(asyncio.wait_for(use(), 60))


def test_asyncpg_pool_takes_its_connections_back(table: Served) -> None:
    """It calls pg_advisory_unlock_all() for each."""
    asyncpg = pytest.importorskip("asyncpg", reason="pip install '.[test-server]'")

    async def use() -> None:
        address = {"host": "127.0.0.1", "port": table.port, "user": "halfjoin", "database": "halfjoin"}
        async with asyncpg.create_pool(**address, min_size=1, max_size=2) as pool:
            await asyncio.gather(*(pool.execute("INSERT INTO ty (i) VALUES ($1)", n) for n in range(6)))
            async with pool.acquire() as connection:
                await connection.execute("SET statement_timeout = '5s'")
            assert await pool.fetchval("SHOW statement_timeout") == "1h"
            assert await pool.fetchval("SELECT count(*) FROM ty") == 6

    asyncio.run(asyncio.wait_for(use(), 60))


def test_errors_name_the_constraint(table: Served) -> None:
    """Applications tell by it which of their rules is broken."""
    psycopg = pytest.importorskip("psycopg")
    table.engine.execute("""
        CREATE SCHEMA IF NOT EXISTS other; DROP TABLE IF EXISTS child, other.parent; DROP DOMAIN IF EXISTS small;
        CREATE DOMAIN small AS integer CONSTRAINT little CHECK (VALUE < 9);
        CREATE TABLE other.parent (id integer PRIMARY KEY, a integer UNIQUE, b integer CONSTRAINT low CHECK (b < 9));
        CREATE UNIQUE INDEX apart ON other.parent (b);
        CREATE TABLE child (id integer REFERENCES other.parent, s small, n integer NOT NULL);
        INSERT INTO other.parent VALUES (1, 1, 1); INSERT INTO child VALUES (1, 1, 1); DROP TABLE IF EXISTS day, event;
        CREATE TABLE event (name text, at date, open boolean, UNIQUE (name, at, open));
        CREATE TABLE day (at date PRIMARY KEY); ALTER TABLE event ADD FOREIGN KEY (at) REFERENCES day;
        INSERT INTO day VALUES ('2024-01-01'); INSERT INTO event VALUES ('it''s', '2024-01-01', true);
    """)
    with table.psycopg() as connection:
        double, foreign = "duplicate key value violates unique constraint", "violates foreign key constraint"
        for sql, name, words in (
            ("INSERT INTO other.parent VALUES (1, 2, 2)", "parent_pkey", f'{double} "parent_pkey"'),
            ("INSERT INTO other.parent VALUES (2, 1, 2)", "parent_a_key", f'{double} "parent_a_key"'),
            ("INSERT INTO other.parent VALUES (2, 2, 1)", "apart", f'{double} "apart"'),
            ("INSERT INTO other.parent VALUES (2, 2, 10)", "low",
             'new row for relation "parent" violates check constraint "low"'),
            ("INSERT INTO other.parent VALUES (2, 1, 2) ON CONFLICT (id) DO UPDATE SET a = 3", "parent_a_key",
             f'{double} "parent_a_key"'),
            ("INSERT INTO child VALUES (7, 1, 1)", "child_id_fkey",
             f'insert or update on table "child" {foreign} "child_id_fkey"'),
            ("DELETE FROM other.parent", "child_id_fkey",
             f'update or delete on table "parent" {foreign} "child_id_fkey" on table "child"'),
            ("INSERT INTO child VALUES (1, 10, 1)", "little", 'violates check constraint "little"'),
            ("INSERT INTO child VALUES (1, 1, NULL)", None,
             'null value in column "n" of relation "child" violates not-null constraint'),
        ):  # fmt: skip
            with pytest.raises(psycopg.errors.IntegrityError, match=words) as caught:
                connection.execute(sql)
            told = caught.value.diag
            assert told.constraint_name == name, sql
            if name != "little":
                assert (told.schema_name, told.table_name) == (
                    ("other", "parent") if "other" in sql else ("public", "child"))  # fmt: skip
                assert told.message_primary == words and told.message_detail
        for sql, detail in (
            ("INSERT INTO other.parent VALUES (1, 2, 2)", "Key (id)=(1) already exists."),
            ("INSERT INTO child VALUES (7, 1, 1)", 'Key (id)=(7) is not present in table "parent".'),
            ("DELETE FROM other.parent", 'Key (id)=(1) is still referenced from table "child".'),
            ("INSERT INTO event SELECT * FROM event", "Key (name, at, open)=(it's, 2024-01-01, t) already exists."),
            ("DELETE FROM day", 'Key (at)=(2024-01-01) is still referenced from table "event".'),
            ("INSERT INTO event VALUES ('x', '2024-01-02')", 'Key (at)=(2024-01-02) is not present in table "day".'),
        ):
            with pytest.raises(psycopg.errors.IntegrityError) as caught:
                connection.execute(sql)
            assert caught.value.diag.message_detail == detail
        with pytest.raises(psycopg.errors.UndefinedTable, match='relation "nothing" does not exist'):
            connection.execute("SELECT * FROM nothing")


@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
def test_execute_is_described_by_its_statement(table: Served, binary: bool) -> None:
    psycopg = pytest.importorskip("psycopg")
    with table.psycopg() as connection:

        def run(sql: str, *values: object) -> tuple[object, object]:
            cursor = connection.cursor(binary=binary).execute(sql, values, prepare=True)
            return cursor.statusmessage, cursor.fetchall() if cursor.description else None

        assert run("PREPARE p (integer) AS SELECT $1 + 1 AS a, 'x' AS b") == ("PREPARE", None)
        assert run("EXECUTE p(2)") == run("EXECUTE p(%s)", 2) == ("SELECT 1", [(3, "x")])
        run("PREPARE i AS INSERT INTO ty (i, t) VALUES ($1, $2) RETURNING t, i")
        assert run("EXECUTE i(1, 'y')") == ("INSERT 0 1", [("y", 1)])
        run("PREPARE d AS DELETE FROM ty")
        assert run("EXECUTE d") == ("DELETE 1", None)
        run("DEALLOCATE p")
        run("PREPARE p AS SELECT true AS c")
        assert run("EXECUTE p ") == ("SELECT 1", [(True,)])
        with pytest.raises(psycopg.errors.InvalidSqlStatementName):
            run("EXECUTE nothing")


@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
def test_vectors_of_the_catalog_have_their_types(table: Served, binary: bool) -> None:
    """pg8000 makes lists of them, and SQLAlchemy counts on that."""
    pytest.importorskip("psycopg")
    table.engine.execute("DROP TABLE IF EXISTS two; CREATE TABLE two (a integer, b text, PRIMARY KEY (b, a))")
    with table.psycopg() as connection:
        cursor = connection.cursor(binary=binary).execute(
            "SELECT indkey, indoption, indclass FROM pg_index WHERE indrelid = 'two'::regclass")
        assert [column.type_code for column in cursor.description] == [22, 22, 30]
        (row,) = cursor.fetchall()
    if binary:
        numbers = [struct.unpack(">iiiii" + "ih" * 2, value) for value in row[:2]]
        assert [found[:5] for found in numbers] == [(1, 0, 21, 2, 0)] * 2
        assert [found[6::2] for found in numbers] == [(2, 1), (0, 0)]
        assert struct.unpack(">iiiiiiIiI", row[2])[2] == 26
    else:
        assert row[:2] == ("2 1", "0 0")


def test_psql_shows_rows_errors_and_copies(table: Served) -> None:
    psql = shutil.which("psql")
    if psql is None:
        pytest.skip("psql is not installed")
    script = """\\set ON_ERROR_STOP 0
INSERT INTO ty (i, t) VALUES (1, 'one'), (2, NULL);
SELECT i, t FROM ty ORDER BY i;
SELECT nope FROM ty;
\\copy ty (i, t) to stdout csv
BEGIN; DELETE FROM ty; ROLLBACK;
\\set FETCH_COUNT 1
SELECT count(*) FROM ty;
"""
    address = f"host=127.0.0.1 port={table.port} user=halfjoin dbname=halfjoin"
    done = subprocess.run([psql, "-X", "-A", address], input=script, capture_output=True, text=True, timeout=60,
                          check=False)  # fmt: skip
    assert "1|one\n2|\n(2 rows)" in done.stdout
    assert "1,one\n2,\n" in done.stdout
    assert "count\n2\n" in done.stdout
    assert "LINE 1: SELECT nope FROM ty;\n               ^" in done.stderr




@pytest.mark.parametrize("driver", ["psycopg", "psycopg2", "pg8000"])
def test_sqlalchemy_inserts_and_selects(table: Served, driver: str) -> None:
    sa = pytest.importorskip("sqlalchemy", reason="pip install '.[test-server]'")
    pytest.importorskip(driver)
    engine = sa.create_engine(f"postgresql+{driver}://halfjoin@127.0.0.1:{table.port}/halfjoin")
    ty = sa.Table("ty", sa.MetaData(), sa.Column("i", sa.Integer, primary_key=True), sa.Column("t", sa.Text))
    with engine.begin() as connection:
        connection.execute(ty.insert(), [{"i": n, "t": "s" * n} for n in range(3)])
        query = sa.select(ty.c.i, sa.func.length(ty.c.t)).where(ty.c.i >= 1).order_by(ty.c.i)
        assert [tuple(row) for row in connection.execute(query)] == [(1, 1), (2, 2)]
    engine.dispose()


def test_adbc_reads_arrow_tables(table: Served) -> None:
    adbc = pytest.importorskip("adbc_driver_postgresql.dbapi", reason="pip install '.[test-server]'")
    table.engine.execute("INSERT INTO ty (i, t, d) VALUES (1, 'x', 1.5), (2, NULL, NULL)")
    address = f"postgresql://halfjoin@127.0.0.1:{table.port}/halfjoin"
    with adbc.connect(address) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT i, t, d FROM ty ORDER BY i")
        assert cursor.fetch_arrow_table().to_pylist() == [{"i": 1, "t": "x", "d": 1.5}, {"i": 2, "t": None, "d": None}]


def test_adbc_ingests_what_it_reads(server: Served) -> None:
    adbc = pytest.importorskip("adbc_driver_postgresql.dbapi", reason="pip install '.[test-server]'")
    days = pa.array([date(1970, 1, 1), None, date(2262, 4, 11)])
    moments = pa.array([datetime(1969, 12, 31, 23, 59, 59, 999999), None, datetime(2026, 1, 2)], pa.timestamp("us"))
    rows = pa.table({
        "i": [1, 2, None], "s": ["é", None, ""], "d": [1.5, float("inf"), None], "b": [True, None, False],
        "day": days, "at": moments, "bytes": pa.array([b"\0\xff", b"", None]),
    })  # fmt: skip
    with adbc.connect(f"postgresql://halfjoin@127.0.0.1:{server.port}/halfjoin") as connection:
        with connection.cursor() as cursor:
            for mode, some, count in (("create", rows, 3), ("append", rows, 6), ("replace", rows.slice(0, 0), 0),
                                      ("create_append", rows, 3)):  # fmt: skip
                cursor.adbc_ingest("made", some, mode=mode)
                cursor.execute("SELECT count(*) FROM made")
                assert cursor.fetchone() == (count,), mode
            cursor.execute("SELECT * FROM made")
            assert sorted(cursor.fetch_arrow_table().to_pylist(), key=repr) == sorted(rows.to_pylist(), key=repr)
        connection.commit()


def test_binary_copy_ends_with_its_stream_and_has_nothing_behind_its_mark(server: Served) -> None:
    psycopg = pytest.importorskip("psycopg", reason="pip install '.[test-server]'")
    head, row, end = b"PGCOPY\n\xff\r\n\0" + bytes(8), b"\0\1\0\0\0\4\0\0\0\7", b"\xff\xff"
    with server.psycopg() as connection:
        connection.execute("CREATE TABLE one (a integer)")
        for sent, code in (
            (head + row, None), (head, None), (head + row + end, None), (head + row + row[:5], "22P04"),
            (head + row + end + row, "22P04"), (head + end + b"\0", "22P04"), (head + row + b"\xff", "22P04"),
        ):  # fmt: skip
            found = None
            try:
                with connection.cursor().copy("COPY one FROM STDIN (FORMAT binary)") as copy:
                    copy.write(sent)
            except psycopg.Error as problem:
                found = problem.sqlstate
            assert found == code, sent
        assert connection.execute("SELECT a FROM one").fetchall() == [(7,), (7,)]
