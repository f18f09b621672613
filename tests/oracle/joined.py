"""Random streams over four small tables full of NULLs and copies, and queries over them held against DuckDB."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa

import halfjoin
from tests.oracle.duck import Oracle
from tests.oracle.rows import Bag
from tests.support.joins import contents

TABLES = "abcd"
Row = tuple[int | None, int | None]
_SCHEMA = pa.schema({"k": pa.int32(), "x": pa.int32(), "__time": pa.int64(), "__diff": pa.int64()})


@dataclass
class Streams:
    """An engine and an oracle that get the same batches: open times, NULLs, copies, rows that go and come again."""

    rng: random.Random
    views: dict[str, str] = field(default_factory=dict)
    upper: int = 0

    def __post_init__(self) -> None:
        self.engine = halfjoin.Engine(retain=self.rng.choice([1, 4, 1000]))
        self.oracle = Oracle()
        self.rows: dict[str, dict[Row, tuple[int, int]]] = {name: {} for name in TABLES}  # count, time of last change
        for name in TABLES:
            self.engine.execute(f"CREATE TABLE {name} (k integer, x integer)")
            self.oracle.create(name, "k integer, x integer", ("k", "x"))

    def create(self, name: str, sql: str, duckdb: str) -> None:
        """A materialized view, and what DuckDB is asked for it."""
        self.engine.execute(f"CREATE MATERIALIZED VIEW {name} AS {sql}")
        self.views[name] = duckdb

    def batch(self) -> None:
        """Random rows, after which times may close; or time passes."""
        rng, last = self.rng, 0
        given: dict[str, list[dict[str, int | None]]] = {}
        for _ in range(rng.choice([0, 2, 4, 8])):
            table, time, diff = rng.choice(TABLES), self.upper + rng.randrange(4), 1
            row: Row = (rng.choice([0, 1, 2, None]), rng.choice([0, 1, 2, None]))
            there = [old for old, (count, _) in self.rows[table].items() if count]
            if there and rng.random() < 0.45:
                row, diff = rng.choice(there), -1
            count, changed = self.rows[table].get(row, (0, 0))
            time = max(time, changed)
            self.rows[table][row] = (count + diff, time)
            given.setdefault(table, []).append({"k": row[0], "x": row[1], "__time": time, "__diff": diff})
            last = max(last, time)
        if given:
            self.engine.apply(given, close=False)
            for table, updates in given.items():
                self.oracle.apply(table, pa.Table.from_pylist(updates, _SCHEMA))
        upper = last + 1 if last and rng.random() < 0.3 else self.upper + rng.randrange(4)
        if upper > self.upper:
            self.engine.advance(to=upper)
            self.upper = upper
        if rng.random() < 0.2:
            self.engine.compact()

    def first_wrong(self) -> str:
        """Which view is wrong at which time, and how; nothing if none is."""
        for name, sql in self.views.items():
            view = self.engine._state.views[name].contents
            for time in range(view.since, self.upper):
                got, want = contents(view, time), self.oracle.ask(sql, time)
                if got != want:
                    return f"{sql} at {time} of {self.upper}: {_less(got, want)} too many, {_less(want, got)} missing"
        return ""


def _less(one: Bag, other: Bag) -> Bag:
    return Counter({row: count - other[row] for row, count in one.items() if count > other[row]})


def run(seed: int, queries: Sequence[str | tuple[str, str]]) -> str:
    """Views made before the first row and again later. Returns how the first wrong one is wrong.

    A query is one text, or one for halfjoin and one for DuckDB.
    """
    streams = Streams(random.Random(seed))
    texts = [(query, query) if isinstance(query, str) else query for query in queries]
    for number, (sql, duckdb) in enumerate(texts):
        streams.create(f"v{number}", sql, duckdb)
    batches = streams.rng.randint(2, 6)
    late = streams.rng.randrange(batches)
    for number in range(batches):
        streams.batch()
        if number == late:
            for place, (sql, duckdb) in enumerate(texts):
                streams.create(f"w{place}", sql, duckdb)
        if wrong := streams.first_wrong():
            return wrong
    streams.engine.advance(to=streams.upper + 10)
    streams.upper += 10
    return streams.first_wrong()
