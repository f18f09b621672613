"""The law of gates: a view that a batch does not concern is as if it had run, and costs next to nothing."""

from __future__ import annotations

from functools import partial
from typing import Any

import pyarrow as pa
import pytest

import halfjoin as hj
from halfjoin.engine.batch.wiring import Wiring
from halfjoin.engine.join import dataflow
from halfjoin.engine.join.gates import Gates
from tests.laws.test_known_keys import DDL, World, answer
from tests.oracle.rows import bag
from tests.support.counting import calls

RANGES = ["t.k > 3", "t.a <= 1", "2 < t.k", "t.d >= date '2024-01-02'", "t.d < date '2000-01-01'", "u.y < 2",
          "u.a >= 1", "w.y > 2", "w.m > timestamp '2024-01-01'", "u.f < 0.2", "t.n > 2"]  # fmt: skip


def definitions(world: World, count: int) -> list[str]:
    """Random views; some filter by ranges, and some of their expressions fail for some rows."""
    found = []
    while len(found) < count:
        sql = world.query()
        if world.random.random() < 0.5:
            names = [one for one in RANGES if f" {one[one.index('.') - 1]} " in f" {sql} ".replace(",", " ")]
            sql = sql.replace(" WHERE ", f" WHERE {world.random.choice(names)} AND ", 1) if names else sql
        found.append(sql)
    return found


def outcome(engine: hj.Engine, batch: dict[str, pa.Table], time: int) -> list[Any]:
    """What the rows of a time do and tell, in one batch or in one for each table."""
    batches = [batch] if time % 3 else [{name: rows} for name, rows in batch.items()]
    applied = [*(engine.apply(one, time=time, close=False) for one in batches), engine.advance(time + 1)]
    return [({name: bag(rows) for name, rows in one.diffs.items()}, sorted(one.errors)) for one in applied]


@pytest.mark.parametrize("seed", range(12))
def test_a_view_behind_a_gate_is_as_if_it_had_run(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    world, shut = World(seed), 0

    def counted(self: Gates, *asked: Any) -> bool:
        nonlocal shut
        opened = is_open(self, *asked)
        shut += not opened
        return opened

    def noted(self: Wiring, changed: Any, closed: Any, values: Any) -> list[str]:
        nonlocal shut
        found = due(self, changed, closed, values)
        shut += len(self.above({*changed, *closed})) - len(found)
        return found

    is_open, due = Gates.open, Wiring.due
    monkeypatch.setattr(Gates, "open", counted)
    monkeypatch.setattr(Wiring, "due", noted)
    gated, free = hj.Engine(clock="own", retain=100), hj.Engine(clock="own", retain=100)
    for engine in (gated, free):
        engine.execute(DDL)
    names = []
    for number, sql in enumerate(definitions(world, 25)):
        with monkeypatch.context() as patch:
            try:
                gated.execute(f"CREATE MATERIALIZED VIEW x{number} AS {sql}")
            except hj.HalfjoinError:
                continue
            patch.setattr(dataflow, "gates_of", lambda *_: Gates())
            free.execute(f"CREATE MATERIALIZED VIEW x{number} AS {sql}")
            names.append(f"x{number}")
    for time in range(1, 12):
        batch = world.batch(time)
        assert outcome(gated, batch, time) == outcome(free, batch, time)
        for name in names:
            assert answer(gated, f"SELECT * FROM {name}", None) == answer(free, f"SELECT * FROM {name}", None)
    assert len(names) > 12 and shut > 20


def test_views_that_a_batch_does_not_concern_cost_next_to_nothing() -> None:
    """A view behind a filter that no changed row passes costs some comparisons, and one over other tables less."""

    def batch_calls(count: int) -> list[int]:
        """The median calls of a batch that no filter lets through, and of one over a table without views."""
        with hj.Engine(clock="own") as engine:
            engine.execute("CREATE TABLE t (id bigint PRIMARY KEY, k bigint, s text); CREATE TABLE u (k bigint, "
                           "x bigint); CREATE TABLE other (id bigint PRIMARY KEY)")  # fmt: skip
            for number in range(count):
                engine.execute(f"CREATE MATERIALIZED VIEW v{number} AS SELECT id, x FROM t JOIN u ON t.k = u.k "
                               f"WHERE s = 's{number}' AND id >= {number}")  # fmt: skip
            counts: dict[str, list[int]] = {"t": [], "other": []}
            for time in range(1, 17):
                name = "t" if time % 2 else "other"
                row = {"id": -time, "k": time, "s": f"s{time}"} if time % 2 else {"id": time}
                counts[name].append(calls(partial(engine.apply, {name: [row]}, time=time)))
            return [sorted(found)[4] for found in counts.values()]

    few, many = batch_calls(5), batch_calls(105)
    filtered, untouched = ((b - a) / 100 for a, b in zip(few, many, strict=True))
    assert filtered <= 15
    assert untouched <= 10
