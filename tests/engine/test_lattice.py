"""Product times: the laws of a lattice, and the times at which a group must be computed again, against brute force."""

from __future__ import annotations

import doctest
import random
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfjoin.engine.updates import lattice
from halfjoin.engine.updates.lattice import Times, below, looked_at, lub

Time = tuple[int, ...]
TRIPLES = st.integers(1, 3).flatmap(
    lambda width: st.lists(st.tuples(*[st.tuples(*[st.integers(-2, 2)] * width)] * 3), min_size=1, max_size=30)
)


def columns(times: list[Time], width: int) -> Times:
    return [np.array([time[i] for time in times], np.int64) for i in range(width)]


def rows(times: Times) -> list[Time]:
    return list(zip(*(column.tolist() for column in times), strict=True))


def test_the_doctests_hold() -> None:
    assert doctest.testmod(lattice, raise_on_error=True).attempted > 3


@given(TRIPLES)
def test_below_is_a_partial_order(triples: list[tuple[Time, Time, Time]]) -> None:
    a, b, c = (columns([triple[i] for triple in triples], len(triples[0][0])) for i in range(3))
    assert below(a, a).all()
    assert [x == y for x, y in zip(rows(a), rows(b), strict=True)] == (below(a, b) & below(b, a)).tolist()
    assert (below(a, c) | ~(below(a, b) & below(b, c))).all()


@given(TRIPLES)
def test_lub_is_the_least_upper_bound(triples: list[tuple[Time, Time, Time]]) -> None:
    a, b, c = (columns([triple[i] for triple in triples], len(triples[0][0])) for i in range(3))
    join = lub(a, b)
    assert below(a, join).all() and below(b, join).all()
    assert (below(join, c) == (below(a, c) & below(b, c))).all()
    assert rows(lub(a, a)) == rows(a) and rows(lub(a, b)) == rows(lub(b, a))
    assert rows(lub(lub(a, b), c)) == rows(lub(a, lub(b, c)))


def brute(touched: list[tuple[int, Time]], history: list[tuple[int, Time]]) -> list[tuple[int, Time]]:
    """As in `laws/reduce.py`: join each new time with all times of the group, until there are no new times."""
    seen, due = set(touched), list(touched)
    there = {*touched, *history}
    while due:
        group, time = due.pop()
        for other, past in sorted(there):
            again = (group, tuple(map(max, time, past)))
            if other == group and again not in seen:
                seen.add(again)
                there.add(again)
                due.append(again)
    return sorted(seen)


@pytest.mark.parametrize("width", [1, 2, 3, 4, 5])
def test_groups_are_looked_at_at_every_join(width: int) -> None:
    for seed in range(150):
        rng = random.Random(seed)

        def some(most: int, rng: random.Random = rng) -> list[tuple[int, Time]]:
            one = lambda: (rng.randrange(3), tuple(rng.randrange(3) for _ in range(width)))  # noqa: E731
            return [one() for _ in range(rng.randrange(most))]

        touched, history = some(5), some(6)
        groups, times = looked_at(*(
            (np.array([group for group, _ in each], np.int64), columns([time for _, time in each], width))
            for each in (touched, history)
        ))  # fmt: skip
        assert list(zip(groups.tolist(), rows(times), strict=True)) == brute(touched, history)


def test_work_is_in_an_order_of_the_times() -> None:
    every = list(product(range(3), repeat=2))
    groups, times = looked_at((np.zeros(9, np.int64), columns(every[::-1], 2)), (np.zeros(0, np.int64), columns([], 2)))
    found = rows(times)
    assert groups.tolist() == [0] * 9
    assert not any(all(map(int.__le__, later, one)) for i, one in enumerate(found) for later in found[i + 1 :])


def test_joins_in_pairs_alone_miss_the_join_of_three() -> None:
    three = [(1, 0, 0), (0, 1, 0), (0, 0, 1)]
    _, times = looked_at((np.zeros(3, np.int64), columns(three, 3)), (np.zeros(0, np.int64), columns([], 3)))
    pairs = {tuple(map(max, one, other)) for one in three for other in three}
    assert (1, 1, 1) not in pairs and (1, 1, 1) in rows(times)
