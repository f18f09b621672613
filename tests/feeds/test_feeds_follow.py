"""Tables that follow Delta tables: histories against a dictionary, restarts anywhere, and sources that are refused."""

from __future__ import annotations

import datetime as dt
import shutil
from collections import Counter
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import halfjoin as hj
from tests.oracle.rows import bag
from tests.support.following import FEED, Source, opened, rows_of
from tests.support.seeds import some

STEP = st.tuples(st.sampled_from(["insert", "update", "delete", "merge", "overwrite", "optimize", "settings", "follow",
                                  "follow", "reopen"]),
                 st.integers(0, 4), st.integers(0, 9))  # fmt: skip


@settings(max_examples=some(20), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(STEP, min_size=3, max_size=14), st.booleans(), st.booleans(), st.sampled_from([1, 1 << 20]))
def test_any_history_followed_at_any_time_across_restarts(steps: Any, keyed: bool, kept: bool, piece: int) -> None:
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr("halfjoin.engine.feeds.delta_source.READ_BYTES", piece)
        source = Source(Path(folder) / "source", {1: 1, 2: 2}, FEED)
        where = Path(folder) / "warehouse" if kept else None
        engine, followed = hj.Engine(where), 0
        engine.execute(f"CREATE TABLE t (k bigint{' PRIMARY KEY' if keyed else ''}, v bigint)")
        engine.execute("CREATE MATERIALIZED VIEW w AS SELECT k FROM t WHERE v > 2")
        for what, key, value in [*steps, ("follow", 0, 0)]:
            if what == "reopen" and kept:
                engine.close()
                engine = hj.Engine(where)
            elif what == "follow":
                applied = [one for one in engine.follow("t", source.path) if one.upper > one.time]
                due = source.at[-1:] if not followed else source.at[followed:]
                assert len(applied) == len(due)
                for one, contents in zip(applied, due, strict=True):
                    assert bag(engine.read("t", as_of=one.time)) == Counter(contents.items())
                    assert bag(engine.read("w", as_of=one.time)) == Counter((k,) for k, v in contents.items() if v > 2)
                followed = len(source.at)
            else:
                source.step(what, key, value)
        assert engine.follow("t", source.path) == []
        engine.close()


def test_killed_between_two_versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = Source(tmp_path / "source", {1: 1}, FEED)
    with opened(tmp_path / "warehouse") as engine:
        engine.follow("t", source.path)
    for value in (2, 3, 4):
        source.step("update", 1, value)
    with opened(tmp_path / "warehouse") as engine:
        apply, left = engine.apply, [True, False]

        def dying(*args: Any, **named: Any) -> hj.Applied:
            applied = apply(*args, **named)
            if not left.pop(0):
                raise SystemError("died")
            return applied

        monkeypatch.setattr(engine, "apply", dying)
        with pytest.raises(SystemError):
            engine.follow("t", source.path)
    with opened(tmp_path / "warehouse") as engine:
        assert bag(engine.read("t")) == {(1, 3): 1}
        assert len(engine.follow("t", source.path)) == 1
        assert bag(engine.read("t")) == {(1, 4): 1}


def test_without_a_feed_added_rows_are_read_from_the_files(tmp_path: Path) -> None:
    source = Source(tmp_path / "a source", {1: 1, 2: 2}, {})
    engine = opened()
    engine.follow("t", source.path)
    steps = [("insert", 1, 7), ("optimize", 0, 0), ("insert", 1, 7), ("settings", 0, 3), ("insert", 2, 8)]
    for what, key, value in steps:
        source.step(what, key, value)
    assert len(engine.follow("t", source.path)) == 5
    assert bag(engine.read("t")) == Counter(source.rows.items())


