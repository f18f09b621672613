"""The files of Delta tables that are followed: deletion vectors, names that are mapped, moments that Spark wrote."""

from __future__ import annotations

import datetime as dt
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, WriterProperties, write_deltalake

import halfjoin as hj
from halfjoin.engine.feeds.deletion_vectors import deleted
from halfjoin.engine.storage.place import LocalPlace
from tests.oracle.rows import bag
from tests.support.deletion_vectors import PROTOCOL, delete, vector
from tests.support.following import FEED, Source, opened

MANY = 200_000
SETS = {
    "none": [], "one": [0], "few": [3, 7, 65_535, 65_536, 140_000],
    "many": [row for row in range(MANY) if row % 3], "runs": [*range(10, 9_000), *range(70_000, 150_000), 199_999],
    "some": [0, 3, 199_999],
}  # fmt: skip


def _edited(table: Path, version: int, change: Callable[[dict[str, Any]], None]) -> list[dict[str, Any]]:
    """The actions of a version of a table, after a change of each."""
    log = table / "_delta_log" / f"{version:020}.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:
        change(action)
    log.write_text("\n".join(map(json.dumps, actions)))
    return actions


@pytest.mark.parametrize("rows", SETS.values(), ids=SETS)
def test_a_deletion_vector_in_every_form(tmp_path: Path, rows: list[int]) -> None:
    for runs in (False, True):
        for kept in (False, True):
            for far in ([], [1 << 33, (1 << 33) + 5]):
                found = deleted(LocalPlace(tmp_path), vector(tmp_path, [*rows, *far], runs=runs, kept=kept))
                assert found.tolist() == [*rows, *far]


def test_a_damaged_deletion_vector(tmp_path: Path) -> None:
    said = vector(tmp_path, [1, 2, 3], runs=False, kept=True)
    (file,) = tmp_path.glob("*.bin")
    whole = file.read_bytes()
    for place in (20, len(whole) - 1):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(hj.StorageError, match=r"cannot be read: deletion_vector_.*\.bin is damaged"):
            deleted(LocalPlace(tmp_path), said)
    for wrong in ({"pathOrInlineDv": "x"}, {"storageType": "p"}, {"cardinality": 4}):
        with pytest.raises(hj.StorageError, match="deletion vector"):
            deleted(LocalPlace(tmp_path), {**vector(tmp_path, [1, 2, 3], runs=False, kept=False), **wrong})


