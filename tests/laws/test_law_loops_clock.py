"""Loop law: temporal filters inside a recursive query hold at each time as if the query were evaluated there."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

import halfjoin as hj
from halfjoin.engine.loop import rounds
from halfjoin.engine.updates import limits
from tests.support.loop_streams import LAST, bag, contents, created, from_scratch, in_duckdb, streamed
from tests.support.seeds import some

FUZZED = int(os.environ.get("HALFJOIN_FUZZ_SQL", "24"))
FIRST = int(os.environ.get("HALFJOIN_SEED", "0")) % 1_000_000_000

QUERIES = {
    "edges that end": """
        WITH RECURSIVE r(n) AS (
            SELECT a FROM roots UNION SELECT e.b FROM r JOIN edges e ON e.a = r.n WHERE mz_now() < e.until)
        SELECT n FROM r""",
    "roots that begin": """
        WITH RECURSIVE r(n) AS (
            SELECT a FROM roots WHERE mz_now() >= 3 * a UNION SELECT e.b FROM r JOIN edges e ON e.a = r.n)
        SELECT n FROM r""",
    "rows that begin and end": """
        WITH RECURSIVE r(n, d) AS (
            SELECT a, 0::bigint FROM roots
            UNION ALL
            SELECT e.b, r.d + 1 FROM r JOIN edges e ON e.a = r.n
            WHERE r.d < 4 AND mz_now() > r.n + r.d AND mz_now() <= 2 * r.n + 6)
        SELECT n, d, count(*) AS paths FROM r GROUP BY n, d""",
    "both sides of a join": """
        WITH RECURSIVE r(n) AS (
            SELECT a FROM roots UNION SELECT e.b FROM r JOIN edges e ON e.a = r.n AND mz_now() <= e.until + r.n)
        SELECT n FROM r WHERE mz_now() > n""",
    "a working table": """
        WITH RECURSIVE r(n, d) AS (
            SELECT a, 0::bigint FROM roots
            UNION ALL
            SELECT DISTINCT e.b, r.d + 1 FROM r JOIN edges e ON e.a = r.n WHERE r.d < 4 AND mz_now() < e.until + r.d)
        SELECT n, d FROM r""",
    "the first of what there is": """
        WITH RECURSIVE r(n) AS (
            SELECT a FROM roots
            UNION
            SELECT n FROM (
                SELECT e.b AS n, row_number() OVER (ORDER BY e.b, e.a) AS k FROM r JOIN edges e ON e.a = r.n
                WHERE mz_now() < e.until) x
            WHERE k <= 2)
        SELECT n FROM r""",
    "around stops": """
        WITH RECURSIVE r(n) AS (
            SELECT a FROM roots
            UNION
            SELECT e.b FROM r JOIN edges e ON e.a = r.n
            WHERE NOT EXISTS (SELECT 1 FROM stops s WHERE s.a = e.b AND mz_now() < s.until))
        SELECT n FROM r""",
    "padded": """
        WITH RECURSIVE r(n) AS (
            SELECT a FROM roots
            UNION
            SELECT coalesce(e.b, greatest(r.n - 1, 0)) FROM r
            LEFT JOIN (SELECT a, b FROM edges WHERE mz_now() < until) e ON e.a = r.n)
        SELECT n FROM r""",
    "one in the other, which reads it": """
        WITH RECURSIVE r(n) AS (
            SELECT a FROM roots
            UNION
            SELECT x.m + 1 FROM (
                WITH RECURSIVE s(m) AS (
                    SELECT n FROM r WHERE mz_now() < n + 12
                    UNION
                    SELECT e.b FROM s JOIN edges e ON e.a = s.m WHERE mz_now() < e.until)
                SELECT m FROM s) x
            WHERE x.m < 9)
        SELECT n FROM r""",
}
BEFORE = ("roots that begin", "around stops", "padded")  # what reads no binding may be computed before the loop
MUTUAL = {
    "shortest": """
        WITH MUTUALLY RECURSIVE (RETURN AT RECURSION LIMIT 9)
            found (n bigint, d bigint) AS (
                SELECT a, 0 FROM roots
                UNION ALL
                SELECT e.b, best.d + e.b FROM best JOIN edges e ON e.a = best.n WHERE mz_now() < e.until + best.d),
            best (n bigint, d bigint) AS (SELECT n, min(d) FROM found GROUP BY n)
        SELECT n, d FROM best""",
    "in turn": """
        WITH MUTUALLY RECURSIVE (RETURN AT RECURSION LIMIT 6)
            on_now (n bigint) AS (SELECT a FROM roots EXCEPT SELECT n FROM off_now WHERE mz_now() > n),
            off_now (n bigint) AS (
                SELECT e.b FROM on_now JOIN edges e ON e.a = on_now.n WHERE mz_now() < e.until
                UNION SELECT a FROM stops WHERE mz_now() BETWEEN a AND until),
            many (n bigint) AS (SELECT count(*) FROM on_now WHERE mz_now() < 2 * n + 5)
        SELECT n FROM on_now UNION ALL SELECT 10 + n FROM off_now UNION ALL SELECT 100 + n FROM many""",
}


@pytest.mark.parametrize("name", [*QUERIES, *MUTUAL])
def test_loops_with_clocks_are_as_evaluated_there(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waited = _counting(monkeypatch)
    many = some(max(3, FUZZED // 6))
    for seed in range(FIRST, FIRST + many + 20):
        if seed < FIRST + many or not (waited or name in BEFORE):  # a stream may be too small for anything to wait
            _check(name, Random(f"{name} {seed}"), tmp_path / str(seed) if seed % 2 else None)
    assert waited or name in BEFORE


def _check(name: str, random: Random, folder: Path | None) -> None:
    query, oracle = (MUTUAL[name], from_scratch) if name in MUTUAL else (QUERIES[name], in_duckdb)
    engine, views, batches, upper = streamed(query, random, folder, 7)
    for later in range(upper + 1, upper + 30, random.choice([2, 5, 11])):
        engine.advance(later)  # nothing changes but the time
    since = {one.name: one.since for one in engine.stats().collections}
    for time in sorted({later - 1, *random.sample(range(later), 12)}):
        expected = oracle(query, contents(batches, time), time)
        for view in views:
            if time >= since[view]:
                assert bag(engine.read(view, as_of=time)) == expected, (view, time)
    assert bag(engine.query(query)) == expected
    engine.close()


def _counting(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The passes in which something arrives that has waited in a loop."""
    found: list[int] = []
    original = rounds.Pass.__init__

    def __init__(self: rounds.Pass, *given: Any, **more: Any) -> None:
        original(self, *given, **more)
        found.extend([1] if any(self._waited.values()) else [])

    monkeypatch.setattr(rounds.Pass, "__init__", __init__)
    return found


