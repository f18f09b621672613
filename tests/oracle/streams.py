"""Random programs: they make and drop views while batches come in, times close, and history is compacted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from tests.oracle.choice import Choices, chance
from tests.oracle.rows import Bag, Update
from tests.oracle.schema import TABLES, Table, random_row
from tests.oracle.views import View, random_view


@dataclass(frozen=True)
class Apply:
    """A batch; `close=False` leaves its times open."""

    updates: dict[str, list[Update]]
    close: bool = True


@dataclass(frozen=True)
class Advance:
    """Close every time below `to`."""

    to: int


@dataclass(frozen=True)
class Compact:
    """Force compaction."""


@dataclass(frozen=True)
class Create:
    """Make a view. It is filled if its inputs have rows."""

    view: View


@dataclass(frozen=True)
class Drop:
    """Drop a materialized view that no other view reads."""

    view: View


@dataclass(frozen=True)
class Tune:
    """A statement or call that must change no answer: an index made or dropped, runs merged."""

    sql: str  # empty: flush


Maker: TypeAlias = Callable[[Choices, str, Sequence[View], bool], View]
Step: TypeAlias = Apply | Advance | Compact | Create | Drop | Tune
INDEXES = ("b (x)", "a (x)", "c (y)", "b (y, s)", "a (s)", "b (x + 1)", "c (lo, y)", "a (x, s)", "b (s)")


@dataclass(frozen=True)
class Program:
    """Steps in order, for an engine that keeps `retain` time units of history."""

    retain: int
    steps: tuple[Step, ...]

    @property
    def updates(self) -> list[tuple[str, Update]]:
        """All updates of all tables, in the order in which they are applied."""
        batches = [step.updates for step in self.steps if isinstance(step, Apply)]
        return [(table, update) for batch in batches for table, updates in batch.items() for update in updates]


@dataclass
class _Tables:
    """The applied updates: enough to delete existing rows and to keep PRIMARY KEYs."""

    present: dict[str, Bag] = field(default_factory=lambda: {table.name: Counter() for table in TABLES})
    changed: dict[tuple[str, object], int] = field(default_factory=dict)  # a key's row changed last at this time
    upper: int = 0
    tame: bool = False  # no row ever fewer than no times, so that any SQL has an answer


def tame_batches(choices: Choices, count: int, upper: int = 0) -> list[Apply | Advance]:
    """Batches of one time each, after which no row is contained a negative number of times."""
    tables = _Tables(upper=upper, tame=True)
    return [_change(choices, tables, 6) for _ in range(count)]


def random_program(choices: Choices, most: int = 5, view: Maker = random_view) -> Program:
    """Views over the three tables, some of them made after rows have come, then up to `most` changes.

    `view` makes a view of a name, over the views before it, materialized or not.
    """
    tables, steps, views = _Tables(), list[Step](), list[View]()
    index = ""
    for number in range(choices.integer(1, 3)):
        if chance(choices, 20) and not index:
            index = choices.one_of(INDEXES)
            steps.append(Tune(f"CREATE INDEX quick ON {index}"))
        count = choices.one_of((0, 1, 2)) if number else choices.one_of((0, 0, 1))
        steps += [_change(choices, tables, 6) for _ in range(count)]
        materialized = not chance(choices, 25)
        views.append(view(choices, f"v{number}", views, materialized))
        steps.append(Create(views[-1]))
    for _ in range(choices.integer(1, most)):
        steps.append(_change(choices, tables, 4))
        if chance(choices, 25):
            steps.append(choices.one_of((Compact(), Compact(), Tune(""))))
        if index and chance(choices, 15):
            index = ""
            steps.append(Tune("DROP INDEX quick"))
        if views[-1].materialized and chance(choices, 8):
            steps += [Drop(views[-1]), Create(views[-1])]
    steps.append(Advance(tables.upper + choices.one_of((1, 3, 12, 25))))
    return Program(choices.one_of((1_000, 5, 1)), tuple(steps))


def _change(choices: Choices, tables: _Tables, most: int) -> Apply | Advance:
    """A batch, or time passing."""
    if chance(choices, 15):
        tables.upper += choices.integer(1, 4)
        return Advance(tables.upper)
    spread = 0 if tables.tame else choices.one_of((0, 0, 1, 3))
    batch: dict[str, list[Update]] = {}
    for table in TABLES:
        if not chance(choices, 80):
            continue
        updates = [u for _ in range(choices.integer(1, most))
                   for u in _updates(choices, tables, table, tables.upper + choices.integer(0, spread))]
        if updates:
            batch[table.name] = updates
    close = tables.tame or not chance(choices, 30)
    times = [time for updates in batch.values() for _, time, _ in updates]
    if close and times:
        tables.upper = max(times) + 1
    return Apply(batch, close) if times else Advance(tables.upper)


def _updates(choices: Choices, tables: _Tables, table: Table, time: int) -> list[Update]:
    """An insertion, a deletion, or both: a row changed."""
    present = tables.present[table.name]
    rows = sorted((row for row, count in present.items() if count > 0), key=repr)
    form = choices.one_of(("insert", "insert", "delete", "update"))
    updates: list[Update] = []
    if form != "insert" and rows:
        updates.append((choices.one_of(rows), time, -1))
    elif form == "delete" and not (table.key or tables.tame) and chance(choices, 30):
        updates.append((random_row(choices, table), time, -1))  # fewer than none: linear SQL has an answer to that too
    if form != "delete":
        updates.append((random_row(choices, table), time, 2 if not table.key and chance(choices, 15) else 1))
    if table.key and not _keeps_key(tables, table, updates):
        return []
    for row, _, diff in updates:
        present[row] += diff
        tables.changed[table.name, row[0]] = time
    return updates


def _keeps_key(tables: _Tables, table: Table, updates: list[Update]) -> bool:
    """Whether every key still has at most one row at every time, after changes that come in the order of time."""
    counts = Counter({row[0]: count for row, count in tables.present[table.name].items() if count})
    for row, time, diff in updates:
        counts[row[0]] += diff
        if tables.changed.get((table.name, row[0]), time) > time:
            return False
    return all(counts[row[0]] in (0, 1) for row, _, _ in updates)
