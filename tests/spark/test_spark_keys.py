"""PRIMARY KEYs on Spark: several tasks check the rows, in lots by their keys."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import halfjoin as hj
from halfjoin.engine.spark import primary_keys
from halfjoin.engine.spark.key_lots import Lot, lots_of
from halfjoin.engine.storage import parquet
from halfjoin.engine.storage.place import LocalPlace
from halfjoin.engine.storage.stored_run import StoredRun
from halfjoin.engine.updates.updates import Updates
from tests.oracle.rows import bag

_KINDS = {
    "bigint": (pa.int64(), st.integers(-5, 5) | st.integers(-(2**63), 2**63 - 1)),
    "date": (pa.date32(), st.dates()),
    "text": (pa.string(), st.text(max_size=3)),
    "decimal": (pa.decimal128(5, 2), st.decimals(-9, 9, places=2)),
}


@pytest.mark.parametrize("kind", _KINDS)
@given(data=st.data())
def test_lots_have_every_row_once_and_keys_whole(
    kind: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    arrow, values = _KINDS[kind]
    schema, place = {"a": arrow, "b": pa.int64()}, LocalPlace(tmp_path_factory.mktemp("lots"))
    files, rows = [], []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet, "GROUP_ROWS", 3)
        for part in data.draw(st.lists(st.lists(st.tuples(values, st.integers(0, 3)), min_size=1, max_size=30),
                                       max_size=3)):  # fmt: skip
            columns = {"a": pa.array([a for a, _ in part], arrow), "b": pa.array([b for _, b in part], pa.int64())}
            updates = Updates(columns, np.zeros(len(part), np.int64), np.ones(len(part), np.int64))
            files += parquet.write(place, updates, schema, ("a", "b"))
            rows += list(zip(columns["a"].to_pylist(), columns["b"].to_pylist(), strict=True))
    run = StoredRun(place, tuple(files), schema)
    lots = list(lots_of(run, ("a", "b"), data.draw(st.sampled_from([1, 4, 1000]))))
    found = [_pairs(lot, run) for lot in lots]
    assert sorted(pair for pairs in found for pair in pairs) == sorted(rows)
    assert len({pair for pairs in found for pair in set(pairs)}) == sum(len(set(pairs)) for pairs in found)


def _pairs(lot: Lot, run: StoredRun) -> list[tuple[Any, ...]]:
    columns = lot.read(run, ("b", "a")).columns
    return list(zip(columns["a"].to_pylist(), columns["b"].to_pylist(), strict=True))


def test_sorted_rows_are_in_lots_by_ranges_of_their_keys(tmp_path: Path) -> None:
    count = 10 * parquet.GROUP_ROWS
    for name, column in (("n", pa.array(range(count))), ("t", pa.array([f"{i:06}" for i in range(count)]))):
        updates = Updates({name: column}, np.zeros(count, np.int64), np.ones(count, np.int64))
        files = parquet.write(LocalPlace(tmp_path), updates, {name: column.type}, (name,))
        run = StoredRun(LocalPlace(tmp_path), tuple(files), {name: column.type})
        lots = list(lots_of(run, (name,), 2 * parquet.GROUP_ROWS))
        assert [len(lot.read(run, (name,))) for lot in lots] == [2 * parquet.GROUP_ROWS] * 5
        assert {lot.of for lot in lots} == {1}


@pytest.mark.parametrize("rows", [100, 4_000])
def test_lots_are_small_where_row_groups_overlap(tmp_path: Path, rows: int) -> None:
    """Many tasks write such row groups: each has keys from the whole range, here the multiples of a number."""
    numbers = 840 * np.random.default_rng(0).integers(0, 1 << 40, (24_000 // rows, rows))
    place, schema, files = LocalPlace(tmp_path), {"n": pa.int64()}, []
    for part in numbers:
        updates = Updates({"n": pa.array(part)}, np.zeros(rows, np.int64), np.ones(rows, np.int64))
        files += parquet.write(place, updates, schema, ("n",))
    run = StoredRun(place, tuple(files), schema)
    sizes = [len(lot.read(run, ("n",))) for lot in lots_of(run, ("n",), 1_600)]
    assert sum(sizes) == 24_000
    assert max(sizes) < 4_000
    assert len(sizes) < 60


_ROWS = 9_000  # several row groups
_TABLES = {
    "bigint": ("k bigint", lambda i: (i * 7919 % 100_003,)),
    "text": ("k text", lambda i: (f"{i * 7919 % 100_003:05}",)),
    "one, then many": ("k text, l bigint", lambda i: ("the same", i * 7919 % 100_003)),
}


@pytest.mark.parametrize("kind", _TABLES)
def test_keys_are_held_by_several_tasks(spark: Any, kind: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(primary_keys, "CHECKED_ROWS", 1_000)
    tasks: list[int] = []

    def counted(*given: Any) -> Any:
        found = list(lots_of(*given))
        tasks.append(len(found))
        return iter(found)

    monkeypatch.setattr(primary_keys, "lots_of", counted)
    columns, key = _TABLES[kind]
    names = [column.split()[0] for column in columns.split(", ")]
    ddl = f"CREATE TABLE t ({columns}, x bigint, PRIMARY KEY ({', '.join(names)}))"

    def rows(numbers: range, x: int) -> list[dict[str, Any]]:
        return [dict(zip([*names, "x"], (*key(i), x), strict=True)) for i in numbers]

    def frame(given: list[dict[str, Any]]) -> Any:
        table = pa.Table.from_pylist(given)
        return spark.createDataFrame(table).repartition(3)

    with hj.Engine(tmp_path, spark=spark, runner="spark") as engine:
        engine.execute(ddl)
        engine.apply({"t": frame(rows(range(_ROWS), 1))}, time=1)
        assert tasks.pop() > 3
        gone, new = rows(range(0, _ROWS, 3), 1), rows(range(1, _ROWS, 3), 2)
        engine.apply({"t": hj.deletes(frame(gone))}, time=2)
        engine.apply({"t": hj.upserts(frame([*new, *rows(range(_ROWS, _ROWS + 2_000), 3)]))}, time=3)
        expected = [*rows(range(1, _ROWS, 3), 2), *rows(range(2, _ROWS, 3), 1), *rows(range(_ROWS, _ROWS + 2_000), 3)]
        assert bag(engine.read("t")) == bag(pa.Table.from_pylist(expected))
        for wrong in (rows(range(_ROWS + 1_999, _ROWS + 6_000), 1), [*rows(range(20_000, 24_000), 1)] * 2):
            with pytest.raises(hj.InvalidRow, match="would be a second row with the key"):
                engine.apply({"t": frame(wrong)}, time=4)
        with pytest.raises(hj.InvalidRow, match="deletes a row that is not there"):
            engine.apply({"t": hj.deletes(frame([*new[:2_000], *gone[:1]]))}, time=4)
        assert min(tasks) > 1
        assert bag(engine.read("t")) == bag(pa.Table.from_pylist(expected))


def test_upserts_before_a_row_of_their_key(spark: Any) -> None:
    """An upsert does not replace a row of a later time, so there would be two."""
    rows = pa.table({"k": [1], "x": [2]})
    with hj.Engine(spark=spark, runner="spark") as engine:
        engine.execute("CREATE TABLE t (k bigint PRIMARY KEY, x bigint)")
        engine.apply({"t": [{"k": 1, "x": 1, "__time": 9}]}, time=1, close=False)
        for given in (rows, spark.createDataFrame(rows)):
            with pytest.raises(hj.InvalidRow, match=r"would be a second row with the key \(k\) = \(1\)"):
                engine.apply({"t": hj.upserts(given)}, time=5)
        engine.advance(10)
        assert bag(engine.read("t")) == {(1, 1): 1}
