"""A SELECT over another becomes one expression, but no boundless one."""

from __future__ import annotations

import pytest

import halfjoin as hj

ONCE = "SELECT id, x + 1 AS x FROM {}"
TWICE = "SELECT id, CASE WHEN x > 0 THEN x ELSE 1 END AS x FROM {}"


def nested(select: str, depth: int, over: str = "{}") -> str:
    """A query of so many SELECTs over each other."""
    steps = [f"c{number} AS ({select.format(f'c{number - 1}')})" for number in range(1, depth + 1)]
    return f"WITH c0 AS (SELECT id, x FROM t), {', '.join(steps)} SELECT c.x FROM {over.format(f'c{depth}')} AS c"


OVERS = (
    "{}",
    "t LEFT JOIN {}",
    "(SELECT count(*) AS x FROM {} GROUP BY x)",
    "(SELECT t.x, sum(a.x) FROM {} AS a JOIN t ON t.id = a.id GROUP BY t.x)",
    "(SELECT id AS x FROM t WHERE id IN (SELECT x FROM {}))",
    "(SELECT x, row_number() OVER (ORDER BY x) FROM {})",
    "(SELECT a.x FROM {} AS a, LATERAL (SELECT max(id) FROM t WHERE t.x = a.x) AS b)",
)


@pytest.mark.parametrize("over", OVERS)
def test_expressions_that_double_with_each_select_are_refused(over: str) -> None:
    engine = hj.Engine()
    engine.execute("CREATE TABLE t (id integer PRIMARY KEY, x integer)")
    text = nested(TWICE, 30, over) + (" ON c.id = t.id" if over.startswith("t LEFT JOIN") else "")
    for sql in (text, f"CREATE MATERIALIZED VIEW v AS {text}"):
        with pytest.raises(hj.UnsupportedSQL, match=r"more than 200,000 parts.*\n*.*materialized view of its own"):
            engine.execute(sql)


def test_expressions_that_grow_a_little_with_each_select_are_not() -> None:
    engine = hj.Engine()
    engine.execute("CREATE TABLE t (id integer PRIMARY KEY, x integer); INSERT INTO t VALUES (1, 5)")
    for select, answer in ((ONCE, 15), (TWICE, 5)):
        assert engine.query(nested(select, 10)).to_pylist() == [{"x": answer}]
