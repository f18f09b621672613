"""View law for collections: a view of one is what an independent interpreter makes of the tables at each time."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

import halfjoin as hj
from tests.oracle.dataflows import SIZE, Bag, Row, Term, built, contents, random_program, register

FUZZED = int(os.environ.get("HALFJOIN_FUZZ_SQL", "40"))
FIRST = int(os.environ.get("HALFJOIN_SEED", "0")) % 1_000_000_000
Update = tuple[Row, int, int]  # a row, a time, a diff


def _at(updates: list[Update], time: int) -> Bag:
    found: Bag = Counter()
    for row, at, diff in updates:
        if at <= time:
            found[row] += diff
    return +found


def _next(random: Random, updates: list[Update], upper: int) -> Update:
    """A row that comes, or one that is there and goes, at a time that may stay open."""
    time = upper + random.randrange(3)
    there = list(_at(updates, 1 << 40))
    if there and random.random() < 0.45:
        row = random.choice(there)
        return row, max([time, *(at for one, at, _ in updates if one == row)]), -1
    values = [*range(SIZE), *range(SIZE), None]
    return (random.choice(values), random.choice(values)), time, 1


def _counts(engine: hj.Engine, view: str, time: int) -> Bag:
    rows = engine.read(view, as_of=time, multiplicity=True).to_pylist()
    return Counter({tuple(row.values())[:-1]: row["__diff"] for row in rows})


@pytest.mark.parametrize("seed", range(FIRST, FIRST + FUZZED))
def test_a_view_is_what_its_operators_make(seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    program = random_program(random, nested=seed % 2 == 0)
    folder = tmp_path / "w" if seed % 3 == 0 else None
    engine = hj.Engine(folder, retain=1_000)
    register(engine)
    engine.execute("CREATE TABLE r (a bigint, b bigint); CREATE TABLE s (a bigint, b bigint)")
    updates: dict[str, list[Update]] = {"r": [], "s": []}
    views, upper = list[str](), 0
    for step in range(random.randint(2, 5)):
        if step in (0, 3):
            engine.create_view(f"v{step}", built(program))
            views.append(f"v{step}")
        if folder is not None and random.random() < 0.4:
            engine.close()
            engine = hj.Engine(folder, memory=random.choice([None, 1]))
            register(engine)
        batch: dict[str, list[dict[str, Any]]] = {"r": [], "s": []}
        for _ in range(random.randint(1, 6)):
            table = random.choice("rs")
            updates[table].append(update := _next(random, updates[table], upper))
            (a, b), time, diff = update
            batch[table].append({"a": a, "b": b, "__time": time, "__diff": diff})
        engine.apply({name: rows for name, rows in batch.items() if rows}, time=upper + 2, close=False)
        upper += random.randrange(1, 4)
        engine.advance(upper)
    upper = max(upper, *(time for table in updates.values() for _, time, _ in table)) + 1
    engine.advance(upper)
    since = {one.name: one.since for one in engine.stats().collections}
    for time in range(upper):
        expected = contents(program, {name: _at(table, time) for name, table in updates.items()})
        for view in views:
            if time >= since[view]:
                shown = {row: count for row, count in expected.items() if count}
                assert _counts(engine, view, time) == shown, (view, time, built(program).sql())
    if min(expected.values(), default=0) >= 0:
        adhoc = engine.query(built(program)).to_pylist()
        assert Counter(tuple(row.values()) for row in adhoc) == expected
    engine.close()


def _terms(term: Term) -> Iterator[Term]:
    yield term
    for arg in term.args:
        yield from _terms(arg)


def test_the_programs_reach_all_operators() -> None:
    programs = [random_program(Random(seed), nested=seed % 2 == 0) for seed in range(40)]
    kinds = Counter(kind for program in programs for kind in {term.kind for term in _terms(program)})
    assert min(kinds[kind] for kind in ("map", "series", "follow", "same", "in", "not in", "min", "all", "own")) > 1
    assert min(kinds[kind] for kind in ("loop", "trace", "early", "negate")) > 1
    loops = [term for program in programs for term in _terms(program) if term.kind == "loop"]
    assert {len(loop.variables) for loop in loops} == {1, 2} and {loop.rounds for loop in loops} >= {None, 1, 2}
    assert sum(_deep(term) for program in programs for term in _terms(program)) > 1


def _deep(loop: Term) -> bool:
    """Whether a loop has one inside that reads its variables."""
    inner = [term for step in loop.args for term in _terms(step) if term.variables] if loop.variables else []
    return any(one.kind == "variable" and one.number in loop.variables for term in inner for one in _terms(term))
