"""Filtered rows are added up a part at a time, and never there all at once; the past is read by few columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest

import halfjoin as hj
from halfjoin.engine.arrange.collection import Collection
from halfjoin.engine.reduce.flow import ReduceFlow
from halfjoin.engine.statements import evaluating
from halfjoin.engine.updates import limits
from halfjoin.engine.updates.updates import Updates

ROWS = 20_000


@pytest.fixture
def engine() -> hj.Engine:
    engine = hj.Engine(clock="own", retain=100)
    engine.execute("CREATE TABLE t (k bigint PRIMARY KEY, x bigint, f double precision, s text)")
    numbers = np.arange(ROWS)
    for time in (1, 2):
        engine.apply({"t": pa.table({"k": numbers + time * ROWS, "x": numbers % 100, "f": numbers / 4,
                                     "s": pa.array(numbers).cast("string")})}, time=time)  # fmt: skip
    return engine


def test_a_filter_is_added_up_part_by_part(engine: hj.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MORSEL_ROWS", 1_000)
    monkeypatch.setattr(evaluating, "_TOGETHER", 1)
    parts, real, made = list[int](), ReduceFlow.added_up, evaluating.make_run

    def added_up(self: ReduceFlow, pieces: Iterable[Updates]) -> Any:
        def noted() -> Iterator[Updates]:
            for piece in pieces:
                parts.append(len(piece))
                yield piece

        return real(self, noted())

    def make_run(updates: Updates, upper: int) -> Any:
        assert len(updates) <= 3  # of the sums: what they were of nothing goes
        return made(updates, upper)

    monkeypatch.setattr(ReduceFlow, "added_up", added_up)
    monkeypatch.setattr(evaluating, "make_run", make_run)
    found = engine.query("SELECT count(*) AS n, sum(x) AS s, avg(f) AS f FROM t WHERE x < 50")
    assert found.to_pylist() == [{"n": ROWS, "s": ROWS * 49 // 2, "f": (ROWS / 2 - 25.5) / 4}]
    assert len(parts) >= 2 * ROWS // 1_000 and max(parts) <= 1_000
    parts.clear()
    found = engine.query("SELECT min(s) AS a, max(k) AS b, sum(f) AS s FROM t WHERE x BETWEEN 10 AND 49")
    assert found.to_pylist() == [{"a": "10", "b": 3 * ROWS - 51, "s": (ROWS / 2 - 20.5) / 4 * ROWS * 2 * 0.4}]
    assert len(parts) >= 2 * ROWS // 1_000 and max(parts) <= 1_000


@pytest.mark.parametrize("where", ["x < 0", "f < 3", "s > ''"])
def test_values_in_an_order_see_all_rows(engine: hj.Engine, where: str) -> None:
    """No rows; a NaN among them; rows that have gone."""
    engine.apply({"t": [{"k": 1, "x": 7, "f": float("nan"), "s": None}, {"k": 2, "x": 8, "f": -1.0, "s": "x"}]}, time=3)
    engine.apply({"t": hj.deletes([{"k": 2, "x": 8, "f": -1.0, "s": "x"}])}, time=4)
    sql = f"SELECT count(*) AS n, min(f) AS a, max(f) AS b, min(s) AS c FROM t WHERE {where} OR (x = 7 AND k = 1)"
    found = [engine.query(sql, as_of=time).to_pylist() for time in (2, 3, 4)]
    with patch.object(evaluating, "_adds_up_alone", lambda *_: False):
        assert str([engine.query(sql, as_of=time).to_pylist() for time in (2, 3, 4)]) == str(found)


def test_an_error_of_a_part_is_an_error_of_the_query(engine: hj.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MORSEL_ROWS", 1_000)
    with pytest.raises(hj.DataError, match="division by zero"):
        engine.query("SELECT sum(10 / (k - 30000)) AS s FROM t WHERE x < 50")
    assert engine.query("SELECT sum(10 / (k - 30000)) AS s FROM t WHERE x < 50 AND k < 29000").num_rows == 1


@pytest.mark.parametrize(("sql", "names"), [
    ("SELECT sum(x) AS s FROM t WHERE f < 50", {"x", "f"}),
    ("SELECT x, count(*) AS n FROM t GROUP BY x", {"x"}),
    ("SELECT count(*) AS n FROM t", set()),
    ("SELECT a.x FROM t AS a JOIN t AS b ON b.k = a.x", None),  # it is looked up, too
])  # fmt: skip
def test_the_past_is_read_by_the_columns_of_the_query(engine: hj.Engine, sql: str, names: set[str] | None) -> None:
    with patch.object(Collection, "as_of", autospec=True, side_effect=Collection.as_of) as read:
        engine.query(sql, as_of=1)
    assert [call.kwargs["names"] for call in read.call_args_list] == [names]
