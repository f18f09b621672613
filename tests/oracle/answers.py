"""Answers of databases compared: what is exact in both is equal, and quotients are near."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, TypeAlias

NEAR = 1e-6  # a quotient is a double in DuckDB; PostgreSQL's and ours have many digits, but not equally many
EXACT = 6  # digits after the point of sums of products

Rows: TypeAlias = list[tuple[Any, ...]]


def assert_same(found: Rows, expected: Rows, what: str) -> None:
    """Compare as multisets."""
    quotients = {place for row in [*found, *expected] for place, value in enumerate(row) if _quotient(value)}
    ours, theirs = (sorted(rows, key=lambda row: _key(row, quotients)) for rows in (found, expected))
    wrong = [pair for pair in zip(ours, theirs, strict=False) if not _near(*pair, quotients)]
    assert len(ours) == len(theirs) and not wrong, (
        f"{what}: {len(ours)} rows, not {len(theirs)}: {ours[:5]}, not {theirs[:5]}; differing: {wrong[:3]}"
    )


def _quotient(value: Any) -> bool:
    return isinstance(value, float) or (isinstance(value, Decimal) and -int(value.as_tuple().exponent) > EXACT)


def _key(row: tuple[Any, ...], quotients: set[int]) -> tuple[Any, ...]:
    return tuple((value is not None, value) for place, value in enumerate(row) if place not in quotients)


def _near(ours: tuple[Any, ...], theirs: tuple[Any, ...], quotients: set[int]) -> bool:
    return len(ours) == len(theirs) and all(
        one == other if one is None or other is None or place not in quotients
        else abs(float(one) - float(other)) <= NEAR * max(1.0, abs(float(other)))
        for place, (one, other) in enumerate(zip(ours, theirs, strict=True))
    )  # fmt: skip
