"""The 22 queries of TPC-H as views over one set of tables: each follows its SQL through refreshes of all tables."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import halfjoin as hj
from examples.tpch import COLUMNS, QUERIES, SQL, query
from tests.oracle.tpch import FRACTION, Contents, arrow, difference, empty, refreshes, rows
from tests.support.postgres import postgres  # noqa: F401

SEED = 1  # with which no query is without rows
NEAR = 1e-6  # a quotient in DuckDB is a double, PostgreSQL and halfjoin give digits that differ in number
SCHEMA = (SQL / "schema.sql").read_text()

Rows = list[tuple[Any, ...]]


@dataclass
class Run:
    """The contents after each batch, and what the engine answered."""

    batches: list[tuple[str, Contents]] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
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
        run.read.append({view: _rows(engine.read(view)) for view in QUERIES if view not in run.refused})
        for view, changes in applied.diffs.items():
            for *row, _, diff in _rows(changes):
                held[view][tuple(row)] = held[view].get(tuple(row), 0) + diff
        run.summed.append({view: [row for row, n in held[view].items() for _ in range(n)] for view in held})
    times = range(len(run.batches))
    run.past = [{view: _rows(engine.read(view, as_of=time)) for view in run.read[0]} for time in times]
    for view in run.read[0]:
        _create(engine, view, f"{view}_anew")
        run.filled[view] = [_rows(engine.read(f"{view}_anew", as_of=time)) for time in times]
    return run


@pytest.mark.parametrize("view", QUERIES)
def test_view_follows_duckdb_through_refreshes(view: str, run: Run) -> None:
    assert view not in run.refused, run.refused[view]
    duck = duckdb.connect()
    duck.execute(SCHEMA)
    for number, (batch, contents) in enumerate(run.batches):
        for table in COLUMNS:
            duck.register("rows", arrow(table, list(contents[table].values())))
            duck.execute(f"DELETE FROM {table}; INSERT INTO {table} SELECT * FROM rows")
        expected = duck.execute(_settled(view, duck)).fetchall()
        assert number or expected, "the first rows do not reach this query"
        ways = {"read": run.read, "sum of changes": run.summed, "read as of it, later": run.past}
        for way, found in ways.items():
            _same(found[number][view], expected, f"{view} after {batch}, {way}")
        _same(run.filled[view][number], expected, f"{view} after {batch}, filled later")


@pytest.mark.parametrize("view", QUERIES)
def test_view_follows_postgres_through_refreshes(view: str, run: Run, in_postgres: list[dict[str, Rows]]) -> None:
    assert view not in run.refused, run.refused[view]
    for (batch, _), found, expected in zip(run.batches, run.read, in_postgres, strict=True):
        _same(found[view], expected[view], f"{view} after {batch}")


@pytest.fixture(scope="module")
def in_postgres(run: Run, postgres: Any) -> Iterator[list[dict[str, Rows]]]:  # noqa: F811
    """What PostgreSQL answers to each query after each batch."""
    answers = []
    with postgres.cursor() as cursor:
        cursor.execute(f"CREATE SCHEMA tpch; SET search_path = tpch; {SCHEMA}")
        duck = duckdb.connect()  # knows the columns of each answer
        duck.execute(SCHEMA)
        for _, contents in run.batches:
            for table, columns in COLUMNS.items():
                cursor.execute(f"TRUNCATE {table}")
                with cursor.copy(f"COPY {table} ({', '.join(columns)}) FROM STDIN") as copying:
                    for row in contents[table].values():
                        copying.write_row([row[column] for column in columns])
            cursor.execute("ANALYZE")
            answers.append({view: cursor.execute(_settled(view, duck)).fetchall() for view in QUERIES})
        yield answers
        cursor.execute("DROP SCHEMA tpch CASCADE; RESET search_path")


def _load(contents: Contents, _: Random) -> None:
    contents.update(rows(SEED))


def _create(engine: hj.Engine, view: str, name: str) -> str | None:
    """Why the engine refuses to maintain the query; None if it does."""
    try:
        engine.execute(f"CREATE MATERIALIZED VIEW {name} AS {query(view, FRACTION)}")
    except hj.UnsupportedSQL as refused:
        return str(refused)
    return None


def _settled(view: str, duck: duckdb.DuckDBPyConnection) -> str:
    """The query, where LIMIT breaks ties by all columns in declared order."""
    sql = query(view, FRACTION)
    columns = ", ".join(name for name, *_ in duck.execute(sql).description or ())
    return str(sql.replace("\nLIMIT", f", {columns}\nLIMIT"))


def _rows(table: pa.Table) -> Rows:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def _same(found: Rows, expected: Rows, what: str) -> None:
    """Compare as multisets: what is exact in both is equal, quotients are near."""
    quotients = {place for row in [*found, *expected] for place, value in enumerate(row) if _inexact(value)}
    ours, theirs = (sorted(rows, key=lambda row: _key(row, quotients)) for rows in (found, expected))
    wrong = [pair for pair in zip(ours, theirs, strict=False) if not _near(*pair, quotients)]
    assert len(ours) == len(theirs) and not wrong, f"{what}: {ours[:5]}, not {theirs[:5]}; wrong: {wrong[:3]}"


def _inexact(value: Any) -> bool:
    """Whether it is a quotient: a double, or a number with more digits than the 6 of exact products."""
    return isinstance(value, float) or (isinstance(value, Decimal) and -int(value.as_tuple().exponent) > 6)


def _key(row: tuple[Any, ...], quotients: set[int]) -> tuple[Any, ...]:
    return tuple((value is not None, value) for place, value in enumerate(row) if place not in quotients)


def _near(ours: tuple[Any, ...], theirs: tuple[Any, ...], quotients: set[int]) -> bool:
    return len(ours) == len(theirs) and all(
        one == other if one is None or other is None or place not in quotients
        else abs(float(one) - float(other)) <= NEAR * max(1.0, abs(float(other)))
        for place, (one, other) in enumerate(zip(ours, theirs, strict=True))
    )  # fmt: skip
