"""Runs in files: lookups and reads find the same there as in the same run in memory."""

from __future__ import annotations

import tempfile
from concurrent.futures import ThreadPoolExecutor
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from time import sleep
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfjoin.engine.arrange.keys import key_columns
from halfjoin.engine.arrange.run import Run
from halfjoin.engine.storage import merging, open_files, parquet
from halfjoin.engine.storage.parquet_reader import OpenFile, opened
from halfjoin.engine.storage.place import LocalPlace
from halfjoin.engine.storage.stored_run import StoredRun
from halfjoin.engine.updates.codes import codes
from halfjoin.engine.updates.consolidate import consolidate
from halfjoin.engine.updates.updates import Ints, Updates, concat
from halfjoin.errors import StorageError
from halfjoin.planner.plan import ArrangementKey
from halfjoin.sql.expr import Column
from halfjoin.sql.types import BIGINT, DATE, TEXT

SCHEMA = {"k": pa.int64(), "d": pa.date32(), "s": pa.string(), "t": pa.list_(pa.int64())}
COLUMNS = {"k": Column("k", BIGINT, True), "d": Column("d", DATE, True), "s": Column("s", TEXT, True)}
TEXTS = ["", "a", "a\0", "ab", "b", "é", "\uffff", "\U00020000"]
DAYS = [date(2024, 1, 1) + timedelta(days=n) for n in range(5)]
ROWS = st.tuples(
    st.none() | st.integers(-3, 12), st.none() | st.sampled_from(DAYS), st.none() | st.sampled_from(TEXTS),
    st.none() | st.lists(st.integers(0, 2), max_size=2), st.integers(0, 9), st.sampled_from([-1, 1, 2]),
)  # fmt: skip


def _updates(rows: list[tuple[object, ...]]) -> Updates:
    cells = [pa.array([row[i] for row in rows], kind) for i, kind in enumerate(SCHEMA.values())]
    time, diff = (np.array([row[i] for row in rows], np.int64) for i in (4, 5))
    return Updates(dict(zip(SCHEMA, cells, strict=True)), time, diff)


def _stored(folder: str, parts: list[list[tuple[object, ...]]], sort: str) -> StoredRun:
    place = LocalPlace(Path(folder))
    files = [file for rows in parts if rows for file in parquet.write(place, _updates(rows), SCHEMA, [sort])]
    return StoredRun(place, tuple(files), SCHEMA)


def _bag(updates: Updates) -> list[str]:
    return sorted(map(repr, updates.table(changes=True).to_pylist()))


@pytest.fixture(autouse=True)
def _small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "GROUP_ROWS", 3)


@given(st.lists(st.lists(ROWS, max_size=20), max_size=3), st.sampled_from(list(COLUMNS)), st.data())
def test_a_lookup_finds_what_it_finds_in_memory(
    parts: list[list[tuple[object, ...]]], sort: str, data: st.DataObject
) -> None:
    names = data.draw(st.lists(st.sampled_from(list(COLUMNS)), min_size=1, max_size=2, unique=True))
    wanted = _updates(data.draw(st.lists(ROWS, min_size=1, max_size=4)))
    key = ArrangementKey("c", tuple(COLUMNS[name] for name in names))
    columns = key_columns(key, {})
    keys = [wanted.columns[name] for name in names]
    probes = np.unique(codes(keys, len(wanted)))
    whole = Run(_updates([row for rows in parts for row in rows]))
    with tempfile.TemporaryDirectory() as folder:
        found = list(_stored(folder, parts, sort).narrowed(key, columns, keys, SCHEMA))
    there, here = ([line for run in runs for _, rows in run.index(key, columns).find(probes)
                    for line in _bag(run.updates.take(rows))] for runs in (found, [whole]))  # fmt: skip
    assert sorted(there) == sorted(here)


