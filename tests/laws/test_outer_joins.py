"""Outer joins in SQL: at every readable time after every batch, a view agrees with DuckDB over its tables."""

from __future__ import annotations

import os
import random

import pytest

from tests.oracle.joined import TABLES, run

SEEDS = range(int(os.environ.get("HALFJOIN_FUZZ", "60")))


def condition(rng: random.Random, left: list[str], right: list[str]) -> str:
    """A random ON: equalities and conditions on one side alone, which a lookup answers, or another one."""
    one, other = rng.choice(left), rng.choice(right)
    if rng.random() < 0.15:
        return rng.choice([f"{one} < {other}", f"{one} = {other} OR {test(rng, rng.choice(left))}",
                           f"{one} <> {other} AND {rng.choice(left)} = {rng.choice(right)}"])  # fmt: skip
    parts = [f"{one} = {other}" if rng.random() < 0.8 else f"{other} IS NOT DISTINCT FROM {one}"]
    if rng.random() < 0.2:
        parts.append(f"{rng.choice(right)} = coalesce({rng.choice(left)}, 1)")
    parts += [test(rng, rng.choice(side)) for side in (left, right) if rng.random() < 0.25]
    if rng.random() < 0.1:
        parts = parts[1:] or [test(rng, rng.choice([*left, *right]))]
    return " AND ".join(parts)


def test(rng: random.Random, column: str) -> str:
    return rng.choice([f"{column} > 0", f"{column} IS NULL", f"{column} = 1", f"coalesce({column}, 0) <> 2",
                       f"NOT {column} = 1"])  # fmt: skip


test.__test__ = False  # type: ignore[attr-defined]


def joined(rng: random.Random, aliases: list[str]) -> tuple[str, list[str]]:
    """A random join of tables under these aliases, and its columns."""
    if len(aliases) == 1:
        name = aliases[0]
        table = rng.choice(TABLES)
        columns = [f"{name}.k", f"{name}.x"]
        if rng.random() < 0.7:
            return f"{table} AS {name}", columns
        return rng.choice([
            f"(SELECT k, x FROM {table} WHERE {test(rng, 'x')}) AS {name}",
            f"(SELECT k, 1 AS x FROM {table}) AS {name}",
            f"(SELECT coalesce(k, 0) AS k, nullif(x, 1) AS x FROM {table}) AS {name}",
            f"(SELECT k, x FROM {table} UNION ALL SELECT x, k FROM {rng.choice(TABLES)}) AS {name}",
            f"(VALUES (1, 2), (2, NULL), (1, 0)) AS {name}(k, x)",
        ]), columns  # fmt: skip
    cut = len(aliases) - 1 if rng.random() < 0.7 else rng.randint(1, len(aliases) - 1)
    (left, there), (right, found) = joined(rng, aliases[:cut]), joined(rng, aliases[cut:])
    kind = rng.choice(["LEFT", "LEFT", "LEFT", "RIGHT", "FULL", "INNER", "CROSS"])
    right = f"({right})" if len(aliases) - cut > 1 else right
    on = "" if kind == "CROSS" else f" ON {condition(rng, there, found)}"
    return f"{left} {kind} JOIN {right}{on}", there + found


def query(rng: random.Random) -> str:
    aliases = [f"t{i}" for i in range(rng.choice([2, 2, 3, 3, 4]))]
    text, columns = joined(rng, aliases)
    shown = [f"{column} AS c{i}" for i, column in enumerate(columns)]
    where = [test(rng, rng.choice(columns)) for _ in range(rng.choice([0, 0, 1, 2]))]
    if rng.random() < 0.2:
        where.append(f"{rng.choice(columns)} = {rng.choice(columns)}")
    if rng.random() < 0.2:
        text += f", {rng.choice(TABLES)} AS beside"
        where.append(f"coalesce({rng.choice(columns)}, {rng.choice([*columns, '1'])}) = beside.k")
        shown.append("beside.x AS y")
    return f"SELECT {', '.join(shown)} FROM {text}" + (f" WHERE {' AND '.join(where)}" if where else "")


@pytest.mark.parametrize("seed", SEEDS)
def test_outer_joins_agree_with_duckdb(seed: int) -> None:
    rng = random.Random(seed)
    assert not run(seed, [query(rng), query(rng)])


MERGED = [
    "SELECT k, a.x, b.x AS y FROM a LEFT JOIN b USING (k)",
    "SELECT k, a.x, b.x AS y, a.k AS l FROM a RIGHT JOIN b USING (k)",
    "SELECT k, a.x, b.x AS y FROM a FULL JOIN b USING (k) WHERE k > 0",
    "SELECT k, a.x, b.x AS y, c.x AS z FROM a FULL JOIN b USING (k) FULL JOIN c USING (k)",
    "SELECT k, b.x, d.x AS y FROM a FULL JOIN b USING (k) JOIN d USING (k)",
    "SELECT k, c.x FROM a LEFT JOIN (b RIGHT JOIN c USING (k)) USING (k)",
    "SELECT * FROM a NATURAL FULL JOIN b",
    "SELECT * FROM a NATURAL LEFT JOIN b",
    "SELECT a.x, b.x AS y, c.x AS z FROM a, b RIGHT JOIN c ON b.k = c.k WHERE a.k = c.x",
]


@pytest.mark.parametrize("sql", MERGED)
def test_merged_columns_agree_with_duckdb(sql: str) -> None:
    for seed in range(5):
        assert not run(seed, [sql])


def test_a_name_for_merged_columns() -> None:
    for seed in range(5):
        assert not run(seed, [("SELECT j.k, a.x FROM a FULL JOIN b USING (k) AS j WHERE j.k > 0",
                               "SELECT k, a.x FROM a FULL JOIN b USING (k) WHERE k > 0")])  # fmt: skip
