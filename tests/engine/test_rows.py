"""Rows in every form that a batch accepts, and the values that are refused."""

import datetime as dt
import mmap
import re
import sqlite3
import uuid
from collections import namedtuple
from contextlib import closing
from decimal import Decimal

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pydantic
import pytest
from pyspark.sql import Row

import halfjoin as hj
from halfjoin.engine.arrange import expand

Named = namedtuple("Named", ["x"])
TABLE = """
CREATE TABLE t (
  b boolean, s smallint, i integer NOT NULL, l bigint, r real, d double precision, n numeric(8,2), x text,
  v varchar(3), c char(3), y bytea, a date, o time, p timestamp, z timestamptz, u uuid, e integer[]
)
"""
ROW = {
    "b": True, "s": 1, "i": 2, "l": 3, "r": 1.5, "d": 2.5, "n": Decimal("12.30"), "x": "text", "v": "abc", "c": "ab",
    "y": b"\x00", "a": dt.date(2024, 2, 29), "o": dt.time(1, 2, 3), "p": dt.datetime(2024, 1, 2, 3, 4, 5),
    "z": dt.datetime(2024, 1, 2, 3, tzinfo=dt.UTC), "u": str(uuid.UUID(int=5)), "e": [1, None],
}  # fmt: skip


@pytest.fixture
def engine():
    with hj.Engine() as engine:
        engine.execute(TABLE)
        yield engine


def only_row(engine):
    (row,) = engine.read("t").to_pylist()
    return row


def test_a_row_comes_back_as_it_went_in(engine):
    engine.apply({"t": [ROW]}, time=1)
    assert only_row(engine) == ROW


@pytest.mark.parametrize(
    "form",
    [
        lambda rows: pa.Table.from_pylist(rows),
        lambda rows: pa.RecordBatch.from_pylist(rows),
        lambda rows: pa.Table.from_pylist(rows).to_reader(),
        lambda rows: rows_of(rows),
        lambda rows: pa.concat_tables([pa.Table.from_pylist(rows), pa.Table.from_pylist(rows)]).slice(1, 1),
        lambda rows: duckdb.arrow(pa.Table.from_pylist(rows)),
    ],
)
def test_every_form_of_rows(engine, form):
    rows = [{"i": 7, "x": "seven", "n": 7}]
    engine.apply({"t": form(rows)}, time=1)
    assert {name: only_row(engine)[name] for name in ("i", "x", "n")} == {"i": 7, "x": "seven", "n": Decimal("7.00")}


def rows_of(rows):
    return {name: [row[name] for row in rows] for name in rows[0]}


