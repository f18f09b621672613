"""A source FROM FILES finds a file again whose time is told in two ways: of links, and by stores."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.memory import MemoryFileSystem

import halfjoin as hj


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "in"
    made.mkdir()
    return made


@pytest.fixture
def engine() -> Iterator[hj.Engine]:
    with hj.Engine() as made:
        made.execute("CREATE TABLE t (k bigint PRIMARY KEY)")
        yield made


def keys(engine: hj.Engine, path: object, expected: int) -> list[int]:
    """The keys that the files of a folder have."""
    engine.create_source("s", "files", "t", path=path, settle=0)
    assert engine.run_sources(0) == expected
    return sorted(engine.read("t")["k"].to_pylist())


def test_links_to_files_are_read_as_files(engine: hj.Engine, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "real.csv").write_text("k\n1\n")
    os.utime(tmp_path / "real.csv", (1e9, 1e9))  # the link is younger
    (folder / "a.csv").symlink_to(tmp_path / "real.csv")
    (folder / "broken.csv").symlink_to(tmp_path / "nowhere")
    (folder / "b.csv").symlink_to(tmp_path)
    assert keys(engine, folder, 1) == [1]


def test_a_store_may_tell_the_time_of_a_file_to_the_second(
    engine: hj.Engine, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known: Any = MemoryFileSystem.info

    def info(self: MemoryFileSystem, path: str, **options: Any) -> dict[str, Any]:
        found = known(self, path, **options)
        return {**found, "created": found["created"].replace(microsecond=0)} if "created" in found else found

    monkeypatch.setattr(MemoryFileSystem, "info", info)
    files = MemoryFileSystem()
    for name in ("a.csv", "b.csv"):
        files.pipe(f"{folder}/{name}", b"k\n%d\n" % ord(name[0]))
    assert keys(engine, f"memory:/{folder}", 2) == [97, 98]
