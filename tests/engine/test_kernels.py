"""Each native kernel gives what NumPy and Arrow give: NULLs, texts, hashed keys, far times, negative diffs, nothing."""

from __future__ import annotations

from decimal import Context, Decimal
from fractions import Fraction
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from halfjoin.engine.arrange.index import Index, build_from_codes, count_all, find_all, merge
from halfjoin.engine.kernels import computing, indexing, joining, native, summing
from halfjoin.engine.reduce.law import moments_of, moments_of_sums
from halfjoin.engine.reduce.plain import Plain
from halfjoin.engine.reduce.totals import Totals
from halfjoin.engine.scalar import kept
from halfjoin.engine.scalar.division import quotient_units
from halfjoin.engine.updates import limits
from halfjoin.engine.updates.codes import codes, same
from halfjoin.engine.updates.consolidate import cancel, consolidate, groups
from halfjoin.engine.updates.updates import MAXIMUM, MINIMUM, Updates, constant
from tests.support.any_updates import SEEDS, both, some_columns, some_updates

pytestmark = pytest.mark.skipif(not native.BUILT, reason="the native kernels are not built")


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


def test_rows_are_not_filtered_by_columns_of_other_types_or_lengths() -> None:
    ones, one = np.ones(1, np.int64), pa.array([1])
    with native.used(True):
        assert joining.filtered([one], ones, ones, [one], [pa.array([1])], (2,)) is True
        assert joining.filtered([one], ones, ones, [one], [pa.array([1], pa.int32())], (2,)) is None
        assert joining.filtered([one], ones, ones, [pa.array([1, 2])], [one], (2,)) is None
        assert joining.filtered([one], ones, ones, [one], [pa.array([1, 2])], (2,)) is None
        assert joining.filtered([one], ones, ones, [one], [one], ()) is None
        assert joining.filtered([one], ones, ones, [one], [], ()) is None
        assert joining.filtered([one], ones, ones, [one] * 17, [one] * 17, (2,) * 17) is None
        with pytest.raises(TypeError):
            joining.filtered([one], ones, ones, [one], [one], ("2",))  # type: ignore[arg-type]


def test_a_type_without_a_kernel_is_left_to_arrow() -> None:
    lists = pa.array([[1], None, [1]])
    assert indexing.codes([lists], 3) is None
    assert joining.gather([[lists]], np.array([0]), [1]) is None
    assert summing.sums([lists], None, np.ones(3, np.int64)) is None
    assert groups([lists], 3).tolist()[0] == groups([lists], 3).tolist()[2]


@pytest.mark.parametrize("row", [-1, 3, 1 << 40])
def test_a_row_beyond_its_run_is_refused(row: int) -> None:
    with pytest.raises(IndexError):
        joining.gather([[pa.array([1, 2, 3])]], np.array([row]), [1])
    with pytest.raises(ValueError, match="counts"):
        joining.gather([[pa.array([1, 2, 3])]], np.array([0]), [2])


@pytest.mark.parametrize("counts", [[1, MAXIMUM, MAXIMUM, 3], [1, -1, 0, 0], [1, MAXIMUM, 0, 0], [1, 0, 0, 1 << 64]])
def test_counts_that_only_seem_to_add_up_are_refused(counts: list[int]) -> None:
    with pytest.raises((ValueError, OverflowError)):
        joining.gather([[pa.array([1, 2, 3])]] * 4, np.array([0]), counts)


def test_a_wrong_guide_finds_less_and_reads_nothing_beyond_the_index() -> None:
    codes, rows = np.arange(4), np.arange(4).astype(np.uint32)
    far = np.array([0, 1 << 31, 1 << 31, 4], np.uint32)
    assert indexing.find(codes, [(codes, rows, far, 0, 0)], 9) is not None
    assert indexing.find(codes, [(codes, rows, far, 0, 64)], 9) is None  # C does not say what a shift by 64 is


def test_codes_without_a_guide_in_bounds_have_no_kernel() -> None:
    """Codes over all of int64 have 2**64 ranges, which is 0 in 64 bits. Codes out of order have no last range."""
    assert indexing.starts(np.array([MINIMUM, MAXIMUM]), 0) is None
    assert indexing.starts(np.array([0, 1 << 40, 1]), 0) is not None


