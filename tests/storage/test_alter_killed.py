"""A process that alters, renames and fills a table is killed: the warehouse has all of each acknowledged step."""

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
engine, notes = hj.Engine(sys.argv[1], clock="own", memory=int(sys.argv[3])), open(sys.argv[2], "a")
for step in range(len(open(sys.argv[2]).read().split()), 1000):
    engine.execute(open(sys.argv[4]).read().format(step=step).split("---")[step % 4])
    notes.write(f"{step}\\n")
    notes.flush()
"""
STEPS = """ALTER TABLE t ADD c{step} integer DEFAULT {step}---
SET TIME = {step}; INSERT INTO t (k) VALUES ({step})---
ALTER TABLE t RENAME TO u; ALTER TABLE u ADD CONSTRAINT k{step} UNIQUE (k); ALTER TABLE u RENAME TO t---
SET TIME = {step}; UPDATE t SET k = -k"""


@pytest.mark.parametrize("memory", [1 << 30, 1])
def test_altered_tables_survive_a_kill(tmp_path: Path, memory: int) -> None:
    warehouse, notes, steps = tmp_path / "w", tmp_path / "notes", tmp_path / "steps"
    steps.write_text(STEPS)
    notes.write_text("")
    with hj.Engine(warehouse, clock="own") as engine:
        engine.execute("CREATE TABLE t (k integer)")
    arguments = [sys.executable, "-c", CHILD, str(warehouse), str(notes), str(memory), str(steps)]
    for wait in (0.2, 0.5, 0.35):
        done = len(notes.read_text().split())
        with subprocess.Popen(arguments) as child:
            while len(notes.read_text().split()) <= done and child.poll() is None:
                time.sleep(0.01)
            time.sleep(wait)
            child.kill()
        noted = len(notes.read_text().split())
        assert noted > done
        with hj.Engine(warehouse) as engine:
            if "u" in engine.execute("SHOW TABLES").column("name").to_pylist():
                engine.execute("ALTER TABLE u RENAME TO t")  # killed between two statements of a step
            rows = engine.read("t")
            columns, batched = len(rows.column_names) - 1, engine.stats().upper == noted + 1
        assert columns in ((noted + 3) // 4, (noted + 4) // 4), (columns, noted)
        assert rows.num_rows in ((noted + 2) // 4, (noted + 3) // 4), (rows.num_rows, noted)
        if columns > (noted + 3) // 4 or batched or noted % 4 == 2:
            notes.write_text("\n".join(map(str, range(noted + 1))) + "\n")  # the step that was not noted is done
