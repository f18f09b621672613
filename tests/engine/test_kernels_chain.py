"""Half-joins in a row by one call give what they give one after the other, and stop where rows are to be added up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

import halfjoin as hj
from halfjoin.engine.arrange.index import build
from halfjoin.engine.kernels import joining, native
from halfjoin.engine.updates.consolidate import consolidate
from halfjoin.engine.updates.updates import Updates
from tests.engine.test_kernels_lookup import joined
from tests.support.any_updates import SEEDS, VALUES, some_columns, some_updates

pytestmark = pytest.mark.skipif(not native.BUILT, reason="the native kernels are not built")
KINDS = [kind for kind in VALUES if kind != pa.large_string()]


def some_side(random: np.random.Generator, kinds: list[pa.DataType], fetched: pa.DataType, spread: int) -> object:
    """A run of a few rows with keys of these types, another column, and diffs of which some are below zero."""
    size = int(random.integers(0, 40))
    columns = [_some(random, kind, size, spread) for kind in kinds]
    updates, index = some_updates(random, columns, size), build(columns, None, size)
    diff = random.integers(-1, 2, size)
    return joining.side(index.sorted_codes, index.exact, columns, [], [*columns, _some(random, fetched, size, 2)],
                        (updates.time, diff, None, None))  # fmt: skip


def _some(random: np.random.Generator, kind: pa.DataType, size: int, spread: int) -> pa.Array:
    values = [*VALUES[kind][:spread], None]
    return pa.array([values[at] for at in random.integers(0, len(values), size)], kind)


def some_links(random: np.random.Generator, kinds: list[pa.DataType]) -> list[joining.Link]:
    """Links that each look up columns that come in, and keep some."""
    links = []
    for _ in range(int(random.integers(2, 4))):
        keys = random.choice(len(kinds), int(random.integers(1, 3)))
        kept = np.flatnonzero(random.random(len(kinds)) < 0.7)
        own, extra = [kinds[at] for at in keys], KINDS[int(random.integers(len(KINDS)))]
        sides = [some_side(random, own, extra, 3) for _ in range(int(random.integers(1, 4)))]
        null_safe = int(random.integers(0, 4))
        links.append(joining.Link(sides, (*keys.tolist(),), null_safe, False, (*kept.tolist(),), [], (), [*own, extra]))
        kinds = [*(kinds[at] for at in kept), *own, extra]
    return links


def rows_of(columns: list[pa.Array], time: Any, diff: Any) -> list[str]:
    made = consolidate(Updates({str(number): column for number, column in enumerate(columns)}, time, diff))
    return sorted(map(str, made.table(changes=True).to_pylist()))


@given(SEEDS)
def test_links_in_one_call_are_links_one_by_one(seed: int) -> None:
    random = np.random.default_rng(seed)
    length = int(random.integers(1, 20))
    columns = [one for one in some_columns(random, length, 3) if one.type != pa.large_string()]
    if not columns:
        return
    stream = some_updates(random, columns, length)
    links, most = some_links(random, [one.type for one in columns]), 1 << 20
    closed, least = int(random.choice([-(2**63), 4])), int(random.choice([0, 256]))
    made = joined(columns, stream.time, stream.diff, *links, closed=closed, least=least, most=most)
    if not isinstance(made, joining.Joined):
        return  # a product that no int64 holds
    now, time, diff, found = columns, stream.time, stream.diff, 0
    for link in links[: made.done]:
        one = joined(now, time, diff, link, closed=closed, least=least, most=most)
        assert isinstance(one, joining.Joined)
        now, time, diff, found = one.columns, one.time, one.diff, found + one.found
        if not len(time):
            break
    assert made.found == found and made.entered == length
    assert len(made.time) == len(time)
    if len(time):
        assert [column.type for column in made.columns] == [column.type for column in now]
        assert rows_of(made.columns, made.time, made.diff) == rows_of(now, time, diff)


@given(SEEDS)
def test_partners_that_are_added_up_make_the_same_rows(seed: int) -> None:
    """As a batch sees them: times below `closed` are one time."""
    random = np.random.default_rng(seed)
    length, closed = int(random.integers(1, 8)), 6
    key = _some(random, pa.int64(), length, 3)
    stream = some_updates(random, [key], length)
    time = np.full(length, closed)
    link = some_links(random, [pa.int64()])[0]
    plain = joined([key], time, stream.diff, link)
    netted = joined([key], time, stream.diff, link, closed=closed, least=0)
    if isinstance(plain, joining.Joined) and isinstance(netted, joining.Joined):
        assert len(netted.time) <= len(plain.time)
        apart, added = (rows_of(one.columns, one.time, one.diff) if len(one.time) else [] for one in (plain, netted))
        assert apart == added


def _seven(rows: int, diff: list[int]) -> object:
    """A run in which the key 7 has so many rows."""
    key = pa.array([7] * rows)
    index = build([key], None, rows)
    weights = np.ones(rows, np.int64), np.array(diff, np.int64), None, None
    return joining.side(index.sorted_codes, True, [key], [], [key, pa.array(range(rows))], weights)


@pytest.mark.parametrize(("diff", "done"), [([1, -1] * 8, 1), ([1] * 16, 2)])
def test_a_stream_that_comes_and_goes_is_added_up_before_the_next_link(diff: list[int], done: int) -> None:
    link = joining.Link([_seven(16, diff)], (0,), 0, False, (), [], (), [pa.int64(), pa.int64()])
    ones = np.ones(1, np.int64)
    made = joined([pa.array([7])], ones, ones, link, link, size=1, growth=16)
    assert isinstance(made, joining.Joined) and (made.done, len(made.time)) == (done, 16**done)
    again = joined([pa.array([7])], ones, ones, link, link, size=1, growth=17)
    assert isinstance(again, joining.Joined) and again.done == 2


def test_a_chain_stops_before_a_link_that_finds_too_many() -> None:
    link = joining.Link([_seven(9, [1] * 9)], (0,), 0, False, (), [], (), [pa.int64(), pa.int64()])
    ones = np.ones(1, np.int64)
    made = joined([pa.array([7])], ones, ones, link, link, most=80)
    assert isinstance(made, joining.Joined) and (made.done, made.found, len(made.time)) == (1, 9, 9)


def test_only_rows_that_meet_the_tests_enter() -> None:
    link = joining.Link([_seven(2, [1, 1])], (0,), 0, False, (1,), [], (), [pa.int64(), pa.int64()])
    columns, ones = [pa.array([7, 7, 8, 7]), pa.array([1, 2, 3, None])], np.ones(4, np.int64)
    made = joined(columns, ones, ones, link, tests=joining.Tests((1,), [pa.array([1])], (4,)))
    assert isinstance(made, joining.Joined) and made.entered == 2
    assert made.columns[0].to_pylist() == [2, 2]
    assert joined(columns, ones, ones, link, tests=joining.Tests((1,), [pa.array(["1"])], (4,))) is None


THREE = """
    CREATE TABLE a (x bigint, v bigint); CREATE TABLE b (x bigint, y bigint); CREATE TABLE c (y bigint, w bigint);
    CREATE MATERIALIZED VIEW joined AS SELECT a.v, c.w FROM a JOIN b ON b.x = a.x JOIN c ON c.y = b.y WHERE a.v > 5
