"""The view law for windows of which a change reaches a part: batches read regions; DuckDB and PostgreSQL see the whole.

Streams of rows that come and go at several times, open ones too, with duplicates, ties and NULLs, and restarts.
"""

from __future__ import annotations

import os
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import halfjoin as hj
from halfjoin.engine.reduce import reading, regions
from halfjoin.planner.reach import Reach
from tests.support.seeds import first_seed

pytest_plugins = ("tests.support.postgres",)

MORE = os.environ.get("HALFJOIN_FUZZ")
FIRST = first_seed() if MORE else 0
SEEDS = range(FIRST, FIRST + int(MORE or 24))
TYPES = {"g": pa.int64(), "x": pa.int64(), "s": pa.string(), "f": pa.float64()}
KEYS = ("g", "x", "x DESC NULLS LAST", "x DESC NULLS FIRST", "x NULLS FIRST", "s, x", "f DESC NULLS LAST", "x, s, f")
UP_TO = ("", "ROWS UNBOUNDED PRECEDING", "RANGE UNBOUNDED PRECEDING", "GROUPS UNBOUNDED PRECEDING")
ROWS = (
    "ROWS 2 PRECEDING", "ROWS BETWEEN 1 PRECEDING AND 3 FOLLOWING", "ROWS BETWEEN 2 FOLLOWING AND 4 FOLLOWING",
    "ROWS BETWEEN 3 PRECEDING AND 2 PRECEDING", "ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE CURRENT ROW",
    "RANGE BETWEEN CURRENT ROW AND CURRENT ROW",
)  # fmt: skip
GROUPS = (
    "GROUPS 1 PRECEDING", "GROUPS BETWEEN 2 PRECEDING AND 1 FOLLOWING", "GROUPS BETWEEN 1 FOLLOWING AND 2 FOLLOWING",
    "GROUPS BETWEEN 3 PRECEDING AND 2 PRECEDING", "GROUPS BETWEEN CURRENT ROW AND 1 FOLLOWING EXCLUDE TIES",
)  # fmt: skip
RANGES = (
    "RANGE {} PRECEDING", "RANGE BETWEEN {} PRECEDING AND {} FOLLOWING", "RANGE BETWEEN {} FOLLOWING AND {} FOLLOWING",
    "RANGE BETWEEN {} PRECEDING AND {} PRECEDING", "RANGE BETWEEN CURRENT ROW AND {} FOLLOWING",
    "RANGE BETWEEN {} PRECEDING AND CURRENT ROW EXCLUDE GROUP",
)  # fmt: skip
OFFSETS = {  # of RANGE, by the sort key
    "x": (0, 1, 2, 5), "f": (0, 0.25, 1.5, 4), "(x / 4.0)::decimal(9, 2)": (0, 0.25, 1.5),
    "date '2024-01-25' + x::integer": [f"interval '{days}'" for days in ("1 day", "3 days", "1 month", "36 hours")],
    "timestamp '2024-01-27' + x * interval '7 hours'":
        [f"interval '{span}'" for span in ("7 hours", "2 days 1 minute", "1 month", "1 month 1 day")],
}  # fmt: skip
SUMS = (
    "count(*)", "count(x)", "sum(x)", "sum(f)", "avg(x)", "var_pop(x)", "bool_and(x > 1)", "min(x)", "max(s)", "max(f)",
    "count(*) FILTER (WHERE x > 2)", "sum(x) FILTER (WHERE s = 'a')", "max(x) FILTER (WHERE f > 0)",
)  # fmt: skip
VALUES = ("first_value(s)", "last_value(s)", "first_value(x IGNORE NULLS)", "last_value(x IGNORE NULLS)")
SHIFTS = ("row_number()", "lag(s)", "lead(x, 2)", "lag(x, 3, -1)", "lead(f, -1)")
Row = dict[str, Any]


