"""The delta, compaction and durability laws, as far as the public API shows them."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import halfjoin as hj
from tests.oracle.choice import Seeded
from tests.oracle.rows import Bag, bag, changes
from tests.oracle.schema import BY_NAME, TABLES
from tests.oracle.streams import Apply, tame_batches

Row = tuple[int, int, int | None, int | None]  # key, value, from, until


def _delta_engine(inputs: int) -> hj.Engine:
    """An engine with a join of `inputs` tables on k, in which each row lasts from `lo` until `hi`."""
    engine = hj.Engine()
    names = [f"r{i}" for i in range(inputs)]
    for name in names:
        engine.execute(f"CREATE TABLE {name} (k bigint, v bigint, lo bigint, hi bigint)")
    columns = ", ".join(f"{name}.{c} AS {name}_{c}" for name in names for c in ("k", "v", "lo", "hi"))
    lasting = [f"{name}.lo <= mz_now() AND mz_now() < {name}.hi" for name in names]
    joined = [f"{names[0]}.k = {name}.k" for name in names[1:]]
    engine.execute(
        f"CREATE MATERIALIZED VIEW v AS SELECT {columns} FROM {', '.join(names)} WHERE {' AND '.join(joined + lasting)}"
    )
    return engine


def _brute_force(histories: list[list[tuple[Row, int, int]]], time: int) -> Bag:
    """The join of the contents at `time`, by nested loops."""
    contents = []
    for history in histories:
        counts: Counter[Row] = Counter()
        for row, at, diff in history:
            if at <= time:
                counts[row] += diff
        contents.append([(row, n) for row, n in counts.items()
                         if n and row[2] is not None and row[3] is not None and row[2] <= time < row[3]])
    answer: Bag = Counter()
    for combination in itertools.product(*contents):
        if len({row[0] for row, _ in combination}) == 1:
            count = 1
            for _, n in combination:
                count *= n
            answer[tuple(value for row, _ in combination for value in row)] += count
    return Counter({row: n for row, n in answer.items() if n})


def _arrow(updates_: list[tuple[Row, int, int]]) -> pa.Table:
    columns = [pa.array([row[i] for row, _, _ in updates_], pa.int64()) for i in range(4)]
    columns += [pa.array([u[1] for u in updates_], pa.int64()), pa.array([u[2] for u in updates_], pa.int64())]
    return pa.table(columns, names=["k", "v", "lo", "hi", "__time", "__diff"])


@given(st.integers(0, 1_000_000))
def test_delta_law(seed: int) -> None:
    """Times out of order inside open time, rows that begin and end in the future, negative counts."""
    rng = random.Random(seed)
    inputs = rng.choice([2, 3])
    engine, histories, upper = _delta_engine(inputs), [list[tuple[Row, int, int]]() for _ in range(inputs)], 0
    for _ in range(rng.randint(1, 6)):
        batch: dict[str, list[Any]] = {}
        for _ in range(rng.randint(1, 6)):
            i = rng.randrange(inputs)
            row = (rng.randrange(2), rng.randrange(2), rng.choice([None, 0, 1, 3, 5, 8]),
                   rng.choice([None, 2, 4, 6, 9, 12]))
            update = (row, upper + rng.randrange(3), rng.choice([1, 1, -1, 2]))
            batch.setdefault(f"r{i}", []).append(update)
            histories[i].append(update)
        engine.apply({name: _arrow(rows) for name, rows in batch.items()}, close=False)
        upper += rng.randrange(4)
        engine.advance(to=upper)
        if rng.random() < 0.5:
            engine.compact()
    engine.advance(to=upper + 15)
    for time in range(upper + 15):
        assert bag(engine.read("v", as_of=time, multiplicity=True)) == _brute_force(histories, time), f"as of {time}"


def _some_engine(retain: int) -> tuple[hj.Engine, int]:
    """Tables and a join after a few batches, and its `upper`."""
    engine = hj.Engine(retain=retain)
    for table in TABLES:
        engine.execute(table.ddl)
    engine.execute("CREATE MATERIALIZED VIEW v AS SELECT a.k, b.y, c.hi FROM a, b, c WHERE a.x = b.x AND b.y = c.y")
    upper = 0
    for step in tame_batches(Seeded(3), 25):
        if isinstance(step, Apply):
            upper = engine.apply({n: BY_NAME[n].arrow(rows) for n, rows in step.updates.items()}).upper
        else:
            upper = engine.advance(to=step.to).upper
    return engine, upper


def test_compaction_law_no_read_at_or_above_since_can_tell() -> None:
    kept, upper = _some_engine(retain=1_000_000)
    compacted, same_upper = _some_engine(retain=6)
    compacted.compact()
    assert upper == same_upper
    for name in ("a", "b", "c", "v"):
        for time in range(upper - 6, upper):
            assert bag(compacted.read(name, as_of=time)) == bag(kept.read(name, as_of=time)), f"{name} as of {time}"


def test_compaction_law_times_below_since_cannot_be_read() -> None:
    engine, upper = _some_engine(retain=6)
    engine.compact()
    with pytest.raises(hj.InvalidTime, match=f"{upper}"):
        engine.read("v", as_of=upper - 12)
    with pytest.raises(hj.InvalidTime, match=f"{upper}"):
        engine.read("v", as_of=upper)


def _orders() -> hj.Engine:
    engine = hj.Engine()
    engine.execute("CREATE TABLE o (id bigint PRIMARY KEY, v integer NOT NULL)")
    engine.execute("CREATE MATERIALIZED VIEW big AS SELECT id, v FROM o WHERE v > 5")
    return engine


def test_a_repeated_batch_id_changes_nothing() -> None:
    engine = _orders()
    rows = [{"id": 1, "v": 9}, {"id": 2, "v": 3}]
    first = engine.apply({"o": rows}, time=3, batch_id="one")
    again = engine.apply({"o": rows}, time=3, batch_id="one")
    assert (again.time, again.upper) == (first.time, first.upper)
    assert changes(again, "big") == changes(first, "big") == [((1, 9), 3, 1)]
    assert bag(engine.read("o")) == {(1, 9): 1, (2, 3): 1}


def test_a_batch_id_with_other_content_is_a_conflict() -> None:
    engine = _orders()
    engine.apply({"o": [{"id": 1, "v": 9}]}, time=3, batch_id="one")
    with pytest.raises(hj.Conflict, match="one"):
        engine.apply({"o": [{"id": 2, "v": 9}]}, time=3, batch_id="one")
    assert bag(engine.read("o")) == {(1, 9): 1}


@pytest.mark.parametrize("bad", [
    {"o": [{"id": 2, "v": 8}, {"id": 3, "v": None}]},
    {"o": [{"id": 2, "v": 8}, {"id": 1, "v": 8}]},
    {"o": [{"id": 2, "v": 8}, {"id": 3, "v": "eight"}]},
    {"o": [{"id": 2, "v": 8}], "nowhere": [{"id": 1}]},
    {"o": [{"id": 2, "v": 8, "__time": 0}]},
])  # fmt: skip
def test_of_a_refused_batch_nothing_is_kept(bad: dict[str, Any]) -> None:
    engine = _orders()
    engine.apply({"o": [{"id": 1, "v": 9}]}, time=3)
    with pytest.raises(hj.HalfjoinError):
        engine.apply(bad)
    engine.advance(to=10)
    assert bag(engine.read("o")) == {(1, 9): 1}
    assert bag(engine.read("big")) == {(1, 9): 1}
    engine.apply({"o": [{"id": 2, "v": 8}]}, time=11)
    assert bag(engine.read("big")) == {(1, 9): 1, (2, 8): 1}


def test_rows_that_arrive_together_are_joined_once() -> None:
    engine = hj.Engine()
    engine.execute("CREATE TABLE l (k int); CREATE TABLE r (k int)")
    engine.execute("CREATE MATERIALIZED VIEW v AS SELECT l.k FROM l, r WHERE l.k = r.k")
    engine.execute("CREATE MATERIALIZED VIEW w AS SELECT p.k FROM l AS p, l AS q WHERE p.k = q.k")
    applied = engine.apply({"l": [{"k": 1}], "r": [{"k": 1}]}, time=0)
    assert changes(applied, "v") == changes(applied, "w") == [((1,), 0, 1)]


def test_a_failing_row_is_an_error_of_the_view_alone() -> None:
    engine = hj.Engine()
    engine.execute("CREATE TABLE t (n int, d int)")
    engine.execute("CREATE MATERIALIZED VIEW ratio AS SELECT n / d AS r FROM t")
    engine.execute("CREATE MATERIALIZED VIEW fine AS SELECT n FROM t")
    engine.apply({"t": [{"n": 6, "d": 2}]}, time=0)
    engine.apply({"t": [{"n": 5, "d": 0}]}, time=1)
    assert bag(engine.read("fine")) == {(6,): 1, (5,): 1}
    with pytest.raises(hj.DataError, match="division by zero"):
        engine.read("ratio")
    assert bag(engine.read("ratio", as_of=0)) == {(3,): 1}
    engine.apply({"t": hj.deletes([{"n": 5, "d": 0}])}, time=2)
    assert bag(engine.read("ratio")) == {(3,): 1}
