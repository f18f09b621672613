"""Counts the rows that reduces read of their groups: from order indexes, or by lookups, with kernels or without."""

from __future__ import annotations

from typing import Any

import pytest

from halfjoin.engine.join import beside
from halfjoin.engine.kernels import joining, summing
from halfjoin.engine.reduce import reading


def rows_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of rows that are read from now on, a number each time."""
    found: list[int] = []
    rows, pairs = reading._Range.rows, beside._gather
    kernel, whole = joining.half_joins, summing.reduced

    def read(self: Any, names: Any, entries: Any) -> Any:
        found.append(len(entries))
        return rows(self, names, entries)

    def looked_up(self: Any, stream: Any, keys: Any, given: Any, *rest: Any) -> Any:
        given = list(given)
        found.append(sum(len(one.rows) for one in given))
        return pairs(self, stream, keys, given, *rest)

    def by_kernel(*given: Any, **terms: Any) -> Any:
        made = kernel(*given, **terms)
        found.append(0 if made is None else len(made.rows) if isinstance(made, joining.Pairs) else made.found)
        return made

    def reduced(*given: Any) -> Any:
        made = whole(*given)
        found.append(0 if made is None else made[3])
        return made

    monkeypatch.setattr(summing, "reduced", reduced)
    monkeypatch.setattr(reading._Range, "rows", read)
    monkeypatch.setattr(beside, "_gather", looked_up)
    monkeypatch.setattr(joining, "half_joins", by_kernel)
    return found
