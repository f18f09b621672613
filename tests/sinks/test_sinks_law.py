"""Sinks and the view law: every version of a sink's table is the view's SQL, evaluated from scratch as of its time."""

from __future__ import annotations

import contextlib
import datetime as dt
import math
import random
import tempfile
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from hypothesis import given, settings
from hypothesis import strategies as st

import halfjoin as hj
from halfjoin.engine.sinks import sinks, table
from halfjoin.engine.sinks.table import SinkTable
from halfjoin.engine.storage import delta
from halfjoin.engine.updates import limits
from tests.oracle.choice import Seeded
from tests.oracle.replay import Replay
from tests.oracle.rows import Bag, bag
from tests.oracle.streams import Create, Drop, Step, Tune, random_program
from tests.oracle.views import View
from tests.support.seeds import some


class Faults:
    """Make commits fail sometimes: before they are made, or after, so that only the answer is lost."""

    def __init__(self, patch: pytest.MonkeyPatch, seed: int) -> None:
        self._random, self.on = random.Random(seed), True
        commit = SinkTable._commit

        def failing(written: SinkTable, *arguments: Any) -> None:
            fault = self._random.choice(("none", "none", "before", "after")) if self.on else "none"
            if fault == "before":
                raise OSError("injected before the commit")
            commit(written, *arguments)
            if fault == "after":
                raise OSError("injected after the commit")

        patch.setattr(SinkTable, "_commit", failing)


class SinkReplay(Replay):
    """A replay in which every materialized view has a sink. Sometimes it flushes or reopens the engine."""

    def __init__(self, retain: int, folder: Path, faults: Faults, seed: int) -> None:
        super().__init__(retain, folder)
        self._folder, self._faults, self._random = folder, faults, random.Random(seed)
        self._sinks: dict[str, tuple[View, str]] = {}
        self._made = 0
        self.versions = 0

    def step(self, step: Step) -> None:
        if self._random.random() < 0.3:
            self.engine.close()
            self.engine = hj.Engine(self._folder)
        if isinstance(step, Drop) and step.view.name in self._sinks:
            view, path = self._sinks.pop(step.view.name)
            self.engine.execute(f"DROP SINK of_{view.name}")
            self._check_versions(view, path)
        if step == Tune("") or self._random.random() < 0.2:
            self.flush()
        if step != Tune(""):
            super().step(step)
        if isinstance(step, Create) and step.view.materialized:
            self._sink(step.view)

    def flush(self) -> None:
        """Flush. It fails if a commit fails, or if no table can show a view's contents."""
        try:
            self.engine.flush()
        except hj.StorageError as error:
            assert "injected" in str(error) or "which no table can show" in str(error)

    def check_sinks(self) -> None:
        """Check every version of every sink's table, and that the last version is up to date if it can be."""
        self._faults.on = False
        self.flush()
        stats = {sink.name: sink for sink in self.engine.stats().sinks}
        for view, path in self._sinks.values():
            last = self._check_versions(view, path)
            now = self.expected(view, self.upper - 1) if self.upper else {}
            if all(count >= 0 for count in now.values()):
                assert last == now, f"{view.ddl} at {self.upper}"
                assert (stats[f"of_{view.name}"].upper, stats[f"of_{view.name}"].error) == (self.upper, None)
            else:
                assert "which no table can show" in (stats[f"of_{view.name}"].error or "")

    def _sink(self, view: View) -> None:
        for _ in range(2):
            path = f"sink{self._made}"
            self._made += 1
            try:
                self.engine.execute(f"CREATE SINK of_{view.name} FROM {view.name} INTO DELTA '{path}'")
            except hj.DataError:
                assert any(count < 0 for count in self.expected(view, self.upper - 1).values())
            except hj.StorageError as error:
                assert "injected" in str(error)
                self._faults.on = False
                continue
            else:
                self._sinks[view.name] = view, path
            break
        self._faults.on = True
        assert {sink.name for sink in self.engine.stats().sinks} == {f"of_{name}" for name in self._sinks}

    def _check_versions(self, view: View, path: str) -> Bag:
        uri = str(self._folder / "sinks" / path)
        found: Bag = bag(DeltaTable(uri).to_pyarrow_table())
        batches = []
        for commit in DeltaTable(uri).history():
            if "halfjoin.upper" in commit:
                upper = int(commit["halfjoin.upper"])
                read = bag(DeltaTable(uri, version=commit["version"]).to_pyarrow_table())
                assert read == (self.expected(view, upper - 1) if upper else {}), f"{view.ddl} at version {commit}"
                batches += [] if commit.get("halfjoin.note") == "files merged" else [upper]
                self.versions += 1
        assert batches == sorted(set(batches), reverse=True), "a batch was delivered twice"
        return found


def _in_pieces(patch: pytest.MonkeyPatch, seed: int) -> None:
    """Sometimes let a piece hold only a few rows."""
    most = (1, 3, 1 << 20)[seed % 3]
    patch.setattr(limits, "PIECE_ROWS", most)
    patch.setattr(sinks, "MOST_MISSED", (2, 64)[seed % 2])


