"""A reader that may not write to the warehouse's folder: it reads beside a writer, and is told why not without one."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import halfjoin as hj
from halfjoin.errors import StorageError

NOBODY = 65534


@pytest.fixture
def warehouse() -> Iterator[Path]:
    """A closed warehouse below a folder that every user may enter."""
    base = Path(tempfile.mkdtemp())
    base.chmod(0o755)
    with hj.Engine(base / "w") as engine:
        engine.execute("CREATE TABLE t (a bigint PRIMARY KEY)")
        engine.apply({"t": [{"a": 1}]})
    for file in (base / "w").iterdir():
        file.chmod(0o644)
    yield base / "w"
    (base / "w").chmod(0o755)
    shutil.rmtree(base)


@contextmanager
def not_root() -> Iterator[None]:
    """Be a user to whom permissions matter."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(user)


def test_without_a_writer_the_error_says_why(warehouse: Path) -> None:
    warehouse.chmod(0o555)
    with not_root(), pytest.raises(StorageError, match="SQLite makes files beside it, and this process may") as found:
        hj.Engine(warehouse, read_only=True)
    assert "keep the engine that writes open" in str(found.value)


def test_beside_a_writer_it_reads(warehouse: Path) -> None:
    with hj.Engine(warehouse) as writer:
        writer.apply({"t": [{"a": 2}]})
        warehouse.chmod(0o555)
        with not_root(), hj.Engine(warehouse, read_only=True) as reader:
            assert sorted(row["a"] for row in reader.read("t").to_pylist()) == [1, 2]
        warehouse.chmod(0o755)


def test_an_engine_that_may_not_look_at_a_table_says_which(warehouse: Path) -> None:
    with hj.Engine(warehouse) as engine:
        engine.execute("CREATE TABLE u (a bigint)")
        engine.apply({"u": [{"a": 5}]})
        engine.flush()
    for path in (warehouse, *warehouse.rglob("*")):
        path.chmod(0o777 if path.is_dir() else 0o666)
    table = warehouse / "tables" / "t"
    table.chmod(0)
    with not_root():
        with pytest.raises(StorageError, match=r"tables/t cannot be read: .*Permission denied"):
            hj.Engine(warehouse)
        with hj.Engine(warehouse, read_only=True) as reader:
            assert reader.read("u").to_pylist() == [{"a": 5}]
            with pytest.raises(StorageError, match=r"tables/t cannot be read: .*Permission denied"):
                reader.read("t")
    table.chmod(0o777)
    with not_root(), hj.Engine(warehouse) as engine:
        assert engine.read("t").to_pylist() == [{"a": 1}]
