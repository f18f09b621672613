"""Rows with negative counts: what adds up stays linear; an order, a window or a minimum is an error while one is there.

So is a group whose counts add up to 0 though its rows do not cancel: its sums are kept, and it is back when they do.
A history may delete rows that are not there. A model of few lines says what each view contains at each time.
"""

from __future__ import annotations

import os
import random
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest

import halfjoin as hj
from tests.oracle.rows import Bag, bag, nonzero
from tests.support.ordering import read_in_order
from tests.support.seeds import first_seed

MORE = os.environ.get("HALFJOIN_FUZZ")
FIRST = first_seed() if MORE else 0
SEEDS = range(FIRST, FIRST + int(MORE or 40))


def _groups(rows: Bag) -> dict[int | None, Bag]:
    groups: dict[int | None, Bag] = defaultdict(Counter)
    for row, count in rows.items():
        groups[row[0]][row] = count
    return groups


def sums(rows: Bag) -> Bag:
    """A group is there while its count of rows is not 0."""
    made: Bag = Counter()
    for key, group in _groups(rows).items():
        given = [row for row in group if row[1] is not None]
        count, values = sum(group.values()), sum(group[row] for row in given)
        total = sum(row[1] * group[row] for row in given)
        if count:
            made[key, count, values, total if values else None] = 1
    return made


def uncancelled(rows: Bag) -> bool:
    """Whether the counts of a group add up to 0, but not its sums."""
    for group in _groups(rows).values():
        given = [(row[1], count) for row, count in group.items() if row[1] is not None]
        nothing = not sum(count for _, count in given) and not sum(value * count for value, count in given)
        if not sum(group.values()) and not nothing:
            return True
    return False


def of_values(rows: Bag) -> bool:
    """Whether a row with a value has a negative count, or the counts of a group with values add up to 0."""
    groups = _groups(Counter({row: count for row, count in rows.items() if row[1] is not None}))
    wrong = [key for key in groups if not sum(count for row, count in rows.items() if row[0] == key)]
    return bool(wrong) or any(count < 0 for group in groups.values() for count in group.values())


def of_rows(rows: Bag) -> bool:
    """Whether a row has a negative count."""
    return any(count < 0 for count in rows.values())


def never(rows: Bag) -> bool:
    return False


def distinct(rows: Bag) -> Bag:
    return Counter({(key,): 1 for key, group in _groups(rows).items() if sum(group.values()) > 0})


def except_all(rows: Bag) -> Bag:
    left, right = Counter[object](), Counter[object]()
    for row, count in rows.items():
        left[row[0]] += count
        right[row[1]] += count
    return nonzero(Counter({(key,): max(0, count - max(0, right[key])) for key, count in left.items()}))


def exists(rows: Bag) -> Bag:
    there = Counter[object]()
    for row, count in rows.items():
        there[row[1]] += count
    return nonzero(Counter({row: count for row, count in rows.items() if row[0] is not None and there[row[0]] > 0}))


def least(rows: Bag) -> Bag:
    made: Bag = Counter()
    for key, group in _groups(rows).items():
        values = [row[1] for row in group if row[1] is not None]
        if count := sum(group.values()):
            made[key, min(values, default=None), count] = 1
    return made


def _present(group: Bag) -> list[int | None]:
    """The values whose rows have counts of more than 0 in all."""
    counts = Counter[int | None]()
    for row, count in group.items():
        counts[row[1]] += count
    return [value for value, count in counts.items() if count > 0]


def distinct_values(rows: Bag) -> Bag:
    """A group is there while a value, perhaps NULL, is present."""
    made: Bag = Counter()
    for key, group in _groups(rows).items():
        if present := _present(group):
            made[key, sum(value is not None for value in present)] = 1
    return made


def values_and_rows(rows: Bag) -> Bag:
    """A group is there while its count of rows and present values is not 0."""
    made: Bag = Counter()
    for key, group in _groups(rows).items():
        present, count = _present(group), sum(group.values())
        if count + len(present):
            made[key, sum(value is not None for value in present), count] = 1
    return made


def uncancelled_values(rows: Bag) -> bool:
    """Whether the counts of a group's rows and present values add up to 0, but neither is 0."""
    return any((many := len(_present(group))) and not sum(group.values()) + many for group in _groups(rows).values())


def most(rows: Bag) -> Bag:
    """The value with the greatest count, if that is more than 0."""
    made: Bag = Counter()
    for key, group in _groups(rows).items():
        counts = {value: -sum(count for row, count in group.items() if row[1] == value)
                  for value in _present(group) if value is not None}  # fmt: skip
        made[key, min(counts, key=lambda value: (counts[value], value), default=None)] = 1
    return made