@pytest.mark.parametrize(
    ("column", "given", "kept"),
    [
        ("i", pa.array([5.0]), 5),
        ("d", [1], 1.0),
        ("n", [2], Decimal("2.00")),
        ("n", [0.1], Decimal("0.10")),
        ("n", ["3.25"], Decimal("3.25")),
        ("n", pa.array([2**40 // 2**30], pa.int64()), Decimal("1024.00")),
        ("x", pa.array(["a"], pa.large_string()), "a"),
        ("x", pa.array(["a"], pa.string_view()), "a"),
        ("x", pa.array(["a"]).dictionary_encode(), "a"),
        ("y", pa.array([b"a"], pa.binary_view()).dictionary_encode(), b"a"),
        ("x", pa.RunEndEncodedArray.from_arrays([1, 2], pa.array(["b", "a"]).dictionary_encode()).slice(1), "a"),
        ("x", pa.RunEndEncodedArray.from_arrays([1], pa.array(["a"], pa.string_view())), "a"),
        ("y", pa.RunEndEncodedArray.from_arrays([1], pa.array([b"a"], pa.binary_view()).dictionary_encode()), b"a"),
        ("c", ["a  "], "a"),
        ("a", ["2024-02-29"], dt.date(2024, 2, 29)),
        ("a", [dt.datetime(2024, 2, 29)], dt.date(2024, 2, 29)),
        ("o", ["03:04:05.6"], dt.time(3, 4, 5, 600000)),
        ("p", ["2024-01-02 03:04:05"], dt.datetime(2024, 1, 2, 3, 4, 5)),
        ("p", pa.array([1], pa.timestamp("s")), dt.datetime(1970, 1, 1, 0, 0, 1)),
        ("z", ["2024-01-02 03:04:05+02:00"], dt.datetime(2024, 1, 2, 1, 4, 5, tzinfo=dt.UTC)),
        ("z", [dt.datetime(2024, 1, 2)], dt.datetime(2024, 1, 2, tzinfo=dt.UTC)),
        ("u", [uuid.UUID(int=7)], str(uuid.UUID(int=7))),
        ("u", [str(uuid.UUID(int=255)).upper()], str(uuid.UUID(int=255))),
        ("e", pa.array([[1, 2]], pa.large_list(pa.int64())), [1, 2]),
        ("e", ["{1,NULL,3}"], [1, None, 3]),
        ("l", pa.nulls(1), None),
    ],
)
def test_values_are_widened_and_parsed(engine, column, given, kept):
    columns = {"i": [1]} | {column: given}
    engine.apply({"t": pa.table(columns) if isinstance(given, pa.Array) else columns}, time=1)
    assert only_row(engine)[column] == kept


@pytest.mark.parametrize(
    ("column", "value", "why"),
    [
        ("i", "5", "t.i: row 1: '5' is not a valid integer"),
        ("i", 1.5, "t.i: row 1: 1.5 is not a valid integer"),
        ("i", True, "t.i: row 1: True is not a valid integer"),
        ("s", 70000, "t.s: row 1: 70000 is out of range for smallint"),
        ("b", 1, "t.b: row 1: 1 is not a valid boolean"),
        ("n", Decimal("1.005"), "t.n: row 1: Decimal('1.005') is not a valid numeric(8,2); round it to 2 digits after "
                                "the point, or give the column more of them"),
        ("n", Decimal("NaN"), "t.n: row 1: Decimal('NaN') is not a valid numeric(8,2); declare the column double "
         "precision"),
        ("n", Decimal("1234567.00"), "t.n: row 1: Decimal('1234567.00') is not a valid numeric(8,2)"),
        ("v", "abcd", "t.v: row 1: 'abcd' is not a valid varchar(3)"),
        ("x", 5, "t.x: row 1: 5 is not a valid text"),
        ("a", "2023-02-29", "t.a: row 1: '2023-02-29' is not a valid date"),
        ("a", dt.datetime(2024, 2, 29, 5), "t.a: row 1: datetime.datetime(2024, 2, 29, 5, 0) is not a valid date"),
        ("u", "not-a-uuid", "t.u: row 1: 'not-a-uuid' is not a valid uuid"),
        ("e", 5, "t.e: row 1: 5 is not a valid integer[]"),
        ("e", "1,2", "t.e: row 1: '1,2' is not a valid integer[]: malformed array literal: \"1,2\""),
        ("e", "{1,x}", "t.e: row 1: '{1,x}' is not a valid integer[]: invalid input syntax for type integer: \"x\""),
        ("i", None, "t.i: row 1: is NULL, and the column is NOT NULL"),
    ],
)
def test_refused_values_name_table_column_row_and_value(engine, column, value, why):
    rows = [{"i": 0}, {"i": 1} | {column: value}]
    with pytest.raises(hj.InvalidRow) as caught:
        engine.apply({"t": rows}, time=1)
    assert str(caught.value) == why
    assert engine.read("t").num_rows == 0


@pytest.mark.parametrize(
    ("column", "given", "why"),
    [
        ("o", pa.array([90_000_000_000], pa.time64("us")), "t.o: row 0: 90000000000 is not a valid time"),
        ("o", pa.array([-1], pa.time32("s")), "t.o: row 0: -1 is not a valid time"),
        ("p", pa.array([2**62], pa.timestamp("s")), "t.p: row 0: 4611686018427387904 is not a valid timestamp"),
        ("r", pa.array([1e300]), "t.r: row 0: 1e+300 is not a valid real"),
    ],
)
def test_values_that_only_arrow_has(column, given, why):
    with hj.Engine() as engine:
        engine.execute("CREATE TABLE t (o time, p timestamp, r real)")
        with pytest.raises(hj.InvalidRow) as caught:
            engine.apply({"t": pa.table({column: given})})
    assert str(caught.value) == why


def test_a_moment_becomes_a_date_in_utc(engine):
    moment = pa.array([dt.datetime(2024, 2, 29)], pa.timestamp("us", "America/Los_Angeles"))
    engine.apply({"t": pa.table({"i": [1], "a": moment})}, time=1)
    assert only_row(engine)["a"] == dt.date(2024, 2, 29)


def test_a_column_that_is_missing(engine):
    with pytest.raises(hj.InvalidRow, match=r"t\.i: row 0: is missing, and the column is NOT NULL"):
        engine.apply({"t": [{"x": "a"}]}, time=1)


def test_a_text_of_an_array_of_json_is_an_array() -> None:
    engine = hj.Engine()
    engine.execute("CREATE TABLE t (k integer, j jsonb[])")
    texts = ["{1,\"{\\\"x\\\": 1}\",NULL}", '[1, {"x": 2.5}, null, "{}"]', "{}", " [] ", None, [1, {"x": None}]]
    engine.apply({"t": {"k": [*range(len(texts))], "j": texts}})
    assert [row["j"] for row in engine.query("SELECT j FROM t ORDER BY k").to_pylist()] == [
        ["1", '{"x": 1}', None], ["1", '{"x": 2.5}', None, "{}"], [], [], None, ["1", '{"x": null}']]
    for wrong in ("nonsense", "[1", "{nonsense}", '["s"]'):
        with pytest.raises(hj.InvalidRow, match=r"is not a valid jsonb\[\]"):
            engine.apply({"t": [{"k": 9, "j": wrong}]})


def test_more_bytes_than_an_array_has_are_refused():
    """The row with which they are too many was called no valid text. Of polars' views the row was not even seen."""
    offsets, bytes_ = pa.py_buffer(np.array([0, 2**31])), pa.py_buffer(mmap.mmap(-1, 2**31))  # no memory until read
    texts = pa.Array.from_buffers(pa.large_string(), 1, [None, offsets, bytes_])
    with hj.Engine() as engine:
        engine.execute("CREATE TABLE t (x text)")
        with pytest.raises(hj.InvalidRow, match=r"^t\.x: .*more than 2,147,483,647 bytes; submit the rows in several"):
            engine.apply({"t": pa.table({"x": texts})})


def test_rows_that_no_array_holds_together_are_read_in_chunks():
    with hj.Engine() as engine, pytest.MonkeyPatch.context() as patch:
        engine.execute("CREATE TABLE t (x text)")
        engine.apply({"t": [{"x": "a"}, {"x": "b", "__diff": 2}]})
        engine.apply({"t": [{"x": "c"}]})
        patch.setattr(expand, "concat", _refusing)
        assert sorted(engine.read("t")["x"].to_pylist()) == ["a", "b", "b", "c"]


def _refusing(parts: object) -> None:
    raise hj.DataError("too long")


class Model(pydantic.BaseModel):
    x: str


def _of_a_driver() -> list[sqlite3.Row]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.row_factory = sqlite3.Row
        return connection.execute("SELECT 'a' AS x").fetchall()


@pytest.mark.parametrize(("given", "remedy"), [
    ([pa.record_batch({"x": ["a"]})], r"give pa\.Table\.from_batches"), ([("a",)], r"give \{'column': value"),
    (iter([{"x": "a"}]), "give a list of the rows, or pa.RecordBatchReader"), ([Named("a")], r"give the _asdict\(\)"),
    (ds.dataset(pa.table({"x": ["a"]})), r"give the InMemoryDataset's to_table\(\)"),
    (np.array([("a",)], [("x", "U1")]), "give a pandas.DataFrame of it"),
    ([Model(x="a")], r"give the model_dump\(\) of each"),
    (_of_a_driver(), r"give dict\(\.\.\.\) of each"), ([Row(x="a")], r"give the asDict\(\) of each"),
])  # fmt: skip
def test_what_is_no_rows_is_told_how_to_be_given(given, remedy):
    with hj.Engine() as engine:
        engine.execute("CREATE TABLE t (x text)")
        with pytest.raises(hj.InvalidRow, match=rf"^t: .*; {remedy}"):
            engine.apply({"t": given})


@pytest.mark.parametrize("of", [pa.decimal32(5, 2), pa.decimal64(5, 2), pa.decimal128(5, 2), pa.decimal256(5, 2),
                                pa.decimal128(5, -2)], ids=str)  # fmt: skip
@pytest.mark.parametrize("kind", ["smallint", "bigint", "real", "double precision", "numeric(5, 2)"])
def test_a_decimal_of_any_width_is_a_number(of, kind):
    with hj.Engine() as engine:
        engine.execute(f"CREATE TABLE t (x {kind})")
        engine.apply({"t": pa.table({"x": pa.array([Decimal(100), None], of)})})
        assert engine.read("t")["x"].to_pylist() == [100, None]


MASKED = np.ma.array([1, 2], mask=[False, True])


@pytest.mark.parametrize(("kind", "given", "wanted"), [
    ("bigint[]", MASKED, [1, None]), ("bigint[][]", np.ma.array([[1, 2]], mask=[[False, True]]), [[1, None]]),
    ("bigint[][]", np.arange(4).reshape(2, 2), [[0, 1], [2, 3]]), ("bigint", MASKED[1], None),
    ("date[]", np.array(["2024-02-29"], "M8[D]"), [dt.date(2024, 2, 29)]),
    ("date[]", np.ma.array(np.array(["2024-02-29"] * 2, "M8[us]"), mask=[True, False]), [None, dt.date(2024, 2, 29)]),
    ("jsonb", MASKED, "[1, null]"), ("pair", pd.NA, None), ("pair", {"k": 1, "a": MASKED}, {"k": 1, "a": [1, None]}),
    ("pair[]", np.array([{"k": 1, "a": None}, None], object), [{"k": 1, "a": None}, None]),
], ids=str)  # fmt: skip
@pytest.mark.parametrize("form", ["dicts", "columns", "pandas"])
def test_values_that_numpy_masks_are_null(kind, given, wanted, form):
    rows = {"dicts": [{"x": given}, {"x": None}], "columns": {"x": [given, None]},
            "pandas": pd.DataFrame({"x": pd.Series([given, None], dtype=object)})}[form]  # fmt: skip
    with hj.Engine() as engine:
        engine.execute(f"CREATE TYPE pair AS (k integer, a bigint[]); CREATE TABLE t (x {kind})")
        engine.apply({"t": rows})
        assert engine.read("t")["x"].to_pylist() == [wanted, None]


@pytest.mark.parametrize("form", ["df", "fetchnumpy"])
def test_what_duckdb_gives_to_numpy_and_pandas_keeps_its_nulls(form):
    row = "[1, NULL] AS i, [true, NULL] AS b, [NULL, DATE '2024-02-29'] AS d, 5 AS k"
    found = duckdb.sql(f"SELECT {row} UNION ALL SELECT NULL, NULL, NULL, NULL")
    with hj.Engine() as engine:
        engine.execute("CREATE TABLE t (i integer[], b boolean[], d date[], k integer)")
        engine.apply({"t": getattr(found, form)()})
        assert sorted(engine.read("t").to_pylist(), key=str) == [
            dict.fromkeys("ibdk"), {"i": [1, None], "b": [True, None], "d": [None, dt.date(2024, 2, 29)], "k": 5},
        ]  # fmt: skip


@pytest.mark.parametrize(("kind", "given"), [
    ("jsonb", pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], names=["x", "x"])),
    ("timestamp[]", pa.ListArray.from_arrays(pa.array([0, 1]), pa.array([2**62]).view(pa.timestamp("s")))),
    ("date[]", pa.ListArray.from_arrays(pa.array([0, 1]), pa.array([10**17]).view(pa.date64()))),
])  # fmt: skip
def test_what_python_cannot_show_is_refused_by_its_type(kind: str, given: pa.Array) -> None:
    with hj.Engine() as engine:
        engine.execute(f"CREATE TABLE x (a {kind})")
        with pytest.raises(hj.InvalidRow, match=rf"x.a: row 0: .*Type\(.*\) is not a valid {re.escape(kind)}"):
            engine.apply({"x": pa.table({"a": given})}, time=1)


def test_a_value_of_numpy_is_no_column() -> None:
    with hj.Engine() as engine, pytest.raises(hj.InvalidRow, match="the column a is ndarray, not a list"):
        engine.execute("CREATE TABLE x (a bigint)")
        engine.apply({"x": {"a": np.array(5)}})


def test_a_time_of_a_row_is_in_whole_milliseconds() -> None:
    with hj.Engine(clock="own") as engine:
        engine.execute("CREATE TABLE x (a bigint)")
        moments = pa.array([0, 999_999, 1_999_999], pa.timestamp("ns"))
        applied = engine.apply({"x": pa.table({"a": [1, 2, 3], "__time": moments})}, time=0)
        assert applied.upper == 2
        assert engine.read("x", as_of=0)["a"].to_pylist() == [1, 2]
        with pytest.raises(hj.InvalidTime, match=r"x\.__time has a time beyond the year 294247"):
            engine.apply({"x": pa.table({"a": [1], "__time": pa.array([2**62], pa.timestamp("s"))})}, time=2)