def _view(rng: random.Random) -> tuple[str, str]:
    """A view over random windows in one order, and the same for DuckDB, with its ties settled."""
    by, keys, shown = rng.choice(["", "PARTITION BY g", "PARTITION BY g"]), rng.choice(KEYS), []
    for number in range(rng.choice([1, 1, 2, 3])):
        call, frame, tied = rng.choice(SHIFTS), "", False
        if rng.random() < 0.2:
            call, tied = rng.choice(("rank()", "dense_rank()")), True
        elif rng.random() < 0.6:
            call, frame = rng.choice(SUMS), rng.choice(UP_TO if rng.random() < 0.7 else ROWS)
            tied = not frame.startswith("ROWS")
        elif rng.random() < 0.3:
            call, frame = rng.choice(VALUES), rng.choice(("ROWS UNBOUNDED PRECEDING", *ROWS[:4]))
        settled = keys if tied else f"{keys}, g, x, s, f"
        shown.append([f"{call} OVER ({by} ORDER BY {order} {frame}) AS r{number}" for order in (keys, settled)])
    ours, theirs = (", ".join(texts) for texts in zip(*shown, strict=True))
    return f"SELECT g, x, s, f, {ours} FROM t", f"SELECT g, x, s, f, {theirs} FROM t"


def _near(rng: random.Random) -> tuple[str, str]:
    """A view over windows of which at least one is between offsets of RANGE or GROUPS."""
    key = rng.choice(list(OFFSETS))
    order = key + rng.choice(("", "", " DESC NULLS FIRST", " NULLS FIRST", " DESC NULLS LAST"))
    by, calls = rng.choice(["", "PARTITION BY g", "PARTITION BY g"]), []
    for _ in range(rng.choice([1, 1, 2])):
        frame = rng.choice(RANGES if rng.random() < 0.7 else GROUPS)
        calls.append(f"{rng.choice(SUMS)} OVER ({by} ORDER BY {order} {_between(rng, frame, OFFSETS[key])})")
    if rng.random() < 0.3:
        calls.append(f"{rng.choice(SUMS[:6])} OVER ({by} ORDER BY {order})")
    shown = ", ".join(f"{call} AS r{number}" for number, call in enumerate(calls))
    return (f"SELECT g, x, s, f, {shown} FROM t",) * 2


def _rest(rng: random.Random) -> tuple[str, str]:
    """A view over windows that run from a row to the last one of its partition, and the same with its ties settled."""
    by, keys, rows = rng.choice(["", "PARTITION BY g"]), rng.choice(KEYS), rng.random() < 0.5
    calls = [(rng.choice(SUMS), "ROWS" if rows else rng.choice(("RANGE", "GROUPS"))) for _ in range(2)]
    ours, theirs = (
        ", ".join(f"{call} OVER ({by} ORDER BY {order} {unit} BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS r{number}"
                  for number, (call, unit) in enumerate(calls))
        for order in (keys, f"{keys}, g, x, s, f" if rows else keys)
    )  # fmt: skip
    return f"SELECT g, x, s, f, {ours} FROM t", f"SELECT g, x, s, f, {theirs} FROM t"


def _one_end(rng: random.Random) -> tuple[str, str | None]:
    """A view over windows from an end of the partition to an offset, and the same with its ties settled if they can be.
    """
    key = rng.choice(list(OFFSETS))
    order = key + rng.choice(("", "", " DESC NULLS FIRST", " NULLS FIRST", " DESC NULLS LAST"))
    by, settled, ours, theirs = rng.choice(["", "PARTITION BY g"]), True, [], []
    for number in range(rng.choice([1, 1, 2, 3])):
        unit = rng.choice(("ROWS", "ROWS", "RANGE", "GROUPS"))
        call = rng.choice((*SUMS, *VALUES, "any_value(x)", "any_value(s) FILTER (WHERE x > 1)"))
        offset = rng.choice(OFFSETS[key]) if unit == "RANGE" else rng.choice((0, 1, 2, 5))
        bound = f"{offset} {rng.choice(('PRECEDING', 'FOLLOWING'))}"
        ends = rng.choice((f"UNBOUNDED PRECEDING AND {bound}", f"{bound} AND UNBOUNDED FOLLOWING"))
        tied = f"{order}, g, x, s, f" if unit == "ROWS" else order
        settled &= unit == "ROWS" or call in SUMS
        for made, by_keys in ((ours, order), (theirs, tied)):
            made.append(f"{call} OVER ({by} ORDER BY {by_keys} {unit} BETWEEN {ends}) AS r{number}")
    select = "SELECT g, x, s, f, {} FROM t"
    return select.format(", ".join(ours)), select.format(", ".join(theirs)) if settled else None


