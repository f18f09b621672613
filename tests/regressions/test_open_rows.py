"""Rows at open times are never visible. Rows that always hold are visible from the start."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import halfjoin as hj

DDL = """
CREATE TABLE t (k bigint);
CREATE VIEW plain AS SELECT k FROM t;
CREATE MATERIALIZED VIEW copy AS SELECT k FROM t UNION ALL VALUES (100), (200);
CREATE MATERIALIZED VIEW above AS SELECT k + 1 AS k FROM copy;
CREATE MATERIALIZED VIEW failing AS SELECT 12/k AS k FROM t UNION ALL SELECT 5;
CREATE MATERIALIZED VIEW timed AS SELECT c AS k FROM (VALUES (1), (2)) AS x(c) WHERE mz_now() <= c - 2;
"""
ALWAYS: dict[str, list[int]] = {"t": [], "plain": [], "copy": [100, 200], "above": [101, 201], "failing": [5],
                                "timed": [2]}  # fmt: skip


def assert_only_what_holds_always(engine: hj.Engine) -> None:
    for name, rows in ALWAYS.items():
        assert sorted(engine.read(name)["k"].to_pylist()) == rows, name
        assert sorted(engine.read(name, multiplicity=True)["k"].to_pylist()) == rows, name
        assert sorted(engine.query(f"SELECT * FROM {name}")["k"].to_pylist()) == rows, name
        assert sorted(engine.query(f"SELECT k + 0 AS k FROM {name}")["k"].to_pylist()) == rows, name
        assert engine.query(f"SELECT count(*) AS n FROM {name}")["n"].to_pylist() == [len(rows)], name
        joined = engine.query(f"SELECT x.k FROM {name} x LEFT JOIN {name} y ON x.k = y.k")
        assert sorted(joined["k"].to_pylist()) == rows, name
        with pytest.raises(hj.InvalidTime):
            engine.read(name, as_of=0)


@pytest.mark.parametrize("flush", [False, True])
def test_open_rows_are_not_visible_while_nothing_is_closed(tmp_path: Path, flush: bool) -> None:
    path = tmp_path / "w"
    with hj.Engine(path) as engine:
        engine.execute(DDL)
        assert_only_what_holds_always(engine)
        engine.apply({"t": [{"k": 7}, {"k": 0}]}, time=0, close=False)
        engine.apply({"t": [{"k": 8, "__time": 3}]}, time=0, close=False)
        assert_only_what_holds_always(engine)
        if flush:
            engine.flush()
            engine.compact()
        assert_only_what_holds_always(engine)
        engine.advance(to=10)
    with hj.Engine(path) as engine:
        assert sorted(engine.read("copy")["k"].to_pylist()) == [0, 7, 8, 100, 200]


def test_readers_and_reopened_engines_see_no_open_rows(tmp_path: Path) -> None:
    path = tmp_path / "w"
    with hj.Engine(path) as engine:
        engine.execute(DDL)
        engine.apply({"t": [{"k": 7}, {"k": 0}]}, time=0, close=False)
        with hj.Engine(path, read_only=True) as reader:
            assert_only_what_holds_always(reader)
    with hj.Engine(path, memory=1) as engine:
        assert_only_what_holds_always(engine)


def test_subscriptions_begin_with_what_is_closed() -> None:
    engine = hj.Engine()
    engine.execute(DDL)
    engine.apply({"t": [{"k": 7}]}, time=0, close=False)
    subscription = engine.subscribe("copy", up_to=1)
    assert engine.execute("SUBSCRIBE copy").num_rows == 0
    engine.advance(to=1)
    found = [(k, n) for table in subscription for k, n in zip(*(table[c].to_pylist() for c in ("k", "__diff")),
                                                              strict=True)]  # fmt: skip
    assert sorted(found) == [(7, 1), (100, 1), (200, 1)]


def test_frames_show_no_open_rows(spark: Any, tmp_path: Path) -> None:
    with hj.Engine(tmp_path / "w", spark=spark) as engine:
        engine.execute(DDL)
        engine.apply({"t": [{"k": 7}, {"k": 0}]}, time=0, close=False)
        for name, rows in ALWAYS.items():
            assert sorted(row.k for row in engine.dataframe(name).collect()) == rows, name
