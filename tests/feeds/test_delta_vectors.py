"""Deletion vectors are found in every form that a checkpoint has, and in tables with other features as well."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

import halfjoin as hj
from halfjoin.engine.feeds.delta_vectors import vectors
from halfjoin.engine.storage.place import LocalPlace
from tests.support.deletion_vectors import PROTOCOL, delete


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Versions 0 and 1 with two files, 2 with a vector of each, 3 without that of the first."""
    table = tmp_path / "source"
    for mode in ("error", "append"):
        write_deltalake(table.as_uri(), pa.table({"k": range(5)}), mode=mode)
    _edit(table, 0, lambda action: {"protocol": PROTOCOL} if "protocol" in action else action)
    first, second = (_edit(table, version, dict)[-1]["add"] for version in (0, 1))
    delete(table, first, [1], runs=False, kept=True)
    delete(table, second, [2, 3], runs=False, kept=False)
    again = [{"remove": {"path": first["path"], "dataChange": True}}, {"add": {**first, "dataChange": True}}]
    (table / "_delta_log" / f"{4:020}.json").write_text("\n".join(map(json.dumps, again)))
    return table


def _edit(table, version, edited):
    log = table / "_delta_log" / f"{version:020}.json"
    actions = [edited(json.loads(line)) for line in log.read_text().splitlines()]
    log.write_text("\n".join(map(json.dumps, actions)))
    return sorted(actions, key=lambda action: "add" in action)


def _in_parts(log, rows):
    for part in (1, 2):
        pq.write_table(rows[part - 1 :: 2], log / f"{3:020}.checkpoint.{part:010}.{2:010}.parquet")
    pq.write_table(rows[:0], log / f"{4:020}.checkpoint.{1:010}.{2:010}.parquet")  # not whole


def _with_sidecars(log, rows, *, json_text):
    (log / "_sidecars").mkdir()
    for number in (0, 1):
        pq.write_table(rows[number::2].select(["add"]), log / "_sidecars" / f"{number}.parquet")
    named = [{"sidecar": {"path": f"{number}.parquet", "sizeInBytes": 1}} for number in (0, 1)]
    name = log / f"{3:020}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11"
    if json_text:
        name.with_suffix(f"{name.suffix}.json").write_text("\n".join(map(json.dumps, [{"protocol": {}}, *named])))
    else:
        pq.write_table(pa.Table.from_pylist(named), f"{name}.parquet")


@pytest.mark.parametrize("form", ["commits", "one file", "parts", "sidecars", "sidecars by JSON"])
def test_vectors_are_found_in_every_checkpoint(table: Path, form: str) -> None:
    place, log = LocalPlace(table), table / "_delta_log"
    wanted = {version: vectors(place, version) for version in range(5)}
    assert [[vector["cardinality"] for vector in wanted[at].values()] for at in wanted] == [[], [], [1], [1, 2], [2]]
    if form != "commits":
        DeltaTable(table.as_uri(), version=3).create_checkpoint()
        checkpoint = log / f"{3:020}.checkpoint.parquet"
        rows = pq.read_table(checkpoint)
        if form != "one file":
            checkpoint.unlink()
        if form == "parts":
            _in_parts(log, _shuffled(rows))
        elif form != "one file":
            _with_sidecars(log, rows, json_text="JSON" in form)
        for version in range(4):
            (log / f"{version:020}.json").unlink()
    for version in range(3 if form != "commits" else 0, 5):
        found = vectors(place, version)
        assert {path: _plain(vector) for path, vector in found.items()} == \
            {path: _plain(vector) for path, vector in wanted[version].items()}  # fmt: skip


def _shuffled(rows):
    """The rows, so that both halves have a vector."""
    has = [row["add"] is not None and row["add"]["deletionVector"] is not None for row in rows.to_pylist()]
    return rows.take(sorted(range(len(rows)), key=has.__getitem__))


def _plain(vector):
    return {name: value for name, value in vector.items() if value is not None}


def test_a_source_with_type_widening_and_deletion_vectors(table: Path) -> None:
    both = {name: [*PROTOCOL[name], "typeWidening"] for name in ("readerFeatures", "writerFeatures")}
    _edit(table, 0, lambda action: {"protocol": {**PROTOCOL, **both}} if "protocol" in action else action)
    with hj.Engine() as engine:
        engine.execute("CREATE TABLE t (k bigint)")
        engine.follow("t", table)
        assert sorted(engine.read("t")["k"].to_pylist()) == [0, 0, 1, 1, 2, 3, 4, 4]
