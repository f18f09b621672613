"""View law: a recursive subquery that reads columns of the query around it is, for each row there, what it is alone."""

from __future__ import annotations

import os
from collections import Counter
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

from halfjoin.sql.bind.domain import _Domain
from halfjoin.sql.relation import Loop, Relation
from tests.support.loop_streams import TABLES, bag, contents, from_scratch, streamed
from tests.support.seeds import some

pytest_plugins = ("tests.support.postgres",)
FUZZED = int(os.environ.get("HALFJOIN_FUZZ_SQL", "24"))
FIRST = int(os.environ.get("HALFJOIN_SEED", "0")) % 1_000_000_000
FROM_O = "SELECT o.a{} UNION SELECT e.b FROM r JOIN edges e ON e.a = r.n"
QUERIES = {
    "from each row": f"SELECT o.a, x.n FROM roots o, LATERAL (WITH RECURSIVE r(n) AS ({FROM_O.format('')}) "
                     "SELECT n FROM r) x",
    "as a value": """
        SELECT o.a, o.until, (
            WITH RECURSIVE r(n, d) AS (
                SELECT o.a, 0::bigint
                UNION ALL
                SELECT e.b, r.d + 1 FROM r JOIN edges e ON e.a = r.n WHERE r.d < 3 AND e.until > o.until)
            SELECT count(*) FROM r WHERE d > 0) AS c
        FROM stops o""",
    "where it exists": f"""
        SELECT o.a FROM roots o WHERE EXISTS (
            WITH RECURSIVE r(n) AS ({FROM_O.format('')} WHERE e.b <> o.a) SELECT 1 FROM r JOIN stops s ON s.a = r.n)""",
    "where it does not exist": f"""
        SELECT o.a, o.until FROM stops o WHERE NOT EXISTS (
            WITH RECURSIVE r(n) AS ({FROM_O.format('')}) SELECT 1 FROM r JOIN roots s ON s.a = r.n AND s.a <> o.a)""",
    "among the rows": """
        SELECT e1.a, e1.b FROM edges e1 WHERE e1.a IN (
            WITH RECURSIVE r(n) AS (SELECT e1.b UNION SELECT e.b FROM r JOIN edges e ON e.a = r.n
                                    AND e.until < e1.until)
            SELECT n FROM r)""",
    "padded": f"""
        SELECT o.a, x.n FROM roots o LEFT JOIN LATERAL (
            WITH RECURSIVE r(n) AS ({FROM_O.format('')}) SELECT n FROM r WHERE n > o.a + 1) x ON x.n < 3""",
    "only the step reads it": """
        SELECT o.a, o.until, x.n FROM stops o, LATERAL (
            WITH RECURSIVE r(n) AS (
                SELECT a FROM roots UNION SELECT e.b FROM r JOIN edges e ON e.a = r.n WHERE e.until <= o.until)
            SELECT n FROM r) x""",
    "a working table": """
        SELECT o.a, x.n, x.d FROM roots o, LATERAL (
            WITH RECURSIVE r(n, d) AS (
                SELECT o.a, 0::bigint
                UNION ALL
                SELECT DISTINCT e.b, r.d + 1 FROM r JOIN edges e ON e.a = r.n WHERE r.d < 3)
            SELECT n, d FROM r) x""",
    "the first two of each round": """
        SELECT o.a, x.n FROM roots o, LATERAL (
            WITH RECURSIVE r(n) AS (
                SELECT o.a
                UNION
                SELECT n FROM (
                    SELECT e.b AS n, row_number() OVER (ORDER BY e.b + o.a % 2 * -2 * e.b, e.a) AS k
                    FROM r JOIN edges e ON e.a = r.n) y
                WHERE k <= 2)
            SELECT n FROM r) x""",
    "around stops": f"""
        SELECT o.a, x.n FROM roots o, LATERAL (
            WITH RECURSIVE r(n) AS ({FROM_O.format('')}
                WHERE NOT EXISTS (SELECT 1 FROM stops s WHERE s.a = e.b AND s.until > 5 * o.a))
            SELECT n FROM r) x""",
    "padded inside": """
        SELECT o.a, x.n FROM roots o, LATERAL (
            WITH RECURSIVE r(n) AS (
                SELECT o.a
                UNION
                SELECT coalesce(e.b, greatest(r.n - 1, 0)) FROM r LEFT JOIN edges e ON e.a = r.n AND e.until > 6 * o.a)
            SELECT n FROM r) x""",
    "read twice": f"""
        SELECT o.a, x.n, x.m FROM roots o, LATERAL (
            WITH RECURSIVE r(n) AS ({FROM_O.format('')}) SELECT p.n, q.n AS m FROM r p JOIN r q ON q.n = p.n + 1) x""",
    "two deep": """
        SELECT o.a, (
            SELECT max(s.a + (
                WITH RECURSIVE r(n) AS (
                    SELECT s.a UNION SELECT e.b FROM r JOIN edges e ON e.a = r.n WHERE e.b < o.a + 2)
                SELECT count(*) FROM r)) FROM stops s) AS m
        FROM roots o""",
    "read from deeper": f"""
        SELECT o.a, x.n, x.c FROM roots o, LATERAL (
            WITH RECURSIVE r(n) AS ({FROM_O.format('')})
            SELECT s.a AS n, (SELECT count(*) FROM r WHERE r.n < s.a) AS c FROM stops s) x""",
    "one in the other": """
        SELECT o.a, x.n FROM roots o, LATERAL (
            WITH RECURSIVE r(n) AS (
                SELECT o.a
                UNION
                SELECT y.m + 1 FROM (
                    WITH RECURSIVE s(m) AS (SELECT n FROM r UNION SELECT e.b FROM s JOIN edges e ON e.a = s.m
                                            WHERE e.b <> o.a)
                    SELECT m FROM s) y
                WHERE y.m < 6)
            SELECT n FROM r) x""",
    "one for each row of the other": """
        WITH RECURSIVE r(n) AS (
            SELECT a FROM roots
            UNION
            SELECT y.m + 1 FROM r, LATERAL (
                WITH RECURSIVE s(m) AS (SELECT r.n UNION SELECT e.b FROM s JOIN edges e ON e.a = s.m WHERE e.b <> r.n)
                SELECT m FROM s) y
            WHERE y.m < 6)
        SELECT n FROM r""",
    "with a cycle": """
        SELECT o.a, x.n, x.again FROM roots o, LATERAL (
            WITH RECURSIVE r(n) AS (SELECT o.a UNION ALL SELECT e.b FROM r JOIN edges e ON e.a = r.n AND e.until < 9)
            CYCLE n SET again USING path SELECT n, again FROM r) x""",
    "of groups": f"""
        SELECT o.a, count(*) AS c, (WITH RECURSIVE r(n) AS ({FROM_O.format('')} WHERE e.until > count(o.until))
                                    SELECT count(*) FROM r) AS x
        FROM stops o GROUP BY o.a""",
}

