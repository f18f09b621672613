"""A query makes no aggregate and no window function that nothing reads. Views have them, and so has what may fail."""

from __future__ import annotations

from unittest.mock import patch

import pytest

import halfjoin as hj
from halfjoin.engine.statements import evaluating
from halfjoin.planner.group_functions import Top
from halfjoin.planner.plan import Reduce, ViewPlan

SCHEMA = """
    CREATE TABLE t (k bigint, x integer, s text);
    CREATE VIEW wide AS SELECT k, count(*) AS n, sum(x) AS total, string_agg(s, ',' ORDER BY s) AS list,
        min(10 / x) AS risk FROM t GROUP BY k;
    CREATE VIEW ranked AS SELECT k, x, rank() OVER (PARTITION BY k ORDER BY x) AS r,
        lag(x) OVER (PARTITION BY k ORDER BY x) AS l FROM t;
    INSERT INTO t VALUES (1, 2, 'b'), (1, 5, 'a'), (2, 1, NULL), (NULL, 3, 'c')
"""
MADE = {  # the functions that the query's reduces make
    "SELECT k FROM wide": {"min"}, "SELECT k, total FROM wide WHERE n > 1": {"sum", "min"},
    "SELECT count(*) FROM wide": {"min"}, "SELECT list FROM wide WHERE k = 1": {"string_agg", "min"},
    "SELECT k, x FROM ranked": set(), "SELECT k, x FROM ranked WHERE r = 1": {"rank"},
    "SELECT count(l) FROM ranked": {"lag"}, "SELECT max(n) FROM wide": {"max", "min"},
    "SELECT a.k, b.total FROM wide a JOIN wide b ON a.k = b.k": {"sum", "min"},
}  # fmt: skip


@pytest.fixture
def engine() -> hj.Engine:
    """An engine with the schema and its rows."""
    engine = hj.Engine()
    engine.execute(SCHEMA)
    return engine


def made(plan: ViewPlan) -> set[str]:
    """The functions, but for counts of rows, of which a plan's reduces have columns."""
    columns = [column.name for node in plan.nodes if isinstance(node, Reduce) for column in node.columns]
    names = ("sum", "string_agg", "min", "rank", "lag", "max")
    return {name for name in names if any(f"#{name}:" in column for column in columns)}


def planned(engine: hj.Engine, sql: str) -> tuple[list[dict[str, object]], ViewPlan]:
    """The answer of a query, and its plan."""
    plans = list[ViewPlan]()

    def noted(*args: object) -> ViewPlan:
        plans.append(plan_of_query(*args))  # type: ignore[arg-type]
        return plans[-1]

    plan_of_query = evaluating.plan_of_query
    with patch.object(evaluating, "plan_of_query", noted):
        found = engine.query(sql).to_pylist()
    (plan,) = plans
    return found, plan


@pytest.mark.parametrize("sql", MADE)
def test_what_nothing_reads_is_not_made(engine: hj.Engine, sql: str) -> None:
    found, plan = planned(engine, sql)
    assert made(plan) == MADE[sql]
    engine.execute(f"CREATE MATERIALIZED VIEW v AS {sql}")
    assert sorted(map(str, found)) == sorted(map(str, engine.read("v").to_pylist()))


def test_an_error_of_what_nothing_reads_stays(engine: hj.Engine) -> None:
    engine.execute("INSERT INTO t VALUES (3, 0, '')")
    with pytest.raises(hj.DataError, match="division by zero"):
        engine.query("SELECT k FROM wide")


NUMBERED = "SELECT k, x, {} OVER (PARTITION BY k ORDER BY {}) AS n FROM t"
GROUPS = {  # whether the first row of each group is looked for, or the groups are enough
    f"SELECT count(*) FROM ({NUMBERED.format('row_number()', 'x DESC, s')}) q WHERE n = 1": False,
    f"SELECT k FROM ({NUMBERED.format('row_number()', 'x')}) q WHERE n = 1 AND k > 1": False,
    "SELECT count(*) FROM (SELECT DISTINCT ON (k, s) k, x FROM t ORDER BY k, s, x) q": False,
    "SELECT sum(k) FROM (SELECT DISTINCT ON (k) k, x FROM t ORDER BY k, x) q": False,
    "SELECT sum(x) FROM (SELECT DISTINCT ON (k) k, x FROM t ORDER BY k, x) q": True,
    f"SELECT count(*) FROM ({NUMBERED.format('row_number()', '10 / x')}) q WHERE n = 1": True,  # which may fail
    f"SELECT count(*) FROM ({NUMBERED.format('row_number()', 'x')}) q WHERE n <= 2": True,
    f"SELECT count(*) FROM ({NUMBERED.format('rank()', 'x')}) q WHERE n = 1": True,
    "SELECT count(*) FROM (SELECT k FROM t ORDER BY x LIMIT 1) q": True,
}  # fmt: skip


@pytest.mark.parametrize("sql", GROUPS)
def test_first_rows_of_which_nothing_is_read_are_groups(engine: hj.Engine, sql: str) -> None:
    """A query and a view; the answer is that of all rows with their numbers."""
    engine.execute("INSERT INTO t VALUES (NULL, 1, 'd'), (1, 5, 'a'), (2, 1, NULL)")
    engine.execute(f"CREATE MATERIALIZED VIEW v AS {sql}")
    with patch("halfjoin.planner.narrow._shows_groups", return_value=False):
        expected, whole = planned(engine, sql)
    found, narrow = planned(engine, f"SELECT * FROM ({sql}) once_more")
    assert sorted(map(str, found)) == sorted(map(str, expected)) == sorted(map(str, engine.read("v").to_pylist()))
    tops = [[isinstance(node, Reduce) and isinstance(node.function, Top) for node in plan.nodes]
            for plan in (whole, narrow)]  # fmt: skip
    assert any(tops[0]) and any(tops[1]) == GROUPS[sql]
