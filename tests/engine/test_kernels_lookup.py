"""The kernels of half-joins and key checks give what NumPy and Arrow give, and refuse what would read past a run."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

from halfjoin.engine.arrange.index import Index, build, build_from_codes, find_all
from halfjoin.engine.arrange.run import make_run
from halfjoin.engine.intake.key_pairs import KeyedRows, plain
from halfjoin.engine.join.at_once import Partners
from halfjoin.engine.kernels import indexing, joining, native
from halfjoin.engine.updates.codes import codes, same
from halfjoin.engine.updates.updates import MAXIMUM, Updates, constant, product
from tests.support.any_updates import SEEDS, VALUES, both, some_columns, some_updates

pytestmark = pytest.mark.skipif(not native.BUILT, reason="the native kernels are not built")


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
    gathered = joining.gather([columns for columns, _, _ in runs], rows, counts)
    weights = joining.weights([(one.time, one.diff, None, None) for _, one, _ in runs], rows, counts)
    assert weights is not None
    time, diff = weights
    stream = some_updates(random, keys, length)
    both_sides = joining.products(positions, stream.time, stream.diff, time, diff)
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
    """With NULLs that match and that do not, netted rows and some that have gone, a condition, and products that no
    int64 holds."""
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
        there = random.random(len(updates)) < 0.8
        sides.append(joining.side(index.sorted_codes, index.exact, columns, [tested], columns,
                                  (updates.time, updates.diff, netted, nets), there))  # fmt: skip
        at, rows = (one.ravel() for one in np.meshgrid(np.arange(length), np.arange(len(updates)), indexing="ij"))
        mask = (tested.to_numpy()[rows] > 4) & there[rows]
        for number, (key, column) in enumerate(zip(keys, columns, strict=True)):
            mask &= same(key.take(pa.array(at)), column.take(pa.array(rows)))
            if not null_safe >> number & 1:
                mask &= key.is_valid().to_numpy(zero_copy_only=False)[at]
        at, rows = at[mask], rows[mask]
        cells = [*(key.take(pa.array(at)) for key in keys), *(column.take(pa.array(rows)) for column in columns),
                 np.maximum(stream.time[at], updates.time[rows]), product(stream.diff[at], weights[rows])]  # fmt: skip
        expected += map(str, zip(*[column.tolist() for column in cells], strict=True))
    every = tuple(range(len(keys)))
    link = joining.Link(sides, every, null_safe, False, every, [pa.array([4])], (4,), [key.type for key in keys])
    made = joined(keys, stream.time, stream.diff, link)
    if isinstance(made, joining.Pairs):
        wide = [one for one in expected if abs(int(one.rpartition(",")[2].strip(" )"))) > MAXIMUM]
        assert wide or pa.large_string() in [key.type for key in keys]
        assert len(made.rows) == sum(made.counts) == len(expected)
    else:
        assert made is not None and made.found == len(made.time) == len(expected) and made.done == 1
        columns = [column.to_pylist() for column in made.columns]
        found = zip(*columns, made.time.tolist(), made.diff.tolist(), strict=True) if expected else ()
        assert sorted(map(str, found)) == sorted(expected)


def joined(
    columns: list[Any], time: Any, diff: Any, *links: joining.Link, **terms: Any
) -> joining.Joined | joining.Pairs | None:
    """A stream joined by links; what is not among the terms bounds nothing, and adds nothing up."""
    plain = {"size": 1 << 40, "growth": 8, "closed": -(2**63), "least": 256, "most": 1000, "most_bytes": 1 << 20}
    with native.used(True):
        return joining.half_joins(columns, time, diff, [*links], **{**plain, **terms})


def half_join_of(keys: list[Any], tested: Any, constant: Any, rows: list[int], certain: bool = False) -> object:
    """One key, 7, with a run whose index has it at `rows`."""
    ones = np.ones(1, np.int64)
    index = np.array([7]), np.array(rows, np.uint32), None, 0, 0
    side = joining.side(index, True, keys, [tested], [], (ones, ones, None, None))
    return joined([pa.array([7])], ones, ones, joining.Link([side], (0,), 0, certain, (), [constant], (4,), []))


def test_a_row_whose_code_alone_is_equal_is_no_partner() -> None:
    ones, index = np.ones(1, np.int64), (np.array([7]), np.array([0], np.uint32), None, 0, 0)
    for key, partners in ((7, 1), (8, 0)):
        side = joining.side(index, False, [pa.array([key])], [], [], (ones, ones, None, None))
        made = joined([pa.array([7])], ones, ones, joining.Link([side], (0,), 0, False, (), [], (), []))
        assert isinstance(made, joining.Joined) and len(made.time) == partners


def test_a_half_join_refuses_rows_beyond_a_run_and_other_types() -> None:
    one, zero = pa.array([1]), pa.array([0])
    found = half_join_of([pa.array([7])], one, zero, [0])
    assert isinstance(found, joining.Joined) and len(found.time) == 1
    none = half_join_of([pa.array([7])], one, one, [0])
    assert isinstance(none, joining.Joined) and not len(none.time)
    assert half_join_of([pa.array(["7"])], one, zero, [0]) is None
    assert half_join_of([], one, zero, [0]) is None
    assert isinstance(half_join_of([], one, zero, [0], True), joining.Joined)
    assert half_join_of([pa.array([7])], one, pa.array([0], pa.int32()), [0]) is None
    wide = pa.array([Decimal(1)], pa.decimal256(40, 0))
    assert half_join_of([pa.array([7])], wide, wide, [0]) is None
    assert half_join_of([pa.array([7])], pa.array([1], pa.uint64()), pa.array([0], pa.uint64()), [0]) is None
    assert half_join_of([pa.array([7])], one, pa.array([0, 0]), [0]) is None
    for row in (1, 2**32 - 1):
        with pytest.raises(IndexError, match="beyond its run"):
            half_join_of([pa.array([7])], one, zero, [row])
    ones, long = np.ones(1, np.int64), np.ones(2, np.int64)
    index = np.array([7]), np.array([0], np.uint32), None, 0, 0
    assert joining.side(index, True, [], [], [pa.array([1, 2])], (ones, ones, None, None)) is None
    assert joining.side(index, True, [], [], [], (ones, long, None, None)) is None
    assert joining.side(index, True, [], [], [], (ones, ones, ones, long)) is None
    assert joining.side(index, True, [], [], [], (ones, ones, None, None), np.ones(2, np.bool_)) is None
    with pytest.raises((TypeError, ValueError)):
        joined([one], ones, ones, joining.Link([index], (0,), 0, True, (), [], (), []))
    with pytest.raises((TypeError, ValueError)):
        indexing.unique([one], [], ones, ones, [index], 9)
    side = joining.side(index, True, [], [], [], (ones, ones, None, None))
    for keys, kept in (((1,), ()), ((0,), (1,)), ((-1,), ())):
        with pytest.raises(IndexError, match="no such column"):
            joined([one], ones, ones, joining.Link([side], keys, 0, True, kept, [], (), []))
    assert joined([one], ones, long, joining.Link([side], (0,), 0, True, (), [], (), [])) is None
    assert joined([one], ones, ones, joining.Link([side], (), 0, True, (), [], (), [])) is None


@given(SEEDS)
def test_pairs_that_cannot_be_joined_at_once_come_as_they_are(seed: int) -> None:
    """Where they are asked for, or where texts are long."""
    random = np.random.default_rng(seed)
    size, ones = int(random.integers(1, 41)), np.ones(1, np.int64)
    index = build_from_codes(np.full(size, 7), None, True).sorted_codes
    each = constant(1, size)
    side = joining.side(index, True, [], [], [pa.array(["xy"] * size)], (each, each, None, None))
    link = joining.Link([side], (0,), 0, True, (), [], (), [pa.string()])
    most_bytes, apart = int(random.integers(0, 90)), bool(random.integers(0, 2))
    made = joined([pa.array([7])], ones, ones, link, most_bytes=most_bytes, apart=apart)
    assert made is not None and isinstance(made, joining.Pairs) == (apart or 2 * size > most_bytes)
    assert joined([pa.array([7])], ones, ones, link, most=size - 1) is None


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
        joining.products(np.array([position]), ones, ones, ones[:1], ones[:1])


def test_a_product_beyond_an_int64_has_no_kernel() -> None:
    one, many = np.zeros(1, np.int64), np.full(1, 1 << 40)
    assert joining.products(one, one, many, one, many) is None


def test_netted_rows_count_as_netting_says() -> None:
    time, diff = np.arange(5), np.ones(5, np.int64)
    nets = np.array([1, 3]), np.array([10, 30])
    found = joining.weights([(time, diff, *nets), (time, constant(7, 5), None, None)], np.array([3, 0, 1, 4]), [3, 1])
    assert found is not None
    assert [column.tolist() for column in found] == [[3, 0, 1, 4], [30, 1, 10, 7]]


def test_partners_are_filtered_run_by_run() -> None:
    found = Partners(np.arange(4), ["a", "b"], np.arange(4), [3, 1])  # type: ignore[list-item]
    left = found.filter(np.array([True, False, True, False]))
    assert (left.runs, left.counts, left.rows.tolist()) == (["a"], [2], [0, 2])
    assert not len(found.filter(np.zeros(4, np.bool_)))


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
        sides.append(joining.side(own.sorted_codes, True, [], [], [*updates.columns.values()],
                                  (updates.time, updates.diff, None, None)))  # fmt: skip
        held += [KeyedRows(updates, rows, at) for at, rows in own.find(distinct)]
    made = indexing.unique([codes_of_batch], [*batch.columns.values()], batch.time, batch.diff, sides, 1000)
    sure = plain(held, KeyedRows(batch, index.rows, numbers), len(distinct))
    assert made is not None
    assert made[0].tolist() == index.codes.tolist() and made[1].tolist() == index.rows.tolist()
    assert (np.ones(len(distinct), np.bool_) if made[2] is None else made[2]).tolist() == sure.tolist()
    assert indexing.unique([codes_of_batch], [], batch.time, batch.diff, sides, 1000) is None  # other columns
    assert indexing.unique([codes_of_batch], [*batch.columns.values()], batch.time[1:], batch.diff, sides, 1000) is None
