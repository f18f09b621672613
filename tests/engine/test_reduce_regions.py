"""A window reads the rows of a large partition that a change reaches, and has the results of the whole partition."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import halfjoin as hj
from tests.support.read_rows import rows_read

LENGTH, FEW = 20_000, 1_000  # rows of the partition; entries that a batch may read
BESIDE = {  # a change reaches rows beside it
    "lag": "lag(x, 3) OVER w",
    "lead": "lead(s) OVER w",
    "frame": "sum(f) OVER (w ROWS BETWEEN 5 PRECEDING AND 2 FOLLOWING)",
    "values": "array_agg(s) OVER (w ROWS 2 PRECEDING), last_value(s) OVER (w ROWS BETWEEN 1 FOLLOWING AND 3 FOLLOWING)",
    "peers": "count(*) OVER (w RANGE CURRENT ROW)",
    "range": "sum(v) OVER (w RANGE BETWEEN 10 PRECEDING AND CURRENT ROW)",
    "ranges": "min(v) OVER (w RANGE BETWEEN 9 PRECEDING AND 5 PRECEDING), count(*) OVER (w RANGE 3 PRECEDING)",
    "groups": "sum(v) OVER (w GROUPS BETWEEN 5 PRECEDING AND 2 FOLLOWING)",
    "given": "lag(n, 2 IGNORE NULLS) OVER w, lead(n IGNORE NULLS) OVER w",
    "collected": "string_agg(s, '-') OVER (w RANGE BETWEEN 4 PRECEDING AND CURRENT ROW)",
    "own": "squares(v) OVER (w ROWS 4 PRECEDING), most(v) OVER (w GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING)",
}
FAR = ("sum(v) OVER (w ROWS BETWEEN 9223372036854775807 PRECEDING AND 1 FOLLOWING)", "lag(s, 2000000000) OVER w")
BEHIND = {  # and all rows behind it, until it is as before
    "number": "row_number() OVER w",
    "ranks": "rank() OVER w, dense_rank() OVER w",
    "sum": "sum(v) OVER w, avg(v) OVER w",
    "rows": "sum(v) OVER (w ROWS UNBOUNDED PRECEDING), lag(s) OVER w",
    "extremes": "min(v) OVER w, max(v) OVER w, first_value(v) OVER w",
    "ahead": "sum(v) OVER (w ROWS BETWEEN UNBOUNDED PRECEDING AND 3 FOLLOWING)",
    "late": "sum(v) OVER (w RANGE BETWEEN UNBOUNDED PRECEDING AND 4 PRECEDING)",
    "peers": "last_value(v) OVER (w GROUPS BETWEEN UNBOUNDED PRECEDING AND 2 PRECEDING)",
}
BEFORE = {  # and all rows before it, until it is as before
    "rows": "sum(v) OVER (w ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)",
    "range": "sum(v) OVER (w RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)",
    "ahead": "sum(v) OVER (w ROWS BETWEEN 3 FOLLOWING AND UNBOUNDED FOLLOWING), lag(s) OVER w",
    "late": "count(*) OVER (w RANGE BETWEEN 4 PRECEDING AND UNBOUNDED FOLLOWING)",
}
BOTH = {
    "ends": "min(v) OVER (w ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING), "
            "last_value(s) OVER (w RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)",
    "partition": "max(s) OVER (PARTITION BY g), min(v) OVER (PARTITION BY g)",
    "directions": "max(v) OVER w, min(v) OVER (w ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)",
    "offsets": "first_value(v) OVER (w GROUPS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING), "
               "max(v) OVER (w RANGE BETWEEN UNBOUNDED PRECEDING AND 3 FOLLOWING)",
}


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of rows that are read from order indexes, or looked up."""
    return rows_read(monkeypatch)


