"""Cost follows the change, not its history: lookups find only live rows, and every readable time stays readable."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import halfjoin as hj
from halfjoin.engine.arrange import merging, netting
from halfjoin.engine.arrange import run as runs_module
from halfjoin.engine.arrange.index import Index
from halfjoin.engine.arrange.keys import key_columns
from halfjoin.engine.arrange.merging import merge_runs
from halfjoin.engine.arrange.netting import laid, net, together
from halfjoin.engine.arrange.part import present
from halfjoin.engine.arrange.run import Run, make_run
from halfjoin.engine.join import beside
from halfjoin.engine.join.half_join import HalfJoinOperator
from halfjoin.engine.kernels import native
from halfjoin.engine.updates.updates import MINIMUM, Updates
from halfjoin.planner.plan import ArrangementKey
from halfjoin.sql.expr import Column
from halfjoin.sql.types import BIGINT
from tests.engine.test_budget import TightReplay
from tests.oracle.choice import Drawn
from tests.oracle.replay import Replay
from tests.oracle.streams import Program, random_program
from tests.storage.test_storage_law import DurableReplay
from tests.support.seeds import some

KEY = ArrangementKey("t", (Column("k", BIGINT),))
COLUMNS = {KEY: key_columns(KEY, {})}
UPDATE = st.tuples(st.integers(0, 2), st.integers(0, 1), st.integers(0, 12), st.sampled_from([1, 1, -1, -1, 2, -3]))
UPDATES = st.lists(UPDATE, max_size=12)
Rows = list[tuple[int, int, int, int]]


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make netting begin with the first two updates, and again with each further closed update."""
    for module in (netting, runs_module, merging):
        monkeypatch.setattr(module, "NET_FROM", 0)
    monkeypatch.setattr(runs_module, "RENET", 1_000)
    monkeypatch.setattr(beside, "NET_FROM", 0)


def _updates(rows: Rows) -> Updates:
    k, v, time, diff = np.array(rows, np.int64).reshape(-1, 4).T
    return Updates({"k": pa.array(k), "v": pa.array(v)}, time, diff)


def _rows(updates: Updates) -> Rows:
    k, v = (updates.columns[name].to_pylist() for name in "kv")
    return list(zip(k, v, updates.time.tolist(), updates.diff.tolist(), strict=True))


def _contents(rows: Rows, time: int) -> dict[tuple[int, int], int]:
    total: Counter[tuple[int, int]] = Counter()
    for k, v, at, diff in rows:
        if at <= time:
            total[k, v] += diff
    return {row: count for row, count in total.items() if count}


def _found(run: Run, closed: int) -> Rows:
    """The rows that lookups of all keys find in a run."""
    found = []
    for index in run.entries(KEY, COLUMNS[KEY], closed):
        for _, rows in index.find(np.arange(3)):
            taken = run.updates.take(rows)
            found += _rows(Updates(taken.columns, taken.time, run.diffs(rows, closed)))
    return found


def _netted(rows: Rows, closed: int) -> dict[Any, int]:
    """Add up the closed updates, and the others per time."""
    total: Counter[Any] = Counter()
    for k, v, time, diff in rows:
        total[k, v, max(time, closed - 1)] += diff
    return {row: count for row, count in total.items() if count}


@given(UPDATES, st.integers(0, 12), st.integers(0, 6))
def test_net_adds_up_what_is_closed_and_nothing_else(rows: Rows, closed: int, later: int) -> None:
    run = Run(_updates(rows))
    for upper in (closed, closed + later):  # the second time from what is known
        run = run.netted(upper)
        assert _netted(_found(run, upper), upper) == _netted(rows, upper)
        signs: dict[Any, set[bool]] = {}
        for k, v, time, diff in _found(run, upper):
            assert diff
            if time < upper:
                signs.setdefault((k, v), set()).add(diff > 0)
        assert all(len(several) == 1 for several in signs.values())
        assert sorted(_found(run, MINIMUM)) == sorted(_found(run, closed - 1)) == sorted(rows)


