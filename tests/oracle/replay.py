"""Run a program through an engine and the oracle, and compare every answer."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hypothesis import reject

import halfjoin as hj
from tests.oracle.duck import Oracle
from tests.oracle.rows import Bag, Update, bag, nonzero, summed, updates
from tests.oracle.schema import BY_NAME, TABLES
from tests.oracle.streams import Advance, Apply, Compact, Create, Drop, Program, Step, Tune
from tests.oracle.views import View


@dataclass
class _Watched:
    """A view with the changes reported since it was made, on top of its contents then."""

    view: View
    born: int  # upper when it was made
    changes: list[Update]

    @property
    def columns(self) -> list[str]:
        return [name for name, _ in self.view.query.columns]


class Replay:
    """An engine and an oracle that run the same program."""

    def __init__(self, retain: int, warehouse: Path | str | None = None) -> None:
        self.engine = hj.Engine(warehouse, retain=retain)
        self.oracle = Oracle()
        self.retain, self.upper = retain, 0
        self.watched: dict[str, _Watched] = {}
        for table in TABLES:
            self.engine.execute(table.ddl)
            self.oracle.create_table(table)

    def step(self, step: Step) -> None:
        """Run one step, and check the changes that it reports."""
        match step:
            case Apply(changes, close):
                batch = {name: BY_NAME[name].arrow(rows) for name, rows in changes.items()}
                for name, table in batch.items():
                    self.oracle.apply(name, table)
                latest = max(time for rows in changes.values() for _, time, _ in rows)
                applied = self.engine.apply(batch, close=close)
                self._closed(applied, max(self.upper, latest + 1) if close else self.upper)
            case Advance(to):
                self._closed(self.engine.advance(to=to), max(self.upper, to))
            case Compact():
                self.engine.compact()
            case Tune(sql):
                _ = self.engine.execute(sql) if sql else self.engine.flush()
            case Create(view):
                self._create(view)
            case Drop(view):
                self.engine.execute(f"DROP MATERIALIZED VIEW {view.name}")
                self.oracle.drop_view(view.name)
                del self.watched[view.name]

    def check_now(self) -> None:
        """Check the newest contents of every view: as read, and as the sum of the reported changes."""
        if self.upper:
            for watched in self.watched.values():
                self._check(watched, self.upper - 1)

    def check_all(self) -> None:
        """Check contents at times that must be readable, changes since the view was made, and SUBSCRIBE."""
        first = max(0, self.upper - self.retain)
        for watched in self.watched.values():
            times = _some_of(range(min(first, watched.born), self.upper))
            expected = {time: self._check(watched, time) for time in times}
            if first < self.upper:
                self._check_subscription(watched, first, {t: bag for t, bag in expected.items() if t >= first})

    def expected(self, view: View, time: int) -> Bag:
        """The oracle's answer."""
        return self.oracle.contents(view.name, [name for name, _ in view.query.columns], time)

    def _create(self, view: View) -> None:
        try:
            self.engine.execute(view.ddl)
        except hj.UnsupportedSQL as refused:  # unions of views over unions multiply; the refusal is right, the try void
            if "joins over UNION ALL make" in str(refused):
                self.engine.close()  # it may be writing to the folder, which goes with this try
                reject()
            raise
        self.oracle.create_view(view.name, view.query.sql, view.query.oracle)
        if view.materialized:
            # Of a view that is made before anything is closed, even constant rows are changes of the first time closed.
            there = self.expected(view, self.upper - 1) if self.upper else {}
            before = [(row, self.upper - 1, n) for row, n in there.items()]
            self.watched[view.name] = _Watched(view, self.upper, before)

    def _closed(self, applied: hj.Applied, upper: int) -> None:
        """Take the reported changes: of times just closed, each row and time once, none of them zero."""
        assert applied.upper == upper, f"upper is {applied.upper}, not {upper}"
        for name, table in applied.diffs.items():
            if name not in self.watched:
                continue
            changes = updates(table)
            assert all(self.upper <= time < upper for _, time, _ in changes), f"{name}: times outside what was closed"
            assert len({(row, time) for row, time, _ in changes}) == len(changes), f"{name}: changes not consolidated"
            assert all(diff for _, _, diff in changes), f"{name}: an empty change"
            self.watched[name].changes += changes
        self.upper = upper

    def _check(self, watched: _Watched, time: int) -> Bag:
        view, expected = watched.view, self.expected(watched.view, time)
        if time >= self.upper - self.retain:
            read = bag(self.engine.read(view.name, as_of=time, multiplicity=True))
            _same(read, expected, f"contents of {view.name} as of {time}: {view.ddl}")
        if time >= watched.born:
            _same(summed(watched.changes, time), expected, f"changes of {view.name} up to {time}: {view.ddl}")
        return expected

    def _check_subscription(self, watched: _Watched, first: int, expected: dict[int, Bag]) -> None:
        changes = [update for table in self.engine.subscribe(watched.view.name, as_of=first, up_to=self.upper)
                   for update in updates(table)]
        assert all(first <= time < self.upper for _, time, _ in changes), "a subscription outside its times"
        for time, contents in expected.items():
            _same(summed(changes, time), contents, f"SUBSCRIBE {watched.view.ddl} at {time}")


def _some_of(times: range) -> list[int]:
    """All times if they are few, otherwise some of them, including the first and the last."""
    step = max(1, len(times) // 12)
    return sorted({*times[::step], *times[-1:]})


def _same(found: Bag, expected: Bag, what: str) -> None:
    if found == expected:
        return
    missing = nonzero(expected)
    missing.subtract(found)
    wrong = {row: -count for row, count in missing.items() if count}
    raise AssertionError(f"{what}\n  too many (+) or too few (-): {wrong}")


def run(program: Program) -> None:
    """Check the view law over a whole program."""
    replay = Replay(program.retain)
    for step in program.steps:
        replay.step(step)
        replay.check_now()
    replay.check_all()


def contents_after(program: Program, batches: list[Step]) -> dict[tuple[str, int], Bag]:
    """Contents of every view at every time, with the program's views made first and these batches applied."""
    replay = Replay(retain=1_000_000)
    views = {step.view.name: step.view for step in program.steps if isinstance(step, Create)}
    for step in [Create(view) for view in views.values()] + batches:
        replay.step(step)
    return {(name, time): bag(replay.engine.read(name, as_of=time, multiplicity=True))
            for name in replay.watched for time in range(replay.upper)}
