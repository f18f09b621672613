"""Sums of windows from running sums in 64 bits: the same as those of wide integers; and rows are not moved in vain."""

from __future__ import annotations

from decimal import Decimal
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest

import halfjoin as hj
from halfjoin.engine.reduce import added, at_once, frame_aggregates, law, running
from tests.engine.test_reduce_extremes import TYPES, rows, shown

FRAMES = (
    "ORDER BY o", "ORDER BY o ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING", "ORDER BY o DESC",
    "ORDER BY o RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING", "",
    "ORDER BY o ROWS BETWEEN 3 FOLLOWING AND 5 FOLLOWING",
    "ORDER BY o GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE CURRENT ROW",
    "ORDER BY o RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE TIES",
)  # fmt: skip
CALLS = ("sum(i)", "count(*)", "count(i)", "avg(i)", "sum(n)", "avg(n)", "sum(f)", "sum(w)", "stddev(i)",
         "sum(i) FILTER (WHERE i > 0)", "bool_and(i > 0)")  # fmt: skip


@pytest.mark.parametrize("large", [5, 2**62])
def test_window_sums_are_those_of_wide_integers(large: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(large % 97)
    engine, length = hj.Engine(), 60
    engine.execute("CREATE TABLE t (k integer, o integer, i bigint, n numeric(20,2), w numeric(38,0), "
                   "f double precision)")  # fmt: skip
    numbers = random.integers(-large, large, length)
    gone = random.random(length) < 0.2
    table = pa.table({
        "k": pa.array(random.integers(0, 4, length), pa.int32()),
        "o": pa.array(random.integers(0, 9, length), pa.int32()),
        "i": pa.array(numbers, mask=gone),
        "n": pa.array([Decimal(number // 100) / 4 for number in numbers.tolist()], pa.decimal128(20, 2), mask=gone),
        "w": pa.array(numbers).cast(pa.decimal128(38, 0)), "f": numbers / 4,
    })  # fmt: skip
    engine.apply({"t": table})
    for frame in FRAMES:
        calls = ", ".join(f"{call} OVER (PARTITION BY k {frame}) AS c{at}" for at, call in enumerate(CALLS)
                          if "FILTER" not in call)  # fmt: skip
        filtered = f"sum(i) FILTER (WHERE i > 0) OVER (PARTITION BY k {frame}) AS d"
        sql, found = f"SELECT k, o, i, {calls}, {filtered} FROM t", []
        for limit in (1 << 60, 1):
            monkeypatch.setattr(at_once, "FROM", limit)
            try:
                found.append(shown(engine.query(sql)))
            except hj.HalfjoinError as error:  # a sum out of range
                found.append(str(error))
        assert found[0] == found[1], frame
        engine.execute("DROP MATERIALIZED VIEW IF EXISTS v")
        if large < 100:
            engine.execute(f"CREATE MATERIALIZED VIEW v AS {sql}")
            assert shown(engine.read("v")) == found[0]
            engine.execute("DELETE FROM t WHERE i = 1; INSERT INTO t VALUES (1, 5, 7, 2, 3, 4), (2, 0, 1, 1, 1, 1)")
            assert shown(engine.read("v")) == shown(engine.query(sql)), frame


@pytest.mark.parametrize("seed", range(4))
def test_running_extremes_are_those_of_spans(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random, engine = np.random.default_rng(seed), hj.Engine()
    engine.execute(f"CREATE TABLE t (k bigint, l text, {', '.join(f'{name} {one[0]}' for name, one in TYPES.items())})")
    engine.apply({"t": rows(random, 50)})
    used = 0
    for frame in FRAMES:
        calls = ", ".join(f"min({name}) OVER w AS a_{name}, max({name}) OVER w AS b_{name}" for name in TYPES)
        some = "max(s) FILTER (WHERE s > 0) OVER w AS d"
        frame = frame.replace("ORDER BY o", "ORDER BY k")
        sql, found = f"SELECT {calls}, {some} FROM t WINDOW w AS (PARTITION BY l {frame})", []
        with patch.object(frame_aggregates, "_running_extreme", lambda *_, **__: None):
            found.append(shown(engine.query(sql)))
        with patch.object(frame_aggregates, "places", wraps=frame_aggregates.places) as asked:
            found.append(shown(engine.query(sql)))
        used += asked.call_count < 2 * len(TYPES)
        assert found[0] == found[1], frame
    assert used >= 3


def test_sums_of_windows_lift_no_row_and_move_rows_once() -> None:
    engine = hj.Engine()
    engine.execute("CREATE TABLE t (k integer, o bigint)")
    numbers = np.arange(20_000)
    engine.apply({"t": pa.table({"k": pa.array(numbers % 7, pa.int32()), "o": numbers})})
    with patch.object(running.Totals, "lifted", side_effect=AssertionError), \
            patch.object(added, "lifted", side_effect=AssertionError), \
            patch.object(law, "taken", side_effect=AssertionError):  # fmt: skip
        found = engine.query("SELECT k, o, sum(o) OVER (PARTITION BY k ORDER BY o) AS s, "
                             "sum(o) OVER (PARTITION BY k ORDER BY o ROWS 1 PRECEDING) AS r FROM t")  # fmt: skip
    assert found.num_rows == 20_000
    by_o = {row["o"]: (int(row["s"]), int(row["r"])) for row in found.to_pylist()}
    assert by_o[14] == (0 + 7 + 14, 7 + 14)
