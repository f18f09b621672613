"""The view law for SQL that the grammar does not make: DuckDB evaluates the same text over the tables' contents."""

from __future__ import annotations

import pytest

import halfjoin as hj
from tests.oracle.choice import Seeded
from tests.oracle.duck import Oracle
from tests.oracle.rows import bag, changes, summed
from tests.oracle.schema import BY_NAME, TABLES
from tests.oracle.streams import Advance, Apply, tame_batches
from tests.oracle.written import IN_DUCKDB, VIEWS


@pytest.mark.parametrize("name", VIEWS)
def test_view_law_for(name: str) -> None:
    sql = VIEWS[name]
    engine, oracle = hj.Engine(), Oracle()
    engine.advance(to=1)
    for table in TABLES:
        engine.execute(table.ddl)
        oracle.create_table(table)
    oracle.create_view("v", IN_DUCKDB.get(name, sql))
    engine.execute(f"CREATE MATERIALIZED VIEW early AS {sql}")
    history = [(row, 0, count) for row, count in bag(engine.read("early")).items()]  # of views that read no table
    for number, step in enumerate([*tame_batches(Seeded(7), 12, upper=1), Advance(40)]):
        if number == 8:
            engine.execute(f"CREATE MATERIALIZED VIEW late AS {sql}")
        if isinstance(step, Apply):
            batch = {table: BY_NAME[table].arrow(rows) for table, rows in step.updates.items()}
            for table, rows in batch.items():
                oracle.apply(table, rows)
            applied = engine.apply(batch)
        else:
            applied = engine.advance(to=step.to)
        history += changes(applied, "early")
    for time in range(applied.upper):
        expected = oracle.ask("SELECT * FROM v", time)
        assert bag(engine.read("early", as_of=time)) == expected, f"made early, as of {time}"
        assert bag(engine.read("late", as_of=time)) == expected, f"filled late, as of {time}"
        assert summed(history, time) == expected, f"changes up to {time}"
