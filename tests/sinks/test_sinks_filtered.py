"""Readers that skip files by their statistics find all rows that a filter asks for, whatever the types are."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable

import halfjoin as hj

LAST, BEFORE = "\U0010ffff", "\ud7ff"  # the last character; the one before those that are none
# Two values of each type: the first file has the lesser one and NULL, the second one both.
VALUES = {
    "boolean": ("false", "true"), "smallint": ("-3", "7"), "bigint": ("-9223372036854775808", "9223372036854775807"),
    "real": ("0.1", "1.5"), "double precision": ("'-0'", "'1e308'"),
    "numeric(24, 6)": ("-0.1", "123456789012345678.123456"), "numeric(38, 0)": ("-" + "9" * 38, "9" * 38),
    "date": ("'0001-01-01'", "'9999-12-31'"),
    "timestamp": ("'1582-10-10 12:00:00.000001'", "'2300-01-01 00:00:00.999999'"), "time": ("'00:00'", "'23:59'"),
    "timestamptz": ("'1883-11-18 12:03:58.5+00'", "'2020-10-25 01:30+00'"), "text": ("''", f"'{'x' * 40}'"),
    "varchar(40)": ("'a'", f"'{BEFORE * 40}'"), "uuid": (f"'{'0' * 32}'", f"'{'f' * 32}'"), "bytea": ("''", r"'\xff'"),
}  # fmt: skip
# And values without a bound that JSON can hold.
BEYOND = {"float8": ("1.5", "'NaN'"), "float4": ("1.5", "'Infinity'"), "date": ("'2020-01-01'", "'10000-01-01'"),
          "timestamp": ("'0044-03-15 BC'", "'2020-01-01'"), "text": ("'a'", f"'{LAST * 40}'")}  # fmt: skip


@pytest.mark.parametrize("values", [VALUES, BEYOND], ids=["known", "beyond"])
def test_a_filter_finds_its_rows(tmp_path: Path, values: dict[str, tuple[str, str]]) -> None:
    columns = {f"c{number}": kind for number, kind in enumerate(values)}
    with hj.Engine(tmp_path / "w") as engine:
        engine.execute(f"CREATE TABLE t (id integer, {', '.join(f'{name} {kind}' for name, kind in columns.items())})")
        engine.execute(f"CREATE SINK s FROM t INTO DELTA '{tmp_path}/s'")
        for rows in ((None, 0), (0, 1)):
            texts = (", ".join("NULL" if row is None else two[row] for two in values.values()) for row in rows)
            engine.execute(f"INSERT INTO t VALUES {', '.join(f'(1, {text})' for text in texts)}")
            engine.flush()
        told = engine.read("t")
    dataset = DeltaTable(tmp_path / "s").to_pyarrow_dataset()
    for name in columns:
        for value in told[name].drop_null().unique():
            wanted = pc.sum(pc.equal(told[name], value)).as_py()
            stored = value.cast("int64") if str(value.type).startswith("time64") else value
            assert len(dataset.to_table(filter=pc.field(name) == stored)) == wanted, (columns[name], value)
        assert len(dataset.to_table(filter=pc.field(name).is_null())) == 1
    assert duckdb.sql("SELECT count(*) FROM dataset WHERE c0 = (SELECT max(c0) FROM dataset)").fetchall() == [(1,)]
    assert duckdb.sql("SELECT count(*) FROM dataset WHERE c2 IS NULL AND id = 1").fetchall() == [(1,)]


def test_bounds_are_whole(tmp_path: Path) -> None:
    """Numerics have all their digits, infinities Spark's texts, long texts a beginning that is a bound."""
    with hj.Engine(tmp_path / "w") as engine:
        engine.execute("CREATE TABLE t (n numeric(38, 3), f double precision, z real, s text)")
        engine.execute(f"CREATE SINK s FROM t INTO DELTA '{tmp_path}/s'")
        engine.execute(f"INSERT INTO t VALUES (12345678901234567890.001, 'Infinity', 0.0, '{BEFORE * 40}'),"
                       f" (0.1, 1, -0.0, '{LAST * 33}'), (0.1, 1, -0.0, '{'a' + LAST * 40}')")  # fmt: skip
        engine.execute(f"DELETE FROM t WHERE s = '{LAST * 33}'")
        engine.flush()
    (file,) = [json.loads(line)["add"] for line in _log(tmp_path / "s") if '"add"' in line]
    found = json.loads(file["stats"], parse_float=str)
    assert found["minValues"] == {"n": "0.100", "f": "1.0", "z": "-0.0", "s": "a" + LAST * 31}
    assert found["maxValues"] == {"n": "12345678901234567890.001", "f": "Infinity", "z": "0.0",
                                  "s": BEFORE * 31 + "\ue000"}  # fmt: skip


def _log(table: Path) -> list[str]:
    (*_, last) = sorted((table / "_delta_log").glob("*.json"))
    return last.read_text().splitlines()
