"""Arrow tables whose columns are taken as they are: the same rows or the same error as in any other form."""

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import halfjoin as hj
from halfjoin.engine.intake.as_they_are import as_they_are
from halfjoin.engine.kernels import native

TABLE = """
CREATE TABLE t (
  i integer NOT NULL, l bigint, d double precision, r real, b boolean, n numeric(4,1), x text NOT NULL, a date,
  p timestamp, PRIMARY KEY (i)
)
"""
VALUES = {
    "i": (pa.int32(), [0, 7, None]),
    "l": (pa.int64(), [0, -(2**63), 2**63 - 1, None]),
    "d": (pa.float64(), [0.5, float("nan"), -0.0, None]),
    "r": (pa.float32(), [0.5, -0.0, None]),
    "b": (pa.bool_(), [True, None]),
    "n": (pa.decimal128(4, 1), [Decimal("999.9"), Decimal("-1.0"), None]),
    "x": (pa.string(), ["plain", "", "größe", "a\x00b", None]),
    "a": (pa.date32(), [0, 2**31 - 1, None]),
    "p": (pa.timestamp("us"), [0, 2**63 - 1, None]),
}
DIFFS = [1, 1, 2, -1, 2**31, 2**31 + 1, None]


def column(kind, cells):
    whole = {pa.date32(): pa.int32(), pa.timestamp("us"): pa.int64()}
    return pa.array(cells, whole[kind]).cast(kind, safe=False) if kind in whole else pa.array(cells, kind)


@st.composite
def tables(draw):
    length = draw(st.integers(0, 4))
    usual = st.integers(0, 9).map(lambda number: 0 if number else -1)  # most values are plain
    columns = {}
    for name, (kind, some) in VALUES.items():
        cells = [draw(st.sampled_from(some)) if draw(usual) else some[0] for _ in range(length)]
        columns[name] = column(kind, cells)
    if draw(st.booleans()):
        diffs = [draw(st.sampled_from(DIFFS)) if draw(usual) else 1 for _ in range(length)]
        columns["__diff"] = pa.array(diffs, pa.int64())
    rows = pa.table(columns)
    other = draw(st.sampled_from(["plain", "plain", "sliced", "chunked", "turned", "fewer", "wider", "notes"]))
    if other == "sliced":
        rows = rows.slice(1)
    elif other == "chunked":
        rows = pa.concat_tables([rows.slice(0, 1), rows.slice(1)])
    elif other == "turned":
        rows = rows.select(rows.column_names[::-1])
    elif other == "fewer":
        rows = rows.drop_columns(["l"])
    elif other == "wider":
        rows = rows.set_column(0, "i", rows["i"].cast(pa.int64()))
    elif other == "notes":
        rows = rows.replace_schema_metadata({"a": "b"})
    return rows


MEANINGS = [lambda rows: rows, hj.inserts, hj.deletes, hj.upserts]


def outcome(rows, meaning, form):
    with hj.Engine() as engine:
        engine.execute(TABLE)
        try:
            if meaning is hj.deletes and "__diff" not in rows.schema.names:
                engine.apply({"t": rows}, time=0)
            engine.apply({"t": meaning(form(rows))}, time=1)
        except hj.HalfjoinError as problem:
            return type(problem), str(problem)
        return sorted(map(repr, engine.read("t").to_pylist()))


@given(tables(), st.sampled_from(MEANINGS))
def test_they_are_the_rows_of_any_other_form(rows, meaning):
    assert outcome(rows, meaning, lambda given: given) == outcome(rows, meaning, pa.Table.to_reader)


def test_only_what_is_plainly_right_is_taken():
    with hj.Engine() as engine:
        engine.execute(TABLE)
        table = engine._state.catalog.tables["t"]
    plain = pa.table({name: column(kind, some[:1]) for name, (kind, some) in VALUES.items()})
    counted = plain.append_column("__diff", pa.array([-1]))
    taken = as_they_are(table, plain), as_they_are(table, counted)
    assert [one is not None for one in taken] == [native.on, native.on]
    if native.on:
        assert taken[0][1:] == (1, None)
        assert taken[1][2].tolist() == [-1]
        assert [*taken[1][0]] == [*VALUES]
    text = plain.column_names.index("x")
    for wrong in ("größe", "a\x00b", None):
        assert as_they_are(table, plain.set_column(text, "x", pa.array([wrong], pa.string()))) is None
    assert as_they_are(table, counted.set_column(counted.num_columns - 1, "__diff", pa.array([2**31 + 1]))) is None


@pytest.mark.parametrize(
    ("kind", "some"),
    [("char(3)", "ab "), ("varchar(3)", "ab "), ("integer[]", [1]), ("uuid", "00000000-0000-0000-0000-000000000001"),
     ("timestamptz(3)", dt.datetime(2024, 1, 1, tzinfo=dt.UTC)), ("double precision", -0.0)],
)  # fmt: skip
def test_types_whose_values_are_changed_or_checked_otherwise(kind, some):
    with hj.Engine() as engine:
        engine.execute(f"CREATE TABLE t (x {kind})")
        schema = engine.read("t").schema
        rows = pa.table({"x": pa.array([some], schema.field("x").type)})
    outcomes = []
    for form in (rows, rows.to_reader(), rows.to_pylist()):
        with hj.Engine() as engine:
            engine.execute(f"CREATE TABLE t (x {kind})")
            engine.apply({"t": form}, time=1)
            outcomes.append(repr(engine.read("t").to_pylist()))
    assert outcomes[0] == outcomes[1] == outcomes[2]
