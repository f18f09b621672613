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


def some_runs(random: np.random.Generator, kinds: list[pa.DataType]) -> list[tuple[list[pa.Array], Updates, Index]]:
    """Runs of a few rows with columns of these types, and their indexes by all of the columns."""
    runs = []
    for _ in range(int(random.integers(1, 4))):
        size = int(random.integers(0, 30))
        values = [[[*VALUES[kind], None][i] for i in random.integers(0, len(VALUES[kind]) + 1, size)] for kind in kinds]
        columns = [pa.array(column, kind) for column, kind in zip(values, kinds, strict=True)]
        runs.append((columns, some_updates(random, columns, size), build(columns, None, size)))
    return runs


@given(SEEDS)
def test_values_times_and_diffs_of_pairs_are_the_same(seed: int) -> None:
    random = np.random.default_rng(seed)
    length = int(random.integers(1, 30))
    keys = some_columns(random, length, 2)
    kinds = [key.type for key in keys]
    runs = some_runs(random, kinds)
    found = find_all(codes(keys, length), [index for _, _, index in runs])
    assert found is not None
    positions, rows, counts = found
    gathered = native.gather([columns for columns, _, _ in runs], rows, counts)
    weights = native.weights([(one.time, one.diff, None, None) for _, one, _ in runs], rows, counts)
    assert weights is not None
    time, diff = weights
    stream = some_updates(random, keys, length)
    both_sides = native.products(positions, stream.time, stream.diff, time, diff)
    start = 0
    for (columns, updates, _), count in zip(runs, counts, strict=True):
        part = slice(start, start + count)
        there = pa.array(rows[part])
        for number, column in enumerate(columns):
            if gathered is not None:
                assert str(gathered[number][part].to_pylist()) == str(column.take(there).to_pylist())
        assert time[part].tolist() == updates.time[rows[part]].tolist()
        assert diff[part].tolist() == updates.diff[rows[part]].tolist()
        if both_sides is not None:
            products = product(stream.diff[positions[part]], diff[part])
            assert both_sides[1][part].tolist() == products.tolist()
            assert both_sides[0][part].tolist() == np.maximum(stream.time[positions[part]], time[part]).tolist()
        start += count
    if gathered is None:  # texts with large offsets have no kernel
        assert pa.large_string() in kinds


@given(SEEDS)
def test_a_half_join_joins_the_rows_with_equal_keys(seed: int) -> None:
    """With NULLs that match and that do not, netted rows, a condition, and products that no int64 holds."""
    random = np.random.default_rng(seed)
    length = int(random.integers(0, 30))
    keys = some_columns(random, length, 2)
    stream, null_safe = some_updates(random, keys, length), int(random.integers(0, 1 << len(keys)))
    sides, expected = list[object](), list[str]()
    for columns, updates, index in some_runs(random, [key.type for key in keys]):
        netted = np.flatnonzero(random.random(len(updates)) < 0.3)
        nets, tested = random.integers(-3, 4, len(netted)), pa.array(random.integers(0, 9, len(updates)))
        weights = updates.diff.copy()
        weights[netted] = nets
        sides.append(native.side(index.sorted_codes, index.exact, columns, [tested], columns,
                                 (updates.time, updates.diff, netted, nets)))  # fmt: skip
        at, rows = (one.ravel() for one in np.meshgrid(np.arange(length), np.arange(len(updates)), indexing="ij"))
        mask = tested.to_numpy()[rows] > 4
        for number, (key, column) in enumerate(zip(keys, columns, strict=True)):
            mask &= same(key.take(pa.array(at)), column.take(pa.array(rows)))
            if not null_safe >> number & 1:
                mask &= key.is_valid().to_numpy(zero_copy_only=False)[at]
        at, rows = at[mask], rows[mask]
        joined = [*(key.take(pa.array(at)) for key in keys), *(column.take(pa.array(rows)) for column in columns),
                  np.maximum(stream.time[at], updates.time[rows]), product(stream.diff[at], weights[rows])]  # fmt: skip
        expected += map(str, zip(*[column.tolist() for column in joined], strict=True))
    with native.used(True):
        made = native.half_join(keys, null_safe, False, keys, stream.time, stream.diff, sides, [pa.array([4])], (4,),
                                [key.type for key in keys], 1000, 1000, 1 << 20)  # fmt: skip
    if made is False:
        assert not expected
    elif isinstance(made, native.Pairs):
        wide = [one for one in expected if abs(int(one.rpartition(",")[2].strip(" )"))) > MAXIMUM]
        assert wide or pa.large_string() in [key.type for key in keys]
        assert len(made.rows) == sum(made.counts) == len(expected)
    else:
        assert made is not None
        columns, time, diff = made
        found = zip(*[column.to_pylist() for column in columns], time.tolist(), diff.tolist(), strict=True)
        assert sorted(map(str, found)) == sorted(expected)