INNER = {  # of SELECT o.a, x.* FROM roots o, LATERAL (...) x
    "shortest": """
        WITH MUTUALLY RECURSIVE (RETURN AT RECURSION LIMIT 9)
            found (n bigint, d bigint) AS (
                SELECT o.a, 0 UNION ALL SELECT e.b, best.d + e.until FROM best JOIN edges e ON e.a = best.n),
            best (n bigint, d bigint) AS (SELECT n, min(d) FROM found GROUP BY n)
        SELECT n, d FROM best""",
    "not monotone": """
        WITH MUTUALLY RECURSIVE (RETURN AT RECURSION LIMIT 6)
            these (n bigint) AS (SELECT a FROM roots WHERE a <> o.a EXCEPT SELECT n FROM those),
            those (n bigint) AS (
                SELECT e.b FROM these JOIN edges e ON e.a = these.n UNION SELECT a FROM stops WHERE until < 5 * o.a),
            many (n bigint) AS (SELECT count(*) + o.a FROM these JOIN those ON these.n < those.n),
            last (n bigint) AS (SELECT n FROM those ORDER BY n DESC LIMIT 1)
        SELECT n, 0 AS which FROM these UNION ALL SELECT n, 1 FROM many UNION ALL SELECT n, 2 FROM last""",
    "some do not read it": """
        WITH MUTUALLY RECURSIVE
            every (n bigint) AS (SELECT a FROM roots UNION SELECT e.b FROM every JOIN edges e ON e.a = every.n),
            less (n bigint) AS (SELECT n FROM every WHERE n < o.a UNION SELECT n - 1 FROM less WHERE n > 0)
        SELECT less.n, every.n AS m FROM less JOIN every ON every.n = less.n + 1""",
    "replaced": """
        WITH ITERATIVE (RETURN AT RECURSION LIMIT 3) m AS (
            SELECT o.a AS n, count(*) AS c FROM stops WHERE stops.a <= o.a
            ITERATE
            SELECT coalesce(e.b, o.a) AS n, sum(m.c)::bigint AS c FROM m LEFT JOIN edges e ON e.a = m.n GROUP BY 1)
        SELECT n, c FROM m""",
    "with its rounds": """
        WITH ITERATIVE (RETURN ROUNDS AS round AT RECURSION LIMIT 3) m AS (
            SELECT o.a AS n ITERATE SELECT e.b AS n FROM m JOIN edges e ON e.a = m.n AND e.b >= o.a)
        SELECT n, round, count(*) AS c FROM m GROUP BY n, round""",
    "at a time": """
        WITH RECURSIVE r(n) AS (
            SELECT o.a UNION SELECT e.b FROM r JOIN edges e ON e.a = r.n WHERE mz_now() < e.until + o.a)
        SELECT n FROM r""",
}