@settings(max_examples=max(some(8), settings().max_examples // 6))
@given(st.integers(0, 1 << 32))
def test_every_version_of_a_sink_is_the_view_as_of_its_time(seed: int) -> None:
    program = random_program(Seeded(seed), most=20)
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(delta, "GROWTH", 1)  # small files are merged all the time
        patch.setattr(table, "ROWS", 3)
        _in_pieces(patch, seed)
        faults = Faults(patch, seed)
        replay = SinkReplay(program.retain, Path(folder) / "w", faults, seed)
        with replay.engine:
            for step in program.steps:
                replay.step(step)
            replay.check_sinks()
            replay.engine.close()


DDL = """
CREATE TABLE t (k bigint, x double precision, s text, d numeric(20,2), at time, ts timestamptz, r integer[], b boolean);
CREATE MATERIALIZED VIEW v AS SELECT * FROM t WHERE k IS NULL OR k < 9;
"""
AT, TS = dt.time(1, 2, 3, 4), dt.datetime(2024, 2, 29, 1, 2, 3, 4, dt.UTC)
COLUMNS = ("k", "x", "s", "d", "at", "ts", "r", "b")
ROWS = [dict(zip(COLUMNS, row, strict=True)) for row in (
    (1, 1.5, "a", Decimal("0.10"), AT, TS, [1, None], True),
    (1, 1.5, "a", Decimal("0.25"), AT, TS, [1, None], True),
    (1, math.nan, "a" * 40, None, None, None, None, None),
    (2, math.nan, "a" * 40, None, None, None, [], False),
    (2**62, None, "", Decimal("100000000000000000.00"), dt.time(0), TS, [], True),
    (None, None, None, None, None, None, None, None),
    (None, None, "é", None, None, None, None, None),
    (8, -1.5, "z", Decimal("-7.77"), dt.time(23, 59, 59, 999999), dt.datetime(1900, 1, 1, tzinfo=dt.UTC), [2], False),
)]  # fmt: skip
CHANGES = st.lists(st.tuples(st.integers(0, len(ROWS) - 1), st.sampled_from((1, 1, 2, -1, -2, -9))), max_size=6)
STEPS = st.lists(st.tuples(CHANGES, st.sampled_from(("", "", "", "open", "open", "flush", "compact", "advance"))),
                 min_size=3, max_size=14)  # fmt: skip


def _kept(row: dict[str, Any]) -> str:
    """A row as the sink's table has it: a time of day is microseconds since midnight."""
    at = row["at"]
    micros = at and ((at.hour * 60 + at.minute) * 60 + at.second) * 1_000_000 + at.microsecond
    return repr({**row, "at": micros if at is not None else None, "ts": row["ts"] and row["ts"].timestamp()})


def _read(uri: Path, version: int | None = None) -> Counter[str]:
    rows = DeltaTable(uri, version=version).to_pyarrow_table().to_pylist()
    return Counter(repr({**row, "ts": row["ts"] and row["ts"].timestamp()}) for row in rows)


@settings(max_examples=max(some(10), settings().max_examples // 2))
@given(STEPS, st.integers(0, 1 << 32), st.sampled_from((2, 1000)))
def test_sinks_of_a_table_and_of_a_view_over_it(steps: list[Any], seed: int, retain: int) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(delta, "GROWTH", 1)
        patch.setattr(table, "ROWS", 2)
        _in_pieces(patch, seed)
        faults = Faults(patch, seed)
        faults.on = False
        path = Path(folder) / "w"
        engine = hj.Engine(path, retain=retain)
        engine.execute(DDL + "CREATE SINK t FROM t INTO DELTA 'of t'; CREATE SINK v FROM v INTO DELTA 'of/v'")
        faults.on = True
        count: Counter[int] = Counter()
        history = {0: Counter(count)}
        for time, (changes, then) in enumerate(steps):
            rows = []
            for number, diff in changes:
                if diff < 0 and (diff != -9 or number):  # more than there are copies of one row only, and seldom
                    diff = max(diff, -count[number])
                count[number] += diff
                rows.append({**ROWS[number], "__diff": diff})
            engine.apply({"t": rows} if rows else {}, time=time)
            history[time + 1] = Counter(count)
            if then == "open":
                engine.close()
                engine = hj.Engine(path)
            elif then == "advance":
                engine.advance(to=time + 1)
            elif then:
                with contextlib.suppress(hj.StorageError):
                    getattr(engine, then)()
        faults.on = False
        whole = min(count.values(), default=0) >= 0
        with contextlib.nullcontext() if whole else pytest.raises(hj.StorageError, match="which no table can show"):
            engine.flush()
        engine.close()
        for sink, view in (("of t", False), ("of/v", True)):
            uri = path / "sinks" / sink
            expected = {upper: _shown(counts, view) for upper, counts in history.items()}
            uppers = []
            for commit in DeltaTable(uri).history():
                if "halfjoin.upper" in commit:
                    upper = int(commit["halfjoin.upper"])
                    assert _read(uri, commit["version"]) == expected[upper], commit
                    uppers += [] if commit.get("halfjoin.note") == "files merged" else [upper]
            assert uppers == sorted(set(uppers), reverse=True)
            if whole:
                assert _read(uri) == expected[len(steps)]


def _shown(counts: Counter[int], view: bool) -> Counter[str]:
    shown: Counter[str] = Counter()
    for number, times in counts.items():
        if times and not (view and ROWS[number]["k"] == 2**62):
            shown[_kept(ROWS[number])] += times
    return shown
