"""Bounds: what one row asks for past them is an error of the view, which heals; other views and the batch go on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import halfjoin as hj

MOST = 2**63 - 1

# An expression over `t(k bigint, n bigint, s text)`, the row for which it is too much, and what the error says.
LONG = "longer than 67,108,864 bytes"
SCALARS = [
    ("lpad('x', n::integer)", {"n": 2**31 - 1}, LONG),
    ("CASE WHEN k < 3 THEN lpad(s, 2147483647) ELSE s END", {"s": "x"}, LONG),
    ("rpad(s, n::integer, s)", {"n": 2**31 - 1, "s": "xy"}, LONG),
    ("replace(s, 'x', s)", {"s": "x" * 10_000}, LONG),
    ("replace('" + "x" * 10_000 + "', 'x', s)", {"s": "x" * 10_000}, LONG),
    ("regexp_replace(s, '(x)', '" + "y" * 10_000 + "\\1', 'g')", {"s": "x" * 10_000}, LONG),
    ("regexp_replace(s, 'x', s, 'g')", {"s": "x" * 10_000}, LONG),
    ("s || s", {"s": "x" * 40_000_000}, LONG),
    ("concat(s, NULL::text, s)", {"s": "x" * 40_000_000}, LONG),
    ("concat_ws(s, k, k, k)", {"s": "x" * 40_000_000}, LONG),
    ("cardinality(ARRAY[s, s])", {"s": "x" * 40_000_000}, LONG),
    ("cardinality(ARRAY[s] || s)", {"s": "x" * 40_000_000}, LONG),
]


@pytest.fixture
def engine() -> Iterator[hj.Engine]:
    with hj.Engine() as engine:
        engine.execute("CREATE TABLE t (k bigint, n bigint, s text)")
        yield engine


def lines(table: pa.Table) -> list[Any]:
    return sorted((tuple(row.values()) for row in table.to_pylist()), key=repr)


def row(**values: Any) -> dict[str, Any]:
    return {"k": 1, "n": None, "s": None, **values}


@pytest.mark.parametrize(("expression", "values", "reason"), SCALARS, ids=[text[:24] for text, *_ in SCALARS])
def test_a_value_too_long_is_an_error_of_its_row(
    engine: hj.Engine, expression: str, values: dict[str, Any], reason: str
) -> None:
    engine.execute(f"CREATE MATERIALIZED VIEW v AS SELECT k, {expression} AS x FROM t")
    engine.execute("CREATE MATERIALIZED VIEW w AS SELECT k FROM t")
    engine.apply({"t": [row(**values), row(k=2, n=3, s=None), row(k=3, n=1, s="x")]})
    assert lines(engine.read("w")) == [(1,), (2,), (3,)]
    with pytest.raises(hj.DataError, match=reason) as problem:
        engine.read("v")
    assert len(str(problem.value)) < 30_000
    engine.apply({"t": hj.deletes([row(**values)])})
    plain = f"SELECT k, {expression} AS x FROM t"
    assert [line[0] for line in lines(engine.read("v"))] == [2, 3] and lines(engine.read("v")) == lines(engine.query(plain))


def test_concat_past_the_bound_leaves_the_nulls_of_other_rows(engine: hj.Engine) -> None:
    engine.execute("CREATE MATERIALIZED VIEW v AS SELECT k, concat(s, s) AS x FROM t")
    big = row(s="x" * 40_000_000)
    engine.apply({"t": [big, row(k=2), row(k=3, s="a")]})
    engine.apply({"t": hj.deletes([big])})
    assert lines(engine.read("v")) == [(2, ""), (3, "aa")]


def test_case_and_filters_see_values_too_long(engine: hj.Engine) -> None:
    engine.execute("CREATE MATERIALIZED VIEW v AS SELECT k FROM t WHERE s || s <> 'x'")
    engine.execute("CREATE MATERIALIZED VIEW w AS SELECT k, CASE WHEN k = 1 THEN 'a' ELSE s || s END AS x FROM t")
    engine.apply({"t": [row(s="x" * 40_000_000)]})
    with pytest.raises(hj.DataError, match=LONG):
        engine.read("v")
    assert lines(engine.read("w")) == [(1, "a")]
    engine.execute("DELETE FROM t")
    assert lines(engine.read("v")) == []


def test_a_query_past_a_bound_leaves_the_engine_usable(engine: hj.Engine) -> None:
    engine.apply({"t": [row(s="x", n=2**31 - 1)]})
    for sql in ("SELECT lpad(s, 2147483647) FROM t", "SELECT count(*) FROM t, generate_series(1, 2000000000)",
                "SELECT lpad(s, n::integer) FROM t", "SELECT lpad('x', 2147483647)"):
        with pytest.raises(hj.DataError):
            engine.query(sql)
    assert lines(engine.query("SELECT k FROM t")) == [(1,)]
