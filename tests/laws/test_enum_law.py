"""An enum orders as its positions do: views over labels equal the same views over numbers, at every readable time.

Streams of rows that come and go at several times, open ones too, with duplicates and NULLs; values that ALTER TYPE puts
between others meanwhile; restarts.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

import halfjoin as hj
from tests.support.seeds import first_seed

MORE = os.environ.get("HALFJOIN_FUZZ")
FIRST = first_seed() if MORE else 0
SEEDS = range(FIRST, FIRST + int(MORE or 8))
LABELS = ("pear", "fig", "apple", "kiwi", "date", "lime", "plum", "nut")  # in the order of the enum
AT_FIRST = ("fig", "kiwi", "date", "nut")
VIEWS = (
    "SELECT g, max(e) AS e, min(e) FILTER (WHERE g > 1) AS f FROM {t} GROUP BY g",
    "SELECT g, e, rank() OVER (PARTITION BY g ORDER BY e DESC) AS r FROM {t}",
    "SELECT g, max(e) OVER (ORDER BY e ROWS 1 PRECEDING) AS e, lag(e) OVER (ORDER BY e, g) AS f FROM {t}",
    "SELECT e, g FROM {t} WHERE e IS NOT NULL ORDER BY e, g LIMIT 3",
    "SELECT DISTINCT ON (g) g, e FROM {t} ORDER BY g, e DESC NULLS LAST",
    "SELECT a.g, a.e FROM {t} AS a JOIN {t} AS b ON a.g = b.g AND a.e > b.e",
    "SELECT g, e FROM {t} WHERE e >= {kiwi} AND e < {nut}",
    "SELECT g, greatest(e, {kiwi}) AS e, least(e, {kiwi}) AS f FROM {t}",
    "SELECT g, mode() WITHIN GROUP (ORDER BY e DESC) AS e, array_agg(e ORDER BY e DESC) AS f FROM {t} GROUP BY g",
    "SELECT e, count(*) AS n FROM {t} GROUP BY e HAVING max(e) > {fig}",
    "SELECT g, percentile_disc(0.5) WITHIN GROUP (ORDER BY e) AS e FROM {t} GROUP BY g",
    "SELECT g, e FROM {t} AS a WHERE e > ALL (SELECT e FROM {t} AS b WHERE b.g < a.g)",
    "SELECT g, max({kiwi}) AS e, mode() WITHIN GROUP (ORDER BY {nut} DESC) AS f FROM {t} GROUP BY g",
    "SELECT g, min({kiwi}) OVER (PARTITION BY g) AS e FROM {t}",
    "WITH RECURSIVE r(e) AS (SELECT min(e) FROM {t} UNION SELECT a.e FROM {t} AS a JOIN r ON a.e > r.e) TABLE r",
)  # fmt: skip


@pytest.mark.parametrize("seed", SEEDS)
def test_an_enum_orders_as_its_positions(seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    engine = hj.Engine(tmp_path / "w", clock="own")
    labels = list(AT_FIRST)
    engine.execute(f"CREATE TYPE e AS ENUM ({', '.join(map(repr, labels))})")
    engine.execute("CREATE TABLE t (g integer, e e); CREATE TABLE n (g integer, e integer)")
    views = random.sample(VIEWS, 4)
    for number, view in enumerate(views):
        names = {label: f"'{label}'" for label in AT_FIRST}
        places = {label: str(LABELS.index(label)) for label in AT_FIRST}
        engine.execute(f"CREATE MATERIALIZED VIEW v{number} AS {view.format(t='t', **names)}")
        engine.execute(f"CREATE MATERIALIZED VIEW w{number} AS {view.format(t='n', **places)}")
    there: list[tuple[int, str | None]] = []
    for time in range(1, 10):
        if random.random() < 0.3 and len(labels) < len(LABELS):
            engine.execute(_add(random, labels))
        rows = [(random.randrange(4), random.choice([*labels, None]), time + random.choice([0, 0, 2]), 1)
                for _ in range(random.randrange(5))]  # fmt: skip
        gone = random.sample(there, min(len(there), random.randrange(3)))
        there += [row[:2] for row in rows if row[2] == time]
        rows += [(g, e, time, -1) for g, e in set(gone)]
        changes = [{"g": g, "e": e, "__time": at, "__diff": diff} for g, e, at, diff in rows]
        numbers = [one | {"e": None if one["e"] is None else LABELS.index(one["e"])} for one in changes]
        there = [row for row in there if row not in set(gone)]
        if changes:
            engine.apply({"t": changes, "n": numbers}, time=time, close=False)
        engine.advance(time + 1)
        if random.random() < 0.3:
            engine.close()
            engine = hj.Engine(tmp_path / "w")
        for number, view in enumerate(views):
            for at in {time, random.randint(1, time)}:
                assert _rows(engine, f"v{number}", at) == _rows(engine, f"w{number}", at), (view, at)
    engine.close()


def _add(random: Random, labels: list[str]) -> str:
    """ALTER TYPE that puts one more label in its place."""
    label = random.choice([one for one in LABELS if one not in labels])
    labels.append(label)
    labels.sort(key=LABELS.index)
    place = labels.index(label)
    if place == len(labels) - 1:
        return f"ALTER TYPE e ADD VALUE '{label}'"
    if place and random.random() < 0.5:
        return f"ALTER TYPE e ADD VALUE '{label}' AFTER '{labels[place - 1]}'"
    return f"ALTER TYPE e ADD VALUE '{label}' BEFORE '{labels[place + 1]}'"


def _rows(engine: hj.Engine, name: str, at: int) -> Counter[tuple[Any, ...]]:
    """The rows as of a time, with labels as their positions."""
    def number(value: Any) -> Any:
        if isinstance(value, list):
            return tuple(map(number, value))
        return LABELS.index(value) if isinstance(value, str) else value

    return Counter(tuple(map(number, row.values())) for row in engine.read(name, as_of=at).to_pylist())