def _in_order(rows: Bag) -> list[tuple[int | None, int | None]]:
    return sorted(rows.elements(), key=lambda row: [(value is None, value or 0) for value in (row[1], row[0])])


def top(rows: Bag) -> Bag:
    return Counter(_in_order(rows)[:2])


def ranked(rows: Bag) -> Bag:
    made: Bag = Counter()
    for key, group in _groups(rows).items():
        order = [row[1] for row in _in_order(group)]
        made.update((key, value, order.index(value) + 1) for value in order)
    return made


def first_of_each(rows: Bag) -> Bag:
    return Counter(_in_order(group)[0] for group in _groups(rows).values())


# The contents, and whether they are an error instead.
VIEWS: dict[str, tuple[Callable[[Bag], Bag], Callable[[Bag], bool]]] = {
    "SELECT k, count(*) AS n, count(v) AS c, sum(v) AS s FROM t GROUP BY k": (sums, uncancelled),
    "SELECT DISTINCT k FROM t": (distinct, never),
    "SELECT k, count(DISTINCT v) AS n FROM t GROUP BY k": (distinct_values, never),
    "SELECT k, count(DISTINCT v) AS n, count(*) AS c FROM t GROUP BY k": (values_and_rows, uncancelled_values),
    "SELECT k, mode() WITHIN GROUP (ORDER BY v) AS m FROM t GROUP BY k": (most, never),
    "SELECT t.k, t.v FROM t WHERE EXISTS (SELECT 1 FROM t AS u WHERE u.v = t.k)": (exists, never),
    "SELECT k, min(v) AS m, count(*) AS n FROM t GROUP BY k": (least, of_values),
    "SELECT k, v FROM t ORDER BY v, k LIMIT 2": (top, of_rows),
    "SELECT k, v, rank() OVER (PARTITION BY k ORDER BY v) AS r FROM t": (ranked, of_rows),
    "SELECT k, v FROM (SELECT k, v, row_number() OVER (PARTITION BY k ORDER BY v) AS n FROM t) AS g WHERE n = 1":
        (first_of_each, of_rows),
}  # fmt: skip


@pytest.mark.parametrize("seed", SEEDS)
def test_negative_counts_are_linear_or_errors(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    read_in_order(monkeypatch, rng.choice((True, False)))
    engine = hj.Engine(tmp_path / "w", clock="own", retain=1000)
    engine.execute("CREATE TABLE t (k int, v int)")
    views = dict(enumerate(VIEWS))
    count, upper, late = rng.randint(2, 6), 0, rng.randrange(6)
    history: list[tuple[tuple[int | None, int | None], int, int]] = []
    for number in range(count):
        if number in (0, min(late, count - 1)):
            for place, sql in views.items():
                engine.execute(f"CREATE OR REPLACE MATERIALIZED VIEW {'late' if number else 'v'}{place} AS {sql}")
        rows = [((rng.choice((0, 1, None)), rng.choice((0, 1, None))), upper + rng.randrange(3),
                 rng.choice((1, 1, 2, -1, -1))) for _ in range(rng.randrange(5))]  # fmt: skip
        if rng.random() < 0.4:  # what was not there comes
            there = Counter[tuple[int | None, int | None]]()
            for row, _, diff in history + rows:
                there[row] += diff
            rows += [(row, upper + 3, -many) for row, many in there.items() if many < 0]
        history += rows
        if rows:
            given = [{"k": row[0], "v": row[1], "__time": time, "__diff": diff} for row, time, diff in rows]
            engine.apply({"t": given}, close=False)
        upper += rng.randint(1, 5)
        upper = max(upper, max((time for _, time, _ in rows), default=0) + rng.choice((0, 1)))
        engine.advance(to=upper)
        if rng.random() < 0.2:
            engine.close()
            engine = hj.Engine(tmp_path / "w")
    for time in range(upper):
        now: Bag = Counter()
        for row, at, diff in history:
            now[row] += diff if at <= time else 0
        now = nonzero(now)
        for place, sql in views.items():
            model, is_error = VIEWS[sql]
            for name in [f"v{place}"] + [f"late{place}"] * bool(min(late, count - 1)):
                try:
                    found = bag(engine.read(name, as_of=time, multiplicity=True))
                except hj.DataError as problem:
                    assert is_error(now) and "negative count" in str(problem), f"{name} at {time}: {problem}"
                else:
                    assert not is_error(now), f"{name} at {time} of {upper} is {found}, with {now}"
                    assert found == model(now), f"{name} at {time} of {upper}: {sql}"
    engine.close()
