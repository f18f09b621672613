"""Rows a second over PostgreSQL's wire protocol: `python -m tests.benchmarks.wire [ROWS] [a PostgreSQL's DSN]`.

The client reads the answer's bytes with libpq and makes no Python values. With a DSN the same rows are read from that
PostgreSQL.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import psycopg

from tests.support.serving import serving

COLUMNS = "k integer, b bigint, d double precision, t text, m timestamptz"
ROWS = "SELECT x, x * 1000000000::bigint, x / 7.0::double precision, 'name ' || x, '2020-01-01'::timestamptz " \
       "FROM generate_series(1, {rows}) AS g(x)"  # fmt: skip


def measure(connection: Any, rows: int, name: str) -> None:
    """Fill a table, and print how fast it is read as text and as binary."""
    connection.execute("DROP TABLE IF EXISTS wire")
    connection.execute(f"CREATE TABLE wire ({COLUMNS})")
    connection.execute(f"INSERT INTO wire {ROWS.format(rows=rows)}")
    for format, word in enumerate(("text", "binary")):
        best = min(_seconds(connection, format, rows) for _ in range(3))
        print(f"{name:10} {word:6} {rows / best:12,.0f} rows/s")


def _seconds(connection: Any, format: int, rows: int) -> float:
    start = time.perf_counter()
    found = connection.pgconn.exec_params(b"SELECT * FROM wire", None, result_format=format)
    assert found.ntuples == rows, found.error_message
    return time.perf_counter() - start


if __name__ == "__main__":
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 500_000
    with serving() as server, server.psycopg() as ours:
        measure(ours, wanted, "halfjoin")
    if len(sys.argv) > 2:
        with psycopg.connect(sys.argv[2], autocommit=True) as theirs:
            measure(theirs, wanted, "PostgreSQL")
