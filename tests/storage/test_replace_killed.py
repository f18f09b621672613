"""CREATE OR REPLACE has no time without the view, for readers and over kills; views follow ALTER over kills."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

import halfjoin as hj

CHILD = """
import sys
import halfjoin as hj
engine, notes = hj.Engine(sys.argv[1], memory=int(sys.argv[3])), open(sys.argv[2], "a")
first = len(open(sys.argv[2]).read().split())
for step in range(first, 1000):
    try:
        engine.execute(open(sys.argv[4]).read().format(step=step).split("---")[step % 4])
    except hj.HalfjoinError:
        if not 0 < first == step:  # the kill may have come after the step and before its note
            raise
    notes.write(f"{step}\\n")
    notes.flush()
"""
STEPS = """CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT g, count(*) + {step} AS n FROM t GROUP BY g---
ALTER TABLE t ADD c{step} integer DEFAULT {step}---
SET TIME = {step}; INSERT INTO t (k, g) VALUES ({step}, 1)---
CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT DISTINCT g, {step} AS n FROM t"""
OTHER = "SELECT t.g, count(*) AS n, max(t.k) AS m FROM t JOIN s ON s.g = t.g GROUP BY t.g"


@pytest.mark.parametrize("memory", [1 << 30, 1])
def test_a_replaced_view_is_always_there(tmp_path: Path, memory: int) -> None:
    warehouse, notes, steps = tmp_path / "w", tmp_path / "notes", tmp_path / "steps"
    steps.write_text(STEPS)
    notes.write_text("")
    with hj.Engine(warehouse, clock="own") as engine:
        engine.execute("CREATE TABLE t (k integer, g integer); CREATE TABLE s (g integer)")
        engine.execute(f"CREATE MATERIALIZED VIEW v AS SELECT g, 0 AS n FROM t; CREATE MATERIALIZED VIEW w AS {OTHER}")
        engine.execute("SET TIME = 0; INSERT INTO s VALUES (1)")
        engine.apply({"t": [{"k": k, "g": k % 7} for k in range(2000)]}, time=1)
    arguments = [sys.executable, "-c", CHILD, str(warehouse), str(notes), str(memory), str(steps)]
    for wait in (0.3, 0.4):
        done = len(notes.read_text().split())
        with subprocess.Popen(arguments) as child:
            while len(notes.read_text().split()) <= done and child.poll() is None:
                time.sleep(0.01)
            end, reads = time.monotonic() + wait, 0
            while time.monotonic() < end or reads < 2:
                with hj.Engine(warehouse, read_only=True) as reader:
                    assert reader.read("v").num_rows == 7  # it is there, and whole
                    reads += 1
            child.kill()
        assert len(notes.read_text().split()) > done
        with hj.Engine(warehouse) as engine:
            assert sorted(engine.read("v").column("g").to_pylist()) == list(range(7))
            text = engine.execute("SHOW CREATE v").column("create_statement")[0].as_py().partition(" AS ")[2]
            for name, sql in (("v", text), ("w", OTHER)):
                found, expected = engine.read(name), engine.query(sql)
                assert sorted(map(str, found.to_pylist())) == sorted(map(str, expected.to_pylist())), name