def _both_ends(rng: random.Random) -> tuple[str, str]:
    """A view over windows from the first row, and to the last row, of a partition."""
    by, keys, shown = rng.choice(["", "PARTITION BY g"]), rng.choice(KEYS), []
    frames = [f"{rng.choice(('ROWS', 'RANGE'))} BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"]
    if rng.random() < 0.6:
        frames = [rng.choice(("ROWS UNBOUNDED PRECEDING", "ROWS BETWEEN UNBOUNDED PRECEDING AND 2 FOLLOWING")),
                  rng.choice(("ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
                              "ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING"))]  # fmt: skip
        frames += rng.sample(ROWS[:4], rng.randrange(2))
    for number, frame in enumerate(frames):
        calls = ("min(x)", "max(s)", "any_value(x)", "first_value(x IGNORE NULLS)", "max(f) FILTER (WHERE x > 1)")
        if len(frames) > 1:
            calls += (*SUMS, *VALUES)
        call = rng.choice(calls)
        shown.append([f"{call} OVER ({by} ORDER BY {order} {frame}) AS r{number}"
                      for order in (keys, f"{keys}, g, x, s, f")])  # fmt: skip
    if len(frames) == 1 and rng.random() < 0.5:
        shown = [[f"{rng.choice(('min(x)', 'max(s)', 'max(f) FILTER (WHERE x > 1)'))} OVER ({by}) AS r"] * 2]
    ours, theirs = (", ".join(texts) for texts in zip(*shown, strict=True))
    return f"SELECT g, x, s, f, {ours} FROM t", f"SELECT g, x, s, f, {theirs} FROM t"


def _local(rng: random.Random) -> tuple[str, str]:
    """A view over windows in which a change reaches a few rows."""
    by, keys = rng.choice(["", "PARTITION BY g"]), rng.choice(KEYS)
    call = f"{rng.choice(SUMS)} OVER ({by} ORDER BY {{}} {rng.choice(ROWS[:4])}), lag(s) OVER ({by} ORDER BY {{}})"
    ours, theirs = (call.replace("{}", order) for order in (keys, f"{keys}, g, x, s, f"))
    return f"SELECT g, x, s, f, {ours} FROM t", f"SELECT g, x, s, f, {theirs} FROM t"


def _given(rng: random.Random) -> tuple[str, str]:
    """A view over lag and lead that ignore NULLs, and the same with its ties settled."""
    by, keys, shown = rng.choice(["", "PARTITION BY g"]), rng.choice(KEYS), []
    for number in range(rng.choice([1, 2])):
        name, more = rng.choice(("lag", "lead")), rng.choice(("", ", 1", ", 2", ", 3", ", -2"))
        value = rng.choice("xsf")
        shown.append([f"{name}({value}{more} IGNORE NULLS) OVER ({by} ORDER BY {order}) AS r{number}"
                      for order in (keys, f"{keys}, g, x, s, f")])  # fmt: skip
    if rng.random() < 0.5:
        call, frame = rng.choice((*VALUES[2:], *SUMS)), rng.choice((*ROWS[:4], UP_TO[1]))
        shown.append([f"{call} OVER ({by} ORDER BY {order} {frame}) AS r" for order in (keys, f"{keys}, g, x, s, f")])
    ours, theirs = (", ".join(texts) for texts in zip(*shown, strict=True))
    return f"SELECT g, x, s, f, {ours} FROM t", f"SELECT g, x, s, f, {theirs} FROM t"


def _of_postgres(rng: random.Random) -> tuple[str, str]:
    """A view with functions that PostgreSQL has, over windows of any kind."""
    while True:
        ours, theirs = rng.choice((_view, _near, _rest, _one_end, _both_ends))(rng)
        if theirs is not None and not re.search("IGNORE NULLS|any_value", theirs):
            return ours, theirs


def _between(rng: random.Random, frame: str, offsets: Sequence[object]) -> str:
    return frame.format(*(rng.choice(offsets) for _ in range(2)))


