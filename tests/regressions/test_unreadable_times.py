"""Times at which a view cannot be read are never skipped silently: subscribers get an error, `apply` reports it."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from deltalake import DeltaTable

import halfjoin as hj


def made(path: Path | None = None, **options: Any) -> hj.Engine:
    engine = hj.Engine(path, **options)
    engine.execute("CREATE TABLE t (k bigint)")
    engine.execute("CREATE MATERIALIZED VIEW v AS SELECT 12/k AS q FROM t")
    engine.execute("CREATE MATERIALIZED VIEW above AS SELECT q + 1 AS q FROM v WHERE q > 0")
    engine.execute("CREATE MATERIALIZED VIEW fine AS SELECT k FROM t")
    return engine


def times(tables: list[pa.Table]) -> list[int]:
    return [time for table in tables for time in table["__time"].to_pylist()]


def drained(subscription: hj.engine.subscription.Subscription) -> tuple[list[pa.Table], hj.DataError]:
    tables: list[pa.Table] = []
    with pytest.raises(hj.DataError, match="division by zero") as caught:
        while True:
            tables.append(next(subscription))
    with pytest.raises(hj.DataError):
        next(subscription)
    return tables, caught.value


def test_applied_tells_which_views_cannot_be_read() -> None:
    engine = made()
    assert engine.apply({"t": [{"k": 3}]}, time=0).errors == {}
    applied = engine.apply({"t": [{"k": 0}, {"k": 4}]}, time=1)
    assert set(applied.errors) == {"v", "above"}
    assert "v cannot be read as of 1: division by zero" in applied.errors["above"]
    assert applied.diffs["fine"].num_rows == 2 and applied.diffs["v"]["q"].to_pylist() == [3]
    assert "cannot be read" in repr(applied)
    assert set(engine.apply({"t": [{"k": 6}]}, time=2).errors) == {"v", "above"}
    assert engine.apply({"t": hj.deletes([{"k": 0}])}, time=3).errors == {}
    assert engine.apply({"t": [{"k": 0, "__time": 9}]}, time=4, close=False).errors == {}
    assert engine.advance(to=9).errors == {}
    assert "as of 9" in engine.advance(to=12).errors["v"]
    assert set(engine.advance(to=13).errors) == {"v", "above"}


def test_an_error_in_between_is_told() -> None:
    engine = made()
    applied = engine.apply({"t": [{"k": 0, "__time": 2}, {"k": 0, "__time": 5, "__diff": -1}, {"k": 1, "__time": 8}]})
    assert "as of 2" in applied.errors["v"]
    engine.read("v")
    assert engine.advance(to=20).errors == {}


@pytest.mark.parametrize("view", ["v", "above"])
def test_a_subscription_raises_at_the_first_such_time(view: str) -> None:
    engine = made()
    engine.apply({"t": [{"k": 3}]}, time=0)
    live, bounded, other = engine.subscribe(view), engine.subscribe(view, up_to=3), engine.subscribe("fine", up_to=9)
    engine.apply({"t": [{"k": 4, "__time": 1}, {"k": 6, "__time": 2}, {"k": 0, "__time": 3}, {"k": 2, "__time": 4}]})
    engine.apply({"t": hj.deletes([{"k": 0}])}, time=6)
    engine.apply({"t": [{"k": 1}]}, time=10)
    tables, error = drained(live)
    assert times(tables) == [0, 1, 2] and "as of 3" in str(error) and "subscribe" in str(error)
    assert times(list(bounded)) == [0, 1, 2]
    assert times(list(other)) == [0, 1, 2, 3, 4, 6]
    tables, error = drained(engine.subscribe(view, as_of=1))
    assert times(tables) == [1, 1, 2] and "as of 3" in str(error)
    assert times(list(engine.subscribe(view, as_of=1, up_to=3))) == [1, 1, 2]
    assert set(times(list(engine.subscribe(view, as_of=6, up_to=11)))) == {6, 10}
    with pytest.raises(hj.DataError):
        engine.subscribe(view, as_of=4)
    with pytest.raises(hj.DataError):
        engine.execute(f"SUBSCRIBE {view} AS OF 1")


def test_a_subscription_that_ends_early_gives_nothing() -> None:
    engine = made()
    for time in range(5):
        engine.apply({"t": [{"k": time + 1}]}, time=time)
    for as_of, up_to in [(2, 2), (3, 2), (None, 4), (None, 0)]:
        assert list(engine.subscribe("v", as_of=as_of, up_to=up_to)) == []
    assert engine.execute("SUBSCRIBE v AS OF 2 UP TO 2").num_rows == 0
    assert engine.execute("SUBSCRIBE v AS OF 2 UP TO 2").column_names == ["q", "__time", "__diff"]
    assert set(times(list(engine.subscribe("v", as_of=2, up_to=3)))) == {2}


def test_a_batch_answered_again_tells_its_errors_again(tmp_path: Path) -> None:
    with made(tmp_path / "w") as engine:
        first = engine.apply({"t": [{"k": 0}]}, time=1, batch_id="one")
        engine.apply({"t": hj.deletes([{"k": 0}])}, time=2, batch_id="two")
        again = engine.apply({"t": [{"k": 0}]}, time=1, batch_id="one")
        assert again.errors == first.errors != {}
    with hj.Engine(tmp_path / "w") as engine:
        assert engine.apply({"t": [{"k": 0}]}, time=1, batch_id="one").errors == first.errors
        assert engine.apply({"t": hj.deletes([{"k": 0}])}, time=2, batch_id="two").errors == {}
        assert engine.apply({"t": [{"k": 5}]}, time=3).errors == {}


@pytest.mark.parametrize("seed", range(4))
def test_errors_are_told_exactly_where_reads_fail(seed: int, tmp_path: Path) -> None:
    random, path = Random(seed), tmp_path / "w"
    engine = made(path)
    for _ in range(25):
        upper = engine.stats().upper
        if random.random() < 0.2:
            applied = engine.advance(to=upper + random.randrange(4))
        else:
            rows = []
            for _ in range(random.randrange(1, 4)):
                k, diff = random.choice([0, 0, 1, 2]), random.choice([1, 1, -1])
                rows.append({"k": k, "__time": upper + random.randrange(3), "__diff": diff})
            applied = engine.apply({"t": rows}, time=upper, close=random.random() < 0.8)
        for view in ("v", "above"):
            failing = []
            for time in range(upper, applied.upper):
                try:
                    engine.read(view, as_of=time, multiplicity=True)
                except hj.DataError as error:
                    failing.append(str(error))
            assert applied.errors.get(view) == (failing[0] if failing else None)
        if random.random() < 0.15:
            engine.compact()
        if random.random() < 0.15:
            engine.close()
            engine = hj.Engine(path)


def test_a_sink_shows_no_time_at_which_its_view_cannot_be_read(tmp_path: Path) -> None:
    with made(tmp_path / "w") as engine:
        engine.execute("CREATE SINK s FROM v INTO DELTA 'out'")
        for time, rows in enumerate([[{"k": 3}], [{"k": 0}, {"k": 4}], [{"k": 6}], hj.deletes([{"k": 0}]), [{"k": 2}]]):
            engine.apply({"t": rows}, time=time)
        engine.flush()
        uri = str(tmp_path / "w" / "sinks" / "out")
        uppers = [int(one["halfjoin.upper"]) for one in DeltaTable(uri).history() if "halfjoin.upper" in one]
        assert sorted(DeltaTable(uri).to_pyarrow_table()["q"].to_pylist()) == [2, 3, 4, 6]
        assert 1 in uppers and 5 in uppers and not {2, 3} & set(uppers)


@pytest.mark.parametrize("time", ["99999999999999999999", "-9223372036854775809", "date '5000000-01-01'",
                                  "timestamp '250000-01-01'", "timestamptz '20000-01-01'"])  # fmt: skip
def test_a_time_out_of_range_is_no_time(time: str) -> None:
    engine = hj.Engine(clock="own")
    for sql in (f"SELECT 1 AS r AS OF {time}", f"SET TIME = {time}"):
        with pytest.raises(hj.InvalidTime, match="is not a time"):
            engine.execute(sql)


@pytest.mark.parametrize("time", [pd.NaT, pd.NA, np.array([1, 2]), float("nan"), 2.0, True])
def test_what_is_no_number_is_no_time(time: Any) -> None:
    """NaT is a datetime for Python."""
    engine = hj.Engine(clock="own")
    engine.execute("CREATE TABLE t (k bigint); CREATE MATERIALIZED VIEW v AS SELECT k FROM t")
    engine.apply({"t": [{"k": 1}]}, time=1)
    for call in (lambda: engine.apply({"t": []}, time=time), lambda: engine.advance(to=time),
                 lambda: engine.read("v", as_of=time), lambda: engine.query("SELECT k FROM v", as_of=time),
                 lambda: engine.subscribe("v", as_of=time), lambda: engine.subscribe("v", up_to=time),
                 lambda: engine.apply({"t": [{"k": 2, "__time": time}]})):  # fmt: skip
        with pytest.raises(hj.InvalidTime, match="is not a time"):
            call()
    assert engine.stats().upper == 2
