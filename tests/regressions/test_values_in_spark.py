"""Values that come in a Spark DataFrame mean what they mean in every other form."""

import datetime as dt
from decimal import Decimal

import pytest

import halfjoin as hj

COLUMNS = "n numeric(8,2), d double precision, r real, e double precision, i integer, x text"
FRAME = "n double, d bigint, r double, e decimal(3,1), i double, x string"
GOOD = [
    (1.1, 2**53, 0.5, Decimal("0.1"), 2.0, "a"),
    (-0.07, -(2**54), None, None, float("nan"), None),
    (float("nan"), 2**62, float("nan"), Decimal("1.5"), None, ""),
]
BAD = [
    ({"n": 0.125}, r"t\.n: .*0\.125 is not a valid numeric\(8,2\); round it to 2 digits"),
    ({"d": 2**53 + 1}, r"t\.d: .*9007199254740993 is not a valid double precision; declare the column bigint or"),
    ({"r": 0.123456789}, r"t\.r: .*0\.123456789 is not a valid real"),
]


@pytest.fixture(scope="module")
def engines(spark):
    """An engine for frames, and one for lists."""
    with hj.Engine(spark=spark, runner="spark") as frames, hj.Engine(runner="local") as lists:
        for engine in (frames, lists):
            engine.execute(f"CREATE TABLE t (k integer, {COLUMNS}, at date)")
        yield frames, lists


def test_values_in_frames_are_those_in_lists(engines, spark):
    day, names = dt.date(2024, 1, 2), [column.split()[0] for column in FRAME.split(", ")]
    rows = [(number, *values, day) for number, values in enumerate(GOOD)]
    frame = spark.createDataFrame(rows, f"k integer, {FRAME}, at date")
    dicts = [dict(zip(("k", *names, "at"), row, strict=True)) for row in rows]
    found = []
    for engine, given in zip(engines, (frame, dicts), strict=True):
        engine.apply({"t": given}, time=1)
        found.append(sorted(map(repr, engine.read("t").to_pylist())))
    assert found[0] == found[1] and len(found[0]) == len(GOOD)


@pytest.mark.parametrize(("row", "why"), BAD, ids=[str(row) for row, _ in BAD])
def test_values_that_lists_may_not_have_frames_may_not(engines, spark, row, why):
    kinds = dict(column.split() for column in FRAME.split(", "))
    (name,) = row
    for engine, given in zip(engines, (spark.createDataFrame([tuple(row.values())], f"{name} {kinds[name]}"), [row]),
                             strict=True):  # fmt: skip
        with pytest.raises(hj.InvalidRow, match=why):
            engine.apply({"t": given}, time=2)


@pytest.mark.parametrize("runner", ["spark", "local"])
@pytest.mark.parametrize(("kind", "value", "expected"), [
    ("jsonb", "map('a', 1, 'b', null)", '{"a": 1, "b": null}'),
    ("jsonb", "struct(map('a', 1) AS s)", '{"s": {"a": 1}}'),
    ("interval[]", "array(make_interval(1, 2), null)", '{"1 year 2 mons",NULL}'),
    ("pair", "struct(1 AS `a b`, array(make_interval(1)) AS c)", '(1,"{""1 year""}")'),
    ("pair", "if(id > 0, struct(1 AS `a b`, null AS c), null)", None),
    ("pair[]", "array(struct(1 AS `a b`, array('0') AS c), null)", '{"(1,{00:00:00})",NULL}'),
    ("time[]", "array(time'10:00')", "{10:00:00}"),
])  # fmt: skip
def test_nested_values_come_with_both_runners(spark, runner, kind, value, expected):
    """A struct that is NULL and whose fields may not be, and nested intervals, were errors of pyarrow and pyspark where
    this process checks the rows."""
    with hj.Engine(spark=spark, runner=runner) as engine:
        engine.execute(f'CREATE TYPE pair AS ("a b" integer, c interval[]); CREATE TABLE t (x {kind})')
        engine.apply({"t": spark.range(1).selectExpr(f"{value} AS x")})
        assert engine.query("SELECT x::text AS x FROM t").to_pylist() == [{"x": expected}]


def test_a_table_is_like_a_frame(spark):
    """A frame with a TIMESTAMP was an AssertionError of pyspark's."""
    values = ["1L AS k", "timestamp'2024-01-01' AS z", "timestamp_ntz'2024-01-01' AS n", "make_interval(1) AS i",
              "interval 1 day AS j", "cast(1 AS decimal(9, 2)) AS d", "array(X'00') AS b", "cast(1 AS tinyint) AS s"]
    frame = spark.range(1).selectExpr(*values)
    with hj.Engine(spark=spark) as engine:
        engine.create_table("t", like=frame, key="k")
        engine.apply({"t": frame})
        assert engine.execute("SHOW CREATE TABLE t").to_pylist()[0]["create_statement"] == (
            "CREATE TABLE t (k bigint NOT NULL, z timestamptz NOT NULL, n timestamp NOT NULL, i interval NOT NULL, "
            "j interval NOT NULL, d numeric(9,2), b bytea[] NOT NULL, s smallint NOT NULL, PRIMARY KEY (k))")
        engine.create_table("rates", like=spark.readStream.format("rate").load())
        assert engine.read("rates").column_names == ["timestamp", "value"]
