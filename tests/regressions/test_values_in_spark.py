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
