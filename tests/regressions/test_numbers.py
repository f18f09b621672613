"""Numbers at the ends of their types: rounding of numeric(p,p), floats as text, constants beyond a type's range."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import halfjoin as hj
from halfjoin.cli.commands import app
from halfjoin.engine.scalar.casts_text import from_text, to_text
from halfjoin.sql.types import DOUBLE, REAL, TEXT, SqlType
from tests.support.scalar_sql import wrong

ROUNDED = [
    ("ceil(0.40::numeric(2,2))", "1"), ("ceil(-(0.40::numeric(2,2)))", "0"), ("floor(0.6::numeric(1,1))", "0"),
    ("floor(-(0.6::numeric(1,1)))", "-1"), ("ceil(0.00::numeric(2,2))", "0"), ("round(0.5::numeric(1,1))", "1"),
    ("round(-(0.5::numeric(1,1)))", "-1"), ("round(0.4::numeric(1,1))", "0"), ("trunc(0.9::numeric(1,1))", "0"),
    ("round(50.0::numeric(3,1), -2)", "100"), ("round(49.9::numeric(3,1), -2)", "0"),
    ("round(99.5::numeric(3,1), -3)", "0"), ("trunc(0.99::numeric(2,2), -1)", "0"), ("ceil(NULL::numeric(2,2))", None),
    ("floor(-(0.00000000000000000000000000000000000001::numeric(38,38)))", "-1"),
]  # fmt: skip
PRINTED = [
    ("(-10000000000)::float8", "-10000000000"), ("123456789012345::float8", "123456789012345"),
    ("12345678901.5::float8", "12345678901.5"), ("1e15::float8", "1e+15"), ("999999::real", "999999"),
    ("1e6::real", "1e+06"), ("3.4028235e38::real", "3.4028235e+38"), ("1.7976931348623157e308::float8",
    "1.7976931348623157e+308"), ("5e-324::float8", "5e-324"), ("0.0001::float8", "0.0001"),
    ("0.00001::float8", "1e-05"), ("concat(1e10::float8, ' ', 1e10::real)", "10000000000 1e+10"),
]  # fmt: skip
OUT_OF_RANGE = [
    "9E+38::real", "1e400::float8", "1e-400::float8", "1e-46::real", "9E+38::float8::real", "1e-60::float8::real",
    "'3.4028236e38'::real", "'1e-46'::text::real", "'1e-400'::text::float8", "'1e400'::text::float8",
    "'1e5000'::text::numeric(10,2)", "'1e99999999999'::text::numeric(10,2)", "1e999999999", "'\u0663'::text::int",
    "99999999999999999999999999999999999999999::numeric::real", "(1e38::real * 10::real)", "3.4028236e38::real",
]  # fmt: skip


@pytest.mark.parametrize(("sql", "answer"), ROUNDED + PRINTED)
def test_numbers_are_as_in_postgresql(sql: str, answer: str | None) -> None:
    assert wrong(sql, answer) == []


@pytest.mark.parametrize("sql", OUT_OF_RANGE)
def test_beyond_the_range_is_an_error(sql: str) -> None:
    assert wrong(sql, "ERROR: out of range") == []


# A double in between would round each of these to a number with even digits, and then once more, to another one.
@pytest.mark.parametrize(("text", "answer"), [("16777217.0000000001", "1.6777218e+07"), ("3.4028235677973366e38",
                                                                                        "3.4028235e+38")])
def test_reals_are_rounded_once(text: str, answer: str) -> None:
    assert wrong(f"{text}::real", answer) == wrong(f"'{text}'::real", answer) == []
    assert wrong(f"'{text}'::text::real", answer) == []


@pytest.mark.parametrize(("type", "floats"), [(DOUBLE, np.float64), (REAL, np.float32)])
def test_floats_read_back_from_their_text(type: SqlType, floats: type[np.floating]) -> None:
    random = np.random.default_rng(1)
    bits = random.integers(0, 1 << 62, 2000, np.uint64)
    near = (10.0 ** random.uniform(-6, 18, 2000)).astype(floats)
    values = np.concatenate([bits.view(floats), near, np.rint(near), [floats(2.0) ** k for k in range(-126, 127)]])
    values = values[np.isfinite(values)]
    texts = to_text(type, TEXT)
    assert texts is not None
    assert np.array_equal(from_text(type)(texts(pa.array(values))).to_numpy(), values)


# What PostgreSQL prints where the shortest digits are just between two numbers, or the gaps beside one differ.
HARD = [
    (1e23, "9.999999999999999e+22"), (2.0**-24, "5.960464477539063e-08"),
    (2.793320432587915e16, "2.7933204325879152e+16"), (2.0**-44, "5.684341886080802e-14"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "text"), HARD)
def test_floats_print_the_digits_of_postgresql(value: float, text: str) -> None:
    printed = to_text(DOUBLE, TEXT)
    assert printed is not None and printed(pa.array([value]))[0].as_py() == text


def test_a_real_column_refuses_what_it_cannot_hold() -> None:
    engine = hj.Engine()
    engine.execute("CREATE TABLE t (x real)")
    for value in ("9E+38", "1e-46", "'1e39'", "1e400"):
        with pytest.raises(hj.HalfjoinError, match=r"out of range|76 digits"):
            engine.execute(f"INSERT INTO t VALUES ({value})")
    assert engine.query("SELECT x FROM t").num_rows == 0


@pytest.mark.parametrize(("text", "type"), [
    ("1e400", "float8"), ("-1e400", "float8"), ("1e-400", "float8"), ("1e39", "real"), ("1e-46", "real"),
])  # fmt: skip
def test_a_csv_file_holds_no_number_beyond_the_range(text: str, type: str, tmp_path: Path) -> None:
    (tmp_path / "s.sql").write_text(f"CREATE TABLE t (k bigint, x {type})")
    (tmp_path / "t.csv").write_text(f"k,x\n1,2.5\n2,{text}\n")
    found = CliRunner().invoke(app, ["run", str(tmp_path / "s.sql"), "--load", f"t={tmp_path / 't.csv'}"])
    assert found.exit_code == 1 and "column x in row 2" in found.stderr and "out of range" in found.stderr


@pytest.mark.parametrize(("text", "type"), [
    ("1e400", "float8"), ("-1e400", "real"), ("1e39", "real"), ("1e-46", "real"),
])  # fmt: skip
def test_a_message_holds_no_number_beyond_the_range(text: str, type: str) -> None:
    engine = hj.Engine()
    engine.execute(f"CREATE TABLE t (k bigint PRIMARY KEY, x {type})")
    with pytest.raises(hj.InvalidRow, match=f"t.x: message 0: {text} is out of range"):
        engine.apply({"t": hj.debezium([f'{{"op": "c", "after": {{"k": 1, "x": {text}}}}}'])}, time=1)
    engine.apply({"t": hj.debezium(['{"op": "c", "after": {"k": 1, "x": 2.5E-1}}'])}, time=1)
    assert engine.read("t").to_pylist() == [{"k": 1, "x": 0.25}]
