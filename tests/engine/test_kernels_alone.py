"""What kernels add up and find of whole columns, beside plain Python."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import halfjoin as hj
from halfjoin.engine.kernels import native, summing
from halfjoin.engine.updates import updates

pytestmark = pytest.mark.skipif(not native.BUILT, reason="the native kernels are not built")

_G = np.random.default_rng(5)
_ROWS = 3000


def _columns() -> list[pa.Array]:
    small = _G.integers(-50, 50, _ROWS)
    nulls = _G.random(_ROWS) < 0.2
    wide = [None if null else Decimal(int(one)) * 10**30 for one, null in zip(small, nulls, strict=True)]
    return [
        pa.array(small.astype(np.int8)), pa.array(small.astype(np.int16), mask=nulls), pa.array(small, pa.int32()),
        pa.array(_G.integers(-(2**63), 2**63 - 1, _ROWS)),
        pa.array(_G.integers(-(2**63), 2**63 - 1, _ROWS), mask=nulls),
        pa.array([Decimal(int(one)) for one in small], pa.decimal128(12, 0)), pa.array(wide, pa.decimal128(38, 0)),
        pa.nulls(_ROWS, pa.int64()),
    ]  # fmt: skip


def _plain(column: pa.Array, asked: pa.Array, diff: np.ndarray[Any, Any]) -> list[int]:
    return [0 if one is None or other is None else int(one) * int(times)
            for one, other, times in zip(column.to_pylist(), asked.to_pylist(), diff, strict=True)]  # fmt: skip


@pytest.mark.parametrize("column", _columns(), ids=lambda one: str(one.type))
@pytest.mark.parametrize("diff", ["one", "three", "mixed"])
def test_sums_of_columns_are_those_of_integers(column: pa.Array, diff: str) -> None:
    times = {"one": np.broadcast_to(np.int64(1), _ROWS), "three": np.broadcast_to(np.int64(3), _ROWS),
             "mixed": _G.integers(-2, 3, _ROWS)}[diff]  # fmt: skip
    asked = pa.array(_G.integers(0, 9, _ROWS), mask=_G.random(_ROWS) < 0.3)
    for start in (0, 7):
        part, other, some = column.slice(start), asked.slice(start), times[start:]
        terms, alone = _plain(part, other, some), _plain(part, pa.array([1] * len(part)), some)
        assert summing.added_up(part, [other], some) == sum(terms)
        assert summing.added_up(part, [], some) == sum(alone)
        for others in ([other, part], [column.slice(0, len(part))]):
            rows = zip(part.to_pylist(), some.tolist(), *(one.to_pylist() for one in others), strict=True)
            assert summing.added_up(part, others, some) == sum(int(row[0]) * row[1] for row in rows if None not in row)
        made = summing.added(part, [other], some)
        if max(map(abs, terms)) < 1 << 63:
            assert made is not None
            assert (made[0].tolist(), made[1]) == (terms, max(map(abs, terms)))
        else:
            assert made is None


_OTHERS = [pa.array(_G.random(_ROWS)), pa.array(_G.integers(0, 99, _ROWS)).cast("string")]


@pytest.mark.parametrize("column", [*_columns(), *_OTHERS], ids=lambda one: str(one.type))
def test_extremes_are_those_of_marked_rows(column: pa.Array) -> None:
    for marks in (None, _G.random(_ROWS) < 0.5, np.zeros(_ROWS, np.bool_)):
        there = [one for row, one in enumerate(column.to_pylist()) if one is not None and (marks is None or marks[row])]
        for greatest in (False, True):
            row = summing.extreme(column, marks, greatest)
            assert row is not None
            assert (row < 0) == (not there)
            if there:
                assert column[row].as_py() == (max(there) if greatest else min(there))


def test_a_nan_is_left_to_who_orders_it() -> None:
    column = pa.array([1.0, float("nan"), 2.0])
    assert summing.extreme(column, None, True) is None
    assert summing.extreme(column, np.array([True, False, True]), True) == 2


def _changed() -> hj.Engine:
    engine, rows = hj.Engine(), 20_000
    engine.execute("CREATE TABLE t (id bigint PRIMARY KEY, n numeric(12,2), d double precision, s text)")

    def of(ids: Any) -> pa.Table:
        number = _G.integers(-9999, 9999, len(ids))
        return pa.table({
            "id": ids, "n": pa.array([Decimal(one).scaleb(-2) for one in number.tolist()], pa.decimal128(12, 2)),
            "d": pa.array(number / 7, mask=number % 11 == 0), "s": pa.array(number).cast("string"),
        })  # fmt: skip

    engine.apply({"t": of(np.arange(rows))})
    engine.apply({"t": hj.upserts(of(np.arange(0, rows, 50)))})
    engine.apply({"t": hj.deletes(pa.table({"id": np.arange(19_800, rows)}))})
    return engine


ASKED = ("SELECT min(id), max(id), min(n), max(n), min(d), max(d), min(s), max(s), count(*), count(d), sum(n), avg(n), "
         "sum(d), avg(d), sum(id) FROM t")  # fmt: skip


def test_a_changed_table_is_asked_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, copied = _changed(), list[int]()
    with native.used(False):
        slow = engine.query(ASKED)
    take = updates.Updates.take
    engine.query("SELECT max(id) FROM t")  # what the runs cancel in each other is known from here on

    def counted(self: updates.Updates, positions: Any) -> updates.Updates:
        copied.append(len(positions))
        return take(self, positions)

    monkeypatch.setattr(updates.Updates, "take", counted)
    fast = engine.query(ASKED)
    assert fast.equals(slow)
    assert sum(copied) < 100
    engine.execute(f"CREATE MATERIALIZED VIEW v (a,b,c,d,e,f,g,h,i,j,k,l,m,n,o) AS {ASKED}")
    assert engine.query("SELECT * FROM v").to_pylist() == slow.rename_columns(list("abcdefghijklmno")).to_pylist()
    row = engine.query("SELECT * FROM t WHERE id = (SELECT max(id) FROM t)").to_pylist()
    assert [one["id"] for one in row] == [19_799]


def test_a_sum_reads_its_column_once(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, read, added_up = _changed(), list[tuple[int, bool]](), summing.added_up

    def counted(values: pa.Array | None, asked: Any, diff: Any) -> int | None:
        read.append((len(diff), values is None))
        return added_up(values, asked, diff)

    monkeypatch.setattr(summing, "added_up", counted)
    assert engine.query("SELECT sum(id) AS s FROM t").num_rows == 1
    assert [counts for rows, counts in read if rows == 20_000] == [False]