def _row(rng: random.Random, wide: int) -> Row:
    f = rng.choice([None, 0.0, 1.5, -2.0, rng.randrange(64) / 4])  # sums of which are exact
    return {"g": rng.choice([0, 0, 0, 1, None]), "x": rng.choice([None, *range(wide)]),
            "s": rng.choice([None, "", "a", "fig", "figs"]), "f": f}  # fmt: skip


def _batch(rng: random.Random, there: list[Row], time: int, wide: int, size: int) -> list[Row]:
    """Rows that come and go at a few times. Only rows that are there go, after they have come."""
    rows = []
    for _ in range(size):
        if there and rng.random() < 0.5:
            gone = there.pop(rng.randrange(len(there)))
            rows.append({**gone, "__time": time + 2, "__diff": -1})
            if rng.random() < 0.5:  # an update, which often leaves the row at its place
                there.append({**gone, **rng.choice([{"x": rng.randrange(wide)}, {"f": rng.randrange(8) / 4}, {}])})
                rows.append({**there[-1], "__time": time + 2, "__diff": 1})
        else:
            row, count = _row(rng, wide), rng.choice([1, 1, 2])
            rows.append({**row, "__time": time + rng.randrange(3), "__diff": count})
            there += [row] * count
    return rows


def _table(rows: list[Row]) -> pa.Table:
    types = {**TYPES, "__time": pa.int64(), "__diff": pa.int64()}
    return pa.table({name: pa.array([row[name] for row in rows], kind) for name, kind in types.items()})


