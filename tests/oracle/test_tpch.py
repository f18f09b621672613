"""The 22 queries of TPC-H as views over one set of tables: each follows its SQL through refreshes of all tables."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pytest

import halfjoin as hj
from examples.recompute import settled
from examples.tpch import COLUMNS, QUERIES, SQL, query
from tests.oracle.answers import Rows, assert_same
from tests.oracle.rows import tuples
from tests.oracle.tpch import FRACTION, Contents, arrow, difference, empty, refreshes, rows
from tests.support.postgres import postgres  # noqa: F401

pytestmark = pytest.mark.xdist_group("tpch")  # one process loads and refreshes the tables for all tests

SEED = 1  # with which no query is without rows
SCHEMA = (SQL / "schema.sql").read_text()


@dataclass
class Run:
    """The contents after each batch, and what the engine answered."""

    batches: list[tuple[str, Contents]] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    columns: dict[str, list[str]] = field(default_factory=dict)
    read: list[dict[str, Rows]] = field(default_factory=list)  # of each batch: the rows of each view
    summed: list[dict[str, Rows]] = field(default_factory=list)  # the same, as the sum of all reported changes
    past: list[dict[str, Rows]] = field(default_factory=list)  # the same, read at the end as of the batch
    filled: dict[str, list[Rows]] = field(default_factory=dict)  # of views made at the end, as of each batch


@pytest.fixture(scope="module")
def run() -> Run:
    """Views made over empty tables, then all batches, then views made over the history."""
    run, engine, contents, random = Run(), hj.Engine(retain=1_000), empty(), Random(SEED)
    engine.execute(SCHEMA)
    run.refused = {view: text for view in QUERIES if (text := _create(engine, view, view))}
    held: dict[str, dict[tuple[Any, ...], int]] = {view: {} for view in QUERIES}
    for name, change in (("load", _load), *refreshes()):
        before, time = copy.deepcopy(contents), len(run.batches)
        change(contents, random)
        applied = engine.apply(difference(before, contents), time=time)
        run.batches.append((name, copy.deepcopy(contents)))
        run.read.append({view: tuples(engine.read(view)) for view in QUERIES if view not in run.refused})
        for view, changes in applied.diffs.items():
            for *row, _, diff in tuples(changes):
                held[view][tuple(row)] = held[view].get(tuple(row), 0) + diff
        run.summed.append({view: [row for row, n in held[view].items() for _ in range(n)] for view in held})
    run.columns = {view: engine.read(view).column_names for view in run.read[0]}
    times = range(len(run.batches))
    run.past = [{view: tuples(engine.read(view, as_of=time)) for view in run.read[0]} for time in times]
    for view in run.read[0]:
        _create(engine, view, f"{view}_anew")
        run.filled[view] = [tuples(engine.read(f"{view}_anew", as_of=time)) for time in times]
    return run


@pytest.fixture(scope="module")
def in_duckdb(run: Run) -> list[dict[str, Rows]]:
    """What DuckDB answers to each query after each batch."""
    answers = []
    duck = duckdb.connect(config={"threads": 1})
    duck.execute(SCHEMA)
    for _, contents in run.batches:
        for table in COLUMNS:
            duck.register("rows", arrow(table, list(contents[table].values())))
            duck.execute(f"DELETE FROM {table}; INSERT INTO {table} SELECT * FROM rows")
        answers.append({view: duck.execute(settled(query(view, FRACTION), columns)).fetchall()
                        for view, columns in run.columns.items()})  # fmt: skip
    return answers


@pytest.mark.parametrize("view", QUERIES)
def test_view_follows_duckdb_through_refreshes(view: str, run: Run, in_duckdb: list[dict[str, Rows]]) -> None:
    assert view not in run.refused, run.refused[view]
    for number, ((batch, _), answers) in enumerate(zip(run.batches, in_duckdb, strict=True)):
        expected = answers[view]
        assert number or expected, "the first rows do not reach this query"
        ways = {"read": run.read, "sum of changes": run.summed, "read as of it, later": run.past}
        for way, found in ways.items():
            assert_same(found[number][view], expected, f"{view} after {batch}, {way}")
        assert_same(run.filled[view][number], expected, f"{view} after {batch}, filled later")


@pytest.mark.parametrize("view", QUERIES)
def test_view_follows_postgres_through_refreshes(view: str, run: Run, in_postgres: list[dict[str, Rows]]) -> None:
    assert view not in run.refused, run.refused[view]
    for (batch, _), found, expected in zip(run.batches, run.read, in_postgres, strict=True):
        assert_same(found[view], expected[view], f"{view} after {batch}")


def test_views_continue_after_restarts(run: Run, tmp_path: Path) -> None:
    engine = hj.Engine(tmp_path)
    engine.execute(SCHEMA)
    assert not [view for view in QUERIES if _create(engine, view, view)]
    before = empty()
    for number, (batch, contents) in enumerate(run.batches):
        engine.apply(difference(before, contents), time=number)
        before = contents
        if number % 4 == 1:
            engine.close()
            engine = hj.Engine(tmp_path)
            for view, expected in run.read[number].items():
                assert_same(tuples(engine.read(view)), expected, f"{view} after {batch} and a restart")
    for view, expected in run.read[-1].items():
        assert_same(tuples(engine.read(view)), expected, f"{view} at the end")
    engine.close()


@pytest.fixture(scope="module")
def in_postgres(run: Run, postgres_of_module: Any) -> Iterator[list[dict[str, Rows]]]:
    """What PostgreSQL answers to each query after each batch."""
    answers = []
    with postgres_of_module.cursor() as cursor:
        cursor.execute(SCHEMA)
        for _, contents in run.batches:
            for table, columns in COLUMNS.items():
                cursor.execute(f"TRUNCATE {table}")
                with cursor.copy(f"COPY {table} ({', '.join(columns)}) FROM STDIN") as copying:
                    for row in contents[table].values():
                        copying.write_row([row[column] for column in columns])
            cursor.execute("ANALYZE")
            answers.append({
                view: cursor.execute(settled(query(view, FRACTION), columns)).fetchall()
                for view, columns in run.columns.items()
            })  # fmt: skip
        yield answers


def _load(contents: Contents, _: Random) -> None:
    contents.update(rows(SEED))


def _create(engine: hj.Engine, view: str, name: str) -> str | None:
    """Why the engine refuses to maintain the query; None if it does."""
    try:
        engine.execute(f"CREATE MATERIALIZED VIEW {name} AS {query(view, FRACTION)}")
    except hj.UnsupportedSQL as refused:
        return str(refused)
    return None
