"""A value means the same in every form of input, and no value is changed silently."""

import datetime as dt
import math
from decimal import Decimal
from fractions import Fraction

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute
import pytest

import halfjoin as hj

NAN = float("nan")


def kept(kind, rows):
    with hj.Engine(runner="local") as engine:
        engine.execute(f"CREATE TABLE t (x {kind})")
        engine.apply({"t": rows}, time=1)
        return engine.read("t")["x"].to_pylist()


def forms(array):
    """The same values in each form except Spark's, by the form's name."""
    table, values = pa.table({"x": array}), array.to_pylist()
    found = {
        "arrow": table,
        "batch": table.to_batches()[0],
        "reader": table.to_reader(),
        "polars": pl.from_arrow(table),
        "duckdb": duckdb.arrow(table),
        "dicts": [{"x": value} for value in values],
        "columns": {"x": values},
        "column": {"x": array},
        "pandas of arrow": table.to_pandas(types_mapper=pd.ArrowDtype),
    }
    if not array.null_count:
        found["pandas"] = table.to_pandas()
        found["series"] = {"x": table.to_pandas()["x"]}
    return found


MATRIX = [
    ("numeric(8,2)", pa.array([0.5, 2.25, 1.1, -0.07, 100000.01]), ["0.50", "2.25", "1.10", "-0.07", "100000.01"]),
    ("numeric(8,2)", pa.array([0.125]), "0.125 is not a valid numeric(8,2)"),
    ("numeric(8,2)", pa.array([0.1 + 0.2]), "0.30000000000000004 is not a valid numeric(8,2)"),
    ("numeric(3,0)", pa.array([2.5]), "2.5 is not a valid numeric(3,0)"),
    ("numeric(8,2)", pa.array([math.inf]), "inf is not a valid numeric(8,2)"),
    ("numeric(8,2)", pa.array([Decimal("1.500"), None]), ["1.50", None]),
    ("numeric(8,2)", pa.array([Decimal("1.005")]), "Decimal('1.005') is not a valid numeric(8,2)"),
    ("double precision", pa.array([2**53, -(2**54), 2**62]), [2.0**53, -(2.0**54), 2.0**62]),
    ("double precision", pa.array([1, 2**53 + 1]), "9007199254740993 is not a valid double precision"),
    ("double precision", pa.array([-(2**53) - 1]), "-9007199254740993 is not a valid double precision"),
    ("double precision", pa.array([Decimal("0.1")]), [0.1]),
    ("double precision", pa.array([Decimal("0.10000000000000000001")]), "is not a valid double precision"),
    ("double precision", pa.array([0.1, None, math.inf]), [0.1, None, math.inf]),
    ("real", pa.array([0.1, 1.5, None]), [np.float32(0.1), 1.5, None]),
    ("real", pa.array([0.123456789]), "0.123456789 is not a valid real"),
    ("real", pa.array([1e-300]), "1e-300 is not a valid real"),
    ("real", pa.array([2**24, 2**30]), [2.0**24, 2.0**30]),
    ("real", pa.array([2**24 + 1]), "16777217 is not a valid real"),
    ("integer", pa.array([1.0, 2.0, None]), [1, 2, None]),
    ("integer", pa.array([1.5]), "1.5 is not a valid integer"),
    ("bigint", pa.array([2**31, None]), [2**31, None]),
    ("integer", pa.array([2**31]), "2147483648 is out of range for integer"),
    ("integer", pa.array([True]), "True is not a valid integer"),
    ("text", pa.array(["a", None, ""]), ["a", None, ""]),
    ("text", pa.array([1]), "1 is not a valid text"),
    ("varchar(2)", pa.array(["ab ", "a"]), "'ab ' is not a valid varchar(2)"),
    ("boolean", pa.array([True, None]), [True, None]),
    ("date", pa.array([dt.date(2024, 2, 29)]), [dt.date(2024, 2, 29)]),
    ("timestamp", pa.array([dt.datetime(2024, 1, 1, 2)]), [dt.datetime(2024, 1, 1, 2)]),
]