@pytest.mark.parametrize("length", [-1, MAXIMUM, 1 << 61])
def test_a_length_that_no_array_has_has_no_kernel(length: int) -> None:
    assert indexing.codes([], length) is None
    assert summing.groups([], None, length) is None
    assert indexing.indexed([pa.array([1])], length) is None


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
        found = computing.decimals(counts, totals, pa.decimal128(38, 0))
        assert computing.decimals(counts, totals, pa.decimal256(40, 0)) is None
        assert computing.decimals(counts[1:], totals, pa.decimal128(38, 0)) is None or not rows
        assert computing.decimals(pa.array([0.5] * len(rows)), totals, pa.decimal128(38, 0)) is None
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
def test_averages_have_the_decimals_of_quotients(seed: int) -> None:
    random = np.random.default_rng(seed)
    places, made = int(random.choice([0, 0, 1, 2, 3, 4, 5, 8, 13])), int(random.choice([20, 16, 0, 4, 13, 25]))
    sums = [int(random.integers(-(10**9), 10**9)) * 10 ** int(random.integers(0, 9)) for _ in range(20)]
    sums = [number // 10 ** int(random.integers(0, 18)) for number in sums]
    divisors = [int(random.integers(1, 10 ** int(random.integers(1, 12)))) * random.choice([1, 1, -1]) for _ in sums]
    with native.used(True):
        found = computing.decimals(pa.array(divisors, pa.int64()), pa.array(map(kept.bytes_of, sums), pa.binary()),
                                   pa.decimal128(38, made), places)  # fmt: skip
    wanted = [quotient_units((one, places), (int(count), 0), made) for one, count in zip(sums, divisors, strict=True)]
    if found is None:  # 128 bits are not enough on the way to some quotient
        assert max(abs(one) * 10 ** max(made - places, 0) for one in sums) >= 10**30
        return
    assert [int(value.scaleb(made, Context(prec=60))) for value in found.to_pylist()] == wanted


def test_an_average_without_a_count_is_null() -> None:
    with native.used(True):
        sums = pa.array([b"", b"\x00\x05", None, b"\x00\x05"], pa.binary())
        found = computing.decimals(pa.array([0, None, 2, 2]), sums, pa.decimal128(38, 20), 0)
    assert found is not None
    assert found.to_pylist() == [None, None, None, Decimal("2.5").quantize(Decimal(10) ** -20)]


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


def _some_floats(random: np.random.Generator, length: int) -> NDArray[np.float64]:
    """Of any magnitudes, of much the same, or integers and their halves, of some magnitude."""
    match int(random.integers(4)):
        case 0:
            values = random.integers(-(1 << 63), (1 << 63) - 1, length).view(np.float64)
            values[~np.isfinite(values)] = 5e-324
        case 1:
            values = random.normal(size=length)
        case 2:
            values = random.integers(-9, 10, length) * 2.0 ** int(random.integers(-1074, 1020))
        case _:
            values = (random.integers(-(1 << 53), 1 << 53, length) >> random.integers(53)).astype(np.float64) / 2
    return values


@given(SEEDS)
def test_sums_of_floats_are_exact(seed: int) -> None:
    """Of any magnitudes, with NULLs, behind an offset; a NaN or an infinity is left to others."""
    random = np.random.default_rng(seed)
    length, groups = int(random.integers(1, 60)), int(random.integers(1, 5))
    values = _some_floats(random, length)
    column = pa.array([1.0, *values.tolist()], mask=np.append(False, random.random(length) < 0.2)).slice(1)
    diff, group = random.integers(-1024, 1025, length), random.integers(0, groups, length)
    with native.used(True):
        found = summing.float_sums([column], diff, group, groups)
        assert found is not None
        assert summing.float_sums([column], np.full(length, 1025), group, groups) is None
        assert summing.float_sums([column], diff, group + 1, int(group.max()) + 1) is None
        for odd in (np.nan, np.inf, -np.inf):
            more = pa.concat_arrays([column, pa.array([odd])])
            assert summing.float_sums([more], np.append(diff, 1), np.append(group, 0), groups) is None
    first, digits = found
    for number in range(groups):
        wanted = sum(Fraction(value) * weight for value, weight, own in
                     zip(column.to_pylist(), diff.tolist(), group.tolist(), strict=True)
                     if own == number and value is not None)  # fmt: skip
        made = sum(int(digit) << 32 * (first + place) for place, digit in enumerate(digits[:, number]))
        assert made == wanted * 2**1074


@given(SEEDS)
def test_sums_of_products_of_floats_are_exact(seed: int) -> None:
    random = np.random.default_rng(seed)
    length, groups = int(random.integers(1, 60)), int(random.integers(1, 5))
    columns = []
    for _ in range(2):
        values = _some_floats(random, length)
        columns.append(pa.array([1.0, *values.tolist()], mask=np.append(False, random.random(length) < 0.2)).slice(1))
    diff, group = random.integers(-1024, 1025, length), random.integers(0, groups, length)
    with native.used(True):
        found = summing.float_sums(columns, diff, group, groups)
        assert found is not None
        for odd in (np.nan, np.inf, -np.inf):
            more = [pa.concat_arrays([columns[0], pa.array([0.0])]), pa.concat_arrays([columns[1], pa.array([odd])])]
            for pair in (more, more[::-1]):
                assert summing.float_sums(pair, np.append(diff, 1), np.append(group, 0), groups) is None
    first, digits = found
    rows = [*zip(columns[0].to_pylist(), columns[1].to_pylist(), diff.tolist(), group.tolist(), strict=True)]
    for number in range(groups):
        wanted = sum(Fraction(x) * Fraction(y) * weight for x, y, weight, own in rows
                     if own == number and x is not None and y is not None)  # fmt: skip
        made = sum(int(digit) << 32 * (first + place) for place, digit in enumerate(digits[:, number]))
        assert made == wanted * 2**2148


@given(SEEDS)
def test_floats_add_up_the_same_at_each_moment(seed: int) -> None:
    random = np.random.default_rng(seed)
    length = int(random.integers(1, 60))
    keys, time = pa.array(random.integers(0, 4, length)), random.integers(3, 6, length)
    values = pa.array(random.normal(size=length) * 10.0 ** random.integers(-200, 200, length),
                      mask=random.random(length) < 0.2)  # fmt: skip
    moments = moments_of(Updates({"k": keys}, time, constant(1, length)), ["k"])
    plain = Plain("floats", [values], random.integers(-3, 4, length))
    fast, slow = both(lambda: plain.added(moments).kept())
    assert fast.equals(slow) and len(fast) == len(moments.starts)
    with patch.object(Totals, "lifted", side_effect=AssertionError), native.used(True):
        plain.added(moments)