def _rows(places: Any, *, v: int = 0, diff: int = 1) -> pa.Table:
    """One row at each place; two rows in a row tie."""
    places = list(places)
    return pa.table({
        "id": places, "g": [0] * len(places), "x": [place // 2 for place in places], "v": [v + p % 7 for p in places],
        "s": [f"{place:06}" for place in places], "f": [place / 2 for place in places], "__diff": [diff] * len(places),
        "n": pa.array([place if place % 5 == 0 else None for place in places], pa.int64()),
    })  # fmt: skip


def _engine(calls: str) -> hj.Engine:
    engine = hj.Engine(clock="own")
    engine.execute("CREATE TABLE t (id bigint, g bigint, x bigint, v bigint, s text, f double precision, n bigint)")
    engine.register_aggregate("squares", takes=["bigint"], returns="numeric(38,0)",
                              lift=lambda v: {"total": pc.multiply(v, v)}, result=lambda total: total)  # fmt: skip
    engine.register_aggregate("most", takes=["bigint"], returns="bigint",
                              function=lambda rows, counts: max(rows.column(0).to_pylist()))  # fmt: skip
    shown = ", ".join(f"{call} AS r{n}" for n, call in enumerate(_split(calls)))
    engine.execute(f"CREATE MATERIALIZED VIEW w AS SELECT *, {shown} FROM t WINDOW w AS (PARTITION BY g ORDER BY x)")
    return engine


def _split(calls: str) -> list[str]:
    return [call.removeprefix(", ") for call in calls.replace("OVER w,", "OVER w;").replace("),", ");").split(";")]


def _changed(engine: hj.Engine, reads: list[int], batches: list[list[pa.Table]]) -> int:
    """The most entries that a batch reads."""
    engine.apply({"t": _rows(range(LENGTH))}, time=1)
    engine.apply({"t": _rows([LENGTH // 3])}, time=2)  # the order is made
    engine.apply({"t": _rows([LENGTH // 3], diff=-1)}, time=3)
    most = 0
    for number, batch in enumerate(batches):
        reads.clear()
        engine.apply({"t": pa.concat_tables(batch)}, time=4 + number)
        most = max(most, sum(reads))
    return most


def _whole(engine: hj.Engine, calls: str) -> None:
    """The view has what a new view has."""
    other = _engine(calls)
    other.apply({"t": engine.read("t")}, time=1)
    assert sorted(map(str, engine.read("w").to_pylist())) == sorted(map(str, other.read("w").to_pylist()))


@pytest.mark.parametrize("view", BESIDE)
def test_a_change_reads_rows_beside_it(reads: list[int], view: str) -> None:
    engine = _engine(BESIDE[view])
    batches = [[_rows([place], v=1)] for place in (-1, 0, 5_000, LENGTH - 1, LENGTH)]
    batches += [[_rows([place], diff=-1)] for place in (0, 1, 777, 10_000, 10_001, LENGTH - 1)]
    assert _changed(engine, reads, batches) < FEW
    _whole(engine, BESIDE[view])


@pytest.mark.parametrize("view", BEHIND)
def test_a_change_near_the_end_reads_few_rows(reads: list[int], view: str) -> None:
    engine = _engine(BEHIND[view])
    batches = [[_rows([place], v=1)] for place in (LENGTH - 40, LENGTH - 1, LENGTH)]
    batches += [[_rows([place], diff=-1)] for place in (LENGTH - 30, LENGTH - 31, LENGTH - 1)]
    assert _changed(engine, reads, batches) < FEW
    _whole(engine, BEHIND[view])


@pytest.mark.parametrize("view", BEHIND)
def test_a_change_reads_until_all_is_as_before(reads: list[int], view: str) -> None:
    engine = _engine(BEHIND[view])
    batches = []
    for place in (1, 5_000, 10_001, LENGTH - 9):  # two rows exchange their values
        old, new = _rows([place, place + 3], diff=-1), _rows([place, place + 3])
        v = new["v"].to_pylist()[::-1]
        batches.append([old, new.set_column(new.column_names.index("v"), "v", pa.array(v))])
    assert _changed(engine, reads, batches) < FEW
    _whole(engine, BEHIND[view])


def test_a_change_of_a_sum_reads_the_rows_behind_it(reads: list[int]) -> None:
    engine = _engine(BEHIND["sum"])
    found = _changed(engine, reads, [[_rows([LENGTH - 5_000], v=1)]])
    assert 5_000 < found < 5_000 + FEW
    _whole(engine, BEHIND["sum"])


@pytest.mark.parametrize("view", BEFORE)
def test_sums_to_the_last_row_read_the_rows_before(reads: list[int], view: str) -> None:
    engine = _engine(BEFORE[view])
    batches = [[_rows([place], v=1)] for place in (-1, 5, 40)] + [[_rows([place], diff=-1)] for place in (0, 31)]
    assert _changed(engine, reads, batches) < FEW
    _whole(engine, BEFORE[view])


@pytest.mark.parametrize("view", BOTH)
def test_a_change_between_reads_in_both_directions(reads: list[int], view: str) -> None:
    engine = _engine(BOTH[view])
    batches = [[_rows([place], v=v)] for place, v in ((5_000, 2), (9_000, -3))]
    batches += [[_rows([place], diff=-1)] for place in (777, 10_000, 10_001)]
    assert _changed(engine, reads, batches) < FEW
    _whole(engine, BOTH[view])


@pytest.mark.parametrize("view", ["lag", "peers", "ranges", "groups", "given"])
def test_changes_far_apart_read_two_neighbourhoods(reads: list[int], view: str) -> None:
    engine = _engine(BESIDE[view])
    batches = [[_rows([1, LENGTH - 5], v=1)], [_rows([0, 10_000, LENGTH - 1], diff=-1)]]
    assert _changed(engine, reads, batches) < FEW
    _whole(engine, BESIDE[view])


@pytest.mark.parametrize("calls", FAR)
def test_a_reach_may_be_longer_than_the_partition(reads: list[int], calls: str) -> None:
    engine = _engine(calls)
    _changed(engine, reads, [[_rows([5_000], v=1)]])
    _whole(engine, calls)


def test_a_failing_region_is_an_error_of_its_group(reads: list[int]) -> None:
    calls = "nth_value(s, (v - 3)::integer) OVER (w ROWS 2 PRECEDING)"
    engine = hj.Engine(clock="own")
    engine.execute("CREATE TABLE t (id bigint, g bigint, x bigint, v bigint, s text, f double precision, n bigint)")
    window = "WINDOW w AS (PARTITION BY g ORDER BY x)"
    engine.execute(f"CREATE MATERIALIZED VIEW w AS SELECT *, {calls} AS r FROM t {window}")
    rows = _rows(range(LENGTH)).set_column(3, "v", pa.array([5] * LENGTH))
    engine.apply({"t": rows}, time=1)
    bad = _rows([700]).set_column(3, "v", pa.array([3]))
    assert engine.apply({"t": bad}, time=2).errors
    with pytest.raises(hj.DataError, match="argument of nth_value must be greater than zero"):
        engine.read("w")
    engine.apply({"t": bad.set_column(6, "__diff", pa.array([-1]))}, time=3)
    assert engine.read("w").num_rows == LENGTH
    reads.clear()
    engine.apply({"t": _rows([700]).set_column(3, "v", pa.array([5]))}, time=4)
    assert sum(reads) < FEW