def test_of_sorted_texts_only_those_near_the_keys_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"order-{number:04}" for number in range(300)]
    run = _stored(str(tmp_path), [[(1, None, text, None, 0, 1) for text in texts]], "s")
    key = ArrangementKey("c", (COLUMNS["s"],))
    read: list[int] = []
    columns = OpenFile.columns

    def recorded(self: OpenFile, groups: Ints, schema: dict[str, pa.DataType]) -> dict[str, pa.Array]:
        read.extend(groups.tolist())
        return columns(self, groups, schema)

    monkeypatch.setattr(OpenFile, "columns", recorded)
    (found,) = run.narrowed(key, key_columns(key, {}), [pa.array(["order-0100", "order-0104"])], ["k"])
    assert found.updates.columns["s"].to_pylist() == ["order-0100", "order-0104"]
    assert set(read) == {33, 34}


@given(st.lists(st.lists(ROWS, max_size=20), max_size=3), st.integers(-1, 10), st.integers(-1, 10))
def test_a_read_gives_the_updates_of_its_times(parts: list[list[tuple[object, ...]]], low: int, high: int) -> None:
    rows = [row for part in parts for row in part]
    with tempfile.TemporaryDirectory() as folder:
        stored = _stored(folder, parts, "k")
        assert len(stored) == len(rows)
        found = [update for piece in stored.pieces(low, high) for update in _bag(piece)]
        assert sorted(found) == _bag(_updates([row for row in rows if low <= row[4] < high]))  # type: ignore[operator]
        assert sorted(update for piece in stored.pieces() for update in _bag(piece)) == _bag(_updates(rows))
        assert _bag(stored.closing(low, high)) == sorted(found)


def _reads(stored: StoredRun, key: ArrangementKey, keys: list[int | None]) -> tuple[list[tuple[int, str]], Run]:
    """The row groups and columns of the first file that a lookup reads, and the rows that it finds."""
    source = opened(stored.place, stored.files[0].name)
    reads: list[tuple[int, str]] = []
    with pytest.MonkeyPatch.context() as patch:
        columns = source.columns
        patch.setattr(source, "columns", lambda groups, schema: (
            reads.extend((int(group), name) for group in groups for name in schema), columns(groups, schema))[1])
        found = list(stored.narrowed(key, key_columns(key, {}), [pa.array(keys, pa.int64())], SCHEMA))
    return reads, found[0] if found else Run(_updates([]))


def test_a_lookup_reads_only_row_groups_with_the_key() -> None:
    rows = [(2 * n, None, str(n), None, 0, 1) for n in range(30)]
    key = ArrangementKey("c", (COLUMNS["k"],))
    with tempfile.TemporaryDirectory() as folder:
        stored = _stored(folder, [rows], "k")
        reads, found = _reads(stored, key, [8, 57, 58, 77, None])
        # Times and diffs are the same throughout, and so known.
        assert set(reads) == {(group, name) for group in (1, 9) for name in SCHEMA}
        assert len(reads) == len(set(reads))
        assert found.updates.columns["k"].to_pylist() == [8, 58]
        assert (found.updates.time.tolist(), found.updates.diff.tolist()) == ([0, 0], [1, 1])


def test_a_row_group_without_the_key_is_read_by_key_alone() -> None:
    rows = [(2 * n, None, str(n), None, n, 1) for n in range(30)]
    key = ArrangementKey("c", (COLUMNS["k"],))
    with tempfile.TemporaryDirectory() as folder:
        reads, found = _reads(_stored(folder, [rows], "k"), key, [7, 33, 40])
    rest = [*(name for name in SCHEMA if name != "k"), "__time"]
    assert reads == [(1, "k"), (5, "k"), (6, "k"), *((6, name) for name in rest)]
    assert _bag(found.updates) == _bag(_updates(rows[20:21]))