@given(st.lists(UPDATES, min_size=1, max_size=4), st.integers(1, 12), st.integers(0, 12), st.booleans())
@pytest.mark.usefixtures("soon")
def test_merged_runs_are_netted_and_their_log_is_whole(
    batches: list[Rows], upper: int, since: int, final: bool
) -> None:
    since = min(since, upper - 1)
    runs = [make_run(_updates(rows), 0).netted(min(upper, number * 3)) for number, rows in enumerate(batches)]
    for run in runs[::2]:
        run.index(KEY, COLUMNS[KEY])
    merged = merge_runs(runs, since, upper, COLUMNS, final=final)
    every = [row for rows in batches for row in rows]
    for time in range(since, 13):
        assert _contents(_rows(merged.updates), time) == _contents(every, time)
    assert sorted(_found(merged, MINIMUM)) == sorted(_rows(merged.updates))
    assert _netted(_found(merged, upper), upper) == _netted(every, upper)
    shown = [row for updates in present([merged], upper) for row in _rows(updates)]
    assert _netted(shown, upper) == _netted(every, upper)
    assert len(shown) <= len({(k, v, max(time, upper - 1)) for k, v, time, _ in shown}) + sum(
        abs(diff) for _, _, _, diff in shown
    )


@given(UPDATES, st.integers(0, 12))
def test_what_runs_hold_of_each_others_rows_meets_at_a_lookup(rows: Rows, closed: int) -> None:
    updates = _updates(rows)
    found = together(updates, closed)
    if found is None:
        assert not ({diff > 0 for *_, diff in rows} == {True, False} and len(rows) > 1)
        return
    there = updates.take(found[0])
    assert _netted(_rows(Updates(there.columns, there.time, found[1])), closed) == _netted(rows, closed)


def test_sums_past_an_int64_are_left_as_they_are() -> None:
    rows = [(0, 0, 0, 2**62), (0, 0, 1, 2**62), (0, 0, 2, 2**62), (0, 0, 3, -1)]
    assert net(_updates(rows), 9).there is None
    assert together(_updates(rows), 9) is None


def test_of_runs_of_which_nothing_is_netted_nothing_is_known() -> None:
    run = Run(_updates([(0, 0, 0, 1), (0, 0, 1, -1)]))
    assert laid([(None, 2), (run.net, 2)]).there is None
    known = laid([(None, 1), (run.netted(5).net, 2)])
    assert known.there is not None
    assert known.there.tolist() == [True, False, False]


@st.composite
def programs(draw: Callable[[st.SearchStrategy[Any]], Any]) -> Program:
    return random_program(Drawn(draw), most=12)


@given(programs())
@pytest.mark.usefixtures("soon")
def test_view_law_with_all_that_is_closed_netted(program: Program) -> None:
    replay = Replay(program.retain)
    for step in program.steps:
        replay.step(step)
        replay.check_now()
    replay.check_all()