def half_join_of(keys: list[Any], tested: Any, constant: Any, rows: list[int], certain: bool = False) -> object:
    """One key, 7, with a run whose index has it at `rows`."""
    ones = np.ones(1, np.int64)
    index = np.array([7]), np.array(rows, np.uint32), None, 0, 0
    side = native.side(index, True, keys, [tested], [], (ones, ones, None, None))
    return native.half_join([pa.array([7])], 0, certain, [], ones, ones, [side], [constant], (4,), [], 9, 9, 9)


def test_a_row_whose_code_alone_is_equal_is_no_partner() -> None:
    for key, partners in ((7, 1), (8, 0)):
        ones, index = np.ones(1, np.int64), (np.array([7]), np.array([0], np.uint32), None, 0, 0)
        side = native.side(index, False, [pa.array([key])], [], [], (ones, ones, None, None))
        made = native.half_join([pa.array([7])], 0, False, [], ones, ones, [side], [], (), [], 9, 9, 9)
        assert (len(made[1]) if made else 0) == partners


def test_rows_are_not_filtered_by_columns_of_other_types_or_lengths() -> None:
    ones, one = np.ones(1, np.int64), pa.array([1])
    with native.used(True):
        assert native.filtered([one], ones, ones, [one], [pa.array([1])], (2,)) is True
        assert native.filtered([one], ones, ones, [one], [pa.array([1], pa.int32())], (2,)) is None
        assert native.filtered([one], ones, ones, [pa.array([1, 2])], [one], (2,)) is None
        assert native.filtered([one], ones, ones, [one], [pa.array([1, 2])], (2,)) is None
        assert native.filtered([one], ones, ones, [one], [one], ()) is None
        assert native.filtered([one], ones, ones, [one], [], ()) is None
        assert native.filtered([one], ones, ones, [one] * 17, [one] * 17, (2,) * 17) is None
        with pytest.raises(TypeError):
            native.filtered([one], ones, ones, [one], [one], ("2",))  # type: ignore[arg-type]


def test_a_half_join_refuses_rows_beyond_a_run_and_other_types() -> None:
    one, zero = pa.array([1]), pa.array([0])
    with native.used(True):
        assert isinstance(half_join_of([pa.array([7])], one, zero, [0]), tuple)
        assert half_join_of([pa.array([7])], one, one, [0]) is False
        assert half_join_of([pa.array(["7"])], one, zero, [0]) is None
        assert half_join_of([], one, zero, [0]) is None and isinstance(half_join_of([], one, zero, [0], True), tuple)
        assert half_join_of([pa.array([7])], one, pa.array([0], pa.int32()), [0]) is None
        assert half_join_of([pa.array([7])], pa.array([0.5]), pa.array([0.0]), [0]) is None
        assert half_join_of([pa.array([7])], pa.array([1], pa.uint64()), pa.array([0], pa.uint64()), [0]) is None
        assert half_join_of([pa.array([7])], one, pa.array([0, 0]), [0]) is None
        for row in (1, 2**32 - 1):
            with pytest.raises(IndexError, match="beyond its run"):
                half_join_of([pa.array([7])], one, zero, [row])
        ones, long = np.ones(1, np.int64), np.ones(2, np.int64)
        index = np.array([7]), np.array([0], np.uint32), None, 0, 0
        assert native.side(index, True, [], [], [pa.array([1, 2])], (ones, ones, None, None)) is None
        assert native.side(index, True, [], [], [], (ones, long, None, None)) is None
        assert native.side(index, True, [], [], [], (ones, ones, ones, long)) is None
        with pytest.raises((TypeError, ValueError)):
            native.half_join([one], 0, True, [], ones, ones, [index], [], (), [], 9, 9, 9)
        with pytest.raises((TypeError, ValueError)):
            native.unique([one], [], ones, ones, [index], 9)


@given(SEEDS)
def test_pairs_beyond_what_is_joined_at_once_come_as_they_are(seed: int) -> None:
    """Where partners may cancel, or where texts are long."""
    random = np.random.default_rng(seed)
    size, ones = int(random.integers(1, 9)), np.ones(1, np.int64)
    texts, diff = pa.array(["xy"] * size), random.choice([1, -1], size)
    index = build_from_codes(np.full(size, 7), None, True).sorted_codes
    side = native.side(index, True, [], [], [texts], (np.ones(size, np.int64), diff, None, None))
    whole, most_bytes = int(random.integers(-1, 9)), int(random.integers(0, 18))
    with native.used(True):
        made = native.half_join([pa.array([7])], 0, True, [], ones, ones, [side], [], (), [pa.string()], 9, whole,
                                most_bytes)  # fmt: skip
        some = native.half_join([pa.array([7])], 0, True, [], ones, ones, [side], [], (), [pa.string()], size - 1, 9,
                                99)  # fmt: skip
    apart = whole < 0 or (size > whole and bool((diff < 0).any())) or 2 * size > most_bytes
    assert isinstance(made, native.Pairs) == apart and made is not None
    assert some is None