@pytest.mark.parametrize(("kind", "array", "outcome"), MATRIX, ids=[f"{m[0]} {i}" for i, m in enumerate(MATRIX)])
def test_a_value_means_the_same_in_every_form(kind, array, outcome):
    for form, rows in forms(array).items():
        if isinstance(outcome, str):
            with pytest.raises(hj.InvalidRow) as caught:
                kept(kind, rows)
            assert outcome in str(caught.value), form
        else:
            found = [str(value) if isinstance(value, Decimal) else value for value in kept(kind, rows)]
            assert found == [None if value is None else value for value in outcome], form


@pytest.mark.parametrize("kind", ["integer", "numeric(8,2)", "text", "timestamp", "date", "boolean"])
def test_nan_is_null_where_a_column_has_no_nan(kind):
    for form in ("arrow", "batch", "polars", "duckdb", "dicts", "columns", "column", "pandas", "series"):
        assert kept(kind, forms(pa.array([NAN]))[form]) == [None], form


def test_a_frame_with_gaps_means_what_its_dicts_mean():
    frame = pd.DataFrame({"k": [1, 2], "name": ["a", np.nan], "n": [1.0, np.nan],
                          "at": [pd.Timestamp("2024-01-01"), pd.NaT]})  # fmt: skip
    found = []
    for rows in (frame, frame.to_dict("records"), frame.to_dict("list"), frame.convert_dtypes().to_dict("records"),
                 frame.astype(object)):  # fmt: skip
        with hj.Engine() as engine:
            engine.execute("CREATE TABLE t (k integer, name text, n bigint, at timestamp)")
            engine.apply({"t": rows}, time=1)
            found.append(engine.read("t").to_pylist())
    assert found[0][1] == {"k": 2, "name": None, "n": None, "at": None}
    assert all(rows == found[0] for rows in found)


def test_nan_stays_in_a_column_of_floats():
    for form in ("arrow", "polars", "dicts", "columns", "column", "duckdb"):
        (value,) = kept("double precision", forms(pa.array([NAN]))[form])
        assert value is not None and math.isnan(value), form


def test_what_cannot_be_kept_says_what_to_do():
    for kind, value, remedy in [
        ("numeric(8,2)", 0.125, "round it to 2 digits after the point, or give the column more of them"),
        ("numeric(8,2)", Decimal("0.125"), "round it to 2 digits after the point, or give the column more of them"),
        ("double precision", 2**53 + 1, "declare the column bigint or numeric"),
        ("real", 0.123456789, "declare the column double precision"),
        ("timestamp", np.datetime64(1, "ns"), "floor the nanoseconds first"),
        ("interval", np.timedelta64(1, "ns"), "floor the nanoseconds first"),
        ("interval", pd.Timedelta(1, "ns"), "floor the nanoseconds first"),
        ("timestamptz", "2024-01-01T00:00:00.1234567Z", "leave the digits after the sixth out, or declare the column"),
        ("time", "00:00:00.0000001", "leave the digits after the sixth out, or declare the column"),
        ("time", dt.time(1, 2, tzinfo=dt.UTC), "a time has no time zone"),
        ("numeric(8,2)", Fraction(1, 4), "give a Decimal"),
        ("numeric(8,2)", np.timedelta64(5, "D"), ""),
    ]:
        with pytest.raises(hj.InvalidRow) as caught:
            kept(kind, [{"x": value}])
        assert str(caught.value).startswith(f"t.x: row 0: {value!r} is not a valid {kind}")
        assert remedy in str(caught.value)


def test_a_time_with_nanoseconds_says_what_to_do():
    with pytest.raises(hj.InvalidRow, match="1 is not a valid time; the column holds microseconds: floor the nanos"):
        kept("time", pa.table({"x": pa.array([1], pa.time64("ns"))}))


