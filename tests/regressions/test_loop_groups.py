"""Groups inside a loop have one number each, though keys that are texts or NULL are in the order in which they come."""

from __future__ import annotations

import pytest

import halfjoin as hj


@pytest.mark.parametrize("null", [None, "x"])
def test_keys_with_null_and_several_times(null: str | None) -> None:
    engine = hj.Engine(retain=1_000)
    engine.execute("""
        CREATE TABLE r (a bigint, b text);
        CREATE MATERIALIZED VIEW v AS
            WITH MUTUALLY RECURSIVE x (a bigint, b text) AS (
                SELECT DISTINCT a, b FROM (SELECT a, b FROM r UNION ALL SELECT a, b FROM x) y)
            SELECT a, b FROM x
    """)
    rows = [(3, "2", 2, 1), (3, "0", 1, 1), (2, null, 1, 1)]
    engine.apply({"r": [_row(*row) for row in rows]}, time=4, close=False)
    engine.advance(2)
    gone = [(2, null, 2, -1), (3, "2", 3, -1), (3, "0", 2, -1), (2, "0", 2, 1)]
    engine.apply({"r": [_row(*row) for row in gone]}, time=4, close=False)
    engine.advance(5)
    expected = {1: {(3, "0"), (2, null)}, 2: {(3, "2"), (2, "0")}, 3: {(2, "0")}, 4: {(2, "0")}}
    for time, there in expected.items():
        assert {(row["a"], row["b"]) for row in engine.read("v", as_of=time).to_pylist()} == there


def _row(a: int, b: str | None, time: int, diff: int) -> dict[str, object]:
    return {"a": a, "b": b, "__time": time, "__diff": diff}
