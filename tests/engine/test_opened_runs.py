"""A run that a kernel has opened is opened once, and holds no index that was replaced or dropped."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace
from typing import Any

import pytest

import halfjoin as hj
from halfjoin.engine.arrange import partial
from halfjoin.engine.arrange.run import Run
from halfjoin.engine.kernels import native

pytestmark = pytest.mark.skipif(not native.on, reason="the native kernels are not in use")
VIEW = "CREATE MATERIALIZED VIEW {} AS SELECT a.k, a.x, b.x AS y FROM a JOIN b ON a.k = b.k WHERE b.x > {}"


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> hj.Engine:
    """Two tables, and a view of few of the pairs. Each index is large enough to lack rows."""
    monkeypatch.setattr(partial, "LARGE", 1)
    made = hj.Engine()
    made.execute("CREATE TABLE a (k bigint, x bigint); CREATE TABLE b (k bigint, x bigint)")
    made.apply({name: [{"k": k % 5, "x": k} for k in range(50)] for name in "ab"})
    made.execute(VIEW.format("few", 30))
    return made


def looked_up(engine: hj.Engine) -> Run:
    """The oldest run of b after two batches have looked it up."""
    for number in (1, 2):
        engine.apply({"a": [{"k": 1, "x": number}]})
    found = engine._state.collection("b").held[0]
    assert isinstance(found, Run)
    return found


def test_later_batches_look_up_what_the_first_has_opened(engine: hj.Engine) -> None:
    first = looked_up(engine).sides.values()
    opened = [id(one) for side in first for one in side.opened]
    assert opened == [id(one) for side in looked_up(engine).sides.values() for one in side.opened] != []


CHANGES = pytest.mark.parametrize("change", [
    VIEW.format("many", 10), VIEW.format("many", 10) + "; DROP MATERIALIZED VIEW many", "DROP MATERIALIZED VIEW few",
], ids=["built anew for more rows", "narrowed", "dropped"])  # fmt: skip


@CHANGES
def test_what_is_opened_does_not_hold_an_index_that_is_gone(engine: hj.Engine, change: str) -> None:
    *before, last = change.split("; ")
    for statement in before:
        engine.execute(statement)
    run = looked_up(engine)
    assert run.sides
    gone: list[Any] = [weakref.ref(index.codes) for index in run.indexes.values()]
    del run
    engine.execute(last)
    gc.collect()
    assert gone and not any(ref() is not None for ref in gone)


@pytest.mark.parametrize("change", ["index", "narrow", "drop"])
def test_a_run_whose_index_changes_forgets_what_is_opened(engine: hj.Engine, change: str) -> None:
    run, table = looked_up(engine), engine._state.collection("b")
    (key,) = table.arrangements
    given = {"index": (key, table.arrangements[key].columns), "narrow": (key, table._filters[key], 9), "drop": (key,)}
    if change == "narrow":  # an index of all rows
        run.index(*given["index"])
        run = looked_up(engine)
    before = run.indexes[key]
    assert run.sides
    getattr(run, change)(*given[change])
    assert run.indexes.get(key) is not before and not run.sides


@CHANGES
def test_the_bytes_of_indexes_are_those_of_now(engine: hj.Engine, change: str) -> None:
    sizes = list[int]()
    for statement in change.split("; "):
        run = looked_up(engine)
        sizes.append(run.index_bytes)
        engine.execute(statement)
        looked_up(engine)
        assert run.index_bytes == replace(run, _index_bytes=(-1, 0)).index_bytes
    assert sizes[0] > 0 and run.index_bytes != sizes[-1]
