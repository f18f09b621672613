"""View law for the user's reduces: at each time, what the function gives for the groups that are there, and no more."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import halfjoin as hj
from tests.oracle.rows import bag

FUZZED = int(os.environ.get("HALFJOIN_FUZZ_SQL", "24"))
FIRST = int(os.environ.get("HALFJOIN_SEED", "0")) % 1_000_000_000
Bag = Counter[tuple[Any, ...]]
Row = tuple[Any, ...]


def shows(rows: pa.RecordBatch) -> pa.RecordBatch:
    """All that it sees of a group, in order, and its number of rows."""
    assert rows.num_rows, "never an empty group"
    seen = "|".join(_text(row) for row in rows.to_pylist())
    return pa.RecordBatch.from_pylist([{"shown": seen, "n": sum(rows["__diff"].to_pylist())}])


def _text(row: dict[str, Any]) -> str:
    return ",".join(f"{name}={value}" for name, value in row.items())


def parts(rows: pa.RecordBatch) -> pa.RecordBatch:
    """For each row of many groups one with its x, as often as the row, in another order. None for an x of 1."""
    made = [{"__group": row["__group"], "x": row["x"], "__diff": row["__diff"]} for row in rows.to_pylist()]
    made = [one for one in reversed(made) if one["x"] != 1]
    schema = pa.schema({"__group": pa.int64(), "x": pa.int64(), "__diff": pa.int64()})
    return pa.RecordBatch.from_pylist(made, schema=schema)


def alarm(rows: pa.RecordBatch) -> pa.RecordBatch:
    """A row for a group of more than two."""
    n = sum(rows["__diff"].to_pylist())
    return pa.RecordBatch.from_pydict({"n": pa.array([n] if n > 2 else [], pa.int64())})


def register(engine: hj.Engine) -> None:
    engine.register_reduce("shows", shows, returns={"shown": "text", "n": "bigint"})
    engine.register_reduce("parts", parts, returns={"x": "bigint"}, vectorised=True)
    engine.register_reduce("alarm", alarm, returns={"n": "bigint"})


def up(value: Any) -> tuple[Any, ...]:
    """A sort key: ascending, NULLs last."""
    return value is None, value if value is not None else 0


def down(value: int | None) -> tuple[Any, ...]:
    """A sort key: descending, NULLs first."""
    return value is not None, -(value or 0)


def groups(rows: Bag, key: Callable[[Row], Any]) -> dict[Any, list[tuple[Row, int]]]:
    """The rows of each group with their counts, in order of their columns."""
    found = dict[Any, list[tuple[Row, int]]]()
    for row, count in sorted(rows.items(), key=lambda one: tuple(map(up, one[0]))):
        found.setdefault(key(row), []).append((row, count))
    return found


def shown(rows: Iterable[tuple[Row, int]], names: str) -> str:
    """What `shows` shows of rows."""
    return "|".join(_text(dict(zip([*names, "__diff"], (*row, count), strict=True))) for row, count in rows)


def size(rows: Iterable[tuple[Row, int]]) -> int:
    return sum(count for _, count in rows)


def by_key(t: Bag, u: Bag) -> Bag:
    found = {key: sorted(rows, key=lambda one: down(one[0][1])) for key, rows in groups(t, lambda r: r[0]).items()}
    return Counter({(key, shown(rows, "kxs"), size(rows)): 1 for key, rows in found.items()})


def of_all(t: Bag, u: Bag) -> Bag:
    return Counter({(shown(rows, "kxs"), size(rows)): 1 for rows in groups(t, lambda r: 0).values()})


def by_halves(t: Bag, u: Bag) -> Bag:
    found = groups(t, lambda r: (None if r[1] is None else r[1] // 2, r[2].upper()))
    ordered = (sorted(rows, key=lambda one: down(one[0][1])) for rows in found.values())
    return Counter((shown(rows, "kxs"), size(rows)) for rows in ordered)


def by_subquery(t: Bag, u: Bag) -> Bag:
    most = {k: max((y for (own, y), _ in u.items() if own == k and y is not None), default=None) for k in "ab"}
    return Counter((shown(rows, "kxs"), size(rows)) for rows in groups(t, lambda r: most.get(r[0])).values())


def around(t: Bag, u: Bag) -> Bag:
    total: Bag = Counter()
    for (k, y), count in u.items():
        for rows in groups(t, lambda r: None if None in (r[1], y) else r[1] < y).values():  # noqa: B023
            total[k, y, size(rows)] += count
    return total


def pieces(t: Bag, u: Bag) -> Bag:
    total: Bag = Counter()
    for (k, x, s), count in t.items():
        total[k, s, x] += count if x != 1 else 0
    return total


def padded(t: Bag, u: Bag) -> Bag:
    above: Bag = Counter()
    for (k, x, _), count in t.items():
        above[k, x] += count if x is not None and x > 0 else 0
    found, total = groups(+above, lambda r: r[0]), Counter[Row]()
    for (k, y), count in u.items():
        total[y, shown(found[k], "kx") if k is not None and k in found else None] += count
    return total


def lateral(t: Bag, u: Bag) -> Bag:
    total: Bag = Counter()
    for (k, y), count in u.items():
        rows = [(row, times) for row, times in t.items() if None not in (row[1], y) and row[1] >= y]
        total[k, y, size(rows)] += count if rows else 0
    return total


def beside(t: Bag, u: Bag) -> Bag:
    total: Bag = Counter()
    for (k, y), count in u.items():
        rows = sorted(((r, n) for r, n in t.items() if r[0] == k is not None), key=lambda one: tuple(map(up, one[0])))
        rows.sort(key=lambda one: up(one[0][1]))
        total[y, shown(rows, "kxs")] += count if rows else 0
    return total


def over_aggregate(t: Bag, u: Bag) -> Bag:
    counts: Bag = Counter()
    for (k, _, _), count in t.items():
        counts[(k,)] += count
    rows = [((k, count), 1) for (k,), count in sorted(counts.items(), key=lambda one: up(one[0][0]))]
    return Counter({(shown(rows, "kc"),): 1} if rows else {})


def with_itself(t: Bag, u: Bag) -> Bag:
    sizes = {k: size(rows) for k, rows in groups(t, lambda r: r[0]).items()}
    total: Bag = Counter()
    for (k, x, _), count in t.items():
        total[k, x, sizes[k]] += count
    return total


def over_join(t: Bag, u: Bag) -> Bag:
    pairs: Bag = Counter()
    for (k, y), many in u.items():
        for (own, _, s), count in t.items():
            pairs[y, s] += many * count if k is not None and own == k else 0
    return Counter({(y, shown(rows, "ys"), size(rows)): 1 for y, rows in groups(+pairs, lambda r: r[0]).items()})


def over_reduce(t: Bag, u: Bag) -> Bag:
    total: Bag = Counter()
    for (_, _, x), count in pieces(t, u).items():
        total[(x,)] += count
    return Counter({(size(rows),): 1 for rows in groups(+total, lambda r: 0).values()})


def loud(t: Bag, u: Bag) -> Bag:
    return Counter({(k, size(rows)): 1 for k, rows in groups(t, lambda r: r[0]).items() if size(rows) > 2})


VIEWS: list[tuple[str, Callable[[Bag, Bag], Bag]]] = [
    ("SELECT r.k, r.* FROM shows(TABLE t PARTITION BY k ORDER BY x DESC) AS r", by_key),
    ("SELECT * FROM shows(TABLE t)", of_all),
    ("SELECT k, s, r.xx FROM parts(TABLE t PARTITION BY (s, k) ORDER BY x) AS r (xx)", pieces),
    ("""SELECT u.y, r.shown FROM u LEFT JOIN shows(TABLE (SELECT k, x FROM t WHERE x > 0) PARTITION BY k) AS r
        ON r.k = u.k""", padded),
    ("SELECT u.k, u.y, r.n FROM u, shows(TABLE (SELECT * FROM t WHERE t.x >= u.y)) AS r", lateral),
    ("""SELECT u.y, r.shown FROM u CROSS JOIN LATERAL shows(TABLE (SELECT * FROM t WHERE t.k = u.k) AS o
        ORDER BY o.x) AS r""", beside),
    ("SELECT shown FROM shows(TABLE (SELECT k, count(*) AS c FROM t GROUP BY k))", over_aggregate),
    ("""SELECT t.k, t.x, r.n FROM t JOIN shows(TABLE t PARTITION BY k) AS r ON r.k IS NOT DISTINCT FROM t.k""",
     with_itself),
    ("""WITH j AS (SELECT u.y, t.s FROM t JOIN u ON t.k = u.k)
        SELECT r.y, r.* FROM shows(TABLE j PARTITION BY y) AS r""", over_join),
    ("SELECT n FROM shows(TABLE (SELECT r.x FROM parts(TABLE t PARTITION BY k) AS r))", over_reduce),
    ("SELECT r.k, r.n FROM alarm(TABLE t PARTITION BY k) AS r", loud),
    ("SELECT * FROM shows(TABLE t PARTITION BY x / 2, upper(s) ORDER BY -x NULLS FIRST)", by_halves),
    ("SELECT * FROM shows(TABLE t PARTITION BY (SELECT max(u.y) FROM u WHERE u.k = t.k))", by_subquery),
    ("SELECT u.k, u.y, r.n FROM u, shows(TABLE t PARTITION BY t.x < u.y) AS r", around),
]  # fmt: skip


def at(updates: list[tuple[Row, int, int]], time: int) -> Bag:
    found: Bag = Counter()
    for row, when, diff in updates:
        found[row] += diff * (when <= time)
    return +found


@pytest.mark.parametrize("seed", range(FIRST, FIRST + FUZZED))
def test_own_reduces_equal_a_recomputation_at_every_time(seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    folder = tmp_path / "w" if seed % 3 == 0 else None
    engine, upper = hj.Engine(folder, clock="own", retain=1_000), 0
    engine.execute("CREATE TABLE t (k text, x bigint, s text); CREATE TABLE u (k text, y bigint)")
    register(engine)
    views: dict[str, Callable[[Bag, Bag], Bag]] = {}
    updates: dict[str, list[tuple[Row, int, int]]] = {"t": [], "u": []}

    def fresh(table: str) -> Row:
        number = random.choice([0, 1, 1, 2, 3, None])
        return (random.choice(["a", "b", None]), number, *([random.choice("pq")] if table == "t" else []))

    for step in range(random.randint(3, 5)):
        for place in random.sample(range(len(VIEWS)), 4 if step == 0 else 1):
            if f"v{place}" not in views:
                engine.execute(f"CREATE MATERIALIZED VIEW v{place} AS {VIEWS[place][0]}")
                views[f"v{place}"] = VIEWS[place][1]
        if folder is not None and random.random() < 0.5:
            engine.close()
            engine = hj.Engine(folder, clock="own", retain=1_000)
            register(engine)
        batch: dict[str, list[dict[str, Any]]] = {}
        for table, names in (("t", "kxs"), ("u", "ky")):
            for _ in range(random.randint(0, 4)):
                known, row, diff = updates[table], fresh(table), 1
                time = upper + random.randrange(4)
                there = sorted(at(known, 1 << 40).elements(), key=repr)
                if there and random.random() < 0.45:
                    row, diff = random.choice(there), -1
                    time = max([time, *(when for one, when, _ in known if one == row)])
                known.append((row, time, diff))
                batch.setdefault(table, []).append(
                    {**dict(zip(names, row, strict=True)), "__time": time, "__diff": diff})  # fmt: skip
        if batch:
            engine.apply(batch, close=False)
        upper += random.randint(1, 5)
        engine.advance(to=upper)
    for name, expected in views.items():
        for time in range(upper):
            wanted = expected(at(updates["t"], time), at(updates["u"], time))
            assert bag(engine.read(name, as_of=time)) == +wanted, f"{name} as of {time}"
            if time % 3 == 0:
                sql = VIEWS[int(name[1:])][0]
                assert bag(engine.query(sql, as_of=time)) == +wanted, f"query of {name} as of {time}"
    engine.close()


FAILING = (
    "SELECT r.k, r.n FROM choosy(TABLE t PARTITION BY k) AS r",
    "SELECT k, n FROM choosy_groups(TABLE t PARTITION BY k)",
    "SELECT u.y, r.n FROM u JOIN choosy(TABLE (SELECT k, x FROM t) PARTITION BY k) AS r ON r.k = u.k",
)


def total(group: list[tuple[Row, int]]) -> int:
    return sum((row[1] or 0) * count for row, count in group)


@pytest.mark.parametrize("seed", range(FIRST, FIRST + FUZZED))
def test_a_view_is_readable_when_no_group_fails(seed: int) -> None:
    """A group fails if its sum is 3 or if a row has a negative count, and may come to be right at another time."""
    random = Random(seed)
    engine, upper = hj.Engine(clock="own", retain=1_000), 0
    engine.execute("CREATE TABLE t (k text, x bigint, s text); CREATE TABLE u (k text, y bigint)")

    def choosy(rows: pa.RecordBatch) -> pa.RecordBatch:
        made = [(row["x"] or 0) * row["__diff"] for row in rows.to_pylist()]
        if sum(made) == 3:
            raise ValueError("three")
        return pa.RecordBatch.from_pydict({"n": [sum(made)]})

    def choosy_groups(rows: pa.RecordBatch) -> pa.RecordBatch:
        sums = Counter[int]()
        for row in rows.to_pylist():
            sums[row["__group"]] += (row["x"] or 0) * row["__diff"]
        if 3 in sums.values():
            raise ValueError("three")
        return pa.RecordBatch.from_pydict({"n": list(sums.values()), "__group": list(sums)})

    engine.register_reduce("choosy", choosy, returns={"n": "bigint"})
    engine.register_reduce("choosy_groups", choosy_groups, returns={"n": "bigint"}, vectorised=True)
    updates: list[tuple[Row, int, int]] = []
    engine.apply({"u": [{"k": "a", "y": 1}, {"k": "b", "y": 2}, {"k": "b", "y": 2}]}, time=0)
    late = random.randrange(5)
    for step in range(5):
        for place, sql in enumerate(FAILING):
            if step == 0:
                engine.execute(f"CREATE MATERIALIZED VIEW v{place} AS {sql}")
            if step == late:
                engine.execute(f"CREATE MATERIALIZED VIEW late{place} AS {sql}")
        upper = max(upper, 1)
        batch = []
        for _ in range(random.randint(0, 3)):
            row = (random.choice("ab"), random.choice([1, 2, 3, None]), "s")
            time, diff = upper + random.randrange(3), random.choice([1, 1, -1])
            updates.append((row, time, diff))
            batch.append({"k": row[0], "x": row[1], "s": row[2], "__time": time, "__diff": diff})
        if batch:
            engine.apply({"t": batch}, close=False)
        upper += random.randint(1, 4)
        engine.advance(to=upper)
    for time in range(1, upper):
        there: Bag = Counter()
        for row, when, diff in updates:
            there[row] += diff * (when <= time)
        found = groups(Counter({row: count for row, count in there.items() if count}), lambda r: r[0])
        fails = any(total(group) == 3 for group in found.values()) or any(count < 0 for count in there.values())
        sums = {k: total(group) for k, group in found.items()}
        joined = Counter((y, sums[k]) for k, y in (("a", 1), ("b", 2), ("b", 2)) if k in sums)
        for name in ("v", "late"):
            for place in range(len(FAILING)):
                if fails:
                    with pytest.raises(hj.DataError):
                        engine.read(f"{name}{place}", as_of=time)
                else:
                    wanted = joined if place == 2 else Counter(dict.fromkeys(sums.items(), 1))
                    assert bag(engine.read(f"{name}{place}", as_of=time)) == wanted, f"{name}{place} as of {time}"
