"""An error belongs to its whole row as the view reads it: it goes with the row, and no other row's error cancels it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import halfjoin as hj
from halfjoin.engine.linear import failures
from halfjoin.engine.storage import warehouse


def fails(engine: hj.Engine, view: str = "v", as_of: int | None = None) -> bool:
    try:
        engine.read(view, as_of=as_of)
    except hj.DataError as error:
        assert "division by zero" in str(error)
        return True
    return False


def row(k: int, v: Any, diff: int = 1) -> dict[str, Any]:
    return {"k": k, "v": v, "__diff": diff}


VIEWS = {
    "output": "SELECT k, v FROM t WHERE 12/k > 3",
    "filter": "SELECT k FROM t WHERE v > 0 AND 12/k > 3",
    "key": "SELECT t.k FROM t JOIN u ON t.v = u.v WHERE 12/t.k > 3",
    "complete row": "SELECT 12/(t.k + u.k) AS q FROM t, u WHERE t.v > 0",
    "function": "SELECT 12/k AS q FROM t, generate_series(1, v) AS g(n)",
    "temporal": "SELECT k, v FROM t WHERE mz_now() < 12/k",
}


@pytest.mark.parametrize("sql", VIEWS.values(), ids=VIEWS)
def test_errors_of_different_rows_do_not_cancel(sql: str) -> None:
    engine = hj.Engine()
    engine.execute("CREATE TABLE t (k bigint, v bigint); CREATE TABLE u (k bigint, v bigint)")
    engine.execute(f"CREATE MATERIALIZED VIEW v AS {sql}")
    engine.apply({"u": [row(0, 1), row(0, 2)]}, time=0)
    engine.apply({"t": [row(0, 1), row(0, 2, -1)]}, time=1)
    engine.execute(f"CREATE MATERIALIZED VIEW late AS {sql}")
    engine.compact()
    assert fails(engine) and fails(engine, "late")
    engine.apply({"t": [row(0, 1, -1)]}, time=2)
    assert fails(engine) and fails(engine, "late")
    engine.apply({"t": [row(0, 2)]}, time=3)
    assert not fails(engine) and not fails(engine, "late")


def test_errors_of_two_branches_do_not_cancel() -> None:
    engine = hj.Engine()
    engine.execute("CREATE TABLE t (k bigint)")
    engine.execute("CREATE MATERIALIZED VIEW v AS "
                   "SELECT 12/k FROM t UNION ALL SELECT 12/k FROM t, repeat_row(-1)")
    engine.apply({"t": [{"k": 0}]}, time=0)
    assert fails(engine)
    engine.apply({"t": hj.deletes([{"k": 0}])}, time=1)
    assert not fails(engine)


def test_rows_that_look_alike_are_told_apart() -> None:
    engine = hj.Engine()
    engine.execute("CREATE TABLE t (x text, y text)")
    engine.execute("CREATE MATERIALIZED VIEW v AS SELECT (x || y || 'no')::bigint AS q FROM t")
    pairs = [(("a, t.y = b", "c"), ("a", "b, t.y = c")), (("x" * 5000 + "1", "e"), ("x" * 5000 + "2", "e"))]
    for time, (one, other) in enumerate(pairs):
        engine.apply({"t": [{"x": one[0], "y": one[1]}, {"x": other[0], "y": other[1], "__diff": -1}]}, time=2 * time)
        with pytest.raises(hj.DataError):
            engine.read("v")
        engine.apply({"t": [{"x": one[0], "y": one[1], "__diff": -1}, {"x": other[0], "y": other[1]}]},
                     time=2 * time + 1)
        engine.read("v")


def test_an_error_is_small_however_large_its_row() -> None:
    engine = hj.Engine()
    engine.execute("CREATE TABLE t (x text)")
    engine.execute("CREATE MATERIALIZED VIEW v AS SELECT x::bigint AS q FROM t")
    engine.apply({"t": [{"x": "z" * 1_000_000}]}, time=0)
    errors = engine._state.views["v"].errors
    assert len(errors) == 1 and sum(run.row_bytes for run in errors.runs) < 10_000
    with pytest.raises(hj.DataError) as caught:
        engine.read("v")
    assert len(str(caught.value)) < 3000
    engine.apply({"t": hj.deletes([{"x": "z" * 1_000_000}])}, time=1)
    assert len(engine.read("v")) == 0


def test_an_error_goes_with_its_row_whatever_the_plan(tmp_path: Path) -> None:
    """The sizes of the tables decide the order of the joins, and so which column of an equality is read."""
    sql = "SELECT a.k, 12/(a.x + b.x + c.x) AS q FROM a, b, c WHERE a.k = b.k AND b.k = c.k AND a.z > 0 AND c.z > 0"
    with hj.Engine(tmp_path / "w") as engine:
        for name in "abc":
            engine.execute(f"CREATE TABLE {name} (k bigint, x bigint, z bigint)")
        engine.execute(f"CREATE MATERIALIZED VIEW v AS {sql}")
        engine.apply({name: [{"k": 1, "x": 0, "z": z} for z in (1, 2)] for name in "abc"}, time=0)
        engine.apply({"c": [{"k": n, "x": 1, "z": 1} for n in range(5, 500)]}, time=1)
        before = engine.explain("v")
    for number, name in enumerate("abc"):
        with hj.Engine(tmp_path / "w") as engine:
            assert fails(engine)
            size = {"a": 10, "b": 1000, "c": 5000}[name]
            engine.apply({name: [{"k": -n - 1, "x": 1, "z": 1} for n in range(size)]}, time=2 + number)
    with hj.Engine(tmp_path / "w") as engine:
        assert engine.explain("v") != before
        engine.apply({"b": hj.deletes([{"k": 1, "x": 0, "z": z} for z in (1, 2)])}, time=9)
        assert not fails(engine)


def test_errors_kept_in_an_older_form_go_with_their_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as older:
        older.setattr(failures, "codes", lambda columns, length: np.arange(7, 7 + length))
        with hj.Engine(tmp_path / "w") as engine:
            engine.execute("CREATE TABLE t (k bigint)")
            engine.execute("CREATE MATERIALIZED VIEW v AS SELECT 12/k AS q FROM t")
            engine.execute("CREATE MATERIALIZED VIEW above AS SELECT 12/q AS q FROM v")
            engine.apply({"t": [{"k": 0}, {"k": 13}]}, time=0)
            engine.apply({"t": [{"k": 0}]}, time=1)
            engine.flush()
            engine._store._journal.keep(errors="")  # as it was before there were forms
    with hj.Engine(tmp_path / "w", read_only=True) as reader:
        assert fails(reader) and fails(reader, "above")
    for _ in range(2):
        with hj.Engine(tmp_path / "w") as engine:
            assert fails(engine) and fails(engine, "above") and fails(engine, as_of=0)
    with hj.Engine(tmp_path / "w") as engine:
        engine.apply({"t": hj.deletes([{"k": 0}] * 2 + [{"k": 13}])}, time=2)
        assert not fails(engine) and not fails(engine, "above") and fails(engine, as_of=1)


def test_errors_in_the_words_of_another_version_go_with_their_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Versions of Arrow print numbers differently, and an error's text is a part of it."""
    assert pa.__version__ in failures.FORM and hj.__version__ in failures.FORM
    with monkeypatch.context() as other:
        other.setattr(failures, "_as_text", lambda column: pa.array(["1E10"] * len(column)))
        other.setattr(warehouse, "ERRORS_FORM", "3 0.0.9 25.0.0")
        with hj.Engine(tmp_path / "w", clock="own") as engine:
            engine.execute("CREATE TABLE t (k bigint, x double precision)")
            engine.execute("CREATE MATERIALIZED VIEW v AS SELECT k / (x::bigint - 10000000000) AS q FROM t")
            engine.apply({"t": [{"k": 0, "x": 1e10}]}, time=0)
            assert fails(engine)
    with hj.Engine(tmp_path / "w") as engine:
        engine.apply({"t": hj.deletes([{"k": 0, "x": 1e10}])}, time=1)
        assert not fails(engine)


