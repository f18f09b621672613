"""How many calls it takes to plan joins of many tables and sets of many groups."""

from __future__ import annotations

from functools import partial

import halfjoin as hj
from tests.support.counting import calls


def test_n_paths_of_n_stages_take_a_few_calls_each() -> None:
    def counted(tables: int) -> int:
        engine = hj.Engine()
        numbers = range(tables)
        engine.execute(f"CREATE TABLE f (id int PRIMARY KEY, {', '.join(f'k{n} int' for n in numbers)})")
        for n in numbers:
            engine.execute(f"CREATE TABLE j{n} (a int PRIMARY KEY, b int)")
        joined = " ".join(f"JOIN j{n} ON j{n}.a = f.k{n}" for n in numbers)
        return calls(partial(engine.execute, f"CREATE MATERIALIZED VIEW v AS SELECT f.* FROM f {joined}"))

    assert counted(32) <= 4.8 * counted(16)  # each stage of each path chose among all tables and links: 6 times


def test_a_cube_takes_as_many_calls_as_it_has_sets() -> None:
    def counted(keys: int) -> int:
        engine, names = hj.Engine(), ", ".join(f"c{n}" for n in range(keys))
        engine.execute(f"CREATE TABLE t ({', '.join(f'c{n} int' for n in range(keys))})")
        return calls(partial(engine.query, f"SELECT {names}, count(*) FROM t GROUP BY CUBE ({names})"))

    assert counted(8) <= 2.2 * counted(7)  # each node asked all others whether they read it: 2.3 times
