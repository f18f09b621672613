"""Compares queries with PostgreSQL: asked at once, and as views that see rows come and go."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import halfjoin as hj

Rows = Counter[tuple[object, ...]]


def compare(setup: str, changes: Sequence[str], queries: Sequence[str], postgres: Any) -> None:
    """Each query has PostgreSQL's rows before the changes and after each of them; views are made before the first one.

    `setup` makes the tables. Types and functions that do not name their columns alike are given names here.
    """
    engine = hj.Engine()
    for run in (engine.execute, postgres.execute):
        run(setup)
    names = []
    for number, sql in enumerate(queries):
        width = len(postgres.execute(sql).description)
        names.append(f"compared_{number}")
        columns = ", ".join(f"c{place}" for place in range(width))
        engine.execute(f"CREATE MATERIALIZED VIEW {names[-1]} ({columns}) AS {sql}")
    for change in ("", *changes):
        if change:
            for run in (engine.execute, postgres.execute):
                run(change)
        for name, sql in zip(names, queries, strict=True):
            theirs = Counter(tuple(map(_shown, row)) for row in postgres.execute(sql).fetchall())
            assert _rows(engine.query(sql)) == theirs, f"query after {change!r}: {sql}"
            assert _rows(engine.read(name)) == theirs, f"view after {change!r}: {sql}"


def _rows(table: Any) -> Rows:
    return Counter(zip(*([_shown(value) for value in column.to_pylist()] for column in table.columns), strict=True))


def _shown(value: object) -> object:
    """Decimals by value; lists as tuples, which can be counted."""
    if isinstance(value, Decimal):
        return round(value, 9).normalize() + 0
    if isinstance(value, list):
        return tuple(map(_shown, value))
    return value
