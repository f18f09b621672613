"""Random streams over a graph whose edges have a time, for views of loops, and DuckDB's answers."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import duckdb

import halfjoin as hj

LAST = 1_000  # a time after all others
TABLES = {"edges": ("a", "b", "until"), "roots": ("a",), "stops": ("a", "until")}
Update = tuple[str, tuple[int, ...], int, int]  # a table, a row, a time, a diff


def history(random: Random, steps: int) -> tuple[list[list[Update]], list[int]]:
    """Batches of updates, and the time that each closes."""
    batches, uppers, upper = [], [], 0
    there: Counter[tuple[str, tuple[int, ...]]] = Counter()
    times: dict[tuple[str, tuple[int, ...]], int] = {}
    for _ in range(steps):
        batch = list[Update]()
        for _ in range(random.randrange(2, 8)):
            time, diff = upper + random.randrange(4), 1
            table = random.choice([*TABLES, "edges", "edges"])
            row = tuple(random.randrange(25) if column == "until" else random.randrange(4) for column in TABLES[table])
            live = [one for one, count in sorted(there.items()) if count > 0]
            if live and random.random() < 0.4:
                (table, row), diff = random.choice(live), -1
                time = max(time, times[table, row])
            there[table, row] += diff
            times[table, row] = max(time, times.get((table, row), 0))
            batch.append((table, row, time, diff))
        upper += random.randrange(1, 5)
        batches.append(batch)
        uppers.append(upper)
    return batches, uppers


def contents(batches: list[list[Update]], time: int) -> dict[str, Counter[Any]]:
    found: dict[str, Counter[Any]] = {table: Counter() for table in TABLES}
    for table, row, at, diff in (one for batch in batches for one in batch):
        found[table][row] += diff if at <= time else 0
    return found


def in_duckdb(query: str, tables: dict[str, Counter[Any]], time: int) -> Counter[Any]:
    with duckdb.connect() as oracle:
        for table, columns in TABLES.items():
            oracle.execute(f"CREATE TABLE {table} ({', '.join(f'{column} bigint' for column in columns)})")
            for row in tables[table].elements():
                oracle.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
        return Counter(oracle.execute(query.replace("mz_now()", str(time))).fetchall())


def created(engine: hj.Engine) -> None:
    for table, columns in TABLES.items():
        engine.execute(f"CREATE TABLE {table} ({', '.join(f'{column} bigint' for column in columns)})")


def bag(found: Any) -> Counter[Any]:
    return Counter(tuple(row.values()) for row in found.to_pylist())


def given(batch: list[Update]) -> dict[str, list[dict[str, int]]]:
    """A batch as the engine takes it."""
    rows: dict[str, list[dict[str, int]]] = {}
    for table, row, time, diff in batch:
        update = {**dict(zip(TABLES[table], row, strict=True)), "__time": time, "__diff": diff}
        rows.setdefault(table, []).append(update)
    return rows


def streamed(
    query: str, random: Random, folder: Path | None, steps: int
) -> tuple[hj.Engine, list[str], list[list[Update]], int]:
    """An engine after a stream, reopened at times if it has a folder; two views of the query, one made before all and
    one in the midst; the batches; and the last time that they close."""
    engine = hj.Engine(folder, retain=LAST, clock="own")
    created(engine)
    batches, uppers = history(random, steps)
    views = list[str]()
    for step, (batch, upper) in enumerate(zip(batches, uppers, strict=True)):
        if step in (0, 3):
            views.append(f"v{step}")
            engine.execute(f"CREATE MATERIALIZED VIEW v{step} AS {query}")
        engine.apply(given(batch), time=LAST, close=False)
        engine.advance(upper)
        if folder is not None and random.random() < 0.5:
            engine.close()
            engine = hj.Engine(folder, memory=random.choice([None, 1]))
    return engine, views, batches, uppers[-1]


def from_scratch(query: str, tables: dict[str, Counter[Any]], time: int) -> Counter[Any]:
    """What an engine answers that has seen nothing but the contents at that time."""
    engine = hj.Engine(clock="own")
    created(engine)
    engine.apply({table: [dict(zip(TABLES[table], row, strict=True)) for row in rows.elements()]
                  for table, rows in tables.items()}, time=1)  # fmt: skip
    return bag(engine.query(query.replace("mz_now()", str(time))))
