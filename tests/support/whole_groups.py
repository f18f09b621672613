"""Random groups with NULLs, ties and copies."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa

from halfjoin.engine.reduce.groups import Groups
from halfjoin.engine.scalar.arrow_types import arrow_type
from halfjoin.sql.expr import Column
from halfjoin.sql.relation import SortKey
from halfjoin.sql.types import BOOLEAN, DOUBLE, INTEGER, TEXT, TIMESTAMP, SqlType, numeric

Row = tuple[Any, ...]
TYPES: dict[str, SqlType] = {
    "g": INTEGER, "i": INTEGER, "f": DOUBLE, "n": numeric(6, 2), "s": TEXT, "d": TIMESTAMP, "b": BOOLEAN,
}  # fmt: skip
COLUMNS = {name: Column(name, type) for name, type in TYPES.items()}
_FLOATS = (-1.5, 0.0, 0.25, 2.0, 1e10, math.inf, math.nan)
_FINITE = (-1.5, 0.0, 0.25, 2.0, 1024.0)


def random_rows(random: Random, *, finite: bool = False) -> list[Row]:
    """Rows of a few groups, some of them equal."""
    start = datetime(2024, 1, 30)

    def one() -> Row:
        values = (random.randint(-3, 3), random.choice(_FINITE if finite else _FLOATS),
                  Decimal(random.randint(-4, 4)) / 4, random.choice(["", "a", "ab", "b", "B", "é", "z"]),
                  start + timedelta(days=random.randint(0, 4), hours=random.choice([0, 6])), random.random() < 0.5)
        return (random.randint(0, 4), *(None if random.random() < 0.15 else value for value in values))

    rows = [one() for _ in range(random.choice([1, 3, 12, 40]))]
    return rows + random.choices(rows, k=len(rows) // 3)


def groups_of(rows: Sequence[Row]) -> Groups:
    """The rows by their first column; equal rows are one with a count."""
    counts = sorted(Counter(rows).items(), key=lambda item: item[0][0])
    listed = list(zip(*(row for row, _ in counts), strict=True))
    columns = {name: pa.array(values, arrow_type(type))
               for (name, type), values in zip(TYPES.items(), listed, strict=True)}  # fmt: skip
    keys = np.array(listed[0])
    starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
    return Groups(columns, np.array([count for _, count in counts]), np.append(starts, len(keys)))


def random_key(random: Random, names: Iterable[str]) -> SortKey:
    return SortKey(COLUMNS[random.choice(list(names))], random.random() < 0.5, random.random() < 0.5)


def key_text(key: SortKey) -> str:
    assert isinstance(key.expr, Column)
    return f"{key.expr.name} {'DESC' if key.descending else 'ASC'} NULLS {'FIRST' if key.nulls_first else 'LAST'}"


def order_text(order: Sequence[SortKey], *, whole: bool = True) -> str:
    """ORDER BY's keys; if `whole`, with all columns, so that ties have one order."""
    return ", ".join([*map(key_text, order), *([f"{name} ASC NULLS LAST" for name in TYPES] if whole else ())])


def comparable(value: Any) -> Any:
    """A value that equals the oracle's: NaN equals NaN, and a number is rounded to 12 digits."""
    if isinstance(value, list):
        return tuple(map(comparable, value))
    if isinstance(value, (float, Decimal)):
        return "NaN" if math.isnan(value) else float(f"{value:.12g}")
    return value
