"""A reduce by one call of a kernel changes views as the other way does, and gives up where it must."""

from __future__ import annotations

import gc
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import halfjoin as hj
from halfjoin.engine.arrange.run import Run
from halfjoin.engine.kernels import native
from halfjoin.engine.reduce.by_kernel import SummedGroups
from halfjoin.engine.updates.consolidate import consolidate
from halfjoin.engine.updates.updates import Updates

pytestmark = pytest.mark.skipif(not native.BUILT, reason="the native kernels are not built")
SCHEMA = "CREATE TABLE t (k integer, name text, x bigint, y numeric(20, 2), z integer)"
VIEWS = {
    "counts": "SELECT k, name, count(*) AS n, count(x) AS a FROM t GROUP BY k, name",
    "sums": "SELECT name, sum(x) AS a, sum(y) AS b, sum(z) AS c, count(z) AS d FROM t GROUP BY name",
    "averages": "SELECT k, avg(y) AS a, avg(x) AS b, sum(x + z) AS c FROM t GROUP BY k",
    "filtered": "SELECT k, sum(x) FILTER (WHERE z > 0) AS a, sum(y) AS b FROM t GROUP BY k HAVING count(*) > 1",
    "unique_rows": "SELECT DISTINCT k, name FROM t",
}
VALUES: dict[str, tuple[list[Any], pa.DataType]] = {
    "k": ([1, 2, None], pa.int32()), "name": (["a", "bc", "", None], pa.string()),
    "x": ([0, 1, -7, 2**40, -(2**40), 2**62, None], pa.int64()),
    "y": ([Decimal("0.00"), Decimal("-0.01"), Decimal("123456789012345678.25"), None], pa.decimal128(20, 2)),
    "z": ([-1, 5, None], pa.int32()),
}  # fmt: skip
_plain = SummedGroups.changes


def some_batch(random: np.random.Generator, time: int) -> pa.Table:
    """Rows that come and go, whether they are there or not; in half of the batches at several times."""
    size = int(random.integers(1, 12))
    columns = {name: pa.array([values[at] for at in random.integers(0, len(values), size)], kind)
               for name, (values, kind) in VALUES.items()}  # fmt: skip
    columns["__diff"] = pa.array(random.choice([1, 1, 2, -1], size))
    columns["__time"] = pa.array(time + (random.integers(0, 3, size) if random.random() < 0.5 else np.zeros(size, int)))
    return pa.table(columns)


def changes(applied: Any, name: str) -> list[str]:
    """The consolidated changes of a view, as texts."""
    table = applied.diffs[name].combine_chunks()
    columns = {column: table[column].combine_chunks() for column in table.column_names}
    time, diff = (columns.pop(column).to_numpy() for column in ("__time", "__diff"))
    made = consolidate(Updates(columns, time, diff))
    return sorted(map(str, made.table(changes=True).to_pylist()))


@given(st.integers(0, 10**9))
def test_both_ways_change_views_alike(seed: int) -> None:
    random = np.random.default_rng(seed)
    engines = [hj.Engine(clock="own", retain=int(random.choice([0, 100]))) for _ in range(2)]
    for engine in engines:
        engine.execute(SCHEMA)
        for name, sql in VIEWS.items():
            engine.execute(f"CREATE MATERIALIZED VIEW {name} AS {sql}")
    for step in range(6):
        batch, found = some_batch(random, 10 * step), list[Any]()
        for engine, changed in zip(engines, (_plain, lambda *_: None), strict=True):
            with native.used(True), pytest.MonkeyPatch.context() as patch:
                patch.setattr(SummedGroups, "changes", changed)
                found.append(engine.apply({"t": batch}, time=10 * step + 5))
        assert found[0].errors == found[1].errors
        for name in VIEWS:
            assert changes(found[0], name) == changes(found[1], name), name


@pytest.mark.parametrize("name", VIEWS)
def test_rows_come_with_the_index_that_a_lookup_would_build(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    compared = list[int]()

    def changed(groups: SummedGroups, *given: Any) -> Any:
        found = _plain(groups, *given)
        if isinstance(found, Run):
            arrangement = groups.kept.spec.arrangement
            index, built = found.indexes[arrangement], Run(found.updates).index(arrangement, groups.kept.columns)
            assert (index.codes.tolist(), index.rows.tolist()) == (built.codes.tolist(), built.rows.tolist())
            assert index.exact == built.exact
            compared.append(len(found))
        return found

    monkeypatch.setattr(SummedGroups, "changes", changed)
    engine, random = hj.Engine(clock="own"), np.random.default_rng(1)
    engine.execute(f"{SCHEMA}; CREATE MATERIALIZED VIEW v AS {VIEWS[name]}")
    with native.used(True):
        for time in range(40):
            engine.apply({"t": some_batch(random, time).drop_columns(["__time", "__diff"])}, time=time)
    assert max(compared) > 2


def of(rows: list[dict[str, Any]]) -> pa.Table:
    kinds = {**{name: kind for name, (_, kind) in VALUES.items()}, "__diff": pa.int64()}
    return pa.table({name: pa.array([row.get(name, 1 if name == "__diff" else None) for row in rows], kind)
                     for name, kind in kinds.items()})  # fmt: skip


@pytest.mark.parametrize(("rows", "known"), [
    ([{"k": 1, "x": 5}, {"k": 2}], True),
    ([{"k": 1, "x": 5, "__diff": -1}], True),
    ([{"k": 1, "x": 5}, {"k": 1, "x": 6, "__diff": -1}], False),  # a group without rows that has a sum
], ids=["rows that come", "a row that goes", "not cancelled"])  # fmt: skip
def test_the_kernel_gives_up_where_it_must(monkeypatch: pytest.MonkeyPatch, rows: Any, known: bool) -> None:
    made = list[bool]()

    def changed(*given: Any) -> Any:
        found = _plain(*given)
        made.append(found is not None)
        return found

    monkeypatch.setattr(SummedGroups, "changes", changed)
    engine = hj.Engine(clock="own")
    engine.execute(SCHEMA + "; CREATE MATERIALIZED VIEW v AS SELECT k, sum(x) AS a FROM t GROUP BY k")
    with native.used(True):
        engine.apply({"t": of(rows)}, time=1)
    assert made == [known]


def test_the_opened_rows_do_not_hold_the_batch() -> None:
    engine, key = hj.Engine(), "a key of many bytes " * 10
    engine.execute("CREATE TABLE t (k text)")
    engine.execute("CREATE MATERIALIZED VIEW v AS SELECT upper(k) AS k, count(*) AS n FROM t GROUP BY upper(k)")
    before = pa.total_allocated_bytes()
    rows = pa.table({"k": [key] * 50_000})
    size = rows.nbytes
    engine.apply({"t": rows})
    del rows
    gc.collect()
    assert pa.total_allocated_bytes() - before < 1.5 * size  # the rows of the table, and no keys of the view's
