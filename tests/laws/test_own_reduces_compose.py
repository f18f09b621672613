"""A reduce that gives each group back as it is changes no view, wherever the view reads it: DuckDB reads the table."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest

import halfjoin as hj
from tests.oracle.choice import Seeded
from tests.oracle.duck import Oracle
from tests.oracle.rows import bag
from tests.oracle.schema import BY_NAME, TABLES
from tests.oracle.streams import Advance, Apply, tame_batches
from tests.oracle.written import IN_DUCKDB, VIEWS

BY = {"a": "PARTITION BY x ORDER BY s DESC", "b": "PARTITION BY s, x", "c": "PARTITION BY y ORDER BY ts"}


@pytest.mark.parametrize("name", VIEWS)
def test_view_law_over_reduces_for(name: str) -> None:
    engine, oracle, calls = hj.Engine(), Oracle(), Counter[str]()

    def same(rows: pa.RecordBatch) -> pa.RecordBatch:
        calls["one"] += 1
        return rows

    def all_the_same(rows: pa.RecordBatch) -> pa.RecordBatch:
        calls["many"] += 1
        return rows.slice(0)

    engine.advance(to=1)
    for table in TABLES:  # the view reads the reduce under the table's name
        engine.execute(table.ddl.replace(f"TABLE {table.name}", f"TABLE base_{table.name}"))
        oracle.create_table(table)
        columns = engine._state.catalog.columns(f"base_{table.name}") or ()
        returns = {column.name: str(column.type) for column in columns}
        engine.register_reduce(f"same_{table.name}", same if table.name == "a" else all_the_same, returns=returns,
                               vectorised=table.name != "a")  # fmt: skip
        engine.execute(f"CREATE VIEW {table.name} AS SELECT r.* FROM "
                       f"same_{table.name}(TABLE base_{table.name} {BY[table.name]}) AS r")  # fmt: skip
    oracle.create_view("v", IN_DUCKDB.get(name, VIEWS[name]))
    engine.execute(f"CREATE MATERIALIZED VIEW early AS {VIEWS[name]}")
    for number, step in enumerate([*tame_batches(Seeded(7), 12, upper=1), Advance(40)]):
        if number == 8:
            engine.execute(f"CREATE MATERIALIZED VIEW late AS {VIEWS[name]}")
        if isinstance(step, Apply):
            for table, rows in step.updates.items():
                oracle.apply(table, BY_NAME[table].arrow(rows))
            engine.apply({f"base_{table}": BY_NAME[table].arrow(rows) for table, rows in step.updates.items()})
        else:
            engine.advance(to=step.to)
    for time in range(engine.stats().upper):
        expected = oracle.ask("SELECT * FROM v", time)
        assert bag(engine.read("early", as_of=time)) == expected, f"made early, as of {time}"
        assert bag(engine.read("late", as_of=time)) == expected, f"filled late, as of {time}"
    read = engine._state.catalog.views["early"].reads
    assert bool(calls["one"]) == ("base_a" in read) and bool(calls["many"]) == bool({"base_b", "base_c"} & {*read})
