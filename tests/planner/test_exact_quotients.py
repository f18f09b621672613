"""Sums of quotients that a query adds up as products have the answers, and the decimals, of sums of quotients."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import halfjoin as hj
from halfjoin.engine.statements import evaluating
from halfjoin.planner.exact_quotients import with_exact_quotients
from halfjoin.sql.bind.query import bind_query
from halfjoin.sql.parse.parse import parse_query
from halfjoin.sql.relation import Aggregate, every_part
from tests.planner.test_below_groups import answer

SCHEMA = """
    CREATE TABLE t (id bigint PRIMARY KEY, k integer, x numeric(7, 2), y numeric(30, 4), z numeric(38, 20), n bigint)
"""
DIVISORS = ("2", "4", "2.50", "100.0", "-8", "0.5", "0.002", "3", "7.5", "1000000", "123456", "0.0000001", "1024")
QUOTIENTS = ("x / {}", "(x + 1) / {}", "y / {}", "z / {}", "n / {}::numeric", "(x * n) / {}")
VALUES = st.tuples(
    st.sampled_from([None, 0, 1, 2]), st.one_of(st.none(), st.decimals(-99999, 99999, places=2)),
    st.one_of(st.none(), st.decimals(-(10**25), 10**25, places=4)),
    st.one_of(st.none(), st.decimals(-(10**17), 10**17, places=20)),
    st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)),
)  # fmt: skip


@given(st.lists(VALUES, max_size=8))
def test_sums_of_products_are_sums_of_quotients(rows: list[tuple[Any, ...]]) -> None:
    engine = hj.Engine(clock="own")
    engine.execute(SCHEMA)
    engine.apply({"t": [dict(zip("kxyzn", row, strict=True), id=id) for id, row in enumerate(rows)]}, time=1)
    queries = [f"SELECT k, sum({quotient.format(divisor)}) AS q FROM t GROUP BY k"
               for quotient in QUOTIENTS for divisor in DIVISORS]  # fmt: skip
    queries += ["SELECT k FROM t GROUP BY k HAVING sum(x / 2) FILTER (WHERE n > 0) > 10",
                "SELECT sum(DISTINCT x / 2) AS q, sum(x / 4) AS r, count(*) AS n FROM t"]  # fmt: skip
    found = [answer(engine, sql) for sql in queries]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evaluating, "with_exact_quotients", lambda relation: relation)
        other = hj.Engine(clock="own")
        other.execute(SCHEMA)
        other.apply({"t": engine.read("t")}, time=1)
        assert found == [answer(other, sql) for sql in queries]
    engine.close()


@pytest.mark.parametrize(("sql", "scale"), [
    ("SELECT sum(x / 2) AS q FROM t", 3), ("SELECT sum((x + x) / 100.0) AS q FROM t", 4),
    ("SELECT sum(x / 3) AS q FROM t", 24), ("SELECT sum(z / 2) AS q FROM t", 20),
])  # fmt: skip
def test_exact_quotients_have_few_decimals(sql: str, scale: int) -> None:
    engine = hj.Engine(clock="own")
    engine.execute(SCHEMA)
    relation = bind_query(parse_query(sql), engine._state.catalog, sql).relation
    (call,) = [call for part in every_part(with_exact_quotients(relation)) if isinstance(part, Aggregate)
               for _, call in part.calls]  # fmt: skip
    assert call.type.scale == scale
    engine.apply({"t": [{"id": 1, "k": 1, "x": Decimal("2.01"), "n": 3, "z": 1}]}, time=1)
    assert engine.query(sql).schema.field("q").type.scale >= scale
