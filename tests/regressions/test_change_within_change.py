"""A function of the user's, or a handler of a signal, that changes the engine while the engine carries out a change."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import halfjoin as hj

Change = Callable[[hj.Engine], Any]
CHANGES: dict[str, Change] = {
    "apply": lambda engine: engine.apply({"log": [{"x": 1}]}, time=100),
    "advance": lambda engine: engine.advance(to=100),
    "define": lambda engine: engine.execute("CREATE TABLE other (x integer)"),
    "flush": lambda engine: engine.flush(),
    "compact": lambda engine: engine.compact(),
}


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[hj.Engine]:
    with hj.Engine(tmp_path / "w", clock="own", runner="local") as made:
        made.execute("CREATE TABLE t (x bigint); CREATE TABLE log (x bigint)")
        made.execute("CREATE MATERIALIZED VIEW logged AS SELECT count(*) AS n FROM log")
        yield made


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_within_a_change_is_refused(engine: hj.Engine, name: str) -> None:
    """A batch within a batch was acknowledged and lost from sight, and `upper` went back; flush waited for ever."""
    refused: list[str] = []

    def within(batch: pa.RecordBatch) -> pa.RecordBatch:
        try:
            CHANGES[name](engine)
        except hj.Conflict as problem:
            refused.append(str(problem))
        return pa.record_batch({"__row": pa.array(range(batch.num_rows)), "y": batch.column(0)})

    engine.register_table_function("within", within, returns={"y": "bigint"})
    engine.execute("CREATE MATERIALIZED VIEW v AS SELECT f.y FROM t, within(t.x) AS f")
    engine.apply({"t": [{"x": 5}]}, time=10)
    assert len(refused) == 1
    assert "must not change the engine" in refused[0]
    assert engine.stats().upper == 11
    assert engine.read("v").to_pylist() == [{"y": 5}]
    assert (engine.read("logged").to_pylist(), engine.read("log").num_rows) == ([{"n": 0}], 0)
    CHANGES[name](engine)  # afterwards it may
    assert engine.read("v").to_pylist() == [{"y": 5}]


def test_a_function_that_lets_the_refusal_through_fails_for_its_row(engine: hj.Engine) -> None:
    def within(batch: pa.RecordBatch) -> pa.RecordBatch:
        return CHANGES["apply"](engine)

    engine.register_table_function("within", within, returns={"y": "bigint"})
    engine.execute("CREATE MATERIALIZED VIEW v AS SELECT f.y FROM t, within(t.x) AS f")
    engine.apply({"t": [{"x": 5}]}, time=10)
    with pytest.raises(hj.DataError, match="cannot have another one within it"):
        engine.read("v")
    engine.apply({"t": hj.deletes([{"x": 5}])}, time=11)
    assert engine.read("v").num_rows == 0


def test_a_call_within_which_the_engine_is_closed_says_so(tmp_path: Path) -> None:
    """As the handler of a signal does. It said that the journal was moved or removed."""
    engine = hj.Engine(tmp_path / "w", clock="own", runner="local")

    def within(batch: pa.RecordBatch) -> pa.RecordBatch:
        engine.close()
        return pa.record_batch({"__row": pa.array(range(batch.num_rows)), "y": batch.column(0)})

    engine.execute("CREATE TABLE t (x bigint)")
    engine.register_table_function("within", within, returns={"y": "bigint"})
    engine.execute("CREATE MATERIALIZED VIEW v AS SELECT f.y FROM t, within(t.x) AS f")
    with pytest.raises(hj.HalfjoinError, match="was closed while the call was under way, so the call has changed noth"):
        engine.apply({"t": [{"x": 5}]}, time=10)
    with pytest.raises(hj.HalfjoinError, match="the engine is closed"):
        engine.read("t")
    with hj.Engine(tmp_path / "w") as again:
        assert again.read("t").num_rows == 0