def test_partitions_and_types(tmp_path: Path) -> None:
    rows = [{"p": "x/ %20é", "n": Decimal("1.50"), "d": dt.date(2024, 2, 29), "e": ["a", None], "b": b"\0", "f": 1.5,
             "z": dt.datetime(2024, 1, 1, tzinfo=dt.UTC), "i": 3}]  # fmt: skip
    schema = pa.schema([("p", pa.string()), ("n", pa.decimal128(8, 2)), ("d", pa.date32()),
                        ("z", pa.timestamp("us", "UTC")), ("e", pa.list_(pa.string())), ("b", pa.binary()),
                        ("f", pa.float64()), ("i", pa.int32())])  # fmt: skip
    for configuration in ({}, FEED):
        path = tmp_path / f"source{len(configuration)}"
        write_deltalake(path, pa.Table.from_pylist(rows, schema), partition_by=["p", "i"], configuration=configuration)
        engine = hj.Engine()
        engine.execute("CREATE TABLE t (i integer, p text, n numeric(8,2), d date, z timestamptz, e text[], b bytea, "
                       "f double precision)")  # fmt: skip
        engine.follow("t", path)
        write_deltalake(path, pa.Table.from_pylist([{**rows[0], "i": 4, "e": None}], schema), mode="append")
        engine.follow("t", path)
        found = sorted(engine.read("t").to_pylist(), key=lambda row: row["i"])
        assert found == [rows[0], {**rows[0], "i": 4, "e": None}]


def test_the_feed_of_a_table_in_partitions(tmp_path: Path) -> None:
    """Changed files and whole files. Only the log has the partitions' values; the files' names have them escaped."""
    values = {"p": ["x/ %20é", "a=b:'c'", None], "b": [True, False, None], "d": [dt.date(2024, 2, 29), None, None],
              "z": [dt.datetime(2024, 1, 1, 2, 3, 4, 5, dt.UTC), None, None], "n": [Decimal("1.50"), None, None],
              "i": [3, None, -1], "f": [0.5, None, -2.0]}  # fmt: skip
    types = {"p": pa.string(), "b": pa.bool_(), "d": pa.date32(), "z": pa.timestamp("us", "UTC"),
             "n": pa.decimal128(8, 2), "i": pa.int32(), "f": pa.float64()}  # fmt: skip
    rows = pa.table({"k": pa.array([1, 2, 3]), "odd `name.": pa.array(["a", None, "c"]),
                     **{name: pa.array(given, types[name]) for name, given in values.items()}})  # fmt: skip
    path = tmp_path / "source"
    write_deltalake(path, pa.concat_tables([rows, rows]), partition_by=list(values), configuration=FEED)
    engine = hj.Engine()
    engine.execute('CREATE TABLE t (k bigint, "odd `name." text, p text, b boolean, d date, z timestamptz, '
                   "n numeric(8,2), i integer, f double precision)")  # fmt: skip
    engine.follow("t", path)
    for change in (
        lambda: DeltaTable(path).update(predicate="k = 1", updates={"k": "7"}),
        lambda: DeltaTable(path).delete("p = 'x/ %20é'"),
        lambda: write_deltalake(path, rows.slice(1, 1), mode="overwrite", predicate="k = 2"),
        lambda: DeltaTable(path).delete(),
    ):
        change()
        assert len(engine.follow("t", path)) == 1
        assert bag(engine.read("t")) == bag(pa.table(DeltaTable(path).scan(columns=engine.read("t").column_names)))


def test_a_partition_of_bytes(tmp_path: Path) -> None:
    """The log has them as text. Spark writes them as UTF-8, delta-rs one by one; both read what is there as UTF-8.
    What delta-rs deletes is another text in its feed than what it inserted, so this has no feed."""
    path = tmp_path / "source"
    rows = pa.table({"k": [1, 2, 3], "p": pa.array([b"a", b"\0\xff", None])})
    write_deltalake(path, rows, partition_by=["p"])
    log = path / "_delta_log" / f"{0:020}.json"
    log.write_text(log.read_text().replace('"p":"a"', '"p":"\u00e9"').replace(r'"p":"\\u0061"', '"p":"\u00e9"'))
    early = hj.Engine()
    for change in (lambda: None, lambda: DeltaTable(path).update(predicate="k < 3", updates={"k": "k + 5"}),
                   lambda: DeltaTable(path).delete("k = 7")):  # fmt: skip
        change()
        for engine in (early, hj.Engine()):
            engine.execute("CREATE TABLE IF NOT EXISTS t (k bigint, p bytea)")
            engine.follow("t", path)
            assert bag(engine.read("t")) == bag(pa.table(DeltaTable(path).scan(columns=["k", "p"])))