@pytest.mark.parametrize(("kind", "value", "outcome"), [
    ("date", np.datetime64("2024-02-29"), dt.date(2024, 2, 29)),
    ("date", np.datetime64("2024-02"), dt.date(2024, 2, 1)),
    ("timestamp", np.datetime64("2024-02-29"), dt.datetime(2024, 2, 29)), ("date", np.datetime64("NaT", "D"), None),
    ("timestamp", np.datetime64("2024-02-29T05"), dt.datetime(2024, 2, 29, 5)),
    ("timestamp", np.datetime64("NaT", "us"), None), ("interval", np.timedelta64("NaT", "us"), None),
    ("interval", np.timedelta64(2, "h"), pa.MonthDayNano([0, 0, 7200 * 10**9])),
])  # fmt: skip
def test_moments_of_numpy_are_taken_in_every_unit(kind, value, outcome):
    for rows in ([{"x": value}], [{"x": value}, {"x": None}], {"x": np.array([value])}):
        assert kept(kind, rows)[0] == outcome


@pytest.mark.parametrize("dtype", [pl.Categorical, pl.Enum(["a", "b"])])
def test_categories_of_polars_are_texts(dtype):
    series = pl.Series("x", ["b", None, "a"], dtype=dtype)
    for rows in (series.to_frame(), {"x": series}, pl.concat([series.to_frame(), series.to_frame()], rechunk=False)):
        assert kept("text", rows)[:3] == ["b", None, "a"]


@pytest.mark.parametrize(("rows", "why"), [
    (pl.Series("x", [1]), "not Series; give its column a name: {'column': the Series}"),
    (pd.Series([1], name="x"), "not Series; give its column a name"),
    (pl.DataFrame({"x": [1]}).lazy(), "not LazyFrame; collect it first"),
    ({"x": 1}, "one row is a list of one dict"),
    (pd.DataFrame({"x": pd.to_datetime(["2024-01-01 00:00:00.123456789"])}), "floor the nanoseconds first"),
    (pd.DataFrame({"x": [1, "a", object()]}), "t.x: row 0: 1 is not a valid timestamp"),
])  # fmt: skip
def test_what_are_no_rows_is_refused_with_the_remedy(rows, why):
    with pytest.raises(hj.InvalidRow) as caught:
        kept("timestamp", rows)
    assert why in str(caught.value)


def test_a_named_pandas_index_is_a_column():
    with hj.Engine() as engine:
        engine.execute("CREATE TABLE t (k integer, y double precision)")
        frame = pd.DataFrame({"y": [1.5, 2.5]}, index=pd.Index([7, 8], name="k"))
        engine.apply({"t": frame}, time=1)
        assert engine.read("t").to_pylist() == [{"k": 7, "y": 1.5}, {"k": 8, "y": 2.5}]
        engine.apply({"t": frame.reset_index()[["k", "y"]].iloc[1:]}, time=2)  # an index without a name is row numbers
        assert engine.read("t").num_rows == 3
        engine.apply({"t": frame.reset_index().set_index("k", drop=False)}, time=3)
        assert engine.read("t").num_rows == 5
        with pytest.raises(hj.UnknownName, match="day"):
            engine.apply({"t": frame.rename_axis("day")}, time=4)
        with pytest.raises(hj.InvalidRow, match="given twice"):
            engine.apply({"t": pd.concat([frame, frame], axis=1)}, time=4)


@pytest.mark.parametrize("kind", ["timestamp", "timestamptz", "date"])
def test_a_timestamp_of_pandas_loses_no_nanoseconds(kind):
    fine = pd.Timestamp("2020-01-01 00:00:00.000000001")
    for given in ([{"x": fine}], [{"x": None}, {"x": fine}], {"x": [fine]}):
        with pytest.raises(hj.InvalidRow, match=rf"t\.x: row {len(given) - 1}: Timestamp.* is not a valid {kind}"):
            kept(kind, given)
    assert len(kept(kind, [{"x": fine.floor("us")}])) == 1


def test_a_surrogate_in_a_frame_names_its_row():
    with pytest.raises(hj.InvalidRow, match=r"t\.x: row 1: '\\ud800' is not a valid text"):
        kept("text", pd.DataFrame({"x": pd.Series(["a", "\ud800"], dtype=object)}))


