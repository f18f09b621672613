"""No table holds a text with a NUL or one that is not UTF-8: whatever way it comes in, its row is named and refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import halfjoin as hj
from halfjoin.engine.scalar import columns


@pytest.fixture
def engine() -> hj.Engine:
    made = hj.Engine()
    made.execute("CREATE TABLE t (k int, w text, v varchar(9), c char(9), a text[], j jsonb)")
    return made


def broken(type: Any = None) -> Any:
    """Three texts; the second is not UTF-8."""
    data, ends = pa.py_buffer(b"a\xff\xfeb"), np.array([0, 1, 3, 4], np.int32)
    made = pa.Array.from_buffers(pa.string(), 3, [None, pa.py_buffer(ends.tobytes()), data])
    return made if type is None else made.cast(type)


@pytest.mark.parametrize("column", ["w", "v", "c"])
@pytest.mark.parametrize("type", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
def test_an_arrow_text_that_is_not_utf8_is_refused(engine: hj.Engine, column: str, type: Any) -> None:
    with pytest.raises(hj.InvalidRow, match=rf"t\.{column}: row 1: b'\\xff\\xfe' is not valid UTF-8") as caught:
        engine.apply({"t": pa.table({column: broken(type)})})
    assert (caught.value.sqlstate, caught.value.row, caught.value.value) == ("22021", 1, b"\xff\xfe")
    assert engine.read("t").num_rows == 0


def test_so_are_those_of_dictionaries_arrays_and_slices(engine: hj.Engine) -> None:
    for given in ({"w": broken().dictionary_encode()}, {"a": pa.ListArray.from_arrays([0, 1, 2, 3], broken())},
                  {"w": broken().slice(1)}):  # fmt: skip
        with pytest.raises(hj.InvalidRow, match="is not valid UTF-8; decode it first"):
            engine.apply({"t": pa.table(given)})
    engine.apply({"t": pa.table({"w": broken().slice(2)})})  # what is not in the slice does not count
    assert engine.read("t").column("w").to_pylist() == ["b"]


@pytest.mark.parametrize("rows", [
    [{"w": "a"}, {"w": "x\0y"}], pa.table({"w": ["a", "x\0y"]}), {"w": ["a", "x\0y"]},
], ids=["dicts", "arrow", "columns"])  # fmt: skip
def test_a_text_with_a_nul_is_refused(engine: hj.Engine, rows: Any) -> None:
    engine.execute("CREATE TABLE keyed (k int PRIMARY KEY, w text)")
    with pytest.raises(hj.InvalidRow, match=r"keyed\.w: row 1: 'x\\x00y' has a NUL character"):
        engine.apply({"keyed": hj.upserts([{"k": 1, "w": "a"}, {"k": 2, "w": "x\0y"}])})
    with pytest.raises(hj.InvalidRow, match=r"t\.w: row 1: 'x\\x00y' has a NUL character") as caught:
        engine.apply({"t": rows})
    assert (caught.value.sqlstate, caught.value.row) == ("22021", 1)


def test_a_nul_under_a_null_is_none(engine: hj.Engine) -> None:
    ends = pa.py_buffer(np.array([0, 1, 2], np.int32).tobytes())
    texts = pa.Array.from_buffers(pa.string(), 2, [pa.py_buffer(b"\x01"), ends, pa.py_buffer(b"a\0")])
    engine.apply({"t": pa.table({"w": texts})})
    assert engine.read("t").column("w").to_pylist() == ["a", None]


def test_no_statement_and_no_stream_brings_a_nul(engine: hj.Engine) -> None:
    for run in (lambda: engine.execute("INSERT INTO t (w) VALUES ('a\0')"),
                lambda: engine.execute("INSERT INTO t (w) VALUES ($1)", ["a\0"]),
                lambda: engine.query("SELECT $1::text AS w", ["a\0"]),
                lambda: engine.query("SELECT 'a\0' AS w"),
                lambda: engine.copy_from("COPY t (w) FROM STDIN", b"a\0\n"),
                lambda: engine.copy_from("COPY t (w) FROM STDIN", b"a\xff\n"),
                lambda: engine.query("SELECT convert_from('\\x00', 'UTF8') AS w"),
                lambda: engine.execute("INSERT INTO t (j) VALUES ('{\"a\": \"\\u0000\"}')")):  # fmt: skip
        with pytest.raises(hj.HalfjoinError) as caught:
            run()
        assert caught.value.sqlstate in ("22021", "22P05")
    assert engine.read("t").num_rows == 0


def test_what_an_earlier_version_stored_can_still_go(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = hj.Engine()
    engine.execute("CREATE TABLE keyed (k int PRIMARY KEY, w text); CREATE TABLE u (w text)")
    with monkeypatch.context() as earlier:
        earlier.setattr(columns, "check_sound", lambda _: None)
        engine.apply({"keyed": [{"k": 1, "w": "a\0"}, {"k": 2, "w": "b\0"}], "u": [{"w": "a\0"}, {"w": "b\0"}]})
    with pytest.raises(hj.InvalidRow, match=r"u\.w: row 0: 'a\\x00' has a NUL character"):
        engine.execute("INSERT INTO u SELECT w FROM keyed WHERE k = 1")
    with pytest.raises(hj.InvalidRow, match=r"u\.w: row 1: 'c\\x00' has a NUL character"):
        engine.apply({"u": [{"w": "a\0", "__diff": -1}, {"w": "c\0", "__diff": 1}]})
    engine.execute("UPDATE keyed SET w = 'x' WHERE k = 1; DELETE FROM u WHERE w < 'b'")
    engine.apply({"u": hj.deletes([{"w": "b\0"}]), "keyed": hj.upserts([{"k": 2, "w": "y"}])})
    assert engine.read("keyed").to_pylist() == [{"k": 1, "w": "x"}, {"k": 2, "w": "y"}]
    assert engine.read("u").num_rows == 0
