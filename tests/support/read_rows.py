"""Counts the rows that reduces read of their groups: from order indexes, or by lookups, with kernels or without."""

from __future__ import annotations

from typing import Any

import pytest

from halfjoin.engine.join.half_join import HalfJoinOperator
from halfjoin.engine.reduce import reading


def rows_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of rows that are read from now on, a number each time."""
    found: list[int] = []
    rows, pairs, kernels = reading._Range.rows, HalfJoinOperator._gather, HalfJoinOperator._through_kernels

    def read(self: Any, names: Any, entries: Any) -> Any:
        found.append(len(entries))
        return rows(self, names, entries)

    def looked_up(self: Any, stream: Any, keys: Any, given: Any, *rest: Any) -> Any:
        given = list(given)
        found.append(sum(len(one.rows) for one in given))
        return pairs(self, stream, keys, given, *rest)

    def by_kernels(self: Any, stream: Any, keys: Any, partners: Any, *rest: Any) -> Any:
        found.append(len(partners))
        return kernels(self, stream, keys, partners, *rest)

    monkeypatch.setattr(reading._Range, "rows", read)
    monkeypatch.setattr(HalfJoinOperator, "_gather", looked_up)
    monkeypatch.setattr(HalfJoinOperator, "_through_kernels", by_kernels)
    return found
