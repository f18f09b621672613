"""What orders values that do not order by themselves: jsonb and enums have PostgreSQL's order everywhere."""

from __future__ import annotations

from typing import Any

import pytest

import halfjoin as hj
from halfjoin.engine.scalar.json_order import order_key, value_at
from halfjoin.sql.functions.json_text import canonical
from tests.oracle.choice import Seeded
from tests.oracle.documents import document, text_of

pytest_plugins = ("tests.support.postgres",)

QUERIES = (
    "SELECT g, mode() WITHIN GROUP (ORDER BY j)::text AS a, mode() WITHIN GROUP (ORDER BY e DESC)::text AS b, "
    "percentile_disc(0.5) WITHIN GROUP (ORDER BY j DESC)::text AS c, percentile_disc(0) WITHIN GROUP (ORDER BY e)"
    "::text AS d, max(e)::text AS f, rank('2'::jsonb) WITHIN GROUP (ORDER BY j) AS h FROM t GROUP BY g",
    "SELECT n, greatest(j, k, '[1]')::text AS a, least(j, k)::text AS b, greatest(e, 'z')::text AS c FROM t",
    "SELECT g, array_agg(DISTINCT j)::text AS a, array_agg(DISTINCT e)::text AS b FROM t GROUP BY g",
    "SELECT n, rank() OVER (PARTITION BY g ORDER BY j DESC) AS a, dense_rank() OVER (ORDER BY e) AS b FROM t",
)


@pytest.mark.parametrize("seed", range(2))
def test_values_are_ordered_as_in_postgresql(seed: int, postgres: Any) -> None:
    choices, engine = Seeded(seed), hj.Engine()
    for run in (engine.execute, postgres.execute):
        run("CREATE TYPE m AS ENUM ('z', 'b', 'y', 'a')")
        run("CREATE TABLE t (n integer, g integer, j jsonb, k jsonb, e m)")
    rows = [(n, n % 5, *(None if choices.integer(0, 9) == 0 else text_of(choices, document(choices)) for _ in "jk"),
             "zbya"[choices.integer(0, 3)]) for n in range(60)]  # fmt: skip
    for number, sql in enumerate(QUERIES):
        engine.execute(f"CREATE MATERIALIZED VIEW v{number} AS {sql}")
    for done in (rows[:30], rows[30:]):
        engine.apply({"t": [dict(zip(("n", "g", "j", "k", "e"), row, strict=True)) for row in done]})
        with postgres.cursor() as cursor:
            cursor.executemany("INSERT INTO t VALUES (%s, %s, %s, %s, %s)", done)
        for run in (engine.execute, postgres.execute):
            run(f"DELETE FROM t WHERE n % 7 = {len(done) % 3}")
        for number, sql in enumerate(QUERIES):
            theirs = sorted(map(str, postgres.execute(sql).fetchall()))
            for found in (engine.query(sql), engine.read(f"v{number}")):
                assert sorted(str(tuple(row.values())) for row in found.to_pylist()) == theirs, sql


def test_the_bytes_of_a_jsonb_have_its_value() -> None:
    choices = Seeded(5)
    texts = {canonical(text_of(choices, document(choices))) for _ in range(500)}
    assert {value_at(order_key(text)) for text in texts} == texts