"""


def filled(folder: Path | None = None) -> hj.Engine:
    engine = hj.Engine(folder, clock="own")
    engine.execute(THREE)
    engine.apply({"b": [{"x": x, "y": 10 * x} for x in range(4)], "c": [{"y": 10 * x, "w": x} for x in range(4)]},
                 time=1)  # fmt: skip
    return engine


def test_a_path_is_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its filter and both of its half-joins."""
    engine, links, plain = filled(), list[int](), joining.half_joins

    def counted(columns: Any, time: Any, diff: Any, given: Any, *more: Any, **terms: Any) -> Any:
        links.append(len(given))
        return plain(columns, time, diff, given, *more, **terms)

    monkeypatch.setattr(joining, "half_joins", counted)
    with native.used(True):
        applied = engine.apply({"a": [{"x": 1, "v": 6}, {"x": 2, "v": 5}, {"x": 9, "v": 9}]}, time=2)
    assert links == [2]
    assert applied.diffs["joined"].to_pylist() == [{"v": 6, "w": 1, "__time": 2, "__diff": 1}]


def test_a_path_opens_no_table_before_a_row_gets_there(tmp_path: Path) -> None:
    filled(tmp_path / "w").close()
    engine = hj.Engine(tmp_path / "w")
    with native.used(True):
        engine.apply({"a": [{"x": 9, "v": 9}]}, time=2)
        assert engine._state.collection("c").cold is not None
        engine.apply({"a": [{"x": 1, "v": 7}]}, time=3)
    assert engine._state.collection("c").cold is None
    assert engine.read("joined").to_pylist() == [{"v": 7, "w": 1}]
    engine.close()



def test_pairs_that_were_added_up_are_not_given_as_pairs() -> None:
    """Their sum, as often as the stream's row, is more than an int64 holds. Nobody else knows the sums."""
    key = pa.array([7] * 3)
    weights = np.ones(3, np.int64), np.array([2, 1, -1]), None, None
    side = joining.side(build([key], None, 3).sorted_codes, True, [key], [], [key], weights)
    link = joining.Link([side], (0,), 0, False, (), [], (), [pa.int64()])
    ones, many = np.ones(1, np.int64), np.full(1, 2**62)
    apart, added = (joined([pa.array([7])], ones, many, link, closed=closed, least=0) for closed in (-(2**63), 9))
    assert isinstance(apart, joining.Pairs) and apart.rows.tolist() == [0, 1, 2]
    assert added is None
