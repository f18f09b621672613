"""A search of keys in files: which entries are among the wanted codes, and how little work tells that."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfjoin.engine.arrange.keys import key_columns
from halfjoin.engine.storage import lookup
from halfjoin.engine.updates.codes import distinct
from halfjoin.engine.updates.updates import MAXIMUM, MINIMUM, Ints
from halfjoin.planner.plan import ArrangementKey
from halfjoin.sql.expr import Column
from halfjoin.sql.types import BIGINT

CODES = st.integers(-20, 20) | st.integers(MINIMUM, MINIMUM + 20) | st.integers(MAXIMUM - 20, MAXIMUM)


class _NotSearched(np.ndarray):  # type: ignore[type-arg]
    """Values that nobody may search through."""

    def searchsorted(self, *_: object, **__: object) -> Ints:  # type: ignore[override]
        raise AssertionError("a binary search in values that lie close together")


def _ints(values: list[int]) -> Ints:
    return np.array(values, np.int64)


@given(st.lists(CODES, max_size=30))
def test_distinct_codes_are_those_of_numpy(values: list[int]) -> None:
    assert distinct(_ints(values)).tolist() == np.unique(_ints(values)).tolist()


@given(st.lists(CODES, max_size=30), st.lists(CODES, max_size=10))
def test_members_are_the_entries_among_the_values(entries: list[int], values: list[int]) -> None:
    found = lookup._members(_ints(entries), distinct(_ints(values)))
    assert found.tolist() == [place for place, entry in enumerate(entries) if entry in values]


def test_of_values_close_together_no_entry_is_searched() -> None:
    entries, values = _ints([5, 900, -7, 12, MINIMUM, MAXIMUM, 3]), _ints([3, 5, 12]).view(_NotSearched)
    assert lookup._members(entries, values).tolist() == [0, 3, 6]


def test_a_search_by_one_number_sorts_its_keys_once(monkeypatch: pytest.MonkeyPatch) -> None:
    sorted_keys = list[Ints]()
    monkeypatch.setattr(lookup, "distinct", lambda values: sorted_keys.append(values) or distinct(values))  # type: ignore[func-returns-value]
    key = ArrangementKey("c", (Column("k", BIGINT, False),))
    search = lookup.lookup(key, key_columns(key, {}), [pa.array([2, 1, 2])])
    assert (search.probes.tolist(), search.sought["k"].values.tolist(), len(sorted_keys)) == ([1, 2], [1, 2], 1)
