"""A process that reads sources is killed at any instant: each record counts once, and the position agrees."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import halfjoin as hj
from tests.support.seeds import some

ROOT = Path(__file__).resolve().parents[2]
CHILD = """
import sys
import halfjoin as hj
from halfjoin.engine.feeds.files import csv_records
csv_records.POLL_BYTES = 50  # several blocks a file
engine = hj.Engine(sys.argv[1], memory=int(sys.argv[2]))
engine.start_sources()
print("open", flush=True)
sys.stdin.read()
"""
ROWS = 40


def test_sources_are_exact_through_kills(tmp_path: Path) -> None:
    rng, folder, warehouse = random.Random(7), tmp_path / "in", tmp_path / "w"
    folder.mkdir()
    with hj.Engine(warehouse) as engine:
        engine.execute("CREATE TABLE other (k bigint); CREATE TABLE t (k bigint, file bigint); "
                       "CREATE MATERIALIZED VIEW v AS "
                       "SELECT file, count(*) AS n, sum(k) AS k FROM t GROUP BY file")  # fmt: skip
        engine.create_source("s", "files", "t", errors="table", path=folder, settle=0)
    files, bad = 0, 0
    for number in range(some(9)):
        memory = rng.choice([1, 1 << 30])
        with subprocess.Popen([sys.executable, "-c", CHILD, str(warehouse), str(memory)], cwd=ROOT,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:  # fmt: skip
            assert child.stdout is not None and child.stdout.readline()
            until = time.monotonic() + rng.uniform(0.05, 0.6)
            while time.monotonic() < until:
                bad += files % 3 == 0
                _write(folder, files)
                files += 1
                time.sleep(0.02)
            child.kill()
        with hj.Engine(warehouse) as engine:
            if memory > 1:  # then a file is one batch, and somebody else's batch shows no part of it
                engine.execute("INSERT INTO other VALUES (1)")
            _check(engine, f"after kill {number}")
    with hj.Engine(warehouse) as engine:
        engine.run_sources(0)
        _check(engine, "in the end")
        assert engine.read("v").num_rows == files and engine.read("s_errors").num_rows == bad


def _write(folder: Path, number: int) -> None:
    lines = [f"{k},{number}" for k in range(ROWS)]
    if number % 3 == 0:
        lines.insert(7, "bad,1,2")
    (folder / ".new").write_text("\n".join(["k,file", *lines]))
    (folder / ".new").rename(folder / f"{number:06}.csv")


def _check(engine: hj.Engine, when: str) -> None:
    found = engine.read("v").to_pylist()
    assert all(row["n"] == ROWS and row["k"] == ROWS * (ROWS - 1) // 2 for row in found), when
    (source,) = engine.stats().sources
    if '"record"' not in (source.position or ""):  # no file is half read
        assert source.rows == ROWS * len(found) and source.bad == engine.read("s_errors").num_rows, when
