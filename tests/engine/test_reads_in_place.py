"""Many rows are read where they lie, a chunk for each part; and rows that cancel rows of other parts are added up."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import halfjoin as hj
from halfjoin.engine.arrange.run import Run
from tests.oracle.rows import bag

ROWS = 100_000


@pytest.fixture
def engine() -> hj.Engine:
    engine = hj.Engine(clock="own", retain=100)
    engine.execute("CREATE TABLE t (k bigint, s text); CREATE VIEW w AS SELECT k, s FROM t WHERE k >= 0")
    for time in (1, 2):
        numbers = np.arange(ROWS) + time * ROWS
        engine.apply({"t": pa.table({"k": numbers // time, "s": pa.array(numbers % 10).cast(pa.string())})}, time=time)
    return engine


def places(table: pa.Table) -> set[int]:
    """Where the values of columns begin in memory."""
    return {buffer.address for column in table.columns for chunk in column.chunks for buffer in chunk.buffers()[1:]}


@pytest.mark.parametrize("time", [1, 2, None])
def test_many_rows_are_not_copied(engine: hj.Engine, time: int | None) -> None:
    first, second = engine.read("t", as_of=time), engine.read("t", as_of=time)
    assert places(first) == places(second) and first.num_rows == ROWS * (time or 2)
    asked = engine.query("SELECT k AS a, s AS b, k AS a FROM t", as_of=time)
    assert places(asked) == places(first) and asked.column_names == ["a", "b", "a"]


def test_few_rows_are_one_chunk(engine: hj.Engine) -> None:
    assert engine.query("SELECT k FROM t WHERE s = '3' AND k < 100200").column("k").num_chunks == 1


def test_rows_that_go_are_in_no_part(engine: hj.Engine) -> None:
    """Also rows that come twice, and a plain view."""
    rows = engine.read("t")
    gone, twice = rows.slice(7, 5), rows.slice(20, 3)
    engine.apply({"t": hj.deletes(gone)}, time=3)
    engine.apply({"t": twice}, time=4)
    before, after = Counter(bag(rows)), Counter(bag(rows)) - Counter(bag(gone))
    for asked in (lambda time: engine.read("t", as_of=time), lambda time: engine.read("w", as_of=time),
                  lambda time: engine.query("SELECT * FROM t", as_of=time)):  # fmt: skip
        assert bag(asked(2)) == before
        assert bag(asked(3)) == after
        assert bag(asked(4)) == after + Counter(bag(twice))
    engine.apply({"t": [{"k": -1, "s": "x", "__diff": -1}]}, time=5)
    with pytest.raises(hj.DataError, match="holds a row -1 times"):
        engine.read("t")
    with pytest.raises(hj.DataError, match="holds a row -1 times"):
        engine.query("SELECT * FROM t")
    assert bag(engine.query("SELECT count(*) AS n FROM t")) == Counter({(2 * ROWS - 3,): 1})


def test_rows_of_which_some_go_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = hj.Engine(clock="own")
    engine.execute("CREATE TABLE t (a bigint)")
    engine.apply({"t": pa.table({"a": range(100)})}, time=1)
    engine.apply({"t": hj.deletes(pa.table({"a": range(50)}))}, time=2)
    read, plain = list[Run](), Run.present

    def present(self: Run, *given: Any) -> Any:
        read.append(self)
        return plain(self, *given)

    monkeypatch.setattr(Run, "present", present)
    assert sorted(engine.read("t").column("a").to_pylist()) == list(range(50, 100))
    assert len(read) == len(engine._state.collection("t").held) > 1