@pytest.mark.parametrize("piece", [1 << 28, 1])
@pytest.mark.parametrize("configuration", [{}, FEED], ids=["", "feed"])
def test_a_source_with_deletion_vectors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece: int, configuration: dict[str, str]
) -> None:
    """Each version has other deleted rows than the one before: more of them, fewer, none, in the log or in a file."""
    monkeypatch.setattr("halfjoin.engine.feeds.delta_source.READ_BYTES", piece)
    table = tmp_path / "odd ü name"
    rows = pa.table({"k": range(MANY), "p": pa.repeat("a b/%=ü", MANY)})
    write_deltalake(table.as_uri(), rows, configuration=configuration, partition_by=["p"],
                    writer_properties=WriterProperties(max_row_group_size=MANY // 3))  # fmt: skip
    actions = _edited(table, 0, lambda action: action.update(protocol=PROTOCOL) if "protocol" in action else None)
    (file,) = [action["add"] for action in actions if "add" in action]
    early = opened()
    early.execute("CREATE TABLE u (k bigint, p text)")
    early.follow("u", table)
    for number, gone in enumerate(SETS.values()):
        file = delete(table, file, gone, runs=number % 2 == 0, kept=number > 1)
        late = opened()
        late.execute("CREATE TABLE u (k bigint, p text)")
        wanted = pa.table(DeltaTable(table.as_uri()).scan(columns=["k"]))["k"].sort()
        assert len(wanted) == MANY - len(gone)
        for engine in (early, late):
            engine.follow("u", table)
            found = engine.read("u")
            assert found["k"].sort().equals(wanted)
            assert found["p"].unique().to_pylist() == ["a b/%=ü"]
        late.close()
    early.close()


def test_a_file_that_goes_with_its_deletion_vector(tmp_path: Path) -> None:
    table = tmp_path / "source"
    write_deltalake(table, pa.table({"k": range(5), "p": pa.nulls(5, pa.int32())}), partition_by=["p"])
    actions = _edited(table, 0, lambda action: action.update(protocol=PROTOCOL) if "protocol" in action else None)
    (file,) = [action["add"] for action in actions if "add" in action]
    engine = opened()
    engine.execute("CREATE TABLE u (k bigint, p integer)")
    engine.follow("u", table)
    delete(table, file, [1, 3], runs=False, kept=True)
    write_deltalake(table, pa.table({"k": [9], "p": pa.array([7], pa.int32())}), mode="append")
    vanishing = _edited(table, 1, lambda action: None)[1]["add"]
    for said in ({}, None):  # of a partition, what is NULL may be left out, and all of it of a file that is removed
        gone = {"path": vanishing["path"], "dataChange": True, "deletionVector": vanishing["deletionVector"]}
        log = table / "_delta_log" / f"{3:020}.json"
        log.write_text(json.dumps({"remove": gone | ({} if said is None else {"partitionValues": said})}))
        with hj.Engine() as other:
            other.execute("CREATE TABLE u (k bigint, p integer)")
            log.rename(tmp_path / "kept")
            other.follow("u", table)
            assert bag(other.read("u")) == {(0, None): 1, (2, None): 1, (4, None): 1, (9, 7): 1}
            (tmp_path / "kept").rename(log)
            other.follow("u", table)
            assert bag(other.read("u")) == {(9, 7): 1}
    engine.follow("u", table)
    assert bag(engine.read("u")) == {(9, 7): 1}


@pytest.mark.parametrize("piece", [1 << 28, 1])
def test_without_a_feed_rows_go_with_their_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece: int) -> None:
    monkeypatch.setattr("halfjoin.engine.feeds.delta_source.READ_BYTES", piece)
    source, engine = Source(tmp_path / "source", {1: 1, 2: 2}, {}), hj.Engine()
    engine.execute("CREATE TABLE t (k bigint PRIMARY KEY, v bigint)")
    engine.follow("t", source.path)
    steps = [("insert", 1, 7), ("update", 1, 8), ("delete", 2, 0), ("optimize", 0, 0), ("merge", 1, 3), ("merge", 1, 8),
             ("overwrite", 4, 5), ("insert", 1, 1)]  # fmt: skip
    for step in steps:
        source.step(*step)
        engine.follow("t", source.path)
        assert bag(engine.read("t")) == Counter(source.rows.items())


def test_a_source_written_over_with_another_partition(tmp_path: Path) -> None:
    table, rows = tmp_path / "source", pa.table({"k": [1, 2, 2], "p": ["a", "b", None]})
    engine = opened()
    engine.execute("CREATE TABLE u (k bigint, p text)")
    write_deltalake(table, rows, partition_by=["p"])
    engine.follow("u", table)
    for number, columns in enumerate((None, ["k"], ["p"])):
        rows = rows.append_column("n", pa.repeat(number, 3)).select(["k", "p"])
        write_deltalake(table, rows.slice(number % 2), mode="overwrite", partition_by=columns, schema_mode="overwrite")
        engine.follow("u", table)
        assert bag(engine.read("u")) == bag(rows.slice(number % 2))


@pytest.mark.parametrize("feed", [False, True])
def test_moments_that_are_written_as_spark_does(tmp_path: Path, feed: bool) -> None:
    """As INT96, of which nanoseconds would reach from 1677 to 2262 alone."""
    moments = [dt.datetime(9999, 12, 31, 23, 59, 59, 999_999, dt.UTC), dt.datetime(1, 1, 1, tzinfo=dt.UTC), None]
    rows = pa.table({"k": [1, 2, 3], "at": pa.array(moments, pa.timestamp("us", "UTC"))})
    table, engine = tmp_path / "source", opened()
    engine.execute("CREATE TABLE u (k bigint, at timestamptz)")

    def as_spark() -> None:
        for file in table.rglob("*.parquet"):
            read = pq.read_table(file, coerce_int96_timestamp_unit="us")
            pq.write_table(read, file, use_deprecated_int96_timestamps=True)

    write_deltalake(table, rows, configuration=FEED if feed else {})
    as_spark()
    engine.follow("u", table)
    assert bag(engine.read("u")) == bag(rows)
    before = rows
    for number in (1, 2):
        changed = before.slice(0, 3 - number).set_column(0, "k", pa.array([7 * number] * (3 - number)))
        write_deltalake(table, changed, mode="overwrite")
        if number == 1:
            as_spark()
        engine.follow("u", table, restart=number == 2)
        assert bag(engine.read("u")) == bag(changed)


def test_a_source_that_maps_its_columns_names(tmp_path: Path) -> None:
    table = tmp_path / "source"
    mapped = {"k": "col-1", "p": "col-2", "a b": "col-3"}

    def schema(names: dict[str, str], types: dict[str, Any]) -> str:
        return json.dumps({"type": "struct", "fields": [
            {"name": name, "type": types[stored], "nullable": True, "metadata": {
                "delta.columnMapping.id": int(stored[4:]), "delta.columnMapping.physicalName": stored}}
            for name, stored in names.items()]})  # fmt: skip

    write_deltalake(table, pa.table({"col-1": [1, 2], "col-2": ["x", None], "col-3": ["one", "two"]}),
                    partition_by=["col-2"], configuration=FEED)  # fmt: skip
    types: dict[str, Any] = {"col-1": "long", "col-2": "string", "col-3": "string", "col-4": "string"}
    mode = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "4"}
    metadata = next(action["metaData"] for action in _edited(table, 0, lambda _: None) if "metaData" in action)
    protocol = {"minReaderVersion": 2, "minWriterVersion": 5}

    def described(names: dict[str, str]) -> dict[str, Any]:
        return {**metadata, "schemaString": schema(names, types), "partitionColumns": ["p"],
                "configuration": {**FEED, **mode}}  # fmt: skip

    def mapping(action: dict[str, Any]) -> None:
        if "metaData" in action:
            action["metaData"] = described(mapped)
        if "protocol" in action:
            action["protocol"] = protocol

    def version(*actions: dict[str, Any]) -> None:
        log = table / "_delta_log" / f"{DeltaTable(table).version() + 1:020}.json"
        log.write_text("\n".join(map(json.dumps, actions)))

    actions = _edited(table, 0, mapping)
    engine = opened()
    engine.execute('CREATE TABLE u (k bigint, p text, "a b" text)')
    engine.follow("u", table)
    assert bag(engine.read("u")) == {(1, "x", "one"): 1, (2, None, "two"): 1}
    (gone,) = [action["add"] for action in actions if "add" in action and action["add"]["partitionValues"]["col-2"]]
    (table / "_change_data").mkdir()
    pq.write_table(pa.table({"col-1": [1], "col-3": ["one"], "_change_type": ["delete"]}), table / "_change_data" / "c")
    cdc = {"path": "_change_data/c", "partitionValues": {"col-2": "x"}, "size": 9, "dataChange": False}
    version({"remove": {"path": gone["path"], "dataChange": True}}, {"cdc": cdc})
    engine.follow("u", table)
    assert bag(engine.read("u")) == {(2, None, "two"): 1}

    engine.execute('ALTER TABLE u RENAME COLUMN "a b" TO c')
    version({"metaData": described({"k": "col-1", "p": "col-2", "c": "col-3"})})
    with pytest.raises(hj.StorageError, match=r"version 2 of .* renames a column to c"):
        engine.follow("u", table)
    engine.follow("u", table, restart=True)
    assert bag(engine.read("u")) == {(2, None, "two"): 1}
    version({"metaData": described({"k": "col-1", "p": "col-2"})})
    engine.follow("u", table, columns=["k", "p"])
    version({"metaData": described({"k": "col-1", "p": "col-2", "c": "col-4"})})
    engine.follow("u", table, restart=True)
    assert bag(engine.read("u")) == {(2, None, None): 1}

    types["col-4"] = {"type": "struct", "fields": []}
    version({"metaData": described({"k": "col-1", "p": "col-2", "c": "col-4"})})
    with pytest.raises(hj.StorageError, match=r"maps the names of columns .* and those within c"):
        engine.follow("u", table, restart=True)
    mode["delta.columnMapping.mode"] = "id"
    version({"metaData": described({"k": "col-1", "p": "col-2", "c": "col-4"})})
    with pytest.raises(hj.StorageError, match=r"finds its columns by numbers \(delta.columnMapping.mode = id\)"):
        engine.follow("u", table)


def test_a_shallow_clone(tmp_path: Path) -> None:
    table = tmp_path / "source"
    write_deltalake(table, pa.table({"k": [1]}))
    _edited(table, 0, lambda action: action["add"].update(path=f"file:{table}/x.parquet") if "add" in action else None)
    with pytest.raises(hj.StorageError, match=r"has files in the folder of another table, as a shallow clone has"):
        opened().follow("t", table, columns=["k"])