DAY, FIVE = dt.date(2020, 1, 1), dt.datetime(2020, 1, 1, 5)
MIDNIGHT = dt.datetime(2020, 1, 1)


@pytest.mark.parametrize(("kind", "values", "expected"), [
    ("timestamp", [DAY, FIVE, None], [MIDNIGHT, FIVE, None]),
    ("timestamp", [FIVE, DAY], [FIVE, MIDNIGHT]),
    ("timestamp", [DAY, pd.Timestamp(FIVE), "2020-01-01 05:00", pd.NaT], [MIDNIGHT, FIVE, FIVE, None]),
    ("timestamp[]", [[DAY, FIVE], None, []], [[MIDNIGHT, FIVE], None, []]),
    ("numeric(10,2)", [Decimal("1.5"), 2.5, 3, "4", NAN], [Decimal("1.50"), Decimal("2.50"), 3, 4, None]),
    ("numeric(38,0)", [10**37, -1], [10**37, -1]),
    ("double precision", [1, 2.5, Decimal("1.25")], [1.0, 2.5, 1.25]),
    ("interval", [dt.timedelta(1), "1 month"], [pa.MonthDayNano([0, 1, 0]), pa.MonthDayNano([1, 0, 0])]),
])  # fmt: skip
def test_each_value_has_its_own_type(kind, values, expected):
    """Arrow reads all values as the type of the first: it cuts a datetime after a date."""
    frame = pd.DataFrame({"x": pd.Series(values, dtype=object)})
    for rows in ([{"x": value} for value in values], {"x": values}, frame, {"x": frame["x"]}):
        found = kept(kind, rows)
        assert sorted(found, key=str) == sorted(expected, key=str)


@pytest.mark.parametrize(("kind", "values", "row"), [
    ("date", [DAY, FIVE], 1),
    ("date", [DAY, pd.Timestamp(FIVE)], 1),
    ("date[]", [[DAY], [DAY, FIVE]], 1),
    ("timestamp[]", [[pd.Timestamp("2020-01-01 00:00:00.000000001")]], 0),
    ("numeric[]", [[Decimal("NaN")]], 0),
    ("text", [1, "x"], 0),
    ("bigint", [1, 2.0, True], 2),
    ("bigint", [1, 2**70], 1),
])  # fmt: skip
def test_a_value_that_is_not_of_the_type_is_refused_whatever_is_beside_it(kind, values, row):
    for rows in ([{"x": value} for value in values], pd.DataFrame({"x": pd.Series(values, dtype=object)})):
        with pytest.raises(hj.InvalidRow, match=rf"t\.x: row {row}: "):
            kept(kind, rows)


@pytest.mark.parametrize("values", [
    [{"k": 1}, {"k": 2}], [{"k": 1}, {"j": [2.5]}, None], [[1], [2, 3]], [1, 2], [True],
])  # fmt: skip
def test_a_jsonb_takes_objects_and_lists_in_every_form(values):
    """pandas' frames with dicts are common; no object gets a key that another one has."""
    frame = pd.DataFrame({"x": pd.Series(values, dtype=object)})
    expected = kept("jsonb", [{"x": value} for value in values])
    for rows in ({"x": values}, frame, {"x": frame["x"]}):
        assert sorted(kept("jsonb", rows), key=str) == sorted(expected, key=str)


def test_a_jsonb_takes_structs_lists_and_maps_of_arrow():
    assert kept("jsonb", pa.table({"x": [{"k": 1, "z": None}]})) == ['{"k": 1, "z": null}']
    assert kept("jsonb", pl.DataFrame({"x": [{"k": [1.5]}]})) == ['{"k": [1.5]}']
    assert kept("jsonb", pa.table({"x": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64()))})) == ['{"k": 1}']
    with pytest.raises(hj.InvalidRow, match=r"t\.x: row 1: "):
        kept("jsonb", pa.table({"x": [{"k": None}, {"k": dt.datetime(2020, 1, 1)}]}))