def test_a_row_with_a_far_date_is_told() -> None:
    engine = hj.Engine(clock="own")
    engine.execute("CREATE TABLE t (d date); CREATE MATERIALIZED VIEW v AS SELECT d::timestamp AS at FROM t")
    engine.apply({"t": pa.table({"d": pa.array([2_145_042_905], pa.int32()).cast(pa.date32())})}, time=1)
    with pytest.raises(hj.DataError, match=r"t\.d = 5874897-12-31"):
        engine.read("v")


def test_an_error_made_by_spark_goes_by_this_process(spark: Any, tmp_path: Path) -> None:
    view = "SELECT t.k AS a, 12/t.k AS q FROM t JOIN u ON t.v = u.v WHERE t.k < 5 AND 6/(t.k + u.k + 1) > -9"
    given = pa.table({"k": [0, 0], "v": [1, 2], "__diff": [1, -1]})
    with hj.Engine(tmp_path / "w", runner="spark", spark=spark) as engine:
        engine.execute("CREATE TABLE t (k bigint, v bigint); CREATE TABLE u (k bigint, v bigint)")
        engine.execute(f"CREATE MATERIALIZED VIEW v AS {view}")
        engine.apply({"u": [row(0, 1), row(0, 2)]}, time=0)
        engine.apply({"t": given}, time=1)
        assert fails(engine)
    with hj.Engine(tmp_path / "w", runner="local") as engine:
        assert fails(engine)
        engine.apply({"t": [row(0, 1, -1), row(0, 2)]}, time=2)
        assert not fails(engine)