def alone(inner: str, tables: dict[str, Counter[Any]], time: int) -> Counter[Any]:
    """The query for each root by itself, with a number in place of its column."""
    found: Counter[Any] = Counter()
    for (a,), count in tables["roots"].items():
        if count:
            own = from_scratch(inner.replace("o.a", f"{a}::bigint"), tables, time)
            found.update({(a, *row): count * times for row, times in own.items()})
    return found


def in_postgres(postgres: Any, query: str, tables: dict[str, Counter[Any]], time: int) -> Counter[Any]:
    for table, columns in TABLES.items():
        postgres.execute(f"CREATE TEMP TABLE IF NOT EXISTS {table} ({', '.join(f'{one} bigint' for one in columns)})")
        postgres.execute(f"TRUNCATE {table}")
        values = f"({', '.join(['%s'] * len(columns))})"
        postgres.cursor().executemany(f"INSERT INTO {table} VALUES {values}", list(tables[table].elements()))
    return Counter(postgres.execute(query).fetchall())


def check(query: str, random: Random, folder: Path | None, oracle: Any, samples: int) -> None:
    engine, views, batches, upper = streamed(query, random, folder, 6)
    since = {one.name: one.since for one in engine.stats().collections}
    for time in sorted({upper - 1, *random.sample(range(upper), min(upper, samples))}):
        expected = oracle(contents(batches, time), time)
        for view in views:
            if time >= since[view]:
                assert bag(engine.read(view, as_of=time)) == expected, (view, time)
    assert bag(engine.query(query)) == expected
    engine.close()


@pytest.mark.parametrize("name", QUERIES)
def test_a_recursive_subquery_is_postgresqls(
    name: str, tmp_path: Path, postgres: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = _counting(monkeypatch)
    for seed in range(FIRST, FIRST + some(max(3, FUZZED // 6))):
        folder = tmp_path / str(seed) if seed % 2 else None
        check(QUERIES[name], Random(f"{name} {seed}"), folder, partial(in_postgres, postgres, QUERIES[name]), 6)
    assert made


@pytest.mark.parametrize("name", INNER)
def test_loops_for_each_row_are_as_each_alone(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = _counting(monkeypatch)
    for seed in range(FIRST, FIRST + max(2, FUZZED // 12)):
        folder = tmp_path / str(seed) if seed % 2 else None
        query = f"SELECT o.a, x.* FROM roots o, LATERAL ({INNER[name]}) x"
        check(query, Random(f"{name} {seed}"), folder, partial(alone, INNER[name]), 5)
    assert made


def _counting(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The loops that are computed for each row of a domain."""
    made: list[str] = []
    original = _Domain.loop

    def loop(self: _Domain, relation: Loop) -> Relation:
        made.append(relation.name)
        return original(self, relation)

    monkeypatch.setattr(_Domain, "loop", loop)
    return made
