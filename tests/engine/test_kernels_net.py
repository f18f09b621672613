"""The kernels that net a run, split an index and filter probes find what the ways without them find."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

from halfjoin.engine.arrange.index import Index, build, build_from_codes, find_all, merge
from halfjoin.engine.arrange.netting import Net, net
from halfjoin.engine.kernels import indexing, joining, native
from halfjoin.engine.updates.updates import Ints, Updates, constant
from tests.support.any_updates import SEEDS, both, some_columns

pytestmark = pytest.mark.skipif(not native.BUILT, reason="the native kernels are not built")


def some_run(random: np.random.Generator) -> tuple[Updates, Index]:
    """Updates of few distinct rows, and their index by the first column, in which rows of one code come in any order;
    sometimes with two entries for each row."""
    length = int(random.choice([0, 2, 5, 30, 300]))
    columns = some_columns(random, length, 2)
    most = int(random.choice([2, 2, 1 << 62]))
    times = constant(3, length) if random.random() < 0.3 else random.integers(0, 8, length)
    updates = Updates({f"c{i}": one for i, one in enumerate(columns)}, times, random.integers(-most, most, length))
    if random.random() < 0.5:
        one, other = build(columns[:1], None, length).split(random.random(length) < 0.5)
        return updates, merge([(one, 0), (other, 0)], None)
    twice, entries = pa.concat_arrays([columns[0], columns[0]]), np.arange(2 * length)
    return updates, build([twice, pa.array(entries < length)], entries % max(length, 1), 2 * length)


def counted(updates: Updates, found: Net, closed: int) -> dict[str, int]:
    """How often each distinct row counts: of the closed updates together, of the others at their times."""
    there = np.ones(len(updates), np.bool_) if found.there is None else found.there
    rows, diffs = updates.table(changes=False).to_pylist(), found.diffs_of(updates).tolist()
    total = Counter[str]()
    for row, time, diff, left in zip(rows, updates.time.tolist(), diffs, there.tolist(), strict=True):
        if left:
            total[f"{row} {max(time, closed - 1)}".replace("-0.0", "0.0")] += diff
    return {row: count for row, count in total.items() if count}


@given(SEEDS)
def test_a_kernel_nets_what_numpy_nets(seed: int) -> None:
    """Also from what was known earlier, and where sums do not fit an int64."""
    random = np.random.default_rng(seed)
    updates, index = some_run(random)
    known: Net | None = None
    for closed in sorted(random.integers(0, 9, 2).tolist()):
        before = counted(updates, known or Net(closed), closed)
        fast, slow = both(lambda closed=closed, known=known: net(updates, closed, known, index))
        assert counted(updates, fast, closed) == counted(updates, slow, closed) == before
        assert fast.closed == slow.closed
        if fast.there is None:
            assert slow.there is None or len(slow.rows)
        elif slow.there is not None:
            assert fast.size == np.count_nonzero(fast.there & (updates.time < closed))
            assert fast.size <= slow.size and not (fast.there & ~slow.there).any()
        known = fast


@given(SEEDS)
def test_an_index_is_split_alike(seed: int) -> None:
    random = np.random.default_rng(seed)
    length = int(random.choice([0, 1, 40, 3000]))
    index, mask = build_from_codes(random.integers(0, 50, length), None, True), random.random(length) < 0.7
    fast, slow = both(lambda: index.split(mask))
    for one, other in zip(fast, slow, strict=True):
        assert one.codes.tolist() == other.codes.tolist() and one.rows.tolist() == other.rows.tolist()


def test_a_row_beyond_the_run_is_refused() -> None:
    none, two, rows = np.zeros(0, np.int64), np.array([1, -1]), np.array([0, 9], np.uint32)
    for netted in (none, np.array([7])):
        with pytest.raises(IndexError):
            indexing.net([pa.array([1, 1])], two, two, 9, np.array([4, 4]), rows, None, netted, netted)
    with pytest.raises(IndexError):
        indexing.split(np.array([4, 4]), rows, np.ones(2, np.bool_))


@pytest.mark.parametrize("length", [0, 1, 31, 32, 500, 65_536, 65_537])
def test_a_filter_hides_nothing(length: int) -> None:
    """Runs around the sizes from which, and up to which, they have a filter; keys that are there, and that are not."""
    random = np.random.default_rng(length)
    keys = random.integers(0, 3 * length + 1, length)
    column, probes = pa.array(keys), random.integers(-9, 3 * length + 9, 2000)
    index = build_from_codes(keys, None, True)
    side = joining.side(index.sorted_codes, True, [column], [], [], (keys, keys, None, None))
    link = joining.Link([side], (0,), 0, False, (), [], (), [])
    found = joining.half_joins([pa.array(probes)], probes, probes, [link], size=0, growth=0, closed=0, least=1 << 40,
                               most=1 << 30, most_bytes=1 << 30, apart=True)  # fmt: skip
    expected = find_all(probes, [index])
    assert expected is not None
    if not len(expected[0]):
        assert isinstance(found, joining.Joined) and not found.found
        return
    assert isinstance(found, joining.Pairs)
    assert pairs(found.positions, found.rows) == pairs(expected[0], expected[1])


def pairs(positions: Ints, rows: native.RowNumbers) -> list[tuple[int, int]]:
    return sorted(zip(positions.tolist(), rows.tolist(), strict=True))