def test_arrow_in_runs_and_views():
    runs = pa.compute.run_end_encode(pa.array(["a", "a", None]))
    assert kept("text", pa.table({"x": runs})) == ["a", "a", None]
    assert kept("bigint[]", pa.table({"x": pa.array([[1, 2], None], pa.list_view(pa.int64()))})) == [[1, 2], None]


@pytest.mark.parametrize("view", [pa.list_view, pa.large_list_view])
def test_arrow_in_views_of_lists_keeps_all_elements(view):
    """Arrow's cast to a list lost elements of views without NULLs, and of those in another order than their values."""
    assert kept("bigint[]", pa.table({"x": pa.array([[1], [2, 3], []], view(pa.int64()))})) == [[1], [2, 3], []]
    assert kept("text[]", pa.table({"x": pa.array([["a"]], view(pa.string_view()))})) == [["a"]]
    turned = pa.ListViewArray.from_arrays([2, 0, 1], [1, 2, 1], pa.array([10, 20, 30]))
    assert kept("bigint[]", pa.table({"x": turned.slice(1)})) == [[10, 20], [20]]
    assert kept("bigint[]", pa.table({"x": pa.array([[1, 2], None, [3, 4]], pa.list_(pa.int64(), 2))})) == [
        [1, 2], None, [3, 4]]  # fmt: skip


@pytest.mark.parametrize("texts", [
    pa.array(["{}", None], pa.large_string()), pa.array(["{}", None], pa.string_view()), pl.Series(["{}", None]),
    pa.array(["{}", None], pa.large_string()).dictionary_encode(), pd.Series(["{}", None], dtype="string[pyarrow]"),
])  # fmt: skip
def test_texts_of_all_kinds_are_parsed_alike(texts):
    """Those of polars and of pandas' own strings were no valid dates, timestamps, bytea and rows."""
    for kind, text, value in (
        ("date", "2024-01-02", dt.date(2024, 1, 2)), ("timestamp", "2024-01-02 03:04", dt.datetime(2024, 1, 2, 3, 4)),
        ("timestamptz", "2024-01-02 03:04+02", dt.datetime(2024, 1, 2, 1, 4, tzinfo=dt.UTC)),
        ("date", "12024-01-02", None), ("bytea", r"\xde", b"\xde"), ("pair", '{"x": 1}', {"x": 1}),
    ):  # fmt: skip
        given = pa.table({"x": pa.array([text, None]).cast(texts.type)}) if isinstance(texts, pa.Array) else (
            type(texts)([text, None], dtype=texts.dtype).to_frame("x"))  # fmt: skip
        with hj.Engine() as engine:
            engine.execute(f"CREATE TYPE pair AS (x integer); CREATE TABLE t (x {kind})")
            engine.apply({"t": given})
            found = engine.read("t")["x"]
            assert found.null_count == 1
            if value is not None:
                assert found.to_pylist()[0] == value


def test_a_table_like_a_frame_has_the_columns_that_its_rows_have():
    """An index whose name a column has was a column `__index_level_0__`, and so was one without a name in Parquet."""
    frame = pd.DataFrame({"k": [1, 2], "v": [3, 4]})
    part = frame[frame.k > 1]
    for like in (frame.set_index("k", drop=False), pa.Table.from_pandas(part), part):
        with hj.Engine() as engine:
            engine.create_table("t", like=like)
            engine.apply({"t": like})
            assert engine.read("t").column_names == ["k", "v"]
            assert {"k": 2, "v": 4} in engine.read("t").to_pylist()


@pytest.mark.parametrize(("array", "kind"), [
    (pa.array([b"0123456789abcdef"], pa.uuid()), "uuid"), (pa.array([[1, 2]], pa.list_view(pa.int64())), "bigint[]"),
    (pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1], pa.int8())), "boolean"),
    (pa.compute.run_end_encode(pa.array(["a", "a"])), "text"),
])  # fmt: skip
def test_a_table_is_like_all_rows_that_it_takes(array, kind):
    with hj.Engine() as engine:
        engine.create_table("t", like=pa.table({"x": array}))
        engine.apply({"t": pa.table({"x": array})})
        assert engine.read("t")["x"].to_pylist() == kept(kind, pa.table({"x": array}))