@pytest.mark.parametrize("kind", [DurableReplay, TightReplay])
@settings(max_examples=max(some(10), settings().max_examples // 3))
@given(program=programs())
@pytest.mark.usefixtures("soon")
def test_view_law_netted_over_reopened_warehouses(kind: type[DurableReplay], program: Program) -> None:
    with tempfile.TemporaryDirectory() as folder:
        replay = kind(program.retain, Path(folder) / "w", seed=len(program.steps))
        for step in program.steps:
            replay.step(step)
            replay.check_now()
        replay.check_all()
        replay.engine.close()


_JOIN = "SELECT t.k, t.v + u.v AS v FROM t JOIN u ON u.k = t.k"


def _program(random: Random, folder: Path | None) -> None:
    """Rows that come, go and come again, with weights and future times. Views made at any time, all times read."""
    kept: dict[str, Rows] = {"t": [], "u": []}
    views: list[str] = []
    upper, retain = 0, random.choice((1_000, 1_000, 6))
    engine = hj.Engine(folder, retain=retain)
    engine.execute("CREATE TABLE t (k bigint, v bigint); CREATE TABLE u (k bigint, v bigint)")
    for number in range(14):
        if number in (0, 5, 10):
            views.append(f"v{number}")
            engine.execute(f"CREATE MATERIALIZED VIEW v{number} AS {_JOIN}")
        batch: dict[str, Rows] = {}
        for name, rows in kept.items():
            some = random.sample(rows, min(len(rows), random.randrange(4)))
            batch[name] = [(k, v, upper + random.randrange(4), -diff) for k, v, _, diff in some]
            fresh = ((random.randrange(2), random.randrange(2)) for _ in range(random.randrange(3)))
            batch[name] += [(k, v, upper + random.randrange(4), random.choice((1, 1, 2, -1))) for k, v in fresh]
            rows += batch[name]
        close = random.random() < 0.6
        given = {name: _updates(rows).table(changes=True) for name, rows in batch.items()}
        engine.apply(given, time=upper + 3, close=close)
        upper += 4 if close else random.randrange(3)
        engine.advance(upper)
        if random.random() < 0.2:
            engine.compact() if random.random() < 0.5 else engine.flush()
        if folder is not None and random.random() < 0.3:
            engine.close()
            engine = hj.Engine(folder, memory=random.choice((1, 3_000, 1 << 30)))
        for view in views:
            since = next(found.since for found in engine.stats().collections if found.name == view)
            for time in range(since, upper) if number > 11 else range(max(upper - 1, since), upper):
                there = {name: _contents(rows, time) for name, rows in kept.items()}
                want: Counter[tuple[int, int]] = Counter()
                for (k, v), count in there["t"].items():
                    for (other, w), times in there["u"].items():
                        if k == other:
                            want[k, v + w] += count * times
                expected = sorted((k, v, count) for (k, v), count in want.items() if count)
                found = engine.read(view, as_of=time, multiplicity=True).to_pylist()
                assert sorted(tuple(row.values()) for row in found) == expected, (view, time, upper)
                if expected and min(count for *_, count in expected) > 0:
                    asked = engine.query(f"SELECT k, v, count(*) FROM ({_JOIN}) GROUP BY k, v", as_of=time)
                    assert sorted(tuple(row.values()) for row in asked.to_pylist()) == expected
    engine.close()


@pytest.mark.parametrize("seed", range(9))
@pytest.mark.usefixtures("soon")
def test_every_time_of_views_made_at_any_time_is_right(seed: int, tmp_path: Path) -> None:
    _program(Random(seed), tmp_path / "w" if seed % 3 == 0 else None)


class Counts(Counter[str]):
    """Counts of the index entries found, and of the input and output rows of half-joins."""


@contextmanager
def counted() -> Iterator[Counts]:
    counts, join, find = Counts(), HalfJoinOperator.__call__, Index.find

    def call(self: HalfJoinOperator, stream: Updates, *rest: Any) -> Iterator[Updates]:
        counts["looked up"] += len(stream)
        for found in join(self, stream, *rest):
            counts["made"] += len(found)
            yield found

    def entries(self: Index, probes: Any) -> Any:
        found = list(find(self, probes))
        counts["entries"] += sum(len(rows) for _, rows in found)
        return found

    with pytest.MonkeyPatch.context() as patch, native.used(False):
        patch.setattr(beside, "NET_FROM", 0)  # batches here are small
        patch.setattr(HalfJoinOperator, "__call__", call)
        patch.setattr(Index, "find", entries)
        yield counts


TABLES = """
    CREATE TABLE t (k bigint {key}, g bigint, v bigint);
    CREATE TABLE u (g bigint, w bigint);
    CREATE MATERIALIZED VIEW v AS SELECT t.k, t.v, u.w FROM t JOIN u ON u.g = t.g;
    CREATE MATERIALIZED VIEW w AS SELECT v.k, t.v FROM v JOIN t ON t.k = v.k WHERE t.v >= 0;
"""
CROSS = "CREATE MATERIALIZED VIEW x AS SELECT a.v FROM t a, u b WHERE a.v > b.w"  # of what is in files it reads all
SIZE, PART = 400, 80


def _filled(engine: hj.Engine, key: str) -> dict[str, pa.Table]:
    """Fill both tables. Returns a part of their rows."""
    engine.execute(TABLES.format(key=key))
    rows = {
        "t": pa.table({"k": range(SIZE), "g": [k % 100 for k in range(SIZE)], "v": range(SIZE)}),
        "u": pa.table({"g": [g % 100 for g in range(200)], "w": range(SIZE, SIZE + 200)}),
    }
    engine.apply(rows, time=0)
    return {name: table.slice(0, PART) for name, table in rows.items()}


def _cycle(engine: hj.Engine, part: dict[str, pa.Table]) -> dict[str, Counts]:
    """The work of a batch, of its inverse, and of queries and statements, by step."""
    done: dict[str, Counts] = {}
    steps: dict[str, Callable[[], Any]] = {
        "batch": lambda: engine.apply({name: hj.deletes(rows) for name, rows in part.items()}),
        "query there": lambda: engine.query("SELECT t.v FROM t JOIN u ON u.g = t.g"),
        "inverse": lambda: engine.apply(part),
        "query": lambda: engine.query("SELECT t.v FROM t JOIN u ON u.g = t.g"),
        "statement": lambda: engine.execute("DELETE FROM t WHERE k = 7; INSERT INTO t VALUES (7, 7, 7)"),
    }
    for name, step in steps.items():
        with counted() as done[name]:
            step()
    return done


@pytest.mark.parametrize("key", ["", "PRIMARY KEY"])
@pytest.mark.parametrize("memory", [None, 1, 1_000_000])
def test_a_batch_after_its_inverse_works_as_the_first(
    key: str, memory: int | None, tmp_path: Path
) -> None:
    engine = hj.Engine(None if memory is None else tmp_path / "w", memory=memory, clock="wall")
    with engine:
        part = _filled(engine, key)
        if memory is None:
            engine.execute(CROSS)
        found = [_cycle(engine, part) for _ in range(12 if memory is None else 4)]
        contents = engine.read("t").num_rows, engine.read("w").num_rows
    for later in found[1:]:
        for name, first in found[0].items():
            if memory == 1 and name not in ("batch", "inverse"):  # a query reads all that is in files
                continue
            for kind in ("looked up", "made"):
                assert later[name][kind] <= 1.1 * first[kind] + 8, (name, kind)
            if memory is None:  # a run may hold what the next one deletes, until they are merged
                assert later[name]["entries"] <= 4 * first["entries"] + 100, name
    if memory is not None:
        with hj.Engine(tmp_path / "w") as engine:
            assert (engine.read("t").num_rows, engine.read("w").num_rows) == contents
            again = _cycle(engine, part)
        for name, first in found[0].items():
            assert again[name]["made"] <= first["made"]
            assert again[name]["entries"] <= 4 * max(first["entries"], 400)


@pytest.mark.parametrize("key", ["", "PRIMARY KEY"])
@pytest.mark.parametrize("memory", [None, 1])
def test_a_hot_row_costs_what_it_cost_at_first(key: str, memory: int | None, tmp_path: Path) -> None:
    engine = hj.Engine(None if memory is None else tmp_path / "w", memory=memory, clock="wall")
    with engine:
        _filled(engine, key)
        counts = []
        for number in range(300 if memory is None else 20):
            before, after = ({"k": 7, "g": 7, "v": 7 + n} for n in (number, number + 1))
            engine.apply({"t": [{**before, "__diff": -1}, {**after, "__diff": 1}]}, time=2 * number + 1)
            with counted() as done:  # what another table's change finds
                engine.apply({"u": [{"g": 7, "w": 0, "__diff": 1 - 2 * (number & 1)}]}, time=2 * number + 2)
            counts.append(done)
        assert engine.read("t", as_of=20).num_rows == SIZE
        for time in (3, 17, 2 * number + 2):
            assert engine.query("SELECT v FROM t WHERE k = 7", as_of=time).to_pylist() == [{"v": 7 + (time + 1) // 2}]
    first = counts[0]
    for later in counts:
        assert later["made"] <= first["made"] + 2
        if memory is None:
            assert later["entries"] <= first["entries"] + 4 * netting.NET_FROM
