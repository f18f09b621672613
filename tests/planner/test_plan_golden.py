"""Golden scripts in tests/planner/plans: SQL, the normal form after each rule that changed it, the paths, and the rows.

The rows are the view's over the few rows of `plans/rows.sql`, and DuckDB's answer to the same question.
`make docs` writes the scripts anew (`HALFJOIN_UPDATE=1`); the difference is then read in review.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import halfjoin as hj
from halfjoin.planner.explain import text, trace_text
from halfjoin.planner.plan_view import trace
from tests.oracle.duck import Oracle
from tests.oracle.rows import Bag, bag
from tests.support.plan_facts import World

PLANS = Path(__file__).parent / "plans"
SCRIPTS = sorted(PLANS.glob("*.txt"))
RULE = "-" * 20
TABLES = (PLANS / "rows.sql").read_text()
DDL = TABLES.partition("INSERT")[0]
SIZES = {"region": 5, "nation": 25, "supplier": 10_000, "customer": 150_000, "orders": 1_500_000, "lineitem": 6_000_000,
         "a": 1000, "b": 10_000, "c": 100}  # fmt: skip
NOW = 10  # the time of the read

# What DuckDB writes otherwise: divisions that truncate, a series of a column, copies of a row.
IN_DUCKDB = {
    "fallible_key_and_filter": (
        "SELECT a.k // b.x AS ratio FROM a, b WHERE a.x + 1 = b.y AND 10 // b.x > 2 AND a.k * b.y > 5 AND a.x > 0"
    ),
    "series_as_key": (
        "SELECT a.k, b.s FROM a, LATERAL (SELECT unnest(generate_series(1, a.x)) AS n) AS g, b "
        "WHERE b.y = g.n AND a.x < 100"
    ),
    "series_over_two_inputs": (
        "SELECT a.k, g.n, c.ts FROM a JOIN b ON a.x = b.x, LATERAL (SELECT unnest(generate_series(a.x, b.y)) AS n) "
        "AS g, c WHERE g.n = c.y"
    ),
    "weights": "SELECT abs FROM (VALUES (0, 0), (1, 1 - 1), (2, 2)) AS w(abs, n), range(w.n)",
}
FAILS = {"values_that_may_fail": "division by zero"}  # DuckDB divides by zero without an error


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_golden(path: Path) -> None:
    sql = path.read_text().partition(RULE)[0].strip()
    world = World(DDL, SIZES)
    rules, planned = trace(world.relation(sql), world)
    parts = [sql, trace_text(rules), text(planned, world, path.stem), _rows(path.stem, sql)]
    found = f"\n{RULE}\n".join(parts) + "\n"
    if os.environ.get("HALFJOIN_UPDATE"):
        path.write_text(found)
    assert found == path.read_text()


def _rows(name: str, sql: str) -> str:
    """The rows of the view. They equal DuckDB's answer, whether the view was made before the rows came or after."""
    engine = hj.Engine()
    engine.execute(DDL)
    engine.execute(f"CREATE MATERIALIZED VIEW early AS {sql}")
    for time, batch in enumerate(_batches()):
        engine.apply(batch, time=time)
    engine.execute(f"CREATE MATERIALIZED VIEW late AS {sql}")
    engine.advance(to=NOW + 1)
    if name in FAILS:
        for view in ("early", "late"):
            with pytest.raises(hj.DataError, match=FAILS[name]):
                engine.read(view)
        return f"not readable at {NOW}: {FAILS[name]}"
    expected = _oracle().ask(IN_DUCKDB.get(name, sql), NOW)
    late = engine.read("late")
    assert bag(engine.read("early")) == bag(late) == expected
    return f"rows at {NOW}: {' | '.join(late.column_names)}\n{_listed(expected)}".rstrip()


def _listed(rows: Bag) -> str:
    shown = Counter({" | ".join("NULL" if v is None else str(v) for v in row): n for row, n in rows.items()})
    return "\n".join(sorted(shown.elements()))


@cache
def _batches() -> list[Mapping[str, pa.Table]]:
    """The rows in two batches, each with rows of every table, so that rows of a join arrive together and apart."""
    duck = duckdb.connect(config={"threads": 1})
    duck.execute(TABLES)
    names = [name for (name,) in duck.sql("SHOW TABLES").fetchall()]
    return [{name: duck.sql(f"FROM {name} WHERE rowid % 2 = {part}").to_arrow_table() for name in names}
            for part in (0, 1)]


@cache
def _oracle() -> Oracle:
    oracle, duck = Oracle(), duckdb.connect(config={"threads": 1})
    duck.execute(DDL)
    for (name,) in duck.sql("SHOW TABLES").fetchall():
        columns = {column[0]: column[1] for column in duck.sql(f"DESCRIBE {name}").fetchall()}
        oracle.create(name, ", ".join(f"{column} {kind}" for column, kind in columns.items()), columns)
    for time, batch in enumerate(_batches()):
        for name, rows in batch.items():
            at, one = (pa.repeat(pa.scalar(value), len(rows)) for value in (time, 1))
            oracle.apply(name, rows.append_column("__time", at).append_column("__diff", one))
    return oracle