@given(SEEDS)
def test_pairs_that_pass_a_condition_are_the_same(seed: int) -> None:
    random = np.random.default_rng(seed)
    counts = random.integers(1, 5, int(random.integers(1, 5))).tolist()
    length = sum(counts)
    runs = [make_run(Updates({}, constant(1, 5), constant(1, 5)), 2) for _ in counts]
    found = Partners(random.integers(0, 9, length), runs, random.integers(0, 5, length).astype(np.uint32), counts)
    picked = random.choice([True, False, None], length, p=random.choice([[1, 0, 0], [0, 1, 0], [0.4, 0.4, 0.2]]))
    fast, slow = both(lambda: found.passing(pa.array([None, *picked.tolist()], pa.bool_())[1:]))
    for one, other in zip(fast, slow, strict=True):
        assert list(one) == list(other) if isinstance(one, list | np.ndarray) else one == other


@pytest.mark.parametrize("position", [-1, 3])
def test_a_position_beyond_the_stream_is_refused(position: int) -> None:
    ones = constant(1, 3)
    with pytest.raises(IndexError):
        native.products(np.array([position]), ones, ones, ones[:1], ones[:1])


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
    assert native.indexed([pa.array([1])], length) is None


@given(SEEDS)
def test_the_same_keys_stay_unique(seed: int) -> None:
    """Also where several rows that differ share a code."""
    random = np.random.default_rng(seed)
    keys = int(random.integers(1, 6))
    pool = some_columns(random, 4, 2)

    def some(length: int, diffs: list[int], least: int) -> tuple[Updates, pa.Array]:
        picked = random.integers(0, 4, length)
        columns = {f"c{i}": column.take(pa.array(picked)) for i, column in enumerate(pool)}
        time = random.integers(least, least + 2, length) if random.random() < 0.5 else np.full(length, least)
        diff = np.array(diffs, np.int64)[random.integers(0, len(diffs), length)]
        return Updates(columns, time, diff), pa.array(random.integers(0, keys, length))

    batch, codes_of_batch = some(int(random.integers(1, 20)), [1, -1, -1, 2][: random.integers(2, 5)], 5)
    index = build([codes_of_batch], None, len(batch))
    distinct, numbers = np.unique(index.codes, return_inverse=True)
    sides, held = list[object](), list[KeyedRows]()
    for _ in range(2):
        updates, there = some(int(random.integers(0, 12)), [1, -1, 1], 3)
        own = build([there], None, len(updates))
        sides.append(native.side(own.sorted_codes, True, [], [], [*updates.columns.values()],
                                 (updates.time, updates.diff, None, None)))  # fmt: skip
        held += [KeyedRows(updates, rows, at) for at, rows in own.find(distinct)]
    made = native.unique([codes_of_batch], [*batch.columns.values()], batch.time, batch.diff, sides, 1000)
    sure = plain(held, KeyedRows(batch, index.rows, numbers), len(distinct))
    assert made is not None
    assert made[0].tolist() == index.codes.tolist() and made[1].tolist() == index.rows.tolist()
    assert (np.ones(len(distinct), np.bool_) if made[2] is None else made[2]).tolist() == sure.tolist()
    assert native.unique([codes_of_batch], [], batch.time, batch.diff, sides, 1000) is None  # other columns
    assert native.unique([codes_of_batch], [*batch.columns.values()], batch.time[1:], batch.diff, sides, 1000) is None


def test_partners_are_filtered_run_by_run() -> None:
    found = Partners(np.arange(4), ["a", "b"], np.arange(4), [3, 1])  # type: ignore[list-item]
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


KEPT = st.tuples(st.sampled_from([0, 1, 7, None]), st.integers(-(10**9), 10**9), st.integers(0, 40))


@given(st.lists(KEPT, max_size=9))
def test_sums_shown_as_decimals_are_the_same(rows: list[tuple[int | None, int, int]]) -> None:
    """A sum with too many digits has no kernel, unless it is one of nothing."""
    numbers = [number * 10**power // 10**9 for _, number, power in rows]
    totals = pa.array([kept.bytes_of(number) for number in numbers], pa.binary())
    counts, there = pa.array([count for count, _, _ in rows], pa.int64()), [bool(count) for count, _, _ in rows]
    with native.used(True):
        found = native.decimals(counts, totals, pa.decimal128(38, 0))
        assert native.decimals(counts, totals, pa.decimal256(40, 0)) is None
        assert native.decimals(counts[1:], totals, pa.decimal128(38, 0)) is None or not rows
        assert native.decimals(pa.array([0.5] * len(rows)), totals, pa.decimal128(38, 0)) is None
    if any(abs(number) >= 10**38 for number, one in zip(numbers, there, strict=True) if one):
        assert found is None
    else:
        assert found is not None
        shown = [int(value) if value is not None else None for value in found.to_pylist()]
        assert shown == [number if one else None for number, one in zip(numbers, there, strict=True)]


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
