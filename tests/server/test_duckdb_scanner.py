"""DuckDB attaches the server as it attaches PostgreSQL: it reads through binary COPY, inserts, and makes tables.

`HALFJOIN_DUCKDB_POSTGRES` names a Python that has DuckDB and its postgres extension (`pip install
duckdb-ext-postgres`), which needs a version of DuckDB of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

import pytest

from tests.support.serving import Served, serving

PYTHON = os.environ.get("HALFJOIN_DUCKDB_POSTGRES", "")
PROGRAM = """
import duckdb, duckdb_ext, json, pathlib, sys
connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
[extension] = pathlib.Path(list(duckdb_ext.__path__)[0]).rglob("postgres_scanner.duckdb_extension")
connection.execute(f"LOAD '{extension}'")
connection.execute(f"ATTACH 'host=127.0.0.1 port={sys.argv[1]} user=halfjoin dbname=halfjoin' AS h (TYPE postgres)")
print(json.dumps([connection.execute(query).fetchall() for query in sys.argv[2:]], default=str))
"""


def _asked(server: Served, *queries: str) -> Any:
    command = [PYTHON, "-c", PROGRAM, str(server.port), *queries]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.skipif(not PYTHON, reason="HALFJOIN_DUCKDB_POSTGRES names no Python with DuckDB's postgres extension")
def test_duckdb_reads_and_writes() -> None:
    with serving() as server:
        server.engine.execute("""
            CREATE TABLE t (a integer PRIMARY KEY, b text, n numeric(10,2), d date, s double precision, z timestamptz);
            CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n, sum(a) AS s FROM t;
            INSERT INTO t SELECT g, nullif('x' || g, 'x2'), g / 4.0, DATE '2020-01-01' + g, g / 8.0, to_timestamp(g)
                FROM generate_series(1, 5000) g;
        """)
        found = _asked(
            server,
            "SELECT database || '.' || name, column_names FROM (SHOW ALL TABLES) ORDER BY name",
            "SELECT a, b, n, d, s, epoch(z) FROM h.t ORDER BY a LIMIT 2",
            "SELECT count(*), sum(n), count(b), max(s) FROM h.t",
            "SELECT a FROM h.t WHERE b = 'x77'",
            "SELECT * FROM h.v",
            "INSERT INTO h.t SELECT i, 'new', 1.5, NULL, NULL, NULL FROM range(10000, 13000) r(i)",
            "SELECT count(*) FROM h.t",
            "CREATE TABLE h.made AS SELECT 1 AS a, 'q' AS b",
            "SELECT v.n, made.b FROM h.v, h.made",
            "SELECT * FROM postgres_query('h', 'SELECT max(a) AS m FROM t')",
            "CALL postgres_execute('h', 'DELETE FROM t WHERE a > 1')",
            "SELECT count(*) FROM h.t",
        )
    assert found == [
        [["h.t", ["a", "b", "n", "d", "s", "z"]], ["h.v", ["n", "s"]]],
        [[1, "x1", "0.25", "2020-01-02", 0.125, 1.0], [2, None, "0.50", "2020-01-03", 0.25, 2.0]],
        [[5000, "3125625.00", 4999, 625.0]], [[77]], [[5000, 12502500]], [[3000]], [[8000]], [[1]],
        [[8000, "q"]], [[12999]], [], [[1]],
    ]  # fmt: skip
