"""Window functions have PostgreSQL's values for each copy of each row, in every frame."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from halfjoin.engine.reduce.groups import Groups
from halfjoin.engine.reduce.windows import evaluate
from halfjoin.engine.scalar import evaluate as scalar
from halfjoin.planner.group_functions import Windows
from halfjoin.sql.expr import Column, Expr, Literal
from halfjoin.sql.functions.casting import cast
from halfjoin.sql.functions.frames import resolve_frame
from halfjoin.sql.functions.window_functions import resolve_window
from halfjoin.sql.relation import Bound, Frame, SortKey, WindowCall
from halfjoin.sql.types import BIGINT, DOUBLE, INTEGER, INTERVAL, TEXT, UNKNOWN, Kind, SqlType, numeric
from tests.support.whole_groups import (
    COLUMNS,
    TYPES,
    Row,
    comparable,
    groups_of,
    order_text,
    random_key,
    random_rows,
)

if TYPE_CHECKING:
    from tests.support.sql_oracles import Oracle

pytest_plugins = ("tests.support.postgres", "tests.support.sql_oracles")

ALL = tuple(SortKey(column) for column in COLUMNS.values())
KINDS = ("unbounded preceding", "preceding", "current row", "following", "unbounded following")
Case = tuple[WindowCall, str]  # with the SQL before OVER


def _check(rows: Sequence[Row], order: Sequence[SortKey], shown: str, cases: Sequence[Case], oracle: Oracle) -> None:
    """`shown`: the SQL of ORDER BY for the oracle."""
    oracle.put(rows)
    calls = tuple((Column(f"x{number}", call.type), call) for number, (call, _) in enumerate(cases))
    found = evaluate(Windows(tuple(order), calls), groups_of(rows))
    by = f" ORDER BY {shown}" if shown else ""
    texts = [f"{text} OVER (PARTITION BY g{by}{_frame_text(call)})" for call, text in cases]
    for (column, _), text in zip(calls, texts, strict=True):
        got = Counter[Any]()
        values = [found.columns[name].to_pylist() for name in (*TYPES, column.name)]
        for row, count in zip(zip(*values, strict=True), found.count.tolist(), strict=True):
            got[tuple(map(comparable, row))] += count
        wanted = Counter(tuple(map(comparable, row)) for row in oracle.ask(f"SELECT {', '.join(TYPES)}, {text} FROM t"))
        assert got == wanted, text


def _frame_text(call: WindowCall) -> str:
    frame = call.frame
    excluded = "" if frame.exclude == "no others" else f" EXCLUDE {frame.exclude}"
    return f" {frame.unit} BETWEEN {_bound_text(frame.start)} AND {_bound_text(frame.end)}{excluded}"


def _bound_text(bound: Bound) -> str:
    if bound.kind == "current row":
        return "CURRENT ROW"
    if bound.offset is None:
        return f"UNBOUNDED {bound.kind}"
    assert isinstance(bound.offset, Literal)
    value = bound.offset.value
    if bound.offset.type == INTERVAL:
        assert isinstance(value, tuple)
        months, days, micros = value
        return f"interval '{months} months {days} days {micros // 1000} milliseconds' {bound.kind}"
    return f"'{value}'::double precision {bound.kind}" if isinstance(value, float) else f"{value} {bound.kind}"


def _random_frame(random: Random, unit: Any, order: Sequence[SortKey], *, vast: bool = False) -> Frame:
    """`vast`: with offsets that no sum with a key holds; DuckDB fails for them."""
    start, end = sorted((random.randrange(4), random.randrange(1, 5)))
    if end == 0:
        end = 1

    def bound(number: int) -> Bound:
        kind: Any = KINDS[number].removeprefix("unbounded ")
        return Bound(kind, _offset(random, unit, order, vast) if number in (1, 3) else None)

    exclude: Any = random.choice(["no others", "no others", "current row", "group", "ties"])
    return resolve_frame(Frame(unit, bound(start), bound(end), exclude), order)


def _offset(random: Random, unit: str, order: Sequence[SortKey], vast: bool) -> Literal:
    key = order[0].expr if unit == "range" else None
    if not isinstance(key, Column) or key.name == "i":
        return Literal(2**63 - 1, BIGINT) if vast and random.random() < 0.2 else Literal(random.randint(0, 3), INTEGER)
    match key.name:
        case "f":
            return Literal(random.choice([0.0, 0.25, 2.0, 1e10, *[math.inf] * vast]), DOUBLE)
        case "n":
            return Literal(Decimal(random.choice(["0", "0.25", "0.125", "1"])), numeric(4, 3))
        case _:
            choices = [(0, 0, 0), (0, 1, 0), (1, 0, 0), (0, 0, 21_600_000_000), (0, 1, 3_600_000_000)]
            return Literal(random.choice(choices), INTERVAL)


def _call(name: str, *args: Expr, frame: Frame = Frame(), **more: Any) -> WindowCall:  # noqa: B008
    return resolve_window(name, args, frame=frame, ordered=True, **more)


def _of_values(random: Random, frame: Frame, *, oracle: str) -> list[Case]:
    """Functions that return the value of one row of the frame, and aggregates that need all."""
    column = random.choice(["i", "f", "n", "s", "d", "b"])
    x = COLUMNS[column]
    skips = oracle == "duckdb" and random.random() < 0.5 and frame.exclude == "no others"
    skip = " IGNORE NULLS" if skips else ""
    third = Literal(random.randint(1, 4), INTEGER)
    return [
        (_call("first_value", x, frame=frame, ignore_nulls=skips), f"first_value({column}{skip})"),
        (_call("last_value", x, frame=frame, ignore_nulls=skips), f"last_value({column}{skip})"),
        (_call("nth_value", x, third, frame=frame, ignore_nulls=skips), f"nth_value({column}, {third.value}{skip})"),
        (_call("array_agg", x, frame=frame), f"array_agg({column})"),
        (_call("string_agg", COLUMNS["s"], Literal("-", TEXT), frame=frame), "string_agg(s, '-')"),
    ]


def _aggregates(random: Random, frame: Frame) -> list[Case]:
    """Aggregates for which the order of peers does not matter."""
    condition = COLUMNS["b"] if random.random() < 0.3 else None
    filtered = " FILTER (WHERE b)" if condition is not None else ""
    calls = [("min", "i"), ("max", "f"), ("min", "n"), ("max", "s"), ("min", "d"), ("count", ""), ("count", "s"),
             ("sum", "i"), ("sum", "f"), ("avg", "n"), ("sum", "n"), ("bool_and", "b"), ("bit_xor", "i"),
             ("covar_pop", "g, i")]  # fmt: skip
    cases = list[Case]()
    for name, listed in calls:
        args = [COLUMNS[column] for column in listed.split(", ") if column]
        cases.append((_call(name, *args, frame=frame, condition=condition), f"{name}({listed or '*'}){filtered}"))
    return cases


@pytest.mark.parametrize("seed", range(30))
def test_ranks_count_rows_and_peers(seed: int, oracle: Oracle) -> None:
    random = Random(seed)
    rows, key = random_rows(random), random_key(random, COLUMNS)
    names = ("rank", "dense_rank", "percent_rank", "cume_dist")
    cases = [(_call(name), f"{name}()") for name in names]
    _check(rows, [key], order_text([key], whole=False), cases, oracle)
    buckets = random.randint(1, 6)
    cases = [(_call("row_number"), "row_number()"), (_call("ntile", Literal(buckets, INTEGER)), f"ntile({buckets})")]
    _check(rows, [key], order_text([key]), cases, oracle)


@pytest.mark.parametrize("seed", range(30))
def test_lag_and_lead_look_some_rows_away(seed: int, oracle: Oracle) -> None:
    random = Random(seed)
    rows, key = random_rows(random), random_key(random, COLUMNS)
    skips = oracle.name == "duckdb" and random.random() < 0.5
    cases = list[Case]()
    for name in ("lag", "lead"):
        column, more = random.choice(["i", "n", "s", "d"]), random.randint(-2, 3)
        skip = " IGNORE NULLS" if skips and more else ""
        given: dict[str, Any] = {"ignore_nulls": bool(skip)}
        cases.append((_call(name, COLUMNS[column], **given), f"{name}({column}{skip})"))
        away = Literal(more, INTEGER)
        cases.append((_call(name, COLUMNS[column], away, **given), f"{name}({column}, {more}{skip})"))
        default = Literal(7, INTEGER)
        cases.append((_call(name, COLUMNS["i"], away, default, **given), f"{name}(i, {more}, 7{skip})"))
        if oracle.name == "postgres":
            cases.append((_call(name, COLUMNS["i"], COLUMNS["i"], COLUMNS["g"]), f"{name}(i, i, g)"))
    _check(rows, [key], order_text([key]), cases, oracle)


@pytest.mark.parametrize("seed", range(60))
def test_frames_of_rows(seed: int, oracle: Oracle) -> None:
    random = Random(seed)
    rows, key = random_rows(random), random_key(random, COLUMNS)
    frame = _random_frame(random, "rows", [key])
    if frame.exclude in ("group", "ties"):  # they depend on who is a peer
        _check(rows, [key, *ALL], order_text([key]), _aggregates(random, frame), oracle)
        return
    _check(rows, [key], order_text([key]),
           [*_of_values(random, frame, oracle=oracle.name), *_aggregates(random, frame)], oracle)  # fmt: skip


@pytest.mark.parametrize("seed", range(60))
def test_frames_of_groups_of_peers(seed: int, oracle: Oracle) -> None:
    random = Random(seed)
    rows, key = random_rows(random), random_key(random, COLUMNS)
    frame = _random_frame(random, "groups", [key])
    _check(rows, [key], order_text([key], whole=False), _aggregates(random, frame), oracle)
    _check(rows, [key, *ALL], order_text([key]), _of_values(random, frame, oracle=oracle.name), oracle)


@pytest.mark.parametrize("seed", range(120))
def test_frames_of_ranges(seed: int, oracle: Oracle) -> None:
    random = Random(seed)
    column = random.choice(["i", "f", "n", "d"])
    rows, key = random_rows(random, finite=oracle.name == "duckdb"), random_key(random, [column])
    frame = _random_frame(random, "range", [key], vast=oracle.name == "postgres")
    _check(rows, [key], order_text([key], whole=False), _aggregates(random, frame), oracle)


@pytest.mark.parametrize("seed", range(20))
def test_without_an_order_all_rows_are_peers(seed: int, oracle: Oracle) -> None:
    random = Random(seed)
    frame = _random_frame(random, "range", [SortKey(COLUMNS["i"])])
    while frame.start.offset is not None or frame.end.offset is not None:
        frame = _random_frame(random, "range", [SortKey(COLUMNS["i"])])
    cases = [*_aggregates(random, frame), (_call("rank"), "rank()"), (_call("cume_dist"), "cume_dist()")]
    _check(random_rows(random), [], "", cases, oracle)


@pytest.mark.parametrize("key", ["date", "time", "interval", "timestamptz", "real"])
@pytest.mark.parametrize("seed", range(6))
def test_ranges_of_every_type(key: str, seed: int, postgres: Any) -> None:
    random = Random(f"{key}{seed}")
    day, hour = random.randint(-40, 40), random.randint(0, 23)
    values = [{"date": f"2024-{random.choice(['01-30', '01-31', '02-28', '02-29', '03-01'])}",
               "time": f"{(hour + random.randint(0, 9)) % 24:02}:00:00.5",
               "interval": f"{random.randint(-1, 1)} months {day + random.randint(-9, 9)} days",
               "timestamptz": f"2024-0{random.randint(1, 3)}-28 {hour:02}:30:00+02",
               "real": random.choice(["NaN", "Infinity", "-Infinity", "0.1", "-3", "16777216"])}[key]
              for _ in range(12)]  # fmt: skip
    offsets = ["0.1", "3", "Infinity"] if key == "real" else ["1 month", "1 day", "2 hours", "1 day 3 hours", "0"]
    type = SqlType(Kind(key))
    x = Column("x", type)
    sorted_by = (SortKey(x, random.random() < 0.5),)
    bounds = (Bound("preceding", Literal(random.choice(offsets), UNKNOWN)),
              Bound("following", Literal(random.choice(offsets), UNKNOWN)))  # fmt: skip
    frame = resolve_frame(Frame("range", bounds[0], bounds[1]), sorted_by)
    call = _call("count", x, frame=frame)
    casts = [cast(Literal(value, UNKNOWN), type) for value in values]
    column = pa.concat_arrays([scalar.compile(one).evaluate({}, 1).values for one in casts])
    groups = Groups({"x": column, "n": pa.array(range(12))}, np.ones(12, np.int64), np.array([0, 12]))
    found = evaluate(Windows(sorted_by, ((Column("r", call.type), call),)), groups)
    texts = [f"'{bound.offset.value}'::{'float8' if key == 'real' else 'interval'} {bound.kind}" for bound in bounds
             if isinstance(bound.offset, Literal)]  # fmt: skip
    listed = ", ".join(f"({number}, '{value}'::{key})" for number, value in enumerate(values))
    wanted = postgres.execute(
        f"SELECT n, count(x) OVER (ORDER BY x {'DESC' if sorted_by[0].descending else ''} "
        f"RANGE BETWEEN {texts[0]} AND {texts[1]}) FROM (VALUES {listed}) AS t (n, x)").fetchall()  # fmt: skip
    rows = zip(found.columns["n"].to_pylist(), found.columns["r"].to_pylist(), strict=True)
    assert sorted(rows) == sorted(wanted)
