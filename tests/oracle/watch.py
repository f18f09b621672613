"""Tells an engine of a history, and compares its views with an oracle at every readable time."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import halfjoin as hj
from tests.oracle.calls import register
from tests.oracle.histories import DDL, Batch, Update
from tests.oracle.judges import Answers, normal
from tests.oracle.nested import Nested
from tests.oracle.rows import Bag, tuples, updates
from tests.oracle.values import Oracle

# What a random view may ask for, and no plan exists.
REFUSED = ("may fail, and reads more than one table or an outer join", "in the condition of an outer or semi-join",
           "which may fail, of more than one table", "outer or semi-join on", "otherwise than in an equality",
           "a row of an outer join's side and a subquery's rows are not compared", "mz_now()")  # fmt: skip


@dataclass(frozen=True)
class View:
    """A view: its SQL, which may read views before it, and an oracle's SQL over tables alone."""

    name: str
    sql: str
    alone: str


def some_views(rng: random.Random, count: int, depth: int, oracle: Oracle = "duckdb") -> list[View]:
    """Random views, nested `depth` deep. Later ones may read earlier ones."""
    state = rng.getstate()
    theirs = _texts(rng, count, depth, oracle, ours=False)
    rng.setstate(state)
    views = list[View]()
    for number, (sql, text) in enumerate(zip(_texts(rng, count, depth, oracle, ours=True), theirs, strict=True)):
        names = ", ".join(f"v{before} AS ({earlier})" for before, earlier in enumerate(theirs[:number]))
        views.append(View(f"v{number}", sql, f"WITH {names} SELECT * FROM ({text}) AS o" if names else text))
    return views


def _texts(rng: random.Random, count: int, depth: int, oracle: Oracle, *, ours: bool) -> list[str]:
    """The queries in one dialect."""
    grammar, texts = Nested(rng, oracle, ours, temporal=rng.random() < 0.4), list[str]()
    for number in range(count):
        query = grammar.query(rng.choice((depth - 1, depth)))
        texts.append(query.text)
        if rng.random() < 0.6:
            grammar.named[f"v{number}"] = query.columns
    return texts


class Watch:
    """An engine that is told of a history, and what it reported of its views since they were made."""

    def __init__(
        self, path: Path | None = None, *, retain: int = 1_000_000, memory: str | None = None, spark: Any = None
    ) -> None:
        """`spark`: the session whose jobs carry out everything; None keeps all work in this process."""
        runner = "local" if spark is None else "spark"
        self._path = path
        self._options = {"retain": retain, "memory": memory, "clock": "own", "runner": runner, "spark": spark}
        self.engine = hj.Engine(path, **self._options)
        self.upper = 0
        self.views: dict[str, View] = {}
        self.reported: dict[str, Counter[tuple[object, int]]] = {}  # by row and time
        register(self.engine)
        for ddl in DDL:
            self.engine.execute(ddl)

    def create(self, view: View, name: str) -> bool:
        """Make a view. Returns whether there is a plan for it, and for those that it reads."""
        try:
            self.engine.execute(f"CREATE MATERIALIZED VIEW {name} AS {view.sql}")
        except hj.UnsupportedSQL as problem:
            assert any(known in str(problem) for known in REFUSED), f"{problem}\n{view.sql}"
            return False
        except hj.UnknownName:  # of a view that was refused
            return False
        self.views[name], self.reported[name] = view, Counter()
        if self.upper:
            self._report(name, [(row, self.upper - 1, count) for row, count in self.read(name, self.upper - 1).items()])
        return True

    def tell(self, batch: Batch) -> None:
        """Apply the updates, and close times."""
        if not batch.updates:
            self._take(self.engine.advance(to=batch.upper))
        elif batch.upper > self.upper:
            self._take(self.engine.apply(batch.rows(), time=batch.upper - 1))
        else:
            self._take(self.engine.apply(batch.rows(), close=False))

    def restart(self) -> None:
        """Close the engine and open it again, if it is on disk."""
        if self._path is not None:
            self.engine.close()
            self.engine = hj.Engine(self._path, **self._options)
            register(self.engine)

    def read(self, name: str, time: int) -> Bag:
        """A view's contents."""
        return normal(tuples(self.engine.read(name, as_of=time)))

    def wrong(self, oracle: Answers, history: Sequence[Update]) -> str:
        """How a view is wrong at a readable time, or its reported changes; nothing if none is."""
        for time in range(self.upper):
            oracle.at(history, time)
            for name, view in self.views.items():
                want, since = oracle.ask(view.alone), self.engine._state.views[name].contents.since
                if want is None:
                    continue
                changes = Counter[object]()
                for (row, at), count in self.reported[name].items():
                    changes[row] += count if at <= time else 0
                told = {row: count for row, count in changes.items() if count}
                first = min((at for _, at in self.reported[name]), default=time)
                for got, what in ((self.read(name, time) if time >= since else want, "contents"),
                                  (told if time > first else want, "reported changes")):  # fmt: skip
                    if got != want:
                        return f"{name} at {time} of {self.upper}: {what}\n{got}, not\n{want}\n{view.alone}"
        return ""

    def _take(self, applied: hj.Applied) -> None:
        for name, table in applied.diffs.items():
            if name in self.views:
                self._report(name, updates(table))
        self.upper = applied.upper

    def _report(self, name: str, changes: Sequence[tuple[tuple[object, ...], int, int]]) -> None:
        for row, time, count in changes:
            (known,) = normal([row])
            self.reported[name][known, time] += count