@pytest.mark.parametrize("values", [
    pa.array(["one of few texts", "another one of them"] * 500), pa.array([f"text {n}" for n in range(1000)]),
    pa.array([Decimal(n) / 4 for n in range(1000)], pa.decimal128(15, 2)), pa.array([[1, 2], None] * 500),
], ids=["few texts", "texts", "decimals", "lists"])  # fmt: skip
def test_what_rows_in_files_need_in_memory_is_known(values: pa.Array, tmp_path: Path) -> None:
    updates = Updates({"v": values}, np.arange(1000), np.ones(1000, np.int64))
    place = LocalPlace(tmp_path)
    stored = StoredRun(place, tuple(parquet.write(place, updates, {"v": values.type}, [])), {"v": values.type})
    (loaded,) = stored.pieces()
    # Diffs that are all the same take none, which may not be so for all of the files together.
    assert abs(stored.loaded_bytes - 8 * 1000 - Run(loaded).row_bytes) <= 500  # bits that tell NULLs


def test_a_missing_file_is_named() -> None:
    with tempfile.TemporaryDirectory() as folder:
        stored = StoredRun(LocalPlace(Path(folder)), (parquet.StoredFile("gone.parquet", 1, 1, 0, ""),), SCHEMA)
        with pytest.raises(StorageError, match=r"gone\.parquet cannot be read"):
            list(stored.pieces())


KINDS = [pa.date32(), pa.timestamp("us"), pa.timestamp("us", tz="UTC"), pa.time64("us"), pa.bool_()]


@pytest.mark.parametrize("kind", KINDS)
def test_values_of_every_kind_that_is_its_own_code_are_found(kind: pa.DataType) -> None:
    far = {pa.date32(): 10_000_000, pa.time64("us"): 86_399_999_999, pa.bool_(): 1}.get(kind, 10**18)
    raw = pa.array([-far if kind != pa.time64("us") and far > 1 else 0, 0, 0, far, far, None], pa.int64())
    width = pa.int32() if kind == pa.date32() else pa.int64()
    values = raw.cast(pa.bool_()) if kind == pa.bool_() else raw.cast(width).cast(kind)
    updates = Updates({"k": values}, np.zeros(6, np.int64), np.ones(6, np.int64))
    sql = {pa.date32(): DATE}.get(kind, BIGINT)
    key = ArrangementKey("c", (Column("k", sql, True),))
    with tempfile.TemporaryDirectory() as folder:
        place = LocalPlace(Path(folder))
        stored = StoredRun(place, tuple(parquet.write(place, updates, {"k": kind}, ["k"])), {"k": kind})
        for probe in (values[0:1], values[3:4], values[5:6]):
            (run,) = stored.narrowed(key, key_columns(key, {}), [probe], ["k"])
            found = run.updates.columns["k"]
            assert len(found) and found.equals(pa.concat_arrays([probe] * len(found)))


@given(st.lists(st.lists(ROWS, max_size=20), max_size=3), st.sampled_from(["k", "d", "s"]), st.integers(0, 10))
def test_merged_files_hold_the_sum_of_what_was_in_them(
    parts: list[list[tuple[object, ...]]], sort: str, since: int
) -> None:
    whole = consolidate(_updates([row for rows in parts for row in rows]).not_before(since))
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(merging, "RANGE_BYTES", 200)
        stored = _stored(folder, parts, sort)
        files = tuple(merging.merged(stored.place, stored.files, SCHEMA, [sort], since))
        assert len({parquet.run_of(file.name) for file in files}) <= 1
        assert _bag(concat([_updates([]), *StoredRun(stored.place, files, SCHEMA).pieces()])) == _bag(whole)


