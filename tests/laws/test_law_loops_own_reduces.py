"""Loop law for the user's reduces: inside a loop, each round calls them for what its groups are in that round."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import halfjoin as hj
from tests.oracle.rows import bag
from tests.support.seeds import some

FUZZED = int(os.environ.get("HALFJOIN_FUZZ_SQL", "24"))
FIRST = int(os.environ.get("HALFJOIN_SEED", "0")) % 1_000_000_000
Bag = Counter[tuple[int, int]]


def mixed(rows: pa.RecordBatch) -> pa.RecordBatch:
    """One number for many groups: it goes up and down with any row, and is missing for some groups."""
    assert rows.num_rows, "never an empty group"
    sums = dict[int, int]()
    for row in rows.to_pylist():
        sums[row["__group"]] = sums.get(row["__group"], 0) + row["x"] * row["__diff"] + 1
    made = [{"__group": group, "y": total % 5} for group, total in sums.items() if total % 4]
    return pa.RecordBatch.from_pylist(made, schema=pa.schema({"__group": pa.int64(), "y": pa.int64()}))


def mix(rows: Bag) -> Bag:
    """The same, of a bag of (k, x)."""
    sums = dict[int, int]()
    for (k, x), count in rows.items():
        sums[k] = sums.get(k, 0) + x * count + 1
    return Counter({(k, total % 5): 1 for k, total in sums.items() if total % 4})


def nearest(rows: pa.RecordBatch) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"d": [pc.min(rows["d"]).as_py()]})


def engine_with(folder: Path | None = None) -> hj.Engine:
    engine = hj.Engine(folder, clock="own", retain=1_000)
    engine.execute("CREATE TABLE IF NOT EXISTS inp (a bigint, b bigint)")
    engine.register_reduce("mixed", mixed, returns={"y": "bigint"}, vectorised=True)
    engine.register_reduce("nearest", nearest, returns={"d": "bigint"})
    return engine


def mutual(limit: int) -> str:
    return f"""
        WITH MUTUALLY RECURSIVE (RETURN AT RECURSION LIMIT {limit}) w (k bigint, x bigint) AS (
            SELECT r.k, r.y FROM mixed(TABLE (
                SELECT a AS k, b AS x FROM inp UNION ALL SELECT (k + 1) % 3, x FROM w) AS i PARTITION BY k) AS r)
        SELECT * FROM w"""


def after_rounds(inp: Bag, limit: int) -> Bag:
    rows: Bag = Counter()
    for _ in range(limit):
        fed = Counter(inp)
        for (k, x), count in rows.items():
            fed[(k + 1) % 3, x] += count
        rows = mix(fed)
    return rows


WORKING = """
    WITH RECURSIVE w (k, x) AS (
        SELECT a, b FROM inp UNION SELECT (r.k + 1) % 3, r.y FROM mixed(TABLE w PARTITION BY k) AS r)
    SELECT * FROM w"""


def with_working_table(inp: Bag) -> Bag:
    rows = known = set(inp)
    while rows:
        made = {((k + 1) % 3, y) for k, y in mix(Counter(rows))}
        rows, known = made - known, known | made
    return Counter(dict.fromkeys(known, 1))


DISTANCES = """
    WITH MUTUALLY RECURSIVE dist (n bigint, d bigint) AS (
        SELECT r.n, r.d FROM nearest(TABLE (
            SELECT 0 AS n, 0 AS d UNION ALL SELECT inp.b, dist.d + 1 FROM dist JOIN inp ON inp.a = dist.n) AS i
            PARTITION BY n) AS r)
    SELECT * FROM dist"""


def distances(inp: Bag) -> Bag:
    found = {0: 0}
    for d in range(10):
        for a, b in inp:
            if found.get(a) == d:
                found.setdefault(b, d + 1)
    return Counter(dict.fromkeys(found.items(), 1))


def at(updates: list[tuple[tuple[int, int], int, int]], time: int) -> Bag:
    found: Bag = Counter()
    for row, when, diff in updates:
        found[row] += diff * (when <= time)
    return +found


@pytest.mark.parametrize("seed", range(FIRST, FIRST + FUZZED))
def test_own_reduces_in_loops_are_what_the_rounds_give(seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    folder, limit = tmp_path / "w" if seed % 3 == 0 else None, random.randint(1, 7)
    engine, upper = engine_with(folder), 0
    views = [(mutual(limit), lambda inp: after_rounds(inp, limit)), (WORKING, with_working_table),
             (DISTANCES, distances)]  # fmt: skip
    filled = random.randrange(3)
    updates: list[tuple[tuple[int, int], int, int]] = []
    for step in range(random.randint(3, 5)):
        if step == filled:
            for number, (sql, _) in enumerate(views):
                engine.execute(f"CREATE MATERIALIZED VIEW v{number} AS {sql}")
        if folder is not None and random.random() < 0.4:
            engine.close()
            engine = engine_with(folder)
        batch = []
        for _ in range(random.randint(0, 4)):
            row, time, diff = (random.randrange(3), random.randrange(4)), upper + random.randrange(3), 1
            there = sorted(at(updates, 1 << 40).elements())
            if there and random.random() < 0.45:
                row, diff = random.choice(there), -1
                time = max([time, *(when for one, when, _ in updates if one == row)])
            updates.append((row, time, diff))
            batch.append({"a": row[0], "b": row[1], "__time": time, "__diff": diff})
        if batch:
            engine.apply({"inp": batch}, close=False)
        upper += random.randint(1, 4)
        engine.advance(to=upper)
    for time in range(upper):
        inp = at(updates, time)
        for number, (sql, expected) in enumerate(views):
            assert bag(engine.read(f"v{number}", as_of=time)) == expected(inp), f"v{number} as of {time}"
            if time % 4 == 0 and number:
                assert bag(engine.query(sql, as_of=time)) == expected(inp), f"query {number} as of {time}"
    engine.close()


def test_a_row_of_one_round_is_not_a_row_of_another() -> None:
    engine = engine_with()
    calls = list[dict[str, Any]]()

    def noted(rows: pa.RecordBatch) -> pa.RecordBatch:
        calls.append(rows.to_pydict())
        return nearest(rows)

    engine.register_reduce("noted", noted, returns={"d": "bigint"})
    engine.execute(f"CREATE MATERIALIZED VIEW v AS {DISTANCES.replace('nearest', 'noted')}")
    engine.apply({"inp": [{"a": 0, "b": 1}, {"a": 1, "b": 2}]}, time=1)
    assert all(set(one) == {"n", "d", "__diff"} for one in calls)  # no round is seen
    calls.clear()
    engine.apply({"inp": [{"a": 0, "b": 2}]}, time=2)
    assert {one["n"][0] for one in calls} == {2}  # no other group is touched
    assert bag(engine.read("v")) == {(0, 0): 1, (1, 1): 1, (2, 1): 1}


@pytest.mark.parametrize("fill", [True, False])
def test_a_reduce_that_fails_in_a_loop_is_an_error_that_heals(fill: bool) -> None:
    engine = engine_with()

    def choosy(rows: pa.RecordBatch) -> pa.RecordBatch:
        if pc.max(rows["d"]).as_py() > 2:
            raise ValueError("too far")
        return nearest(rows)

    engine.register_reduce("choosy", choosy, returns={"d": "bigint"})
    view = f"CREATE MATERIALIZED VIEW v AS {DISTANCES.replace('nearest', 'choosy')}"
    engine.execute("CREATE MATERIALIZED VIEW w AS SELECT count(*) AS n FROM inp")
    if not fill:
        engine.execute(view)
    engine.apply({"inp": [{"a": 0, "b": 1}, {"a": 1, "b": 2}]}, time=1)
    engine.apply({"inp": [{"a": 2, "b": 3}]}, time=2)
    if fill:
        engine.execute(view)
    failed = "reduce choosy failed: ValueError: too far, for a row with n = 3"
    with pytest.raises(hj.DataError, match=failed):
        engine.read("v")
    assert fill or engine.read("v", as_of=1).num_rows == 3
    assert engine.read("w").to_pylist() == [{"n": 3}]
    engine.apply({"inp": [{"a": 0, "b": 7}]}, time=3)
    with pytest.raises(hj.DataError, match=failed):
        engine.read("v")
    engine.apply({"inp": hj.deletes([{"a": 2, "b": 3}])}, time=4)
    assert bag(engine.read("v")) == {(0, 0): 1, (1, 1): 1, (2, 2): 1, (7, 1): 1}
    with pytest.raises(hj.DataError, match=failed):
        engine.read("v", as_of=3)


def test_a_view_is_readable_when_no_group_of_any_round_fails() -> None:
    readable = Counter[bool]()
    for seed in range(FIRST, FIRST + some(FUZZED)):
        random, engine, limit = Random(seed), engine_with(), Random(seed).randint(1, 5)
        engine.register_reduce("choosy", _choosy, returns={"y": "bigint"})
        sql = mutual(limit).replace("mixed", "choosy")
        updates: list[tuple[tuple[int, int], int, int]] = []
        late, upper = random.randrange(4), 0
        for step in range(4):
            if step == 0:
                engine.execute(f"CREATE MATERIALIZED VIEW v AS {sql}")
            if step == late:
                other = sql.replace("FROM inp", "FROM inp WHERE a >= 0")  # a loop of its own, which is filled
                engine.execute(f"CREATE MATERIALIZED VIEW late AS {other}")
            batch = []
            for _ in range(random.randint(1, 3)):
                row, time, diff = (random.randrange(3), random.randrange(4)), upper + random.randrange(3), 1
                there = sorted(at(updates, 1 << 40).elements())
                if there and random.random() < 0.5:
                    row, diff = random.choice(there), -1
                    time = max([time, *(when for one, when, _ in updates if one == row)])
                updates.append((row, time, diff))
                batch.append({"a": row[0], "b": row[1], "__time": time, "__diff": diff})
            engine.apply({"inp": batch}, close=False)
            upper += random.randint(1, 4)
            engine.advance(to=upper)
        for time in range(upper):
            expected = _of_rounds(at(updates, time), limit)
            readable[expected is not None] += 1
            for name in ("v", "late"):
                if expected is not None:
                    assert bag(engine.read(name, as_of=time)) == expected, f"{seed}: {name} as of {time}"
                else:
                    with pytest.raises(hj.DataError, match="choosy failed: ValueError: six"):
                        engine.read(name, as_of=time)
    assert min(readable[True], readable[False]) > some(FUZZED)


def _choosy(rows: pa.RecordBatch) -> pa.RecordBatch:
    total = sum((x + 1) * count for x, count in zip(rows["x"].to_pylist(), rows["__diff"].to_pylist(), strict=True))
    if total == 6:
        raise ValueError("six")
    return pa.RecordBatch.from_pydict({"y": [total % 4]})


def _of_rounds(inp: Bag, limit: int) -> Bag | None:
    """The rows of the last round; None if a group fails in any."""
    rows, failed = Bag(), False
    for _ in range(limit):
        sums = Counter[int]()
        for (k, x), count in inp.items():
            sums[k] += (x + 1) * count
        for (k, x), count in rows.items():
            sums[(k + 1) % 3] += (x + 1) * count
        failed = failed or 6 in sums.values()
        rows = Counter({(k, total % 4): 1 for k, total in sums.items() if total != 6})
    return None if failed else rows
