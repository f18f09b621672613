"""First rows of groups in loops: all rounds looked at together make what rounds one by one make."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import numpy as np
import pytest

import halfjoin as hj
from halfjoin.engine.kernels import native
from halfjoin.engine.loop.first import FirstRow, History, differences
from halfjoin.engine.loop.rounds import Pass

VIEWS = {
    "distinct": """
        WITH RECURSIVE r(n) AS (SELECT a FROM roots UNION SELECT e.b FROM r JOIN edges e ON e.a = r.n)
        SELECT n FROM r""",
    "distinct pairs of texts": """
        WITH RECURSIVE r(x, y) AS (
            SELECT a::text, b FROM edges UNION SELECT r.x, e.b FROM r JOIN edges e ON e.a = r.y)
        SELECT x, y FROM r""",
    "least": """
        WITH MUTUALLY RECURSIVE r (n bigint, d bigint) AS (
            SELECT n, min(d) FROM (
                SELECT a AS n, 0::bigint AS d FROM roots
                UNION ALL SELECT e.b, r.d + e.w FROM r JOIN edges e ON e.a = r.n)
            GROUP BY n)
        SELECT n, d FROM r""",
    "greatest text, NULL among them": """
        WITH MUTUALLY RECURSIVE (RETURN AT RECURSION LIMIT 6) r (n bigint, t text) AS (
            SELECT n, max(t) FROM (
                SELECT a AS n, nullif(w, 1)::text AS t FROM edges
                UNION ALL SELECT e.b, r.t FROM r JOIN edges e ON e.a = r.n)
            GROUP BY n)
        SELECT n, t FROM r""",
    "where rounds go on": """
        WITH MUTUALLY RECURSIVE (RETURN AT RECURSION LIMIT 7)
            r (n bigint) AS (
                SELECT DISTINCT n FROM (
                    SELECT a AS n FROM roots UNION ALL
                    SELECT e.b FROM edges e WHERE NOT EXISTS (SELECT 1 FROM r WHERE r.n = e.a)) x)
        SELECT n FROM r""",
}  # fmt: skip


def _batches(seed: int) -> list[tuple[dict[str, list[dict[str, Any]]], int]]:
    """Rows that come and go, mostly at one time each."""
    random, there, found, now = Random(seed), list[tuple[int, int, int]](), [], 1
    for _ in range(12):
        rows = list[dict[str, Any]]()
        for _ in range(20 if now == 1 else random.choice([1, 2, 8])):
            if there and random.random() < 0.5:
                a, b, w = there.pop(random.randrange(len(there)))
                rows.append({"a": a, "b": b, "w": w, "__diff": -1})
            else:
                there.append((random.randrange(9), random.randrange(9), random.randrange(1, 4)))
                rows.append(dict(zip("abw", there[-1], strict=True), __diff=1))
        roots = [{"a": random.randrange(9), "__diff": 1} for _ in range(3)] if now == 1 or random.random() < 0.2 else []
        found.append(({"edges": rows, "roots": roots}, now))
        now += random.randrange(1, 3)
    return found


def _contents(sql: str, seed: int) -> list[Counter[tuple[Any, ...]]]:
    """All updates of the view's nodes and of the view, with their rounds, in order of dependency."""
    engine = hj.Engine(retain=1_000)
    engine.execute("CREATE TABLE edges (a bigint, b bigint, w bigint); CREATE TABLE roots (a bigint)")
    engine.execute(f"CREATE MATERIALIZED VIEW v AS {sql}")
    for batch, time in _batches(seed):
        engine.apply({name: rows for name, rows in batch.items() if rows}, time=time)
    found = []
    for node in engine._writing().state.maintained.values():
        rows: Counter[tuple[Any, ...]] = Counter()
        for run in node.contents.runs:
            for piece in run.pieces():
                for row in piece.table(changes=True).to_pylist():
                    rows[tuple(value for key, value in row.items() if key != "__diff")] += row["__diff"]
        found.append(Counter({row: count for row, count in rows.items() if count}))
    engine.close()
    return found


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("seed", range(4))
def test_rounds_together_make_what_rounds_one_by_one_make(
    name: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached, original = Counter[bool](), FirstRow.round

    def counting(*args: Any) -> Any:
        made = original(*args)
        reached[made is not None] += 1
        return made

    monkeypatch.setattr(FirstRow, "round", counting)
    together = _contents(VIEWS[name], seed)
    assert reached[True] > 10
    monkeypatch.setattr("halfjoin.engine.loop.first._few", lambda *_: False)  # later rounds are looked at one by one
    assert _contents(VIEWS[name], seed) == together
    monkeypatch.setattr(FirstRow, "round", lambda *_: None)
    assert _contents(VIEWS[name], seed) == together


@pytest.mark.skipif(not native.BUILT, reason="the kernels are not built")
@pytest.mark.parametrize("seed", range(60))
def test_the_kernel_finds_the_same_differences(seed: int) -> None:
    random = np.random.default_rng(seed)
    groups, places, round = int(random.integers(0, 9)), int(random.integers(1, 6)), int(random.integers(0, 4))

    def history(count: int) -> History:
        group, later, place = (random.integers(0, most, count) for most in (max(groups, 1), 9, places))
        return History(group, later, place, random.choice([1, 1, 1, -1, 2], count))

    size = int(random.integers(0, 60)) * (groups > 0)
    rows, made = history(size), history(size // 2)
    with native.used(False):
        slow = differences(groups, round, rows, made)
    found = differences(groups, round, rows, made)
    assert (found is None) == (slow is None)
    if found is not None and slow is not None:
        assert all(map(np.array_equal, found, slow))


TEMPORAL = """
    WITH RECURSIVE r(n) AS (
        SELECT a FROM roots UNION SELECT e.b FROM r JOIN edges e ON e.a = r.n
        WHERE mz_now() < 4 * e.w + 8 AND mz_now() >= 2 * e.w)
    SELECT n FROM r"""


@pytest.mark.parametrize("retain", [0, 1, 3])
@pytest.mark.parametrize("seed", range(3))
def test_a_view_over_a_past_that_nobody_can_read_begins_with_the_present(retain: int, seed: int) -> None:
    views = {**VIEWS, "temporal": TEMPORAL}
    first, later = hj.Engine(retain=retain), hj.Engine(retain=retain)
    for engine in (first, later):
        engine.execute("CREATE TABLE edges (a bigint, b bigint, w bigint); CREATE TABLE roots (a bigint)")
    for number, (batch, time) in enumerate(_batches(seed)):
        if number in (0, 5):
            for name, sql in views.items():
                (later if number else first).execute(f'CREATE MATERIALIZED VIEW "{name}" AS {sql}')
        for engine in (first, later):
            engine.apply({name: rows for name, rows in batch.items() if rows}, time=time)
        for name in views if number >= 5 else ():
            for at in range(time - max(retain, 1) + 1, time + 1):
                one, other = (Counter(tuple(row.values()) for row in engine.read(name, as_of=at).to_pylist())
                              for engine in (first, later))  # fmt: skip
                assert one == other, (name, at)


def test_an_edge_that_changes_nothing_takes_few_rounds() -> None:
    engine = hj.Engine()
    engine.execute("CREATE TABLE edges (a bigint, b bigint, w bigint); CREATE TABLE roots (a bigint)")
    engine.execute(f"CREATE MATERIALIZED VIEW v AS {VIEWS['distinct']}")
    chain = [{"a": n, "b": n + 1, "w": 1} for n in range(60)]
    back = [{"a": n, "b": 0, "w": 1} for n in range(60)]  # node 0 is found anew in each round
    engine.apply({"edges": chain + back, "roots": [{"a": 0}]})
    rounds, take = set[Any](), Pass._take

    def counting(self: Pass, name: str, round: Any) -> None:
        rounds.add(round)
        take(self, name, round)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Pass, "_take", counting)
        engine.apply({"edges": [{**back[2], "__diff": -1}]})
    assert len(rounds) < 5
