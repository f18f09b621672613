"""Within a pass the rounds that are over may be merged, and then added up: no later round can tell."""

from __future__ import annotations

import re
from collections import Counter
from random import Random
from typing import Any

import pytest

import halfjoin as hj
from halfjoin.engine.join.dataflow import Dataflow
from halfjoin.engine.loop import rounds
from tests.oracle.mutual import SIZE, failing_program, random_program, text

NESTED = """
    WITH RECURSIVE r(n) AS (
        SELECT a FROM inp
        UNION
        SELECT (x.m + 1) % 6 FROM (
            WITH RECURSIVE s(m) AS (SELECT n FROM r UNION SELECT i.b FROM s JOIN inp i ON i.a = s.m)
            SELECT m FROM s) x
        WHERE NOT EXISTS (SELECT 1 FROM r other WHERE other.n = x.m + 2))
    SELECT n FROM r"""
LOOKED_UP = """
    WITH MUTUALLY RECURSIVE (RETURN AT RECURSION LIMIT 9)
        least (a bigint, b bigint) AS (
            SELECT a, min(b) FROM (
                SELECT a, b + 4 AS b FROM inp UNION ALL SELECT x.a, y.b - 1 FROM least x JOIN least y ON y.a = x.b % 4)
            GROUP BY a),
        quotient (q bigint) AS (SELECT 7 / (y.b - 2) FROM least x JOIN least y ON y.a = x.b % 4)
    SELECT q FROM quotient"""
Updates = Counter[tuple[Any, ...]]


def _everything(seed: int) -> list[Updates]:
    """All updates and errors of all nodes, with their rounds."""
    random = Random(seed)
    engine = hj.Engine(retain=1_000)
    engine.execute("CREATE TABLE inp (a bigint, b bigint)")
    if seed % 4 == 3:
        engine.execute(f"CREATE MATERIALIZED VIEW v AS {LOOKED_UP if seed % 8 == 3 else NESTED}")
    else:
        program = (failing_program if seed % 2 else random_program)(random)
        for shown in range(len(program)):
            engine.execute(f"CREATE MATERIALIZED VIEW v{shown} AS {text(program, 9, shown)}")
    there = list[tuple[int, int]]()
    for time in range(1, 9):
        batch = list[dict[str, int]]()
        for at in (time * 2, time * 2 + 1):
            if there and random.random() < 0.4:
                a, b = there.pop(random.randrange(len(there)))
                batch.append({"a": a, "b": b, "__time": at, "__diff": -1})
            else:
                there.append((random.randrange(SIZE), random.randrange(SIZE)))
                batch.append({"a": there[-1][0], "b": there[-1][1], "__time": at, "__diff": 1})
        engine.apply({"inp": batch}, time=time * 2 + 1)
    found = []
    for node in engine._writing().state.maintained.values():
        for collection in (node.contents, node.errors):
            rows: Updates = Counter()
            for run in collection.runs:
                for piece in run.pieces():
                    for row in piece.table(changes=True).to_pylist():
                        rows[tuple(_told(value) for key, value in row.items() if key != "__diff")] += row["__diff"]
            found.append(Counter({row: count for row, count in rows.items() if count}))
    engine.close()
    return found


def _told(value: Any) -> str:
    """A value as text, without the names of nodes, which differ from one engine to the next."""
    return re.sub("#[0-9a-f]{16}", "#", str(value))


def _always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Merge all runs after each round, and add them up if any row is taken away."""
    monkeypatch.setattr(rounds, "_FEW", 0)
    monkeypatch.setattr(rounds, "_CANCEL", 1_000_000)


@pytest.mark.parametrize("seed", range(32))
def test_no_later_round_can_tell_that_runs_were_merged(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    apart = _everything(seed)
    _always(monkeypatch)
    assert _everything(seed) == apart


def test_runs_are_merged_in_both_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    ways, merged = Counter[str](), rounds.Pass._merged

    def counting(self: rounds.Pass, name: str, runs: Any, round: int) -> Any:
        found = merged(self, name, runs, round)
        ways["added up" if len(found) < sum(map(len, runs)) else "side by side"] += 1
        return found

    _always(monkeypatch)
    monkeypatch.setattr(rounds.Pass, "_merged", counting)
    for seed in range(8):
        _everything(seed)
    assert min(ways["added up"], ways["side by side"]) > 20


def test_errors_that_lose_their_rounds_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The wrong way: to add up rows that a join looks up and tells in its errors."""
    apart = [_everything(seed) for seed in range(3, 32, 8)]
    _always(monkeypatch)
    original = Dataflow.__init__

    def forgetting(self: Dataflow, *given: Any) -> None:
        original(self, *given)
        self.told = frozenset()

    monkeypatch.setattr(Dataflow, "__init__", forgetting)
    assert [_everything(seed) for seed in range(3, 32, 8)] != apart