def _bag(rows: Iterable[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    """Rows whose numbers are equal if they are about equal."""
    kinds = (int, float, Decimal)
    return Counter(tuple([round(float(v), 6) if isinstance(v, kinds) else v for v in row]) for row in rows)


@pytest.mark.parametrize("seed", SEEDS)
def test_windows_agree_with_duckdb(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _agree(random.Random(seed), _view, tmp_path, monkeypatch)


@pytest.mark.parametrize("seed", SEEDS)
def test_frames_between_offsets_agree_with_duckdb(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluated = _agree(random.Random(seed), _near, tmp_path, monkeypatch)
    assert any(reach.ranges or any(reach.groups) for reach in evaluated)


@pytest.mark.parametrize("seed", SEEDS)
def test_frames_to_the_last_row_agree_with_duckdb(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert any(reach.remaining for reach in _agree(random.Random(seed), _rest, tmp_path, monkeypatch))


@pytest.mark.parametrize("seed", SEEDS)
def test_frames_from_an_end_to_an_offset_agree(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluated = _agree(random.Random(seed), _one_end, tmp_path, monkeypatch)
    assert any(reach.running or reach.remaining for reach in evaluated)


@pytest.mark.parametrize("seed", SEEDS)
def test_windows_in_both_directions_agree(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert any(reach.running and reach.remaining for reach in _agree(
        random.Random(seed), _both_ends, tmp_path, monkeypatch))  # fmt: skip


@pytest.mark.parametrize("seed", SEEDS)
def test_values_that_ignore_nulls_agree_with_duckdb(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert any(reach.given for reach in _agree(random.Random(seed), _given, tmp_path, monkeypatch))


@pytest.mark.parametrize("seed", SEEDS)
def test_changes_far_apart_agree_with_duckdb(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    several, settled = list[int](), regions.Regions._settled

    def counted(*args: Any) -> Any:
        found = settled(*args)
        several.append(int(np.bincount(args[1].group[found[0]], minlength=1).max()))
        return found

    monkeypatch.setattr(regions.Regions, "_settled", counted)
    makers = iter((_local, _near, _given, _one_end))
    _agree(random.Random(seed), lambda rng: next(makers)(rng), tmp_path, monkeypatch, rows=600)
    assert max(several) > 1


@pytest.mark.parametrize("seed", SEEDS)
def test_windows_agree_with_postgres(
    seed: int, tmp_path: Path, postgres: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    postgres.execute("CREATE TABLE IF NOT EXISTS window_rows (g bigint, x bigint, s text, f double precision)")
    assert _agree(random.Random(seed), _of_postgres, tmp_path, monkeypatch, postgres)


def _rows(table: pa.Table) -> Iterable[tuple[Any, ...]]:
    return zip(*(table[column].to_pylist() for column in table.column_names), strict=True)


def _anew(sql: str, t: pa.Table) -> Counter[tuple[Any, ...]]:
    """The rows of a new view, which sees the whole partitions."""
    with hj.Engine() as engine:
        engine.execute("CREATE TABLE t (g bigint, x bigint, s text, f double precision)")
        engine.apply({"t": t})
        engine.execute(f"CREATE MATERIALIZED VIEW v AS {sql}")
        return _bag(_rows(engine.read("v")))


def _agree(
    rng: random.Random, view: Callable[[random.Random], tuple[str, str | None]], folder: Path,
    monkeypatch: pytest.MonkeyPatch, postgres: Any = None, rows: int = 60,
) -> list[Reach]:  # fmt: skip
    """Four views agree with DuckDB's (PostgreSQL's if given), or with new views, over a stream of changes. Returns the
    reaches of the regions that were evaluated."""
    for name, value in {"LARGE": rng.choice([1, 4]), "_SPARE": rng.choice([0, 3])}.items():
        monkeypatch.setattr(regions, name, value)
    monkeypatch.setattr(reading, "_SAMPLES", rng.choice([2, 16]))
    evaluated, seen = list[Reach](), regions.Regions._settled

    def counted(*args: Any) -> Any:
        found = seen(*args)
        evaluated.extend([args[0].reach] * int(found[0].sum()))
        return found

    monkeypatch.setattr(regions.Regions, "_settled", counted)
    views = {f"v{number}": view(rng) for number in range(4)}
    place = folder / "w" if rng.random() < 0.3 else None
    retain, wide = rng.choice([1, 4, 1000]), rng.choice([3, 8, 40]) * (rows // 60) ** 2
    engine = hj.Engine(place, clock="own", retain=retain)
    engine.execute("CREATE TABLE t (g bigint, x bigint, s text, f double precision)")
    there: list[Row] = []
    history: list[tuple[tuple[Any, ...], int, int]] = []  # values, time, diff
    duck, time = duckdb.connect(config={"threads": 1}), 1
    first = rng.randrange(3)
    for number in range(9):
        if number == first:
            for name, (sql, _) in views.items():
                engine.execute(f"CREATE MATERIALIZED VIEW {name} AS {sql}")
        batch = _batch(rng, there, time, wide, rng.choice([1, 2, 6]) if number else rows)
        history += [(tuple(row[name] for name in TYPES), row["__time"], row["__diff"]) for row in batch]
        upper = engine.apply({"t": _table(batch)}, close=rng.random() < 0.7).upper
        if rng.random() < 0.3:
            upper = engine.advance(to=max(upper, time + 1)).upper
        time = max(time + 1, upper) + rng.randrange(2)
        if place is not None and rng.random() < 0.2:
            engine.close()
            engine = hj.Engine(place)
        if number < first or not upper:
            continue
        at = rng.randrange(max(upper - retain, 0, upper - 4), upper)
        now = Counter[tuple[Any, ...]]()
        for values, when, diff in history:
            now[values] += diff * (when <= at)
        held = list(now.elements())
        t = pa.table({name: pa.array([row[i] for row in held], kind) for i, (name, kind) in enumerate(TYPES.items())})
        duck.register("t", t)
        if postgres is not None:
            postgres.execute("TRUNCATE window_rows")
            values = ", ".join(f"%s::{kind}[]" for kind in ("bigint", "bigint", "text", "float8"))
            postgres.execute(f"INSERT INTO window_rows SELECT * FROM unnest({values})", list(t.to_pydict().values()))
        for name, (_, sql) in views.items():
            if sql is None:
                expected = _anew(views[name][0], t)
            elif postgres is None:
                for offset in ("PRECEDING AND 0 PRECEDING", "0 FOLLOWING AND UNBOUNDED"):  # DuckDB 2.0 loses peers
                    sql = sql.replace(offset, re.sub("0 [A-Z]+", "CURRENT ROW", offset))
                expected = _bag(duck.execute(sql).fetchall())
            else:
                expected = _bag(postgres.execute(sql.replace(" FROM t", " FROM window_rows AS t")).fetchall())
            assert _bag(_rows(engine.read(name, as_of=at))) == expected, (number, at, views[name])
    engine.close()
    return evaluated
