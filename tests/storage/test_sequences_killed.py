"""Numbers of sequences after kills, restarts and failures: none is given out twice."""

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
engine, notes = hj.Engine(sys.argv[1], clock="own"), open(sys.argv[2], "a")
while True:
    engine.execute(f"SET TIME = {engine.stats().upper}")
    rows = engine.execute("INSERT INTO t (x) SELECT x FROM generate_series(1, 400) AS s(x) RETURNING id")
    more = engine.execute("SELECT nextval('q') AS id")
    notes.write(" ".join(map(str, rows.column("id").to_pylist())) + f" / {more.column('id')[0]}\\n")
    notes.flush()
"""


def test_no_number_is_given_out_twice(tmp_path: Path) -> None:
    warehouse, notes = tmp_path / "w", tmp_path / "notes"
    notes.write_text("")
    with hj.Engine(warehouse, clock="own") as engine:
        engine.execute("CREATE TABLE t (id bigint GENERATED ALWAYS AS IDENTITY, x integer)")
        engine.execute("CREATE SEQUENCE q START WITH 7 INCREMENT BY 3")
    for wait in (0.1, 0.4, 0.25):
        before = len(notes.read_text())
        with subprocess.Popen([sys.executable, "-c", CHILD, str(warehouse), str(notes)]) as child:
            while len(notes.read_text()) == before and child.poll() is None:
                time.sleep(0.01)
            time.sleep(wait)
            child.kill()
        assert len(notes.read_text()) > before
    lines = [line for line in notes.read_text().split("\n") if " / " in line]
    seen = [int(number) for line in lines for number in line.split(" / ")[0].split()]
    other = [int(line.split(" / ")[1]) for line in lines]
    with hj.Engine(warehouse) as engine:
        held = engine.read("t").column("id").to_pylist()
        other.append(engine.execute("SELECT nextval('q') AS id").column("id")[0].as_py())
    assert len(set(held)) == len(held) and set(seen) <= set(held)
    assert len(set(other)) == len(other) > 3 and all(number % 3 == 1 for number in other)


def test_a_failed_statement_and_a_restart_leave_gaps(tmp_path: Path) -> None:
    with hj.Engine(tmp_path / "w") as engine:
        engine.execute("CREATE TABLE t (id serial, x integer CHECK (x > 0))")
        with pytest.raises(hj.InvalidRow):
            engine.execute("INSERT INTO t (x) VALUES (-1)")
        engine.execute("INSERT INTO t (x) VALUES (1), (2)")
        engine.execute("BEGIN; INSERT INTO t (x) VALUES (3); ROLLBACK; INSERT INTO t (x) VALUES (4)")
        assert engine.query("SELECT id FROM t ORDER BY x").column("id").to_pylist() == [2, 3, 5]
    with hj.Engine(tmp_path / "w") as engine:
        engine.execute("INSERT INTO t (x) VALUES (6)")
        assert engine.query("SELECT id FROM t WHERE x = 6").column("id")[0].as_py() > 5
        with pytest.raises(hj.UnsupportedSQL, match="a query cannot change a sequence"):
            engine.query("SELECT nextval('t_id_seq')")
