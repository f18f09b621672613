"""A query with LIMIT over a WITH RECURSIVE that never ends has the rows of the first rounds, as PostgreSQL's has."""

from __future__ import annotations

import importlib
from collections import Counter
from typing import Any

import pytest

import halfjoin as hj

pytest_plugins = ("tests.support.postgres",)

ENDLESS = (
    "WITH RECURSIVE t (n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM t) SELECT * FROM t LIMIT 10",
    "WITH RECURSIVE t (n) AS (SELECT 1 UNION SELECT n + 1 FROM t) SELECT * FROM t LIMIT 10",
    "WITH RECURSIVE t (n) AS (SELECT 1 UNION ALL SELECT n - 1 FROM t) SELECT n * 2 AS m FROM t WHERE n < -3 LIMIT 4",
    "WITH RECURSIVE t (n) AS (SELECT x FROM generate_series(1, 3) x UNION ALL SELECT n + 10 FROM t) "
    "SELECT * FROM t LIMIT 6",
    "WITH RECURSIVE a (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM a WHERE n < 4), "
    "b (n) AS (SELECT 1 UNION ALL SELECT n * 2 FROM b) SELECT n FROM b LIMIT 5",
    "WITH RECURSIVE t (n) AS (SELECT 1 UNION ALL (WITH x AS (SELECT * FROM t) SELECT n + 1 FROM x)) "
    "SELECT n FROM t LIMIT 3 OFFSET 0",
)
SHADOWED = (
    "WITH RECURSIVE w (c) AS (WITH w (c) AS (SELECT 1) SELECT * FROM w) SELECT * FROM w",
    "WITH RECURSIVE w (c) AS (WITH w (c) AS (WITH v AS (SELECT 2) SELECT * FROM v) SELECT * FROM w) SELECT * FROM w",
    "WITH RECURSIVE w (c) AS (SELECT 1 UNION ALL SELECT c + 1 FROM (WITH q AS (SELECT * FROM w) SELECT c FROM q) s "
    "WHERE c < 4) SELECT * FROM w",
)


@pytest.fixture(autouse=True)
def few_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop counts as endless sooner."""
    importlib.import_module("halfjoin.sql.bind.select")
    loops = importlib.import_module("halfjoin.sql.bind.loops")
    monkeypatch.setattr(loops, "MOST_ROUNDS", 30)


@pytest.mark.parametrize("sql", ENDLESS + SHADOWED)
def test_the_first_rounds_are_postgresqls(sql: str, postgres: Any) -> None:
    engine = hj.Engine()
    wanted = Counter(postgres.execute(sql).fetchall())
    for _ in range(2):  # asked again, it is no other query
        assert Counter(tuple(row.values()) for row in engine.query(sql).to_pylist()) == wanted


@pytest.mark.parametrize("sql", [
    "WITH RECURSIVE t (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT n FROM t ORDER BY n LIMIT 3",
    "WITH RECURSIVE t (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT max(n) FROM t LIMIT 3",
    "WITH MUTUALLY RECURSIVE t (n integer) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT n FROM t LIMIT 3",
])  # fmt: skip
def test_a_query_that_needs_all_rounds_says_that_they_do_not_end(sql: str) -> None:
    with pytest.raises(hj.DataError, match="rounds still"):
        hj.Engine().query(sql)
