"""Damaged files of a warehouse: each answer is right, or a StorageError names the file or its folder."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

import halfjoin as hj
from halfjoin.engine.storage import parquet, stored_run
from tests.oracle.rows import bag

ROWS = [{"k": number, "s": f"text {number}"} for number in range(100)]
EXPECTED = {tuple(row.values()): 1 for row in ROWS}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A warehouse with files, arrangements, and updates that are only in the journal."""
    folder = tmp_path_factory.mktemp("damage") / "w"
    with pytest.MonkeyPatch.context() as small:
        small.setattr(stored_run, "SEARCHED_ROWS", 1)
        small.setattr(parquet, "GROUP_ROWS", 8)
        with hj.Engine(folder) as engine:
            engine.execute("CREATE TABLE t (k bigint PRIMARY KEY, s text); CREATE TABLE u (k bigint)")
            engine.execute("CREATE MATERIALIZED VIEW v AS SELECT t.k, t.s FROM t, u WHERE t.k = u.k")
            engine.execute("CREATE INDEX ON t ((k % 3), s)")
            engine.apply({"t": ROWS[:50], "u": [{"k": row["k"]} for row in ROWS]}, time=1)
            engine.flush()
            engine.apply({"t": ROWS[50:]}, time=2)
        with hj.Engine(folder, memory=1) as engine:
            engine.read("t")
            engine.flush()
        with hj.Engine(folder) as engine:
            engine.apply({"u": [{"k": 1000}]}, time=3)
        yield folder


def _zeros(data: bytes) -> bytes:
    return bytes(len(data))


def _cut(data: bytes) -> bytes:
    return data[: len(data) // 2]


def _empty(data: bytes) -> bytes:
    return b""


def _noise(data: bytes) -> bytes:
    return random.Random(1).randbytes(max(len(data), 50))


def _flipped(data: bytes) -> bytes:
    rng, changed = random.Random(2), bytearray(data)
    for _ in range(20):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _check(folder: Path, *, may_be_right: bool = True) -> None:
    """Try reads, queries and writes on it."""
    seen = 0
    for options in ({"read_only": True}, {}, {"memory": 1}):
        try:
            with hj.Engine(folder, **options) as engine:  # type: ignore[arg-type]
                calls: list[Callable[[], Any]] = [
                    lambda e=engine: bag(e.read("t")) == EXPECTED, lambda e=engine: bag(e.read("v")) == EXPECTED,
                    lambda e=engine: e.query("SELECT count(*) AS n FROM u")["n"].to_pylist() == [101],
                    lambda e=engine: e.flush() is None, lambda e=engine: e.compact() is None,
                    lambda e=engine: e.stats().upper == 4,
                ]  # fmt: skip
                for call in calls:
                    try:
                        assert call()
                    except hj.StorageError as problem:
                        assert str(folder) in str(problem)
                        seen += 1
        except hj.StorageError as problem:
            assert str(folder) in str(problem)
            seen += 1
    assert may_be_right or seen


@pytest.mark.parametrize("damage", [_zeros, _cut, _empty, _noise, _flipped])
@pytest.mark.parametrize(
    "kind", ["journal.sqlite", "tables/t/*.parquet", "views/v/*.parquet", "arrangements/*/*/*.parquet",
             "tables/t/_delta_log/*.json", "arrangements/*/*/_delta_log/*.json"],
)  # fmt: skip
def test_a_damaged_file_is_named(made: Path, tmp_path: Path, kind: str, damage: Callable[[bytes], bytes]) -> None:
    files = sorted(path.relative_to(made) for path in made.glob(kind))
    assert files
    for number, file in enumerate(files[-2:]):
        folder = shutil.copytree(made, tmp_path / str(number))
        (folder / file).write_bytes(damage((folder / file).read_bytes()))
        _check(folder, may_be_right=not (kind.startswith("tables") and kind.endswith("parquet")))


@pytest.mark.parametrize(
    "statement", [
        "UPDATE line SET upper = 'x' WHERE collection = 0", "DELETE FROM line WHERE collection = 0",
        "UPDATE meta SET value = '{' WHERE key = 'catalog'",
        "UPDATE meta SET value = '{\"tables\": 7}' WHERE key = 'catalog'",
        "UPDATE meta SET value = replace(value, 'SELECT', 'SELEKT') WHERE key = 'catalog'",
        "UPDATE meta SET value = replace(value, 'FROM t', 'FROM x') WHERE key = 'catalog'",
        "UPDATE meta SET value = 'x' WHERE key = 'retain'", "UPDATE meta SET value = 'x' WHERE key = 'flushes'",
        "UPDATE meta SET value = x'00ff' WHERE key = 'catalog'", "UPDATE meta SET value = 'x' WHERE key = 'format'",
        "DELETE FROM collection WHERE name = 't'", "UPDATE collection SET since = 'x'",
        "UPDATE collection SET version = 77", "UPDATE collection SET version = 'x'", "DROP TABLE line",
        "DROP TABLE batch", "UPDATE line SET data = x'00'", "UPDATE line SET data = substr(data, 1, 90)",
        "UPDATE line SET data = zeroblob(500)", "UPDATE line SET file = '{', data = x''",
        "UPDATE line SET data = 'text'", "UPDATE line SET file = '[1]', data = x''",
        "UPDATE line SET file = '[\"gone.parquet\", 5, 1, 3, \"\"]', data = x''",
    ],
)  # fmt: skip
def test_a_damaged_journal_is_named(made: Path, tmp_path: Path, statement: str) -> None:
    folder = shutil.copytree(made, tmp_path / "w")
    with sqlite3.connect(folder / "journal.sqlite") as journal:
        journal.execute(statement)
    journal.close()
    _check(folder, may_be_right="batch" in statement)


def test_an_entry_with_other_columns_is_named(made: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(made, tmp_path / "w")
    sink = pa.BufferOutputStream()
    table = pa.table({"other": [1]})
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    with sqlite3.connect(folder / "journal.sqlite") as journal:
        journal.execute("UPDATE line SET data = ?", (sink.getvalue().to_pybytes(),))
    journal.close()
    _check(folder, may_be_right=False)


@pytest.mark.parametrize("columns", [{"other": [1]}, {"k": ["x"], "s": ["y"], "__time": [1], "__diff": [1]},
                                     {"k": [1], "s": ["y"], "__time": [None], "__diff": [None]}, {}])  # fmt: skip
def test_a_file_of_another_shape_is_named(made: Path, tmp_path: Path, columns: dict[str, list[object]]) -> None:
    folder = shutil.copytree(made, tmp_path / "w")
    for file in (folder / "tables" / "t").glob("*.parquet"):
        pq.write_table(pa.table(columns), file)
    _check(folder, may_be_right=False)


def test_a_log_without_statistics_is_named(made: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(made, tmp_path / "w")
    for log in (folder / "tables" / "t" / "_delta_log").glob("*.json"):
        actions = [json.loads(line) for line in log.read_text().splitlines()]
        for action in actions:
            action.get("add", {}).pop("stats", None)
        log.write_text("\n".join(map(json.dumps, actions)))
    assert DeltaTable(folder / "tables" / "t").version() > 0
    _check(folder, may_be_right=False)
