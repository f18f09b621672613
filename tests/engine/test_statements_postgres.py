"""Scripts of statements with the outcome of PostgreSQL: their rows or SQLSTATE, and all tables after each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import halfjoin as hj
from tests.engine.test_sequences_postgres import _there
from tests.support.serving import serving

pytest_plugins = ("tests.support.postgres",)

SCRIPTS = {
    "numbers of the rows of a query": """CREATE SEQUENCE q; CREATE SEQUENCE r START WITH 10 INCREMENT BY 5; CREATE
        TABLE t (k integer, v text); INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c'); CREATE TABLE o (k integer);
        SELECT nextval('q'), k FROM t ORDER BY k; SELECT nextval('q'), nextval('q'), k FROM t ORDER BY k DESC; SELECT
        k, nextval('q') * 10 + k AS n FROM t ORDER BY k LIMIT 2; SELECT lastval(), currval('q'); SELECT currval('q'),
        nextval('q'), currval('q'), nextval('r'), lastval(), k FROM t ORDER BY k; SELECT lastval(), nextval('q'),
        lastval(), nextval('r') FROM t ORDER BY k OFFSET 1; SELECT currval('q'); SELECT k, nextval('q') FROM t ORDER
        BY k LIMIT 1 OFFSET 1; SELECT currval('q'); SELECT 'x' || nextval('q')::text || v AS w, v FROM t ORDER BY v
        DESC; SELECT nextval('q') FROM t WHERE k > 5; SELECT count(*), nextval('q') FROM t; SELECT k % 2 AS g,
        nextval('q'), count(*) FROM t GROUP BY k % 2 ORDER BY 1; SELECT nextval('nosuch') FROM t; SELECT
        abs(-nextval('q')) + (SELECT max(k) FROM t), t.k FROM t ORDER BY 2; WITH x AS (SELECT k FROM t WHERE k > 1)
        SELECT k, nextval('q') FROM x ORDER BY 1 DESC; SELECT t.k, nextval('q'), o.k FROM t LEFT JOIN o ON o.k = t.k
        ORDER BY t.k; SELECT currval('q') FROM t; SELECT row_number() OVER (ORDER BY k), nextval('q') FROM t ORDER BY
        k; SELECT currval('r') + k FROM t ORDER BY k; VALUES (nextval('q'), nextval('q')), (nextval('q'), 0); SELECT
        nextval('q'), *, k AS k FROM t ORDER BY k; SELECT * FROM (VALUES (nextval('q'), 1), (nextval('q'),
        currval('q'))) AS v; SELECT nextval('q') + 1, t.* FROM t ORDER BY t.k""",
    "no number yet for the first row": """CREATE SEQUENCE q; CREATE TABLE t (k integer); SELECT currval('q') FROM t;
        INSERT INTO t VALUES (1); SELECT currval('q'), nextval('q') FROM t; SELECT nextval('q'), currval('q') FROM t""",
    "no columns": """CREATE TABLE t (k integer); INSERT INTO t VALUES (1), (2), (2); SELECT FROM t; SELECT; SELECT
        FROM t WHERE k = 2; SELECT FROM t UNION ALL SELECT FROM t; SELECT FROM t UNION SELECT FROM t; SELECT FROM t
        ORDER BY k LIMIT 2; SELECT count(*) FROM (SELECT FROM t UNION ALL SELECT) AS x; WITH x AS (SELECT FROM t)
        SELECT FROM x; SELECT FROM t EXCEPT ALL SELECT; SELECT EXISTS (SELECT); SELECT FROM nosuch""",
    "names of any letters": """SELECT parse_ident('€x.́a'), parse_ident('aé.Ü1$'), parse_ident('"€ "." "')""",
    "only": """CREATE TABLE t (k integer); INSERT INTO t VALUES (1), (2); SELECT * FROM ONLY (t); SELECT * FROM ONLY t
        AS x; SELECT x.k FROM ONLY (public.t) AS x JOIN ONLY (t) AS y ON x.k = y.k; TABLE t; TABLE ONLY t; DELETE FROM
        ONLY (t) WHERE k = 1; UPDATE ONLY (t) SET k = 3; UPDATE ONLY t AS z SET k = z.k + 1; SELECT * FROM ONLY (u);
        TRUNCATE ONLY t; TABLE t; TRUNCATE TABLE ONLY t, u RESTART IDENTITY""",
    "tables of one name in two schemas": """CREATE SCHEMA a; CREATE TABLE a.t (k integer, n integer); CREATE TABLE
        t (k integer, n integer); INSERT INTO a.t VALUES (1, 10), (2, 20); INSERT INTO t VALUES (2, 21), (3, 30);
        SELECT * FROM t JOIN a.t ON a.t.k = public.t.k; SELECT public.t.*, a.t.n FROM t FULL JOIN a.t ON a.t.k =
        public.t.k; SELECT k FROM t JOIN a.t USING (k); SELECT t.k FROM t JOIN a.t USING (k); SELECT n FROM t JOIN
        a.t USING (k); SELECT count(a.t), count(public.t), count(*) FROM t FULL JOIN a.t ON a.t.k = public.t.k;
        SELECT count(a.t.*), count(public.t.*) FROM t LEFT JOIN a.t ON a.t.k = public.t.k; SELECT a.t.k,
        sum(public.t.n) FROM t, a.t GROUP BY a.t.k; SELECT a.t.k, public.t.n FROM t, a.t GROUP BY a.t.k; SELECT
        a.t.k, (SELECT max(public.t.n) FROM t WHERE public.t.k >= a.t.k) FROM a.t; SELECT (SELECT a.t.n FROM t
        LIMIT 1) FROM a.t; SELECT (SELECT sum(a.t.n) FROM t) FROM a.t; SELECT x.n FROM a.t, LATERAL (SELECT a.t.n +
        public.t.n AS n FROM t WHERE public.t.k = a.t.k) AS x; SELECT a.t, (a.t).n FROM a.t; SELECT
        to_jsonb(a.t.*)::text FROM a.t, t WHERE a.t.k = public.t.k; SELECT a.t.n, rank() OVER (PARTITION BY
        public.t.k ORDER BY a.t.n) FROM t, a.t; SELECT a.t.k FROM t; SELECT public.t.k FROM a.t; SELECT nosuch.t.k
        FROM t; SELECT * FROM t, public.t; SELECT * FROM a.t AS t, t; WITH t AS (SELECT 5 AS k) SELECT t.k FROM t;
        WITH t AS (SELECT 5 AS k) SELECT a.t.k FROM t, a.t; UPDATE t SET n = a.t.n FROM a.t WHERE a.t.k =
        public.t.k RETURNING public.t.k, a.t.n, *; INSERT INTO t SELECT public.t.k + 10, a.t.n FROM t, a.t WHERE
        public.t.k = a.t.k RETURNING public.t.k; DELETE FROM a.t WHERE EXISTS (SELECT FROM t WHERE public.t.k =
        a.t.k AND a.t.k > 5); DELETE FROM t WHERE NOT EXISTS (SELECT FROM a.t WHERE a.t.k = public.t.k); DELETE
        FROM t USING a.t WHERE a.t.k = public.t.k RETURNING a.t.n, public.t.n; WITH t AS (SELECT 7 AS k, 70 AS n)
        INSERT INTO t SELECT * FROM t RETURNING k; DROP SCHEMA a CASCADE""",
    "names and types of what functions give": """SELECT overlay('abc' PLACING 'X' FROM 2), to_char(time '12:34:56.7',
        'HH12:MI:SS.MS am'); SELECT * FROM generate_series('2024-01-01', '2024-01-02', interval '12 hours') AS g;
        SELECT generate_series('2024-01-01', '2024-01-03', interval '1 day'); CREATE TABLE t (k integer, n integer);
        MERGE INTO t USING (VALUES (9)) AS s (x) ON k = x WHEN NOT MATCHED THEN INSERT (k, K) VALUES (1, 2); TABLE t""",
    "types of other databases": """CREATE DOMAIN short AS integer CHECK (VALUE > 0); CREATE DOMAIN string AS
        varchar(3); CREATE TYPE tinyint AS ENUM ('a', 'b'); CREATE TABLE t (a short, b string, c tinyint); INSERT INTO
        t VALUES (1, 'x', 'a'); INSERT INTO t VALUES (0, 'x', 'a'); INSERT INTO t VALUES (1, 'long', 'a'); INSERT INTO
        t VALUES (1, 'x', 'c'); SELECT 5::short, 'abcd'::string, 'a'::tinyint; SELECT 1::datetime; SELECT 1::int64;
        CREATE TABLE u (x blob); SELECT k.double, int64.string FROM (VALUES (1)) AS k (double), (VALUES (2)) AS int64
        (string); SELECT 1 AS long""",
    "slices": """CREATE TABLE t (k integer, n integer, a integer[]); INSERT INTO t VALUES (1, 2, '{5,6,7}'), (2, 3,
        '{8}'); SELECT a[:2], a[2:], a[:], a[:n], a[n:], a[k:n], a[n] FROM t; SELECT (ARRAY[1,2,3])[:n] FROM t; UPDATE
        t SET a = a[:n] || k; SELECT a[:nosuch] FROM t; SELECT '{{},{}}'::integer[]; SELECT '{{{}}}'::integer[];
        SELECT '{{},{1}}'::integer[]; SELECT '{{}}'::integer[][]; SELECT '{}'::integer[][]""",
    "dots in names": """CREATE SCHEMA a; CREATE TABLE a.b (k integer); INSERT INTO a.b VALUES (7); SELECT * FROM
        "a.b"; SELECT * FROM "a"."b"; INSERT INTO "a.b" VALUES (8); UPDATE "a.b" SET k = 1; DELETE FROM "a.b"; DROP
        TABLE "a.b"; ALTER TABLE "a.b" RENAME TO c; WITH "a.b" AS (SELECT 1 AS k) SELECT * FROM "a.b"; TRUNCATE "a.b";
        SELECT k FROM a.b; WITH x AS (DELETE FROM a.b RETURNING k) SELECT * FROM x; CREATE VIEW v AS SELECT * FROM
        "a.b"; DROP SCHEMA a CASCADE""",
    "keys and clauses that come twice": """CREATE TABLE t (a integer PRIMARY KEY UNIQUE, b integer UNIQUE); ALTER TABLE
        ONLY t ADD UNIQUE (a); INSERT INTO t VALUES (1, 1); INSERT INTO t VALUES (1, 2) ON CONFLICT ON CONSTRAINT
        t_a_key DO NOTHING; ALTER TABLE t DROP CONSTRAINT t_pkey; INSERT INTO t VALUES (1, 2); ALTER TABLE t ADD UNIQUE
        (b); ALTER TABLE t DROP CONSTRAINT t_b_key; INSERT INTO t VALUES (2, 1); ALTER TABLE t DROP CONSTRAINT
        t_b_key1; INSERT INTO t VALUES (2, 1); CREATE TABLE u (a integer DEFAULT 1 DEFAULT 2); CREATE TABLE u (a
        integer NOT NULL NULL); CREATE TABLE u (a integer NULL NOT NULL); CREATE TABLE u (a integer GENERATED ALWAYS AS
        IDENTITY NULL); CREATE TABLE u (a serial NULL); CREATE TABLE u (b integer, a integer GENERATED ALWAYS AS (b)
        STORED GENERATED ALWAYS AS (b) STORED); ALTER TABLE t ADD c integer DEFAULT 1 DEFAULT 1; ALTER TABLE ONLY t ADD
        c integer NOT NULL NOT NULL DEFAULT 3; INSERT INTO t VALUES (5, 5, NULL); INSERT INTO t VALUES (5, 5)""",
    "identities that LIKE takes": """CREATE TABLE t (a integer GENERATED ALWAYS AS IDENTITY (START 5 INCREMENT 5
        MAXVALUE 10), b smallint GENERATED BY DEFAULT AS IDENTITY, c text); INSERT INTO t (c) VALUES ('x'); CREATE TABLE
        u (LIKE t INCLUDING ALL); INSERT INTO u (c) VALUES ('y'), ('z') RETURNING a, b; INSERT INTO u (a) VALUES (1);
        INSERT INTO u (b) VALUES (4); INSERT INTO t (c) VALUES ('y'); CREATE TABLE v (LIKE t INCLUDING IDENTITY); INSERT
        INTO v (c) VALUES ('x'); CREATE TABLE w (LIKE t INCLUDING ALL EXCLUDING IDENTITY EXCLUDING DEFAULTS); INSERT
        INTO w (c) VALUES ('x'); INSERT INTO w VALUES (1, 2, 'x'); DROP TABLE t; INSERT INTO v (c) VALUES ('x')""",
    "literals that INSERT gives a type": """CREATE TYPE mood AS ENUM ('sad', 'ok'); CREATE TABLE s (k integer, v text);
        INSERT INTO s VALUES (1, 'a'), (2, 'b'); CREATE TABLE t (k integer DEFAULT 7, m mood, d date, a integer[], n
        numeric(5,1)); INSERT INTO t (k, d) SELECT 1, NULL FROM s LIMIT 1; INSERT INTO t (k, m, a) SELECT k, 'ok',
        '{5}' FROM s ORDER BY v LIMIT 1; INSERT INTO t (k, n, d) SELECT k, '1.25', '2024-02-29' FROM s ORDER BY k
        OFFSET 1; INSERT INTO t (k, d) SELECT DISTINCT ON (k) k, '2024-01-01' FROM s ORDER BY k, v; INSERT INTO t (k,
        m) (SELECT k, 'sad' FROM s ORDER BY 1) LIMIT 1; INSERT INTO t (k, m) SELECT k, 'bad' FROM s LIMIT 1; INSERT
        INTO t (k, m) SELECT DISTINCT 1, 'ok' FROM s LIMIT 1; INSERT INTO t (m, k) SELECT 'ok', count(*) FROM s GROUP
        BY v ORDER BY 'ok'::text, v LIMIT 1; SELECT 'x' AS x, NULL AS y FROM s ORDER BY k LIMIT 1; SELECT y || 'z' FROM
        (SELECT DISTINCT ON (k) NULL AS y, k FROM s) AS q; SELECT * FROM ((SELECT NULL AS d FROM s LIMIT 1) UNION ALL
        SELECT d FROM t) AS x;
        WITH q AS (SELECT 1) INSERT INTO t (k, m) VALUES (1, 'ok'), (DEFAULT, 'sad') RETURNING 1; WITH q AS (SELECT 4
        AS i) INSERT INTO t (k, m) VALUES ((SELECT i FROM q), 'ok'), (DEFAULT, NULL) RETURNING k, m, (SELECT i FROM q);
        WITH w AS
        (SELECT 2), x AS (INSERT INTO t (k, m, a) VALUES (DEFAULT, 'ok', '{1}'), (9, NULL, DEFAULT) RETURNING *) SELECT
        k, m, a FROM x""",
    "numbers that MERGE gives": """CREATE TABLE s (k integer, v text); INSERT INTO s VALUES (1, 'a'), (2, 'b'), (2,
        'b'); CREATE SEQUENCE q; CREATE TABLE t (id integer GENERATED ALWAYS AS IDENTITY (START 10), k integer, v text,
        x serial, y bigint DEFAULT nextval('q'), g bigint GENERATED ALWAYS AS (y * 2) STORED); MERGE INTO t USING s ON
        t.k = s.k WHEN NOT MATCHED AND s.k > 1 THEN INSERT (k, v) VALUES (s.k, s.v); MERGE INTO t USING (SELECT
        DISTINCT * FROM s) AS s ON t.k = s.k WHEN MATCHED AND t.y = 2 THEN UPDATE SET v = 'again', x = DEFAULT, y =
        DEFAULT WHEN MATCHED THEN DELETE WHEN NOT MATCHED AND s.k = 1 THEN INSERT (k, x) VALUES (s.k, 70); MERGE INTO t
        USING s ON t.k = 5 WHEN NOT MATCHED AND s.k = 1 THEN INSERT DEFAULT VALUES; MERGE INTO t USING s ON t.k = 5
        WHEN NOT MATCHED THEN INSERT (id, k) VALUES (1, 2); MERGE INTO t USING s ON t.k = 5 WHEN NOT MATCHED AND s.k =
        1 THEN INSERT (k, y) VALUES (s.k, nextval('q'))""",
    "names of a table in its expressions": """CREATE TABLE t (a integer, CHECK (t.a > 0), g integer GENERATED ALWAYS
        AS (t.a + 1) STORED); CREATE TABLE u (LIKE t INCLUDING ALL); INSERT INTO u VALUES (0); INSERT INTO u VALUES
        (3); ALTER TABLE u RENAME TO moved; ALTER TABLE moved RENAME a TO "A b"; CREATE TABLE w (LIKE moved INCLUDING
        ALL); INSERT INTO w VALUES (0); INSERT INTO w VALUES (4); CREATE SCHEMA a; CREATE TABLE a.q (k integer CHECK
        (q.k > 0), j integer GENERATED ALWAYS AS (q.k * 2) STORED); INSERT INTO a.q VALUES (0); INSERT INTO a.q VALUES
        (5); CREATE TABLE c (LIKE a.q INCLUDING ALL); INSERT INTO c VALUES (0); INSERT INTO c VALUES (6); CREATE TABLE
        a.d (LIKE c INCLUDING ALL); INSERT INTO a.d VALUES (0); INSERT INTO a.d VALUES (7); ALTER TABLE a.d ADD x
        integer CHECK (d.x > d.k); INSERT INTO a.d VALUES (1, DEFAULT, 1); CREATE INDEX ON a.d ((d.k + 1)); ALTER TABLE
        a.d RENAME TO e; SELECT * FROM a.e WHERE k + 1 = 8; CREATE TEMP TABLE o (k integer CHECK (o.k > 0)); INSERT
        INTO o VALUES (0); DROP SCHEMA a CASCADE""",
}  # fmt: skip


@pytest.mark.parametrize("name", SCRIPTS)
def test_each_statement_does_what_postgresql_does(name: str, postgres: Any, tmp_path: Path) -> None:
    postgres.execute("DROP SCHEMA IF EXISTS a CASCADE")
    engine = hj.Engine(tmp_path / "w")
    for sql in map(str.strip, SCRIPTS[name].split(";")):
        expected, found = _there(postgres, sql), _here(engine, sql)
        assert found == expected, sql
        for (table,) in postgres.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall():
            assert _sorted(engine.read(table)) == sorted(postgres.execute(f"TABLE {table}").fetchall(), key=str), sql
    engine.close()


def _here(engine: hj.Engine, sql: str) -> Any:
    try:
        found = engine.execute(sql)
    except hj.HalfjoinError as error:
        return error.sqlstate
    if found is None or not (sql.split()[0] in ("SELECT", "TABLE", "VALUES", "WITH") or "RETURNING" in sql):
        return None
    if not found.num_columns:
        return [()] * found.num_rows
    return _sorted(found)


def _sorted(table: Any) -> list[tuple[Any, ...]]:
    return sorted(zip(*(column.to_pylist() for column in table.columns), strict=True), key=str)


def test_clients_get_numbers_once_and_rows_without_columns() -> None:
    with serving() as served:
        client = served.psycopg()
        for sql in ("CREATE TABLE t (k integer)", "INSERT INTO t VALUES (1), (2)", "CREATE SEQUENCE q"):
            client.execute(sql)
        assert client.execute("SELECT nextval('q') + %s", (1,)).fetchall() == [(2,)]
        assert client.execute("SELECT nextval('q'), k + %s FROM t ORDER BY k", (1,)).fetchall() == [(2, 2), (3, 3)]
        assert client.execute("SELECT nextval('q') AS n, * FROM t ORDER BY k").fetchall() == [(4, 1), (5, 2)]
        assert client.execute("SELECT FROM t").fetchall() == [(), ()]
        assert client.execute("SELECT FROM t WHERE k > %s", (1,)).fetchall() == [()]


def test_what_cannot_be_numbered_is_refused_and_gives_out_no_number() -> None:
    engine = hj.Engine()
    engine.execute("CREATE SEQUENCE q; CREATE TABLE t (k integer); INSERT INTO t VALUES (1), (2)")
    for sql in ("SELECT CASE WHEN k > 1 THEN nextval('q') END FROM t", "SELECT DISTINCT nextval('q') FROM t",
                "SELECT nextval('q') AS n FROM t ORDER BY n", "SELECT k FROM t WHERE nextval('q') > 1",
                "SELECT nextval('q') FROM t UNION ALL SELECT 1", "SELECT nextval('q') AS n, k FROM t GROUP BY 1, k",
                "SELECT nextval('q') FROM t GROUP BY ROLLUP ((1))",
                "SELECT coalesce(k, nextval('q')) FROM t"):  # fmt: skip
        with pytest.raises(hj.UnsupportedSQL, match="SELECT list"):
            engine.execute(sql)
    assert engine.execute("SELECT nextval('q') AS n").to_pylist() == [{"n": 1}]


def test_parameters_of_postgresqls_storage_are_taken(caplog: pytest.LogCaptureFixture) -> None:
    engine = hj.Engine()
    for made in ("TABLE t (k integer) WITH (fillfactor = 70, autovacuum_enabled = false)",
                 "TABLE u WITH (fillfactor = '70') AS SELECT 1 AS k",
                 "MATERIALIZED VIEW v WITH (fillfactor = 70) AS SELECT k FROM t"):  # fmt: skip
        caplog.clear()
        engine.execute(f"CREATE {made}")
        (record,) = (one for one in caplog.records if one.levelname == "WARNING")
        assert "fillfactor" in record.getMessage() and "changes nothing" in record.getMessage()
    with pytest.raises(hj.UnsupportedSQL, match="nosuch=1"):
        engine.execute("CREATE TABLE w (k integer) WITH (nosuch = 1)")
    assert engine.copy_from("COPY t FROM STDIN WITH (FREEZE ON)", b"1\n2\n") == 2
    assert engine.copy_from("COPY t FROM STDIN WITH (FORMAT csv, HEADER ON)", b"k\n3\n") == 1
    assert engine.query("SELECT count(*) AS n, sum(k) AS k FROM v").to_pylist() == [{"n": 3, "k": 6}]


def test_clauses_of_an_index_that_change_nothing_are_taken(caplog: pytest.LogCaptureFixture) -> None:
    engine = hj.Engine()
    engine.execute("CREATE TABLE t (k integer, n integer, j jsonb); INSERT INTO t VALUES (1, 2, '{}')")
    for clauses, ignored in (("USING btree (k)", ""), ("USING hash (k)", ""), ("(k) WHERE n > 1", "WHERE"),
                             ("(k DESC NULLS LAST)", "an order"), ("(k) INCLUDE (n)", "INCLUDE"),
                             ("(k) WITH (fillfactor = 70)", "WITH"),
                             ("(k int4_ops)", "an operator class")):  # fmt: skip
        caplog.clear()
        engine.execute(f"CREATE INDEX ON t {clauses}")
        assert [ignored in record.getMessage() for record in caplog.records] == [True] * bool(ignored), clauses
    for sql, code in (("CREATE INDEX ON t USING gin (j)", "0A000"), ("CREATE INDEX ON t (k) WHERE nosuch > 1", "42703"),
                      ("CREATE UNIQUE INDEX ON t (k) WHERE n > 1", "0A000"),
                      ("CREATE UNIQUE INDEX ON t ((k + 1))", "0A000"),
                      ("CREATE INDEX ON t (k) INCLUDE (nosuch)", "42703")):  # fmt: skip
        with pytest.raises(hj.HalfjoinError) as caught:
            engine.execute(sql)
        assert caught.value.sqlstate == code, sql
    engine.execute("ALTER TABLE t RENAME k TO j2; ALTER TABLE t RENAME TO u; INSERT INTO u VALUES (1, 3, NULL)")
    assert engine.query("SELECT count(*) AS n FROM u WHERE j2 = 1").to_pylist() == [{"n": 2}]