def test_a_source_written_over_with_other_columns(tmp_path: Path) -> None:
    path, new = tmp_path / "source", rows_of({1: 1}).append_column("w", pa.array(["w"]))
    write_deltalake(path, rows_of({1: 1}).cast(pa.schema([("k", pa.int64()), ("v", pa.int32())])), configuration=FEED)
    engine = hj.Engine()
    engine.execute("CREATE TABLE t (k bigint, v bigint, w text)")
    engine.follow("t", path, columns=["k", "v"])
    write_deltalake(path, new, mode="overwrite", schema_mode="overwrite")
    engine.follow("t", path)
    assert bag(engine.read("t")) == {(1, 1, "w"): 1}


def test_columns_are_chosen_where_the_tables_differ(tmp_path: Path) -> None:
    source = Source(tmp_path / "source", {1: 1}, FEED)
    engine = hj.Engine()
    engine.execute("CREATE TABLE narrow (k bigint); CREATE TABLE wide (k bigint, v bigint, w text)")
    with pytest.raises(hj.InvalidRow, match=r"version 0 of .* has the columns v, and narrow does not; choose columns"):
        engine.follow("narrow", source.path)
    with pytest.raises(hj.InvalidRow, match=r"version 0 of .* does not have the columns w, and wide does; choose"):
        engine.follow("wide", source.path)
    with pytest.raises(hj.UnknownName, match="'x'"):
        engine.follow("wide", source.path, columns=["x"])
    source.step("insert", 1, 7)
    for table in ("narrow", "wide"):
        chosen = ["k", "v"] if table == "wide" else ["k"]
        engine.follow(table, source.path, columns=chosen)
        source.step("update", 1, 8)
        engine.follow(table, source.path, columns=chosen)
    assert bag(engine.read("narrow")) == Counter((k,) for k in source.rows)
    assert bag(engine.read("wide")) == Counter((k, v, None) for k, v in source.rows.items())


def test_a_column_that_the_source_gets(tmp_path: Path) -> None:
    source = Source(tmp_path / "source", {1: 1}, FEED)
    engine = opened()
    engine.follow("t", source.path)
    source.step("update", 1, 2)
    more = rows_of({5: 5}).append_column("w", pa.array(["w"]))
    write_deltalake(source.path, more, mode="append", schema_mode="merge")
    with pytest.raises(hj.InvalidRow, match=r"version 2 of .* has the columns w, and t does not"):
        engine.follow("t", source.path)
    assert bag(engine.read("t")) == {(1, 2): 1}  # the version before it stays
    assert len(engine.follow("t", source.path, columns=["k", "v"])) == 1
    assert bag(engine.read("t")) == {(1, 2): 1, (5, 5): 1}


def test_a_source_that_was_made_anew(tmp_path: Path) -> None:
    source = Source(tmp_path / "source", {1: 1, 2: 2}, FEED)
    engine = opened()
    engine.execute("CREATE MATERIALIZED VIEW w AS SELECT k, v FROM t")
    engine.follow("t", source.path)
    shutil.rmtree(source.path)
    source = Source(tmp_path / "source", {1: 1, 3: 3}, FEED)
    with pytest.raises(hj.Conflict, match="it was made anew, or is another one"):
        engine.follow("t", source.path)
    (applied,) = engine.follow("t", source.path, restart=True)
    changes = {(row["k"], row["__diff"]) for row in applied.diffs["w"].to_pylist()}
    assert changes == {(2, -1), (3, 1)}  # by what differs
    source.step("update", 3, 4)
    engine.follow("t", source.path)
    assert bag(engine.read("t")) == Counter(source.rows.items())


