"""An Arrow array holds 2 GB of texts. Collections with more text stay in several runs, and lose nothing."""

from __future__ import annotations

import pyarrow as pa
import pytest

import halfjoin as hj
from halfjoin.engine.arrange import collection
from halfjoin.engine.updates import updates

ROWS = [{"k": k, "s": "x" * 100} for k in range(100)]  # more than an array holds here, in ten batches
LIMIT = 5_000


@pytest.fixture
def small(monkeypatch):
    """Make arrays hold less."""
    class Small:
        """Arrow, whose arrays hold less."""

        def __getattr__(self, name):
            return getattr(pa, name)

        @staticmethod
        def concat_arrays(arrays):
            if sum(array.nbytes for array in arrays) > LIMIT:
                raise pa.ArrowCapacityError("an array is full")
            return pa.concat_arrays(arrays)

    monkeypatch.setattr(updates, "ARRAY_BYTES", LIMIT)
    monkeypatch.setattr(updates, "pa", Small())


def fill(engine):
    engine.execute("CREATE TABLE t (k int PRIMARY KEY, s text); "
                   "CREATE MATERIALIZED VIEW v AS SELECT k, s FROM t WHERE k >= 0; "
                   "CREATE TABLE u (k int PRIMARY KEY)")  # fmt: skip
    for time in range(10):
        engine.apply({"t": ROWS[time * 10 : time * 10 + 10], "u": [{"k": time}]}, time=time)


def runs(engine):
    return {one.name: len(one.runs) for one in engine._state.collections()}


def test_runs_that_are_too_large_for_one_stay(small):
    with hj.Engine() as engine:
        fill(engine)
        assert runs(engine)["t"] > 2 and runs(engine)["u"] < collection.WAITING
        engine.flush()
        engine.compact()
        assert 2 < runs(engine)["t"] < 6 and runs(engine)["u"] == 1
        engine.apply({"t": [{**row, "__diff": -1} for row in ROWS[:90]]}, time=20)
        engine.compact()
        assert sorted(row["k"] for row in engine.query("SELECT k FROM v").to_pylist()) == list(range(90, 100))


def test_a_warehouse_opens_what_is_too_large_for_one(small, tmp_path):
    with hj.Engine(tmp_path / "w") as engine:
        fill(engine)
        for _ in range(3):
            engine.flush()
    with hj.Engine(tmp_path / "w") as engine:
        engine.apply({"t": [{"k": 1000, "s": "y"}]}, time=30)  # which looks for its key
        assert runs(engine)["t"] > 2
    with hj.Engine(tmp_path / "w", read_only=True) as reader:
        assert reader.query("SELECT k FROM v WHERE k >= 99").num_rows == 2
