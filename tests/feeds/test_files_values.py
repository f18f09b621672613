"""Values in files are those that are written: not rounded, not those of another member, not numbers of rows."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import halfjoin as hj
from tests.feeds import test_files_source

engine, folder, source = test_files_source.engine, test_files_source.folder, test_files_source.source


def test_of_members_with_one_name_the_last_counts(engine: hj.Engine, folder: Path) -> None:
    engine.execute("CREATE TABLE objects (k bigint PRIMARY KEY, n numeric(30,2), j jsonb, v text)")
    (folder / "a.jsonl").write_text(
        '{"k": 1, "n": 1.5, "j": {"x": 1}, "n" : 12345678901234567890.5, "j": {"x": 2, "x": 3.10}, "v": "a"}\n'
        '{"k": 2, "v": "b"}\n\nbad\n[1, 1]\n'
        '{"k": 8, "\\u006b": 9, "v": ["}", {"v": 1}], "k":3, "v": "{\\"", "n": NaN, "n": null }\n'
    )  # fmt: skip
    engine.create_source("s", "files", "objects", errors="table", path=folder, settle=0)
    engine.run_sources(0)
    assert sorted(tuple(row.values()) for row in engine.query("SELECT * FROM objects").to_pylist()) == [
        (1, Decimal("12345678901234567890.50"), '{"x": 3.1}', "a"), (2, None, None, "b"), (3, None, None, '{"')]
    assert len(engine.read("s_errors")) == 2


def test_elements_of_arrays_have_all_their_digits(engine: hj.Engine, folder: Path) -> None:
    engine.execute("CREATE TABLE lists (k bigint PRIMARY KEY, n numeric(30,2)[], j jsonb[])")
    (folder / "a.jsonl").write_text(
        '{"k": 1, "n": [1.5, 12345678901234567890.25, null, 2, 1e2], "j": [1, {"x": 12345678901234567890.5}, null]}\n'
        '{"k": 2, "n": null, "j": [[1, 2.5], "{}", true]}\n{"k": 3, "n": [], "j": []}\n{"k": 4, "j": null}\n'
        '{"k": 5, "n": [1.125]}\n{"k": 6, "j": ["no JSON"]}\n{"k": 7, "n": ["1.5"]}\n'
    )  # fmt: skip
    engine.create_source("s", "files", "lists", errors="table", path=folder, settle=0)
    engine.run_sources(0)
    rows = {row.pop("k"): tuple(row.values()) for row in engine.query("SELECT k, n, j FROM lists").to_pylist()}
    assert rows == {
        1: ([Decimal("1.50"), Decimal("12345678901234567890.25"), None, 2, 100],
            ["1", '{"x": 12345678901234567890.5}', None]),
        2: (None, ["[1, 2.5]", "{}", "true"]), 3: ([], []), 4: (None, None), 7: ([Decimal("1.5")], None),
    }  # fmt: skip
    assert len(engine.read("s_errors")) == 2


def test_a_numeric_of_csv_is_not_rounded(engine: hj.Engine, folder: Path) -> None:
    """As JSON lines, Parquet and `halfjoin load` do not round it; and a wrong text beside it hides it not."""
    source(engine, folder, errors="table")
    (folder / "a.csv").write_text("k,price\n1,1.005\n2,1.5e1\n3,2.500\n4,\n")
    (folder / "b.csv").write_text("k,price\n5,1.005\n6,x\n7, 2.50 \n8,1_000.001\n9,1e-40\n")
    engine.run_sources(0)
    prices = {row["k"]: row["price"] for row in engine.read("t").to_pylist()}
    assert prices == {2: 15, 3: Decimal("2.5"), 4: None, 7: Decimal("2.5")}
    bad = engine.query("SELECT place, reason FROM s_errors ORDER BY place").to_pylist()
    assert [one["place"] for one in bad] == ["a.csv:2", "b.csv:2", "b.csv:3", "b.csv:5", "b.csv:6"]
    assert bad[0]["reason"].startswith("price: 1.005 is not a valid numeric(8,2); round it to 2 digits after the point")


def test_objects_may_be_nested_deep_in_fields_that_are_left_out(engine: hj.Engine, folder: Path) -> None:
    deep = "[" * 3000 + "]" * 3000
    source(engine, folder)
    (folder / "a.jsonl").write_text(
        f'{{"k": 1, "price": 1.5, "other": {deep}}}\n{{"k": 7, "other": {deep}, "k": 2, "price": 2.5}}\n'
    )
    engine.run_sources(0)
    prices = {row["k"]: row["price"] for row in engine.read("t").to_pylist()}
    assert prices == {1: Decimal("1.5"), 2: Decimal("2.5")}


def test_objects_have_numerics_as_texts_and_moments_by_their_encodings(engine: hj.Engine, folder: Path) -> None:
    engine.execute("CREATE TABLE events (k bigint, n numeric(30,2), a numeric(8,2)[], at timestamp)")
    (folder / "a.jsonl").write_text(
        '{"k": 1, "n": "12345678901234567890.50", "at": 1577836800000}\n{"k": 2, "a": ["1.50", 2]}\n{"n": "x"}\n'
    )
    engine.execute(f"""CREATE SOURCE s FROM FILES (path '{folder}', settle 0, encodings 'at Timestamp') INTO events
                       WITH (errors = 'table')""")
    engine.run_sources(0)
    assert [tuple(row.values()) for row in engine.read("events").sort_by("k").to_pylist()] == [
        (1, Decimal("12345678901234567890.50"), None, dt.datetime(2020, 1, 1)),
        (2, None, [Decimal("1.50"), Decimal(2)], None)]  # fmt: skip
    assert engine.query("SELECT place, reason FROM s_errors").to_pylist() == [
        {"place": "a.jsonl:3", "reason": "n: 'x' is not a valid numeric(30,2)"}]
    for encodings in ("at Moment", "nobody Timestamp", "at"):
        with pytest.raises(hj.HalfjoinError, match=r"unknown|pair of words"):
            engine.create_source("other", "files", "events", path=folder, encodings=encodings)


def test_a_map_with_a_key_twice_is_a_bad_record(engine: hj.Engine, folder: Path) -> None:
    engine.execute("CREATE TABLE maps (k bigint, j jsonb)")
    maps = pa.array([[("x", 1)], [("x", 1), ("x", 2)]], pa.map_(pa.string(), pa.int64()))
    pq.write_table(pa.table({"k": [1, 2], "j": maps}), folder / "a.parquet")
    engine.create_source("s", "files", "maps", errors="table", path=folder, settle=0)
    engine.run_sources(0)
    assert engine.read("maps").to_pylist() == [{"k": 1, "j": '{"x": 1}'}]
    assert engine.query("SELECT place FROM s_errors").to_pylist() == [{"place": "a.parquet:2"}]


def test_a_parquet_file_of_pandas_may_have_row_numbers(engine: hj.Engine, folder: Path) -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"k": [1, 2, 3], "name": ["a", "b", "c"]})
    frame[frame.k > 1].to_parquet(folder / "a.parquet")  # a part of a frame keeps the numbers of its rows
    source(engine, folder)
    engine.run_sources(0)
    assert sorted(engine.read("t")["k"].to_pylist()) == [2, 3]


@pytest.mark.parametrize("errors", ["stop", "table"])
def test_a_column_that_the_table_does_not_have_is_told_with_its_file(
    engine: hj.Engine, folder: Path, errors: str
) -> None:
    (folder / "a.csv").write_text("k,name\n1,x\n")
    (folder / "b.csv").write_text("K,name\n2,y\n")
    source(engine, folder, errors=errors)
    with pytest.raises(hj.UnknownName, match=r"unknown column 'K' of t in b\.csv; known: day, k"):
        engine.run_sources(0)
    (folder / "b.csv").write_text("k,name\n2,y\n")
    engine.run_sources(0)
    assert sorted(row["k"] for row in engine.read("t").to_pylist()) == [1, 2]
