"""Top-k takes the first rows of each group, with ties if asked, and counts copies as rows."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import TYPE_CHECKING
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest

from halfjoin.engine.reduce import foremost, top
from halfjoin.engine.reduce.groups import Groups
from halfjoin.engine.reduce.top import evaluate
from halfjoin.planner.group_functions import Top
from halfjoin.sql.expr import Column
from halfjoin.sql.relation import SortKey
from halfjoin.sql.types import BIGINT, TEXT
from tests.support.whole_groups import COLUMNS, TYPES, groups_of, key_text, order_text, random_key, random_rows

if TYPE_CHECKING:
    from tests.support.sql_oracles import Oracle

pytest_plugins = ("tests.support.postgres", "tests.support.sql_oracles")


@pytest.mark.parametrize("seed", range(60))
def test_the_first_rows_of_each_group(seed: int, oracle: Oracle) -> None:
    random = Random(seed)
    rows = random_rows(random)
    oracle.put(rows)
    order = tuple(random_key(random, COLUMNS) for _ in range(random.randint(1, 2)))
    limit, offset = random.choice([None, 0, 1, 3, 8, 2**63 - 1]), random.choice([0, 0, 1, 4])
    ties = limit is not None and random.random() < 0.4
    groups = groups_of(rows)
    positions, counts = evaluate(Top(order, limit, offset, ties), groups)
    taken = groups.take(positions)
    found = Counter[object]()
    for row, count in zip(zip(*(column.to_pylist() for column in taken.columns.values()), strict=True), counts.tolist(),
                          strict=True):  # fmt: skip
        found[repr(row)] += count
    last = (1 << 62) if limit is None else limit + offset
    peers = ", ".join(map(key_text, order))
    place = "p" if ties and limit else "w"  # a rank is the place of the first peer
    wanted = oracle.ask(f"""
        WITH v AS (SELECT *, row_number() OVER (PARTITION BY g ORDER BY {order_text(order)}) AS w,
                          rank() OVER (PARTITION BY g ORDER BY {peers}) AS p FROM t)
        SELECT {', '.join(TYPES)} FROM v WHERE w > {offset} AND {place} <= {last}""")
    assert found == Counter(map(repr, wanted))
    assert (counts > 0).all() and (counts <= groups.count[positions]).all()
    assert (np.diff(np.searchsorted(groups.starts, positions, "right")) >= 0).all()


@pytest.mark.parametrize("seed", range(60))
def test_rows_left_out_before_sorting_are_not_asked_for(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key decides alone, or many rows tie with the last one."""
    monkeypatch.setattr(foremost, "FROM", 1)
    monkeypatch.setattr(foremost, "_SAMPLE", 3)
    monkeypatch.setattr(foremost, "_SHARE", 1)
    random = Random(seed)
    for _ in range(10):
        rows = groups_of(random_rows(random))
        groups = rows if random.random() < 0.5 else Groups(rows.columns, rows.count, np.array([0, len(rows.count)]))
        if random.random() < 0.5:
            groups = Groups(groups.columns, np.ones_like(groups.count), groups.starts)
        order = tuple(random_key(random, COLUMNS) for _ in range(random.randint(0, 2)))
        ties = bool(order) and random.random() < 0.4
        spec = Top(order, random.choice([0, 1, 3, 8]), random.choice([0, 0, 1, 4]), ties)
        with patch.object(top, "foremost", lambda *_, **__: None), patch.object(top, "middle", lambda *_, **__: None):
            wanted = evaluate(spec, groups)
        positions, counts = evaluate(spec, groups)
        assert positions.tolist() == wanted[0].tolist() and counts.tolist() == wanted[1].tolist(), spec


@pytest.mark.parametrize("kinds", [1, 3, 1000])
def test_ties_of_the_last_row_behind_a_large_offset_are_there(kinds: int) -> None:
    values = np.random.default_rng(4).integers(0, kinds, 60_000)
    groups = Groups({"n": pa.array(np.arange(60_000)), "x": pa.array(values)}, np.ones(60_000, np.int64),
                    np.array([0, 60_000]))  # fmt: skip
    positions, _ = evaluate(Top((SortKey(Column("x", BIGINT)),), 10, 5_000, with_ties=True), groups)
    last = np.sort(values)[5_009]
    assert len(positions) == np.count_nonzero(values <= last) - 5_000
    assert (values[positions] <= last).all()


def test_few_rows_are_sorted_behind_an_offset() -> None:
    random = np.random.default_rng(3)
    columns = {"i": pa.array(random.integers(0, 1000, 50_000)), "n": pa.array(random.permutation(50_000))}
    groups = Groups(columns, np.ones(50_000, np.int64), np.array([0, 50_000]))
    rows = sorted(range(50_000), key=lambda row: (columns["i"][row].as_py(), columns["n"][row].as_py()))
    for order in ((), (SortKey(Column("i", BIGINT)),)):
        with patch.object(top, "sort", wraps=top.sort) as asked:
            positions, _ = evaluate(Top(order, 20, 30_000), groups)
        assert positions.tolist() == rows[30_000:30_020]
        assert len(asked.call_args.args[0].count) < 500
        assert not len(evaluate(Top(order, 20, 50_000), groups)[0])


def test_few_rows_are_sorted_for_a_limit() -> None:
    random = np.random.default_rng(3)
    columns = {"i": pa.array(random.integers(0, 1000, 50_000)),
               "s": pa.array(random.integers(0, 9, 50_000)).cast("string")}  # fmt: skip
    groups = Groups(columns, np.ones(50_000, np.int64), np.array([0, 50_000]))
    with patch.object(top, "sort", wraps=top.sort) as sorted:
        evaluate(Top((), limit=10), groups)
        evaluate(Top((SortKey(Column("s", TEXT)), SortKey(Column("i", BIGINT), True)), limit=10, offset=5), groups)
        assert [len(call.args[0].count) < 200 for call in sorted.call_args_list] == [True, True]
        evaluate(Top((), limit=0), groups)
        assert sorted.call_count == 2
        of_fours = Groups(columns, np.ones(50_000, np.int64), np.arange(0, 50_001, 4))
        evaluate(Top((SortKey(Column("i", BIGINT)),), limit=1), of_fours)  # some tie
        assert 12_500 <= len(sorted.call_args.args[0].count) < 13_000