def test_a_source_that_went_back(tmp_path: Path) -> None:
    source = Source(tmp_path / "source", {1: 1}, FEED)
    shutil.copytree(source.path, tmp_path / "copy")
    source.step("update", 1, 2)
    engine = opened()
    engine.follow("t", source.path)
    with pytest.raises(hj.Conflict, match="is at version 0, but t has followed it up to 1"):
        engine.follow("t", tmp_path / "copy")
    engine.follow("t", tmp_path / "copy", restart=True)
    assert bag(engine.read("t")) == {(1, 1): 1}


@pytest.mark.parametrize("gone", ["log", "files"])
def test_a_history_that_is_gone(tmp_path: Path, gone: str) -> None:
    source = Source(tmp_path / "source", {1: 1}, FEED)
    engine = opened()
    engine.follow("t", source.path)
    source.step("update", 1, 2)
    source.step("update", 1, 3)
    if gone == "log":
        DeltaTable(source.path).create_checkpoint()
        for version in range(2):
            (Path(source.path) / "_delta_log" / f"{version:020}.json").unlink()
    else:
        shutil.rmtree(Path(source.path) / "_change_data")
    with pytest.raises(hj.StorageError, match=r"version 1 of .* cannot be read, .*restart=True\) goes on"):
        engine.follow("t", source.path)
    engine.follow("t", source.path, restart=True)
    assert bag(engine.read("t")) == {(1, 3): 1}


def test_a_table_that_is_dropped_forgets_how_far_it_was(tmp_path: Path) -> None:
    source = Source(tmp_path / "source", {1: 1}, FEED)
    for engine in (opened(), opened(tmp_path / "warehouse")):
        engine.follow("t", source.path)
        engine.execute("DROP TABLE t; CREATE TABLE t (k bigint, v bigint)")
        engine.follow("t", source.path)
        assert bag(engine.read("t")) == {(1, 1): 1}
        engine.close()


def test_what_cannot_be_followed(tmp_path: Path) -> None:
    engine = opened()
    with pytest.raises(hj.StorageError, match="there is no Delta table at"):
        engine.follow("t", tmp_path / "nothing")
    with pytest.raises(hj.UnknownName, match="tt"):
        engine.follow("tt", tmp_path / "nothing")
    source = Source(tmp_path / "source", {1: 1}, {})
    engine.follow("t", source.path)
    source.step("delete", 1, 1)
    DeltaTable(source.path).vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
    with pytest.raises(hj.StorageError, match=r"version 1 of .* cannot be read, perhaps since .* were cleaned up"):
        engine.follow("t", source.path)
    engine.close()
    with pytest.raises(hj.HalfjoinError, match="closed"):
        engine.follow("t", source.path)


@pytest.mark.parametrize("kept", [False, True])
def test_a_renamed_table_goes_on_where_it_was(tmp_path: Path, kept: bool) -> None:
    places = [str(tmp_path / name) for name in ("one", "two")]
    for place in places:
        write_deltalake(place, pa.table({"c": [1]}))
    with hj.Engine(tmp_path / "w" if kept else None) as engine:
        engine.execute("CREATE TABLE f (c bigint); CREATE TABLE g (c bigint)")
        engine.follow("f", places[0])
        engine.follow("g", places[1])
        engine.execute("BEGIN; ALTER TABLE f RENAME TO h; ALTER TABLE g RENAME TO f; ALTER TABLE h RENAME TO g; COMMIT")
        for place, value in zip(places, (2, 3), strict=True):
            write_deltalake(place, pa.table({"c": [value]}), mode="append")
        engine.follow("g", places[0])
        engine.follow("f", places[1])
        assert [sorted(engine.read(name)["c"].to_pylist()) for name in ("g", "f")] == [[1, 2], [1, 3]]
        engine.execute("BEGIN; DROP TABLE f; CREATE TABLE f (c bigint); COMMIT")
        engine.follow("f", places[1])
        assert sorted(engine.read("f")["c"].to_pylist()) == [1, 3]
