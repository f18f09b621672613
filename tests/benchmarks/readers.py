"""64 connections read beside a writer: `python -m tests.benchmarks.readers [SECONDS] [CONNECTIONS]`.

`halfjoin serve` runs as a process of its own. Each connection asks one query after the other, as pgbench does; one more
connection inserts batches of 100 rows. A minute by default. An error, or a read of half a batch, ends it.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import psycopg

ROWS = 100  # of a batch
SALES = f"SELECT {{first}} + g, 'city ' || g % 20, g FROM generate_series(0, {ROWS - 1}) AS g"
VIEW = "SELECT city, count(*) AS n, sum(amount) AS s FROM sale GROUP BY city"
QUERIES = (
    ("a row of a view", "SELECT n, s FROM sales WHERE city = 'city 7'"),
    ("a whole view", "SELECT sum(n), count(*) FROM sales"),
)


@contextmanager
def served(folder: str) -> Iterator[str]:
    """`halfjoin serve` over a warehouse; gives how to connect."""
    command = [sys.executable, "-m", "halfjoin", "serve", folder, "--port", "0", "--http-port", "-1"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    try:
        found = re.search(r"-p (\d+)", process.stdout.readline())
        assert found is not None
        yield f"host=127.0.0.1 port={found[1]} user=halfjoin dbname=halfjoin"
    finally:
        process.terminate()
        process.wait(60)
        process.stdout.close()


def measure(dsn: str, seconds: float, connections: int) -> None:
    """Print how many queries were answered, and how long they took."""
    took: dict[str, list[float]] = {name: [] for name, _ in QUERIES}
    problems: list[str] = []
    end = time.perf_counter() + seconds

    def reads() -> None:
        with psycopg.connect(dsn, autocommit=True) as connection:
            while time.perf_counter() < end and not problems:
                for name, query in QUERIES:
                    start = time.perf_counter()
                    row = connection.execute(query).fetchone()
                    took[name].append(time.perf_counter() - start)
                    if row is None or (row[0] % ROWS and name == "a whole view"):
                        problems.append(f"{name}: {row}")

    def guarded() -> None:
        try:
            reads()
        except psycopg.Error as problem:
            problems.append(repr(problem))

    threads = [threading.Thread(target=guarded) for _ in range(connections)]
    for thread in threads:
        thread.start()
    batches = 0
    with psycopg.connect(dsn, autocommit=True) as writer:
        while time.perf_counter() < end and not problems:
            writer.execute(f"INSERT INTO sale {SALES.format(first=batches * ROWS)}")
            batches += 1
    for thread in threads:
        thread.join()
    assert not problems, problems[0]
    print(f"{connections} connections read for {seconds:.0f} s beside {batches} batches of {ROWS} rows; no error")
    print(f"{'query':16} {'queries/s':>10} {'p50 ms':>8} {'p99 ms':>8} {'most ms':>8}")
    for name, times in took.items():
        middle, late = np.percentile(times, [50, 99]) * 1e3
        print(f"{name:16} {len(times) / seconds:10,.0f} {middle:8.1f} {late:8.1f} {max(times) * 1e3:8.1f}")


if __name__ == "__main__":
    wanted = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    many = int(sys.argv[2]) if len(sys.argv) > 2 else 64
    with tempfile.TemporaryDirectory() as warehouse, served(f"{warehouse}/w") as address:
        with psycopg.connect(address, autocommit=True) as first:
            first.execute("CREATE TABLE sale (id bigint PRIMARY KEY, city text, amount integer)")
            first.execute(f"CREATE MATERIALIZED VIEW sales AS {VIEW}")
            first.execute(f"INSERT INTO sale {SALES.format(first=-ROWS)}")
        measure(address, wanted, many)
