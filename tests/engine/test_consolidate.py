"""Codes and consolidation agree with counting in Python."""

from collections import Counter
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfjoin.engine.updates import consolidate as module
from halfjoin.engine.updates.codes import codes, factorize, is_exact, same
from halfjoin.engine.updates.consolidate import cancel, consolidate, distinct, groups
from halfjoin.engine.updates.updates import Updates
from tests.support.kernels import both_ways  # noqa: F401

ROWS = st.lists(
    st.tuples(
        st.sampled_from([None, 1, 2]),
        st.sampled_from([None, "", "ab", "ba", "é"]),
        st.sampled_from([None, (), (1,), (1, None), (2, 1)]),
        st.integers(0, 2),
        st.sampled_from([1, 1, 2, -1, -2]),
    ),
    max_size=30,
)


def updates(rows):
    columns = {
        "a": pa.array([row[0] for row in rows], pa.int64()),
        "b": pa.array([row[1] for row in rows], pa.string()),
        "c": pa.array([None if row[2] is None else list(row[2]) for row in rows], pa.list_(pa.int32())),
    }
    return Updates(columns, np.array([r[3] for r in rows], np.int64), np.array([r[4] for r in rows], np.int64))


def counted(made, by_time):
    total = Counter()
    lists = [None if value is None else tuple(value) for value in made.columns["c"].to_pylist()]
    rows = zip(made.columns["a"].to_pylist(), made.columns["b"].to_pylist(), lists, strict=True)
    for row, time, diff in zip(rows, made.time.tolist(), made.diff.tolist(), strict=True):
        total[row, time if by_time else 0] += diff
    return {key: count for key, count in total.items() if count}


@given(ROWS, st.booleans(), st.booleans())
def test_consolidate_agrees_with_counting(rows, by_time, collide):
    before = updates(rows)
    with pytest.MonkeyPatch.context() as patch:
        if collide:  # every row has the same code: only the values can tell them apart
            patch.setattr(module, "codes", lambda columns, length: np.zeros(length, np.int64))
        after = consolidate(before, by_time=by_time)
        cancelled = cancel(before, by_time=by_time)
    assert counted(after, by_time) == counted(before, by_time) == counted(cancelled, by_time)
    assert len(after) == len(counted(after, by_time))


@given(ROWS)
def test_groups_are_equal_exactly_where_rows_are(rows):
    made = updates(rows)
    numbers = groups(list(made.columns.values()), len(made))
    for i, left in enumerate(rows):
        for j, right in enumerate(rows):
            assert (numbers[i] == numbers[j]) == (left[:3] == right[:3])


@pytest.mark.parametrize(
    ("column", "equal"),
    [
        (pa.array([1, 2, None, 1], pa.int16()), [0, 3]),
        (pa.array([0.0, -0.0, float("nan"), 1.0]), [0, 1]),
        (pa.array([Decimal("1.50"), Decimal("2"), None, Decimal("1.5")], pa.decimal128(10, 2)), [0, 3]),
        (pa.array(["a", "b", None, "a"]), [0, 3]),
        (pa.array([b"a", b"", None, b"a"]), [0, 3]),
        (pa.array([True, False, None, True]), [0, 3]),
        (pa.array([[1], [], None, [1]]), [0, 3]),
    ],
)
def test_equal_values_have_equal_codes(column, equal):
    left, right = equal
    for part in (column, pa.concat_arrays([column, column]).slice(4)):  # a slice has an offset
        values, numbers = codes([part, part], len(part)), factorize(part)
        assert values[left] == values[right] and len(set(values)) == 3
        assert numbers[left] == numbers[right] and len(set(numbers)) == 3
        assert same(part, part).all()


def test_integers_of_any_width_share_codes():
    wide, narrow = pa.array([-1, 5], pa.int64()), pa.array([-1, 5], pa.int16())
    assert (codes([wide], 2) == codes([narrow], 2)).all() and same(wide, narrow).all()
    assert (codes([wide, wide], 2) == codes([narrow, wide], 2)).all()
    assert is_exact([wide]) and not is_exact([pa.array([1, None])]) and not is_exact([pa.array(["a"])])


@pytest.mark.parametrize("values", [
    ["x" * n for n in range(200)] + [None, ""],
    [[*range(n)] for n in range(200)] + [None, [], [None]],
    [None, [["a"] * 80, []], None],
])  # fmt: skip
def test_long_values_are_hashed_in_parts(monkeypatch, values):
    from halfjoin.engine.updates import codes as hashing

    array = pa.array(["" , *values]).slice(1) if isinstance(values[0], str) else pa.array([[], *values]).slice(1)
    whole = codes([array, array], len(array))
    monkeypatch.setattr(hashing, "_CHUNK", 64)
    assert (codes([array, array], len(array)) == whole).all()


@pytest.mark.parametrize("seed", range(60))
def test_groups_and_distinct_rows_are_pythons(seed: int) -> None:
    random = np.random.default_rng(seed)
    length = int(random.integers(0, 40))
    some = random.random(length) < 0.2 if seed % 2 else None
    numbers = pa.array(random.integers(0, 4, length), mask=some)
    texts = pa.array([str(value) for value in random.integers(0, 3, length)], pa.string())
    columns, time = [[numbers], [numbers, texts], [texts]][seed % 3], random.integers(0, 1 + seed % 4, length)
    rows = list(zip(*(column.to_pylist() for column in columns), strict=True))
    timed = [(*row, at) for row, at in zip(rows, time.tolist(), strict=True)]
    found = groups(columns, length, time).tolist()
    assert len(set(zip(timed, found, strict=True))) == len(set(timed)) == len(set(found))
    assert sorted(map(repr, (rows[at] for at in distinct(columns, length)))) == sorted(map(repr, set(rows)))


def test_where_few_cancel_few_are_sorted(monkeypatch: pytest.MonkeyPatch) -> None:
    length, gone = 1 << 17, [5, 70_000, 100_000]
    rows = np.concatenate([np.arange(length), gone])
    diffs = np.append(np.ones(length, np.int64), [-1] * len(gone))
    given = Updates({"a": pa.array(rows)}, np.zeros(len(rows), np.int64), diffs)
    ordered, argsort = [0], np.argsort
    monkeypatch.setattr(np, "argsort", lambda values, *more: ordered.append(len(values)) or argsort(values, *more))
    left = cancel(given)
    assert left.columns["a"].to_pylist() == np.delete(rows, [*gone, *range(length, length + 3)]).tolist()
    assert set(left.diff.tolist()) == {1} and max(ordered) < length // 8
