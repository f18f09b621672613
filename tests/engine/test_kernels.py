"""Each native kernel gives what NumPy and Arrow give: NULLs, texts, hashed keys, far times, negative diffs, nothing."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfjoin.engine.arrange.index import Index, build, build_from_codes, count_all, find_all, merge
from halfjoin.engine.arrange.run import make_run
from halfjoin.engine.intake.key_pairs import KeyedRows, plain
from halfjoin.engine.join.at_once import Partners
from halfjoin.engine.kernels import native
from halfjoin.engine.reduce.law import moments_of, moments_of_sums
from halfjoin.engine.reduce.plain import Plain
from halfjoin.engine.scalar import kept
from halfjoin.engine.updates import limits
from halfjoin.engine.updates.codes import codes, same
from halfjoin.engine.updates.consolidate import cancel, consolidate, groups
from halfjoin.engine.updates.updates import MAXIMUM, MINIMUM, Updates, constant, product

pytestmark = pytest.mark.skipif(not native.BUILT, reason="the native kernels are not built")
SEEDS = st.integers(0, 10**9)
VALUES: dict[pa.DataType, list[Any]] = {
    pa.int64(): [0, 1, -1, MAXIMUM, MINIMUM],
    pa.int32(): [0, 7, -(2**31)],
    pa.int16(): [3, -3],
    pa.bool_(): [True, False],
    pa.date32(): [0, 19_000],
    pa.timestamp("us"): [0, 1 << 50],
    pa.float64(): [0.0, -0.0, float("nan"), 1.5, float("inf")],
    pa.float32(): [0.0, -0.0, float("nan"), 0.25],
    pa.decimal128(12, 2): [Decimal("1.50"), Decimal("-3.25")],
    pa.decimal256(60, 1): [Decimal("10") ** 50, Decimal("-0.5")],
    pa.month_day_nano_interval(): [(1, 0, 0), (0, 30, 0)],
    pa.string(): ["", "a", "ab", "é", "x" * 40],
    pa.large_string(): ["", "a"],
    pa.binary(): [b"", b"\0", b"\xff"],
}


def both(run: Callable[[], Any]) -> tuple[Any, Any]:
    """The result with kernels, and without."""
    with native.used(True):
        fast = run()
    with native.used(False):
        return fast, run()


def some_columns(random: np.random.Generator, length: int, most: int = 3) -> list[pa.Array]:
    """Columns of any types with few distinct values, some with NULLs, some of them slices of longer ones."""
    columns = []
    kinds = list(VALUES)
    for _ in range(random.integers(1, most + 1)):
        kind = kinds[random.integers(len(kinds))]
        values = [*VALUES[kind], *([None] if random.random() < 0.5 else [])]
        before = int(random.integers(0, 4))
        picked = [values[i] for i in random.integers(0, len(values), length + before)]
        columns.append(pa.array(picked, kind).slice(before))
    return columns


def some_updates(random: np.random.Generator, columns: list[pa.Array], length: int) -> Updates:
    times = np.array([0, 1, 2, MAXIMUM - 1], np.int64)[random.integers(0, 4, length)]
    if random.random() < 0.3:
        times = constant(5, length)
    most = [2, 2, 1 << 62][random.integers(3)]
    diffs = random.integers(-most, most, length)
    return Updates({f"c{i}": column for i, column in enumerate(columns)}, times, diffs)


def shown(updates: Updates) -> list[str]:
    return list(map(str, updates.table(changes=True).to_pylist()))


@given(SEEDS)
def test_codes_are_the_same_numbers(seed: int) -> None:
    random = np.random.default_rng(seed)
    length = int(random.integers(0, 40))
    columns = some_columns(random, length)
    fast, slow = both(lambda: codes(columns, length))
    assert fast.tolist() == slow.tolist()


@given(SEEDS)
def test_groups_are_the_same(seed: int) -> None:
    random = np.random.default_rng(seed)
    length = int(random.integers(1, 60))
    columns = some_columns(random, length)
    time = random.integers(0, 2, length) if seed % 2 else None
    fast, slow = both(lambda: groups(columns, length, time))
    both_numbers = set(zip(fast.tolist(), slow.tolist(), strict=True))
    assert len(both_numbers) == len(set(fast.tolist())) == len(set(slow.tolist()))


@given(SEEDS)
def test_sums_are_the_same(seed: int) -> None:
    """Also those that no int64 holds, which only the fallback knows."""
    random = np.random.default_rng(seed)
    length = int(random.integers(0, 60))
    updates = some_updates(random, some_columns(random, length, 2), length)
    fast, slow = both(lambda: consolidate(updates))
    assert shown(fast) == shown(slow)
    fast, slow = both(lambda: consolidate(cancel(updates)))
    assert shown(fast) == shown(slow)


@given(SEEDS)
def test_indexes_are_the_same(seed: int) -> None:
    """Built, merged with and without rows that go, and searched with and without a guide."""
    random = np.random.default_rng(seed)
    span = [5, 300, 1 << 62][random.integers(3)]

    def index_of(values: np.ndarray[Any, Any]) -> Index:
        return build_from_codes(values, None, True)

    parts = [random.integers(-span, span, int(random.choice([0, 1, 5, 60, 3000]))) for _ in range(3)]
    before = np.cumsum([0, *map(len, parts)])[:-1].tolist()
    total = sum(map(len, parts))
    kept = np.where(random.random(total) < 0.5, -1, np.arange(total)) if seed % 2 else None
    fast, slow = both(lambda: merge([(index_of(part), at) for part, at in zip(parts, before, strict=True)], kept))
    assert fast.codes.tolist() == slow.codes.tolist() and len(fast.rows) == len(slow.rows)
    assert set(zip(fast.codes.tolist(), fast.rows.tolist(), strict=True)) == set(
        zip(slow.codes.tolist(), slow.rows.tolist(), strict=True))  # fmt: skip
    if fast.guide is not None and slow.guide is not None:
        assert fast.guide.starts.tolist() == slow.guide.starts.tolist()
    probes = np.concatenate([*(part[:20] for part in parts), random.integers(-span, span, 20), [MINIMUM, MAXIMUM]])

    def pairs() -> list[tuple[int, int]]:
        found = [pair for piece in fast.find(probes) for pair in zip(*map(np.ndarray.tolist, piece), strict=True)]
        return sorted(found)

    assert len(set(map(str, both(pairs)))) == 1
    several = [fast, *map(index_of, parts), index_of(np.repeat(parts[0][:2], 70)), index_of(parts[0][:0])]
    fast_counts, slow_counts = both(lambda: count_all(probes, several))
    found = [sum(int((index.codes == probe).sum()) for index in several) for probe in probes]
    assert fast_counts.tolist() == slow_counts.tolist() == found
    assert list(fast.find(probes[:0])) == []


def test_too_many_pairs_come_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PIECE_ROWS", 10)
    index, probes = build_from_codes(np.zeros(8, np.int64), None, True), np.zeros(3, np.int64)
    assert find_all(probes, [index]) is None
    assert [len(rows) for _, rows in index.find(probes)] == [10, 10, 4]


@given(SEEDS)
def test_pairs_of_several_runs_are_the_same(seed: int) -> None:
    """Search, comparison of keys, values, times and diffs of a lookup in runs of which some are netted."""
    random = np.random.default_rng(seed)
    length = int(random.integers(1, 30))
    keys = some_columns(random, length, 2)
    kinds = [key.type for key in keys]
    runs = []
    for _ in range(int(random.integers(1, 4))):
        size = int(random.integers(0, 30))
        values = [[[*VALUES[kind], None][i] for i in random.integers(0, len(VALUES[kind]) + 1, size)] for kind in kinds]
        columns = [pa.array(column, kind) for column, kind in zip(values, kinds, strict=True)]
        runs.append((columns, some_updates(random, columns, size), build(columns, None, size)))
    found = find_all(codes(keys, length), [index for _, _, index in runs])
    assert found is not None
    positions, rows, counts = found
    mask = native.equal(keys, positions, [columns for columns, _, _ in runs], rows, counts)
    gathered = native.gather([columns for columns, _, _ in runs], rows, counts)
    weights = native.weights([(one.time, one.diff, None, None) for _, one, _ in runs], rows, counts)
    assert mask is not None and weights is not None
    time, diff = weights
    stream = some_updates(random, keys, length)
    both_sides = native.products(positions, stream.time, stream.diff, time, diff)
    start = 0
    for (columns, updates, _), count in zip(runs, counts, strict=True):
        part = slice(start, start + count)
        at, there = pa.array(positions[part]), pa.array(rows[part])
        expected = np.ones(count, np.bool_)
        for number, (key, column) in enumerate(zip(keys, columns, strict=True)):
            expected &= same(key.take(at), column.take(there))
            if gathered is not None:
                assert str(gathered[number][part].to_pylist()) == str(column.take(there).to_pylist())
        assert mask[part].tolist() == expected.tolist()
        assert time[part].tolist() == updates.time[rows[part]].tolist()
        assert diff[part].tolist() == updates.diff[rows[part]].tolist()
        if both_sides is not None:
            products = product(stream.diff[positions[part]], diff[part])
            assert both_sides[1][part].tolist() == products.tolist()
            assert both_sides[0][part].tolist() == np.maximum(stream.time[positions[part]], time[part]).tolist()
        start += count
    if gathered is None:  # texts with large offsets have no kernel
        assert pa.large_string() in kinds
    joined = native.joined(keys, positions, stream.time, stream.diff, [columns for columns, _, _ in runs],
                           [(one.time, one.diff, None, None) for _, one, _ in runs], rows, counts)  # fmt: skip
    if joined is None:
        assert gathered is None or both_sides is None
    else:
        assert gathered is not None and both_sides is not None
        at = pa.array(positions)
        assert [str(one.to_pylist()) for one in joined[0]] == [str(one.take(at).to_pylist()) for one in keys]
        assert [str(one.to_pylist()) for one in joined[1]] == [str(one.to_pylist()) for one in gathered]
        assert [one.tolist() for one in joined[2:]] == [one.tolist() for one in both_sides]


@given(SEEDS)
def test_pairs_that_pass_a_condition_are_the_same(seed: int) -> None:
    random = np.random.default_rng(seed)
    counts = random.integers(1, 5, int(random.integers(1, 5))).tolist()
    length = sum(counts)
    runs = [make_run(Updates({}, constant(1, 5), constant(1, 5)), 2) for _ in counts]
    found = Partners(random.integers(0, 9, length), runs, random.integers(0, 5, length).astype(np.uint32), counts, True)
    picked = random.choice([True, False, None], length, p=random.choice([[1, 0, 0], [0, 1, 0], [0.4, 0.4, 0.2]]))
    fast, slow = both(lambda: found.passing(pa.array([None, *picked.tolist()], pa.bool_())[1:]))
    for one, other in zip(fast, slow, strict=True):
        assert list(one) == list(other) if isinstance(one, list | np.ndarray) else one == other


@pytest.mark.parametrize("position", [-1, 3])
def test_a_position_beyond_the_stream_is_refused(position: int) -> None:
    ones, at = constant(1, 3), np.array([position])
    with pytest.raises(IndexError):
        native.joined([], at, ones, ones, [[]], [(ones, ones, None, None)], np.array([0], np.uint32), [1])
    with pytest.raises(IndexError):
        native.joined([], np.array([0]), ones, ones, [[]], [(ones, ones, None, None)], np.array([3], np.uint32), [1])


def test_a_product_beyond_an_int64_has_no_kernel() -> None:
    one, many = np.zeros(1, np.int64), np.full(1, 1 << 40)
    assert native.products(one, one, many, one, many) is None


def test_netted_rows_count_as_netting_says() -> None:
    time, diff = np.arange(5), np.ones(5, np.int64)
    nets = np.array([1, 3]), np.array([10, 30])
    found = native.weights([(time, diff, *nets), (time, constant(7, 5), None, None)], np.array([3, 0, 1, 4]), [3, 1])
    assert found is not None
    assert [column.tolist() for column in found] == [[3, 0, 1, 4], [30, 1, 10, 7]]


def test_a_type_without_a_kernel_is_left_to_arrow() -> None:
    lists = pa.array([[1], None, [1]])
    assert native.codes([lists], 3) is None
    assert native.gather([[lists]], np.array([0]), [1]) is None
    assert native.sums([lists], None, np.ones(3, np.int64)) is None
    assert groups([lists], 3).tolist()[0] == groups([lists], 3).tolist()[2]


@pytest.mark.parametrize("row", [-1, 3, 1 << 40])
def test_a_row_beyond_its_run_is_refused(row: int) -> None:
    with pytest.raises(IndexError):
        native.gather([[pa.array([1, 2, 3])]], np.array([row]), [1])
    with pytest.raises(ValueError, match="counts"):
        native.gather([[pa.array([1, 2, 3])]], np.array([0]), [2])


@pytest.mark.parametrize("counts", [[1, MAXIMUM, MAXIMUM, 3], [1, -1, 0, 0], [1, MAXIMUM, 0, 0], [1, 0, 0, 1 << 64]])
def test_counts_that_only_seem_to_add_up_are_refused(counts: list[int]) -> None:
    with pytest.raises((ValueError, OverflowError)):
        native.gather([[pa.array([1, 2, 3])]] * 4, np.array([0]), counts)


def test_a_wrong_guide_finds_less_and_reads_nothing_beyond_the_index() -> None:
    codes, rows = np.arange(4), np.arange(4).astype(np.uint32)
    far = np.array([0, 1 << 31, 1 << 31, 4], np.uint32)
    assert native.find(codes, [(codes, rows, far, 0, 0)], 9) is not None
    assert native.find(codes, [(codes, rows, far, 0, 64)], 9) is None  # C does not say what a shift by 64 is


def test_codes_without_a_guide_in_bounds_have_no_kernel() -> None:
    """Codes over all of int64 have 2**64 ranges, which is 0 in 64 bits. Codes out of order have no last range."""
    assert native.starts(np.array([MINIMUM, MAXIMUM]), 0) is None
    assert native.starts(np.array([0, 1 << 40, 1]), 0) is not None


@pytest.mark.parametrize("length", [-1, MAXIMUM, 1 << 61])
def test_a_length_that_no_array_has_has_no_kernel(length: int) -> None:
    assert native.codes([], length) is None
    assert native.groups([], None, length) is None
    assert native.pairs([([], np.arange(0), *[np.arange(0)] * 3)], length) is None


@given(SEEDS)
def test_the_same_keys_are_plain(seed: int) -> None:
    random = np.random.default_rng(seed)
    keys = int(random.integers(1, 6))
    pool = some_columns(random, 4, 2)

    def place(length: int, diffs: list[int], least: int) -> KeyedRows:
        picked = random.integers(0, 4, length)
        columns = {f"c{i}": column.take(pa.array(picked)) for i, column in enumerate(pool)}
        time = random.integers(least, least + 2, length) if random.random() < 0.5 else np.full(length, least)
        diff = np.array(diffs, np.int64)[random.integers(0, len(diffs), length)]
        rows = random.permutation(length).astype(np.uint32)
        return KeyedRows(Updates(columns, time, diff), rows, random.integers(0, keys, length))

    batch = place(int(random.integers(keys, 20)), [1, -1, -1, 2][: random.integers(2, 5)], 5)
    batch.keys[:keys] = np.arange(keys)
    held = [place(int(random.integers(0, 12)), [1, -1, 1], 3) for _ in range(2)]
    fast, slow = both(lambda: plain(held, batch, keys))
    assert fast.tolist() == slow.tolist()


def test_partners_are_filtered_run_by_run() -> None:
    found = Partners(np.arange(4), ["a", "b"], np.arange(4), [3, 1], True)  # type: ignore[list-item]
    left = found.filter(np.array([True, False, True, False]))
    assert (left.runs, left.counts, left.rows.tolist()) == (["a"], [2], [0, 2])
    assert not len(found.filter(np.zeros(4, np.bool_)))


@pytest.mark.parametrize("number", [
    0, 1, -1, 127, 128, -128, -129, 2**31, 2**32, -(2**32), 3 << 64, 2**96, -(2**96), 2**127 - 2, -(2**127), 5 << 400,
])  # fmt: skip
def test_kept_sums_of_any_size_add_up(number: int) -> None:
    """A sum that 128 bits do not hold has no kernel, whether it was kept or is made."""
    old, ones = pa.array([kept.bytes_of(number), None], pa.binary()), pa.array([1, 1])
    moments = moments_of(Updates({"k": pa.array([1, 2])}, constant(1, 2), constant(1, 2)), ["k"])
    with native.used(True):
        found = Plain("integers", [ones], constant(1, 2)).running(moments, old)
    if abs(number) >= 2**127:
        assert found is None or number == -(2**127)
    if found is not None:
        assert found.to_pylist() == [kept.bytes_of(one) for one in (number, number + 1, 0, 1)]


def test_a_count_beyond_bigint_has_no_kernel() -> None:
    moments = moments_of(Updates({"k": pa.array([1])}, constant(1, 1), constant(1, 1)), ["k"])
    with native.used(True):
        assert Plain("count", [], constant(1, 1)).running(moments, pa.array([MAXIMUM])) is None


@given(SEEDS)
def test_rows_that_pass_a_condition_are_the_same(seed: int) -> None:
    random = np.random.default_rng(seed)
    length = int(random.integers(0, 20))
    found = some_updates(random, some_columns(random, length), length)
    picked = random.choice([True, False, None], length, p=random.choice([[1, 0, 0], [0, 1, 0], [0.4, 0.4, 0.2]]))
    mask = pa.array([None, *picked.tolist()], pa.bool_())[1:]
    fast, slow = both(lambda: found.where(mask))
    assert (fast is found) == (slow is found)
    assert str(fast.table(changes=True).to_pylist()) == str(slow.table(changes=True).to_pylist())


@given(SEEDS)
def test_moments_of_one_time_are_the_same(seed: int) -> None:
    """The groups may come in another order."""
    random = np.random.default_rng(seed)
    length = int(random.integers(1, 30))
    columns = some_columns(random, length)
    names = [str(number) for number in range(len(columns))]
    updates = Updates(dict(zip(names, columns, strict=True)), constant(7, length), constant(1, length))
    with native.used(True):
        fast = moments_of_sums(updates, names)
    with native.used(False):
        slow = moments_of_sums(updates, names)
    assert (fast.groups, len(fast), fast.begins) == (slow.groups, len(slow), slow.begins)
    for one in (fast, slow):
        assert one.was.tolist() == [True, False] * one.groups
        assert one.time.tolist() == [MINIMUM, 7] * one.groups
        for name in names:  # each row has the keys of its group
            keys = one.keys[name].take(pa.array(one.group_of_rows))
            assert same(keys, updates.columns[name]).all()
    pairs = set(zip(fast.group_of_rows.tolist(), slow.group_of_rows.tolist(), strict=True))
    assert len(pairs) == fast.groups  # the same rows are together
    ends = [*fast.starts[1:].tolist(), length]
    for start, end in zip(fast.starts.tolist(), ends, strict=True):  # and stay in their order
        assert fast.rows[start:end].tolist() == sorted(fast.rows[start:end].tolist())
