"""Temporal filters: where mz_now() is allowed, and the form to write where it is not."""

from __future__ import annotations

import pytest

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.expr import is_temporal
from halfjoin.sql.functions import render
from halfjoin.sql.relation import Filter, Project
from tests.support.front import bound


@pytest.mark.parametrize(("written", "meaning"), [
    ("mz_now() < ts", "mz_now() < t.ts"),
    ("ts <= mz_now()", "t.ts <= mz_now()"),
    ("(mz_now()) = (b)", "mz_now() = t.b"),
    ("mz_now() <> n", "mz_now() <> t.n"),
    ("mz_now() < ts + interval '1 day' AND a > 1", "mz_now() < t.ts + interval '1 day' AND t.a > 1"),
    ("d IS NULL OR mz_now() < d", "t.d IS NULL OR mz_now() < t.d"),
    ("NOT (mz_now() < d OR ok)", "NOT (mz_now() < t.d OR t.ok)"),
    ("mz_now() BETWEEN d AND ts", "mz_now() >= t.d AND mz_now() <= t.ts"),
    ("mz_now() NOT BETWEEN 1 AND 2", "NOT (mz_now() >= 1 AND mz_now() <= 2)"),
    ("d BETWEEN '2020-01-01' AND mz_now()", "t.d >= date '2020-01-01' AND t.d <= mz_now()"),
    ("mz_now()::timestamp < ts", "mz_now() < t.ts"),
    ("mz_now()::timestamptz < ts", "mz_now() < t.ts"),
    ("mz_now()::bigint < b", "mz_now() < t.b"),
    ("mz_now() < '2020-01-01'", "mz_now() < timestamp '2020-01-01 00:00:00'"),
    ("mz_now() < NULL", "mz_now() < NULL"),
    ("mz_now() < a + 5.5", "mz_now() < t.a + 5.5"),
])  # fmt: skip
def test_comparisons(written: str, meaning: str) -> None:
    relation = bound(f"SELECT a FROM t WHERE {written}")
    assert isinstance(relation, Project) and isinstance(relation.input, Filter)
    assert render(relation.input.predicate) == meaning
    assert is_temporal(relation.input.predicate)


def test_in_a_join_condition() -> None:
    relation = bound("SELECT t.a FROM t JOIN u ON t.a = u.a AND mz_now() <= c")
    assert isinstance(relation, Project) and isinstance(relation.input, Filter)
    assert render(relation.input.predicate) == "t.a = u.a AND mz_now() <= u.c"


@pytest.mark.parametrize(("condition", "reason", "instead"), [
    ("mz_now() - interval '1 day' < ts", "arithmetic on mz_now()", "write mz_now() < ts + INTERVAL '1 day'"),
    ("mz_now() + interval '1 day' < ts", "arithmetic on mz_now()", "write mz_now() < ts - INTERVAL '1 day'"),
    ("ts > mz_now() - interval '1 day'", "arithmetic on mz_now()", "write ts + INTERVAL '1 day' > mz_now()"),
    ("mz_now() - ts < interval '1 day'", "arithmetic on mz_now()", "write mz_now() < INTERVAL '1 day' + ts"),
    ("2 * mz_now() < b", "arithmetic on mz_now()", "alone on one side"),
    ("mz_now() < mz_now()", "mz_now() is compared with itself", "leave the comparison out"),
    ("mz_now() < s", "mz_now() cannot be compared with text", "integer, numeric, date or timestamp"),
    ("mz_now() < x", "mz_now() cannot be compared with double precision", "integer, numeric, date or timestamp"),
    ("mz_now() IS NULL", "mz_now() is allowed only in comparisons", "alone on one side"),
    ("mz_now() IN (1, 2)", "mz_now() is allowed only in comparisons", "alone on one side"),
    ("(mz_now() < ts) IS TRUE", "mz_now() is allowed only in comparisons", "alone on one side"),
    ("CASE WHEN mz_now() < ts THEN ok END", "mz_now() is allowed only in comparisons", "alone on one side"),
    ("coalesce(mz_now() < ts, ok)", "mz_now() is allowed only in comparisons", "alone on one side"),
    ("mz_now() IS DISTINCT FROM a", "mz_now() is allowed only in comparisons", "alone on one side"),
])  # fmt: skip
def test_refused(condition: str, reason: str, instead: str) -> None:
    with pytest.raises(UnsupportedSQL) as caught:
        bound(f"SELECT t.a FROM t, u WHERE {condition}")
    assert caught.value.reason.startswith(reason)
    assert instead in (caught.value.remedy or "")
    assert caught.value.line == 1


@pytest.mark.parametrize("sql", [
    "SELECT mz_now()", "SELECT a + mz_now() FROM t", "SELECT g FROM generate_series(1, mz_now()) g",
    "SELECT * FROM (VALUES (mz_now())) v",
])  # fmt: skip
def test_not_a_value(sql: str) -> None:
    with pytest.raises(UnsupportedSQL, match=r"mz_now\(\) is allowed only in comparisons of WHERE and ON"):
        bound(sql)
