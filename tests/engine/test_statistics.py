"""The statistics for plans: numbers of rows, and of distinct keys, with and without an index."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import halfjoin as hj
from halfjoin.engine.statements.statistics import Statistics
from halfjoin.planner.plan import ArrangementKey
from halfjoin.sql.bind.bind import bind_scalar
from halfjoin.sql.parse.parse import parse

ROWS = 400_000  # more than are looked at


def key(engine: hj.Engine, *texts: str) -> ArrangementKey:
    catalog = engine._state.catalog
    (statement,) = parse(f"CREATE INDEX i ON t ({', '.join(texts)})")
    nodes = statement.keys  # type: ignore[union-attr]
    return ArrangementKey("t", tuple(bind_scalar(node, catalog.columns("t") or (), catalog, "", "t") for node in nodes))


def loaded(columns: dict[str, np.ndarray], folder: Path | None = None) -> hj.Engine:
    engine = hj.Engine(folder, clock="own")
    engine.execute(f"CREATE TABLE t ({', '.join(f'{name} bigint' for name in columns)})")
    engine.apply({"t": pa.table(columns)}, time=0)
    return engine


@pytest.mark.parametrize("values", [3, 100, 30_000, 300_000, 10**12])
def test_distinct_keys_are_about_right_without_an_index(values: int) -> None:
    rng = np.random.default_rng(values)
    drawn, regular = rng.integers(0, values, ROWS), np.arange(ROWS) % min(values, ROWS)
    with loaded({"drawn": drawn, "regular": regular}) as engine:
        for name, true in (("drawn", drawn), ("regular", regular)):
            found = Statistics(engine._state).distinct(key(engine, name))
            assert found is not None and 0.6 < found / len(np.unique(true)) < 1.6, name
            engine.execute(f"CREATE INDEX exact_{name} ON t ({name})")
            assert Statistics(engine._state).distinct(key(engine, name)) == len(np.unique(true))


def test_rows_that_went_do_not_count() -> None:
    with loaded({"x": np.arange(9000) % 900, "y": np.arange(9000)}) as engine:
        engine.execute("SET TIME = 1; DELETE FROM t WHERE y >= 4500 OR x > 99")
        engine.flush()
        engine.compact()
        facts = Statistics(engine._state)
        assert facts.rows("t") == 500 and facts.distinct(key(engine, "x")) == 100
        engine.execute("SET TIME = 2; DELETE FROM t")
        engine.flush()
        engine.compact()
        assert facts.rows("t") == 0 and facts.distinct(key(engine, "x")) is None


def test_a_cold_collection_is_opened_to_be_counted(tmp_path: Path) -> None:
    loaded({"x": np.arange(3000) % 30}, tmp_path / "w").close()
    with hj.Engine(tmp_path / "w") as engine:
        assert engine._state.tables["t"].cold is not None
        assert Statistics(engine._state).rows("t") == 3000
        assert Statistics(engine._state).distinct(key(engine, "x", "x % 2")) == 30


def test_keys_that_fail_for_every_row_tell_nothing() -> None:
    with loaded({"x": np.zeros(2000, np.int64)}) as engine:
        assert Statistics(engine._state).distinct(key(engine, "12 / x")) is None
