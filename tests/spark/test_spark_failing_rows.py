"""Spark finds rows by a value that may fail, and meets every row with those for which it fails, as the local runner."""

from __future__ import annotations

import random
from typing import Any

import halfjoin as hj
from tests.oracle.rows import bag
from tests.support.joins import contents

SQL = "SELECT s.a, t.c FROM r, s, t WHERE r.a = s.a AND t.b = r.b / s.c AND 2 / r.c > 0"
ENDS = {4: "DELETE FROM s WHERE c = 0", 5: "DELETE FROM r WHERE c = 0"}  # then nothing fails


def test_rows_and_errors_are_those_of_the_local_runner(spark: Any) -> None:
    choices, failed, read = random.Random(3), 0, 0
    with hj.Engine(retain=100, clock="own") as local, hj.Engine(retain=100, clock="own", spark=spark) as other:
        other._runners.setting = "spark"
        for engine in (local, other):
            engine.execute("; ".join(f"CREATE TABLE {name} (a integer, b integer, c integer)" for name in "rst"))
            engine.execute(f"CREATE MATERIALIZED VIEW early AS {SQL}")
        for number in range(6):
            rows = ", ".join(str(tuple(choices.choices((0, 1, 1, 1, 2), k=3))) for _ in range(4))
            change = ENDS.get(number) or "; ".join(f"INSERT INTO {name} VALUES {rows}" for name in "rst")
            for engine in (local, other):
                engine.execute(f"SET TIME = {number + 1}; BEGIN; {change}; COMMIT")
                if number == 2:
                    engine.execute(f"CREATE MATERIALIZED VIEW late AS {SQL}")
            states = local._state, other._state
            for view in ("early", "late") if number >= 2 else ("early",):
                ours, theirs = (contents(state.maintained[view].errors, state.upper - 1) for state in states)
                assert ours == theirs
                failed += bool(ours)
                if not ours:
                    assert bag(local.read(view)) == bag(other.read(view))
                    read += local.read(view).num_rows
    assert failed and read
