"""Random histories of three small tables, and ways to tell an engine of them: in which batches, closed when, restarted.

A history is a list of updates, so that it can be told in many ways; a view's contents depend on none of them.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from zlib import crc32

from tests.oracle.nested import TABLES

Row = tuple[Any, ...]
Update = tuple[str, Row, int, int]  # table, row, time, diff
SQL = {"int": "int", "text": "text", "float": "double precision", "span": "interval", "date": "date",
       "num": "numeric(6,2)"}
DDL = [f"CREATE TABLE {name} ({', '.join(f'{column} {SQL[kind]}' for column, kind in columns)})"
       for name, columns in TABLES.items()]  # fmt: skip
DECIDED = {"span": 0, "date": 4, "num": 8}
VALUES: dict[str, tuple[Any, ...]] = {"int": (None, 0, 1, 2, 1), "text": ("p", "q", None),
                                      "float": (None, 0.5, 1.25, -2.0, 0.1),
                                      "date": ("2020-02-28", None, "2020-03-01", "2020-02-28"),
                                      "num": ("1.00", "0.50", None, "-2.25", "1.00"),
                                      "span": (None, "1 mon", "30 days", "1 day", "24:00", "-1:30")}  # fmt: skip


def random_row(rng: random.Random, table: str) -> Row:
    """A row of few values, so that rows are equal and groups meet. Some of its values decide the others."""
    row = [None if kind in DECIDED else rng.choice(VALUES[kind]) for _, kind in TABLES[table]]
    by = repr([value for (_, kind), value in zip(TABLES[table], row, strict=True) if kind not in ("date", "num")])
    return tuple(VALUES[kind][(crc32(by.encode()) >> DECIDED[kind]) % len(VALUES[kind])] if kind in DECIDED else value
                 for (_, kind), value in zip(TABLES[table], row, strict=True))


def random_history(rng: random.Random, length: int, end: int) -> list[Update]:
    """Rows come and go at times below `end`; none goes before it came. Often the last row of a table goes."""
    history: list[Update] = []
    there = {name: Counter[Row]() for name in TABLES}
    for time in sorted(rng.choice((0, *range(end))) for _ in range(length)):
        table = rng.choice("aaabbc")
        rows = sorted((row for row, count in there[table].items() if count), key=repr)
        leaves = bool(rows) and rng.random() < (0.25 if len(rows) < 4 else 0.5)
        row = rng.choice(rows) if leaves else random_row(rng, table)
        diff = -1 if leaves else rng.choice((1, 1, 1, 2))
        there[table][row] += diff
        history.append((table, row, time, diff))
    return history


@dataclass(frozen=True)
class Batch:
    """Updates that come together; then, and in the same batch, times below `upper` are closed."""

    updates: tuple[Update, ...]
    upper: int

    def rows(self) -> dict[str, list[dict[str, Any]]]:
        """The updates as rows for `Engine.apply`."""
        given: dict[str, list[dict[str, Any]]] = {}
        for table, row, time, diff in self.updates:
            names = [name for name, _ in TABLES[table]]
            given.setdefault(table, []).append(
                {**dict(zip(names, row, strict=True)), "__time": time, "__diff": diff})
        return given


def told(rng: random.Random, history: list[Update], end: int) -> Iterator[Batch]:
    """The history in batches: all at once, one update each, or any number; and early, in any order, or when due."""
    left, upper, size = list(history), 0, rng.choice((1, 3, len(history) or 1))
    early = rng.choice((0.0, 0.3, 1.0))
    step = rng.choice((1, 2, 3, end))
    while upper < end:
        closes = min(end, upper + rng.randint(1, step))
        now = [update for update in left if update[2] < closes or rng.random() < early]
        left = [update for update in left if not any(update is one for one in now)]
        rng.shuffle(now)
        chunks = [tuple(now[start : start + size]) for start in range(0, len(now), size)]
        closing = bool(chunks) and all(time < closes for _, _, time, _ in chunks[-1]) and rng.random() < 0.5
        last = chunks.pop() if closing else ()
        yield from (Batch(chunk, upper) for chunk in chunks)
        upper = closes
        yield Batch(last, upper)  # at times rows come in the batch that closes their times