@pytest.mark.parametrize("sort", [["k"], ["s"], []])
@pytest.mark.parametrize("shuffled", [False, True])
def test_a_merge_holds_a_part_of_the_files_at_a_time(
    sort: list[str], shuffled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = np.random.default_rng(1).permutation(4_000) if shuffled else np.arange(4_000)
    columns = {"k": pa.array(order), "s": pa.array(order.astype(str))}
    updates = Updates(columns, np.zeros(4_000, np.int64), np.ones(4_000, np.int64))
    schema = {"k": pa.int64(), "s": pa.string()}
    monkeypatch.setattr(parquet, "GROUP_ROWS", 50)
    with tempfile.TemporaryDirectory() as folder:
        place = LocalPlace(Path(folder))
        halves = (updates.slice(0, 2_000), updates.slice(2_000, 4_000))
        files = [file for half in halves for file in parquet.write(place, half, schema, [])]
        size = sum(opened(place, file.name).loaded_bytes(schema) for file in files)
        monkeypatch.setattr(merging, "RANGE_BYTES", size // 10)
        found = list(merging.merged(place, files, schema, sort, 0))
    assert sum(file.rows for file in found) == 4_000
    assert max(file.rows for file in found) <= 1_000


_TEXTS = st.text("\0a\ud7ff\U0001f600", max_size=2)


@given(st.lists(st.none() | _TEXTS, min_size=1, max_size=12), _TEXTS, _TEXTS)
def test_row_groups_between_two_texts(values: list[str | None], low: str, high: str) -> None:
    low, high = min(low, high), max(low, high)
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet, "GROUP_ROWS", 2)
        count = len(values)
        updates = Updates({"s": pa.array(values, pa.string())}, np.zeros(count, np.int64), np.ones(count, np.int64))
        (file,) = parquet.write(LocalPlace(Path(folder)), updates, {"s": pa.string()}, ())
        source = opened(LocalPlace(Path(folder)), file.name)
        groups = [[one for one in values[start : start + 2] if one is not None] for start in range(0, count, 2)]
        may = source.between("s", low, high)
        assert all(may[i] for i, group in enumerate(groups) if any(low <= one <= high for one in group))
        known = [(min(group) <= high and low <= max(group)) for group in groups if group]
        assert [bool(may[i]) for i, group in enumerate(groups) if group] == known
        assert (source.texts("s") is None) is not all(groups)


def test_one_thread_at_a_time_reads_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrow's reader of a file fails if two threads use it: a flush and a batch do."""
    place = LocalPlace(tmp_path)
    rows = Updates({"k": pa.array(range(10))}, np.zeros(10, np.int64), np.ones(10, np.int64))
    (file,) = parquet.write(place, rows, {"k": pa.int64()}, ["k"])
    read, inside, most = pq.ParquetFile.read_row_groups, list[int](), list[int]()

    def counted(*arguments: Any, **options: Any) -> Any:
        inside.append(1)
        sleep(0.002)
        most.append(len(inside))
        found = read(*arguments, **options)
        inside.pop()
        return found

    monkeypatch.setattr(pq.ParquetFile, "read_row_groups", counted)
    source = opened(place, file.name)
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda _: source.columns(np.arange(source.groups), {"k": pa.int64()}), range(12)))
        whole = list(threads.map(lambda _: source.whole("k", pa.int64()), range(4)))
    assert max(most) == 1
    assert all(one["k"].equals(rows.columns["k"]) for one in found)
    assert all(one.equals(rows.columns["k"]) for one in whole)


def test_what_a_run_needs_of_footers_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a run needs of the footers is kept, however few files are open."""
    place, key = LocalPlace(tmp_path), ArrangementKey("c", (COLUMNS["k"],))
    monkeypatch.setattr(parquet, "FILE_ROWS", 5)
    rows = Updates({"k": pa.array(range(50))}, np.zeros(50, np.int64), np.ones(50, np.int64))
    files = tuple(parquet.write(place, rows, {"k": pa.int64()}, ["k"]))
    opens, read = list[str](), open_files.read

    def counted(place: Any, name: str, metadata: Any) -> Any:
        opens.append(name)
        return read(place, name, metadata)

    monkeypatch.setattr(open_files, "read", counted)
    for count in (len(files), 1):  # all footers, then the file with the key
        open_files.OPEN.drop(open_files.OPEN.files())
        opens.clear()
        run = StoredRun(place, files, {"k": pa.int64()})
        found = [one.updates for one in run.narrowed(key, key_columns(key, {}), [pa.array([7])], ["k"])]
        assert run.loaded_bytes > 0
        assert concat(found).columns["k"].to_pylist() == [7]
        assert len(set(opens)) == count
