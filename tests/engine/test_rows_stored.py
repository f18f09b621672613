"""Rows as values of columns: what Python gives and gets, and what is kept on disk."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import halfjoin as hj
from halfjoin.engine.updates.codes import codes, factorize, same
from tests.support.kernels import both_ways  # noqa: F401  # a fixture

TYPES = ("CREATE TYPE pair AS (a integer, b text)",
         "CREATE TYPE deep AS (p pair, i interval, n numeric(8,2), ps pair[])",
         "CREATE TABLE t (k integer PRIMARY KEY, r pair, d deep, CHECK ((r).a < 100))")  # fmt: skip


def made(**options: Any) -> hj.Engine:
    engine = hj.Engine(**options)
    for statement in TYPES:
        engine.execute(statement)
    return engine


def test_python_gives_rows_as_tuples_lists_and_dicts() -> None:
    engine = made()
    engine.execute("CREATE MATERIALIZED VIEW v AS SELECT r, count(*) AS n FROM t GROUP BY r")
    engine.apply({"t": [{"k": 1, "r": (1, "x")}, {"k": 2, "r": {"b": "x", "a": 1}}, {"k": 3, "r": [2, None]},
                        {"k": 4, "r": {"a": 2}}, {"k": 5, "r": None}]})  # fmt: skip
    assert sorted(engine.read("v").to_pylist(), key=str) == [
        {"r": None, "n": 1}, {"r": {"a": 1, "b": "x"}, "n": 2}, {"r": {"a": 2, "b": None}, "n": 2}]
    engine.apply({"t": hj.upserts([{"k": 5, "r": (1, "x")}])})
    rows = pa.table({"k": [6], "d": pa.array([{"p": {"b": "q", "a": 7}, "i": None, "n": Decimal("1.5"), "ps": None}])})
    engine.apply({"t": rows})
    assert engine.query("SELECT r, (d).p.b, d FROM t WHERE k > 4 ORDER BY k").to_pylist() == [
        {"r": {"a": 1, "b": "x"}, "b": None, "d": None},
        {"r": None, "b": "q", "d": {"p": {"a": 7, "b": "q"}, "i": None, "n": Decimal("1.50"), "ps": None}}]


def test_objects_of_json_stand_for_rows() -> None:
    engine = made()
    deep = '{"p": {"a": 5, "b": "q"}, "n": 1.50, "ps": [{"a": 6}, null], "i": "1 day"}'
    for n, value in enumerate((deep, pa.array([deep]))):
        rows = {"k": [n], "d": value} if n else [{"k": n, "d": value}]
        engine.apply({"t": pa.table(rows) if n else rows})
    assert engine.query("SELECT DISTINCT (d).p, (d).n, (d).ps, (d).i::text FROM t").to_pylist() == [
        {"p": {"a": 5, "b": "q"}, "n": Decimal("1.50"), "ps": [{"a": 6, "b": None}, None], "i": "1 day"}]
    with pytest.raises(hj.InvalidRow, match="fields a, b"):
        engine.apply({"t": [{"k": 5, "r": '{"a": 1, "c": 2}'}]})


@pytest.mark.parametrize(("value", "part"), [
    ((1,), "not a valid pair"), ((1, "x", 2), "not a valid pair"), ({"c": 1}, "fields a, b"), (5, "not a valid pair"),
    (("1", "x"), "not a valid pair"), ("(1,x)", "tuples or dicts"), ((1, "a\0"), "NUL"), ((200, "x"), "violates check"),
])  # fmt: skip
def test_a_row_that_does_not_fit_is_refused_with_its_place(value: Any, part: str) -> None:
    engine = made()
    with pytest.raises(hj.InvalidRow, match=part) as caught:
        engine.apply({"t": [{"k": 1, "r": (1, "x")}, {"k": 2, "r": value}]})
    assert caught.value.row == 1
    assert not engine.read("t").num_rows


def test_a_retry_with_another_row_inside_is_a_conflict() -> None:
    engine = made()
    engine.apply({"t": [{"k": 1, "r": (1, "x")}]}, batch_id="one")
    engine.apply({"t": [{"k": 1, "r": (1, "x")}]}, batch_id="one")
    for other in ((1, "y"), (None, "x"), None):
        with pytest.raises(hj.Conflict):
            engine.apply({"t": [{"k": 1, "r": other}]}, batch_id="one")


def test_rows_are_kept_in_delta_as_structs(tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake")
    sql = "SELECT k, d, ROW(r, k) AS made, array_agg(r) OVER (ORDER BY k) AS rs FROM t"
    with made(warehouse=tmp_path) as engine:
        engine.execute(f"CREATE MATERIALIZED VIEW v AS {sql}")
        engine.execute("INSERT INTO t VALUES "
                       "(1, ROW(1, 'x'), ROW(ROW(2, 'y'), '1 month', 1.5, ARRAY[ROW(3, 'z')::pair, NULL])), "
                       "(2, NULL, ROW(NULL, NULL, NULL, NULL)), (3, ROW(NULL, NULL), NULL)")  # fmt: skip
        engine.flush()
        engine.execute("DELETE FROM t WHERE k = 2")
        before = engine.read("v").to_pylist()
    with hj.Engine(tmp_path) as engine:
        assert engine.read("v").to_pylist() == before
        engine.execute("UPDATE t SET r.b = 'new', d.p.a = 9 WHERE k = 1")
        engine.flush()
        engine.compact()
        assert engine.read("v").to_pylist() == engine.query(f"SELECT * FROM ({sql}) q").to_pylist()
        assert engine.query("SELECT (d).p.a, made FROM v WHERE k = 1").to_pylist() == [
            {"a": 9, "made": {"f1": {"a": 1, "b": "new"}, "f2": 1}}]
    kept = deltalake.DeltaTable(str(tmp_path / "tables" / "t")).to_pyarrow_table().to_pylist()
    assert {"a": 1, "b": "new"} in [row["r"] for row in kept]
    with hj.Engine(tmp_path, read_only=True) as engine:
        found = engine.query("SELECT count(*) AS n FROM v WHERE (made).f1 = ROW(1, 'new')::pair")
        assert found.to_pylist() == [{"n": 1}]


def test_a_sink_writes_rows_as_structs(tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake")
    with made() as engine:
        engine.execute("CREATE MATERIALIZED VIEW v AS SELECT k, r, ROW(time '10:00', interval '1 day') AS x FROM t")
        engine.execute(f"CREATE SINK s FROM v INTO DELTA '{tmp_path / 'out'}'")
        engine.execute("INSERT INTO t VALUES (1, ROW(1, 'x')), (2, NULL)")
        engine.execute("UPDATE t SET r.b = 'y' WHERE k = 1")
        engine.flush()
    rows = deltalake.DeltaTable(str(tmp_path / "out")).to_pyarrow_table().to_pylist()
    assert sorted((row["k"], str(row["r"]), row["x"]["f1"]) for row in rows) == [
        (1, "{'a': 1, 'b': 'y'}", 36_000_000_000), (2, "None", 36_000_000_000)]


def test_names_of_fields_that_differ_only_in_case_are_told_apart_in_files(tmp_path: Path) -> None:
    with hj.Engine(tmp_path) as engine:
        engine.execute("CREATE TABLE t (a integer, b integer)")
        engine.execute("CREATE MATERIALIZED VIEW v AS SELECT r, (r).\"A\" AS x FROM (SELECT q AS r FROM "
                       "(SELECT a, b AS \"A\" FROM t) AS q) AS s")  # fmt: skip
        engine.execute("INSERT INTO t VALUES (1, 2)")
        engine.flush()
    with hj.Engine(tmp_path) as engine:
        assert engine.read("v").to_pylist() == [{"r": {"a (1)": 1, "A (2)": 2}, "x": 2}]


def test_equal_rows_have_equal_codes_and_numbers() -> None:
    kind = pa.struct([("a", pa.float64()), ("b", pa.list_(pa.struct([("c", pa.string())])))])
    rows = [{"a": 0.0, "b": [{"c": "x"}]}, {"a": -0.0, "b": [{"c": "x"}]}, {"a": float("nan"), "b": None}, None,
            {"a": None, "b": None}, {"a": float("nan"), "b": None}, None, {"a": 0.0, "b": [None]}, {"a": 0.0, "b": []}]
    column = pa.array(rows, kind)
    wanted = [0, 0, 2, 3, 4, 2, 3, 7, 8]
    for numbers in (codes([column], len(rows)), codes([column, column], len(rows)), factorize(column)):
        assert [numbers.tolist().index(number) for number in numbers.tolist()] == wanted
    for shift in range(len(rows)):
        other = pa.concat_arrays([column[shift:], column[:shift]])
        assert same(column, other).tolist() == [one == two for one, two in zip(
            wanted, wanted[shift:] + wanted[:shift], strict=True)]