def test_a_loop_with_a_clock_fails_and_heals_as_time_passes() -> None:
    engine = hj.Engine(clock="own", retain=LAST)
    created(engine)
    engine.execute("""
        CREATE MATERIALIZED VIEW v AS
        WITH RECURSIVE r(n) AS (SELECT a FROM roots UNION SELECT 12 / (3 - r.n) FROM r WHERE mz_now() < r.n * 2)
        SELECT n FROM r""")
    engine.apply({"roots": [{"a": 1}]}, time=1)
    assert bag(engine.read("v")) == {(1,): 1, (6,): 1, (-4,): 1}
    engine.apply({"roots": [{"a": 3}]}, time=3)
    engine.advance(9)
    for time in (3, 4, 5):
        with pytest.raises(hj.DataError, match="division by zero"):
            engine.read("v", as_of=time)
    assert bag(engine.read("v")) == {(1,): 1, (3,): 1}


def test_a_loop_past_a_bound_forgets_what_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    query = """WITH RECURSIVE r(n) AS (
        SELECT a FROM roots UNION SELECT r.n + 1 FROM r, stops s WHERE r.n < s.a AND mz_now() < s.until)
        SELECT n FROM r"""
    engine = hj.Engine(clock="own", retain=LAST)
    created(engine)
    engine.execute(f"CREATE MATERIALIZED VIEW v AS {query}")
    engine.apply({"roots": [{"a": 1}], "stops": [{"a": 3, "until": 20}]}, time=1)
    monkeypatch.setattr(limits, "MOST_ROWS", 20)
    assert "rows" in engine.apply({"stops": [{"a": 90, "until": 12}]}, time=2).errors["v"]
    monkeypatch.undo()
    engine.advance(15)
    assert "rows" in engine.apply({}, time=21).errors["v"]
    engine.apply({"roots": [{"a": 2}], "stops": [{"a": 5, "until": 30}]}, time=22)
    assert bag(engine.read("v")) == Counter([(1,), (2,), (3,), (4,), (5,)])
    engine.advance(31)
    assert bag(engine.read("v")) == Counter([(1,), (2,)])