def test_a_table_is_like_a_dict_of_columns():
    """A dict of columns, which apply takes, had no columns."""
    like = {"a": [1, None], "b": np.array([1.5, 2]), "c": pl.Series([["x"], None]), "d": pd.Series(["x", None])}
    with hj.Engine() as engine:
        engine.create_table("t", like=like)
        engine.apply({"t": like})
        assert engine.read("t").to_pylist() == [
            {"a": 1, "b": 1.5, "c": ["x"], "d": "x"}, {"a": None, "b": 2, "c": None, "d": None}]  # fmt: skip


@pytest.mark.parametrize("like", [
    pd.DataFrame({"a": [1, "x"]}), pd.DataFrame([[1, 2]], columns=["a", "a"]), pd.DataFrame({"a": [2**70]}),
    pd.DataFrame({"a": [1j]}), pl.Series("a", [1]), pl.DataFrame({"a": [1]}, schema={"a": pl.Int128}),
    pl.LazyFrame({"a": [1]}), [{"a": 1}, {"a": "x"}],
])  # fmt: skip
def test_what_a_table_cannot_be_like_is_an_error_of_halfjoin(like):
    with hj.Engine() as engine, pytest.raises(hj.HalfjoinError):
        engine.create_table("t", like=like)


def test_a_type_of_polars_that_arrow_has_not_is_named():
    with pytest.raises(hj.InvalidRow, match=r"_pli128.*cast what Arrow does not know"):
        kept("bigint", pl.DataFrame({"x": [1]}, schema={"x": pl.Int128}))


def test_periods_of_pandas_are_no_integers():
    """Arrow has the number of months since 1970 for a month."""
    months = pd.DataFrame({"x": pd.period_range("2024-01", periods=2, freq="M")})
    for kind in ("bigint", "date", "text", "jsonb"):
        with pytest.raises(hj.InvalidRow, match=r"648 is not a valid .*; turn periods into timestamps first"):
            kept(kind, months)


def test_booleans_of_eight_bits_are_booleans():
    bits = pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, 0, None], pa.int8()))
    assert kept("boolean", pa.table({"x": bits})) == [True, False, None]
    with pytest.raises(hj.InvalidRow, match="True is not a valid bigint"):
        kept("bigint", pa.table({"x": bits}))


@pytest.mark.parametrize(("kind", "value"), [
    ("jsonb[]", {1: 2}), ("jsonb[]", {"1": 2}), ("jsonb[]", b"ab"), ("jsonb[][]", [{1: 2}]),
    ("jsonb", pa.MonthDayNano([1, 2, 3])), ("jsonb", {"a": [pa.MonthDayNano([1, 2, 3])]}),
])  # fmt: skip
def test_what_has_parts_is_no_array_of_json(kind, value):
    """A jsonb[] had the keys of a dict and the numbers of bytes, a jsonb the three numbers of an interval."""
    with pytest.raises(hj.InvalidRow, match="is not a valid jsonb"):
        kept(kind, [{"x": value}])


@pytest.mark.parametrize("value", [
    np.datetime64(1, "ns"), np.datetime64("2024-02-29"), np.timedelta64(5, "Y"), np.timedelta64(5, "ns"),
    np.array([1, 2], "datetime64[ns]"), {"a": np.timedelta64(5, "ns")}, np.longdouble(1.5), [np.longdouble(1.5)],
])  # fmt: skip
def test_what_numpy_has_and_json_has_not_is_refused(value):
    """NumPy's own plain values are integers for moments of nanoseconds and durations of years."""
    with pytest.raises(hj.InvalidRow, match="is not a valid jsonb"):
        kept("jsonb", [{"x": value}])


@pytest.mark.parametrize("value", [pd.NaT, pd.NA, NAN, np.datetime64("NaT", "D"), np.timedelta64("NaT", "us")])
def test_what_is_missing_is_null_of_jsonb_too(value):
    assert kept("jsonb", [{"x": value}]) == [None]
    assert kept("timestamp[]", [{"x": value}, {"x": [value]}]) == [None, [None]]
