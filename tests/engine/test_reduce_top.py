"""Top-k takes the first rows of each group, with ties if asked, and counts copies as rows."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import TYPE_CHECKING

import numpy as np
import pytest

from halfjoin.engine.reduce.top import evaluate
from halfjoin.planner.group_functions import Top
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
