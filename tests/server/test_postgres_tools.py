"""The programs that come with PostgreSQL, against the server."""

from __future__ import annotations

import shutil
import subprocess
from typing import Any

import pytest

from tests.support.serving import Served, serving

pytest_plugins = ("tests.support.postgres",)

WHERE = ("-h", "127.0.0.1", "-U", "halfjoin")


def run(server: Served, program: str, *options: str) -> str:
    """What a program prints, its messages included."""
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed: apt-get install postgresql")
    done = subprocess.run([program, *WHERE, "-p", str(server.port), *options, "halfjoin"], capture_output=True,
                          text=True, timeout=120, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout + done.stderr


@pytest.mark.parametrize("generates", ["g", "G"], ids=["client", "server"])
def test_pgbench_fills_its_tables_and_runs(generates: str) -> None:
    with serving() as server:
        found = run(server, "pgbench", "-i", "-I", f"dt{generates}vpf", "--foreign-keys")
        assert "pgbench_accounts: rows are not stored as in PostgreSQL; fillfactor changes nothing" in found
        for mode in ("simple", "extended", "prepared"):
            found = run(server, "pgbench", "-n", "-t", "5", "-M", mode)
            assert "number of transactions actually processed: 5/5" in found
        sums = server.engine.query("""
            SELECT (SELECT sum(abalance) FROM pgbench_accounts) AS accounts,
                   (SELECT sum(tbalance) FROM pgbench_tellers) AS tellers,
                   (SELECT sum(bbalance) FROM pgbench_branches) AS branches,
                   (SELECT sum(delta) FROM pgbench_history) AS history, (SELECT count(*) FROM pgbench_history) AS n
        """).to_pylist()[0]
    assert sums.pop("n") == 15
    assert len(set(sums.values())) == 1


def test_pg_dump_is_told_what_to_do_instead() -> None:
    if shutil.which("pg_dump") is None:
        pytest.skip("pg_dump is not installed: apt-get install postgresql")
    with serving() as server:
        server.engine.execute("CREATE TABLE t (k integer)")
        done = subprocess.run(["pg_dump", *WHERE, "-p", str(server.port), "halfjoin"], capture_output=True, text=True,
                              timeout=60, check=False)  # fmt: skip
    assert done.returncode == 1 and done.stdout == ""
    assert "pg_dump is not supported" in done.stderr and "SHOW CREATE TABLE" in done.stderr


def test_what_pg_dump_writes_of_a_table_is_read(postgres: Any) -> None:
    """Its keys and constraints come after the rows, and its identities bring their numbers."""
    dump = shutil.which("pg_dump") or pytest.skip("pg_dump is not installed: apt-get install postgresql")
    postgres.execute("""
        CREATE TABLE p (k bigint PRIMARY KEY, t text NOT NULL DEFAULT 'x') WITH (fillfactor = 70);
        CREATE TABLE c (k integer REFERENCES p ON DELETE CASCADE, n numeric(8,2)[], j jsonb, CHECK (k < 100));
        CREATE TABLE numbered (id integer GENERATED ALWAYS AS IDENTITY, s serial, a text);
        INSERT INTO numbered (a) VALUES ('x'), ('y');
        INSERT INTO p VALUES (1, E'a\\tb'), (3, 'z')
    """)
    postgres.execute("INSERT INTO c VALUES (1, '{1.5,NULL}', '{\"x\": [1, null]}'), (NULL, NULL, NULL)")
    info = postgres.info
    done = subprocess.run([dump, "-O", "-x", "-h", info.host, "-p", str(info.port), "-U", info.user, info.dbname],
                          capture_output=True, text=True, timeout=60, check=True)  # fmt: skip
    with serving() as server:
        command = ["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", *WHERE, "-p", str(server.port), "halfjoin"]
        found = subprocess.run(command, input=done.stdout, capture_output=True, text=True, timeout=60, check=False)
        assert not found.returncode, found.stderr
        assert server.engine.query("SELECT * FROM p ORDER BY k").to_pylist() == [
            {"k": 1, "t": "a\tb"}, {"k": 3, "t": "z"}]
        assert server.engine.query("SELECT k, j FROM c WHERE k = 1").to_pylist() == [{"k": 1, "j": '{"x": [1, null]}'}]
        made = server.engine.execute("INSERT INTO numbered (a) VALUES ('z') RETURNING id, s")
        assert made is not None and made.to_pylist() == [{"id": 3, "s": 3}]


def test_postgresql_reads_and_writes_foreign_tables(postgres: Any) -> None:
    import psycopg

    with serving() as server:
        server.engine.execute("""
            CREATE TYPE mood AS ENUM ('sad', 'ok');
            CREATE TABLE p (k bigint PRIMARY KEY, n numeric(6,2), m mood, a text[], at timestamptz);
            CREATE MATERIALIZED VIEW v AS SELECT m, sum(n) AS n FROM p GROUP BY m;
            INSERT INTO p SELECT k, k / 4.0, 'ok', ARRAY['x', NULL], '2024-01-01' FROM generate_series(1, 200) AS g (k)
        """)
        postgres.execute("CREATE TYPE mood AS ENUM ('sad', 'ok'); CREATE SCHEMA f")
        try:
            postgres.execute("CREATE EXTENSION postgres_fdw")
        except psycopg.Error:
            pytest.skip("postgres_fdw is not installed: apt-get install postgresql-contrib")
        postgres.execute(f"""
            CREATE SERVER s FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '127.0.0.1', port '{server.port}',
                dbname 'halfjoin', fetch_size '30');
            CREATE USER MAPPING FOR CURRENT_USER SERVER s OPTIONS (user 'halfjoin', password_required 'false');
            IMPORT FOREIGN SCHEMA public FROM SERVER s INTO f
        """)
        sums = postgres.execute("SELECT count(*), sum(n) FROM f.p WHERE a @> '{x}' AND at < '2025-01-01'").fetchone()
        assert sums == (200, 5025)
        postgres.execute("INSERT INTO f.p VALUES (201, 1, 'sad', NULL, NULL)")
        postgres.execute("UPDATE f.p SET n = 2 WHERE k = 201")
        postgres.execute("DELETE FROM f.p WHERE k <= 100")
        assert postgres.execute("SELECT * FROM f.v ORDER BY m").fetchall() == [("sad", 2), ("ok", 3762.5)]
