"""A warehouse with views for sinks, batches for it, and the contents of the sinks' tables."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from deltalake import DeltaTable

import halfjoin as hj
from tests.oracle.rows import Bag, bag

FOLDER = "a warehouse, 100 % ü"  # what needs quoting in a URL
DDL = """
CREATE TABLE t (k bigint PRIMARY KEY, v integer, note text);
CREATE VIEW plain AS SELECT k FROM t;
CREATE MATERIALIZED VIEW big AS SELECT k, v FROM t WHERE v > 5;
CREATE MATERIALIZED VIEW ratio AS SELECT k, 12 / v AS r FROM t;
"""


@contextmanager
def opened(folder: Path) -> Iterator[hj.Engine]:
    """A new warehouse."""
    with hj.Engine(folder, retain=20) as engine:
        engine.execute(DDL)
        yield engine


def put(engine: hj.Engine, time: int, *keys: int, v: int = 9) -> None:
    """Apply a batch of rows."""
    engine.apply({"t": [{"k": key, "v": v} for key in keys]}, time=time)


def rows(path: Path, version: int | None = None) -> Bag:
    """The rows of a sink's table."""
    return bag(DeltaTable(path, version=version).to_pyarrow_table())


def shown(engine: hj.Engine) -> list[dict[str, object]]:
    """The rows of SHOW SINKS."""
    found = engine.execute("SHOW SINKS")
    assert found is not None
    return found.to_pylist()
