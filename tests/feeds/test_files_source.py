"""Sources FROM FILES: each file counts once, whole, as the types of its table say."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from threading import Timer
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import halfjoin as hj
from halfjoin.engine.feeds.files import csv_records, formats, json_records
from halfjoin.engine.feeds.files.folder import Folder

DDL = "CREATE TABLE t (k bigint PRIMARY KEY, name text, price numeric(8,2), day date);"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "in"
    made.mkdir()
    return made


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[hj.Engine]:
    with hj.Engine(tmp_path / "w") as made:
        made.execute(DDL)
        yield made


def source(engine: hj.Engine, folder: Any, errors: str = "stop", **options: Any) -> None:
    engine.create_source("s", "files", "t", errors=errors, path=folder, **{"settle": 0, **options})


def rows(engine: hj.Engine) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in engine.read("t").to_pylist())


def test_each_format_is_read_by_the_types_of_the_table(engine: hj.Engine, folder: Path) -> None:
    (folder / "a.csv").write_text(
        'k,name,price,day\n1,007,1.50,2024-01-02\n2,"",,\n3,,"2.5",20240103\n4,"x\ny, ""z""",0,\n')
    (folder / "b.jsonl").write_text(
        '{"k": 5, "name": "ä", "price": 1.10, "day": "2024-01-02"}\n\n{"k": 6, "more": [1]}')
    pq.write_table(pa.table({"k": [7], "name": ["p"], "day": [date(2024, 1, 4)]}), folder / "c.parquet")
    source(engine, folder)
    assert engine.run_sources(0) == 3
    day = date(2024, 1, 2)
    assert rows(engine) == [
        (1, "007", Decimal("1.50"), day), (2, "", None, None), (3, None, Decimal("2.50"), date(2024, 1, 3)),
        (4, 'x\ny, "z"', Decimal("0.00"), None), (5, "ä", Decimal("1.10"), day), (6, None, None, None),
        (7, "p", None, date(2024, 1, 4)),
    ]  # fmt: skip
    assert engine.run_sources(0) == 0


def test_new_files_count_once_and_changed_ones_not_again(engine: hj.Engine, folder: Path, caplog: Any) -> None:
    (folder / "b.csv").write_text("k\n1\n")
    source(engine, folder)
    engine.run_sources(0)
    (folder / "a.csv").write_text("k\n2\n")  # its name comes before
    (folder / "b.csv").write_text("k\n1\n3\n")
    with caplog.at_level(logging.WARNING):
        assert engine.run_sources(0) == 1
    assert [row[0] for row in rows(engine)] == [1, 2]
    assert "has read b.csv, which has changed since" in caplog.text
    (folder / "b.csv").unlink()
    (folder / "b.csv").write_text("k\n1\n")
    assert engine.run_sources(0) == 0


def test_unfinished_files_wait(engine: hj.Engine, folder: Path) -> None:
    for name in (".a.csv", "_a.csv", "a.csv.tmp", "a.csv.part"):
        (folder / name).write_text("k\n1\n")
    (folder / "sub").mkdir()
    source(engine, folder, settle=1000)
    assert engine.run_sources(0) == 0
    os.rename(folder / ".a.csv", folder / "a.csv")
    assert engine.run_sources(0) == 0  # it may still grow
    past = 1_000_000_000
    os.utime(folder / "a.csv", (past, past))
    assert engine.run_sources(0) == 1 and rows(engine) == [(1, None, None, None)]


def test_bad_records_have_the_file_and_the_record(engine: hj.Engine, folder: Path) -> None:
    (folder / "a.csv").write_text("k,name,price,day\n1,a,1,\nx,b,,\n2\n3,c,123456789,2024-13-01\n4,d,,\n4,e,,\n5,f,,\n")
    (folder / "b.jsonl").write_bytes(b'{"k": 6}\n{"k": "six"}\n[7]\nno json\n{"k": 8, "day": "soon"}\n\xff\n{"k": 9}\n')
    (folder / "c.parquet").write_text("this is no parquet")
    source(engine, folder, "table")
    engine.run_sources(0)
    assert [row[0] for row in rows(engine)] == [1, 4, 5, 6, 9]
    found = {row["place"]: row for row in engine.read("s_errors").to_pylist()}
    assert sorted(found) == ["a.csv:3", "a.csv:4", "a.csv:5", "a.csv:7", "b.jsonl:2", "b.jsonl:3", "b.jsonl:4",
                             "b.jsonl:5", "b.jsonl:6", "c.parquet"]  # fmt: skip
    assert found["a.csv:3"]["text"] == "x,b,," and "bigint" in found["a.csv:3"]["reason"]
    assert found["a.csv:4"]["reason"] == "has 1 values, not 4"
    assert "second row with the key" in found["a.csv:7"]["reason"] and found["a.csv:7"]["text"] == "4,e,,"
    assert found["b.jsonl:3"]["reason"] == "is not an object: it is array"
    assert "Parquet" in found["c.parquet"]["reason"]


def test_a_bad_record_stops_the_source_before_its_file(engine: hj.Engine, folder: Path) -> None:
    (folder / "a.csv").write_text("k\n1\n")
    (folder / "b.csv").write_text("k\n2\nx\n")
    (folder / "c.csv").write_text("k\n3\n")
    source(engine, folder)
    with pytest.raises(hj.InvalidRow, match=r"b\.csv:3: k: invalid input syntax for type bigint"):
        engine.run_sources(0)
    assert rows(engine) == [(1, None, None, None)]
    (folder / "b.csv").write_text("k\n2\n")
    engine.run_sources(0)
    assert [row[0] for row in rows(engine)] == [1, 2, 3]


def test_a_column_that_the_table_lacks_stops_the_source(engine: hj.Engine, folder: Path) -> None:
    (folder / "a.csv").write_text("k,color\n1,red\n")
    source(engine, folder, "table")
    with pytest.raises(hj.UnknownName, match="color"):
        engine.run_sources(0)
    engine.execute("ALTER TABLE t ADD COLUMN color text")
    engine.run_sources(0)
    assert rows(engine) == [(1, None, None, None, "red")]


def test_options_of_csv(engine: hj.Engine, folder: Path) -> None:
    (folder / "a.txt").write_text("1;'a;b';NA;\n2;NA;3;\n")
    (folder / "a.csv").write_text("nonsense")
    source(engine, folder, format="csv", pattern="*.txt", header=False, delimiter=";", quote="'", null="NA")
    with pytest.raises(hj.InvalidRow, match=r"a\.txt:1"):  # an empty day is not NULL here
        engine.run_sources(0)
    (folder / "a.txt").write_text("1;'a;b';NA;NA\n2;NA;3;NA\n")
    engine.run_sources(0)
    assert rows(engine) == [(1, "a;b", None, None), (2, None, Decimal("3.00"), None)]


def test_a_blank_line_is_a_row_of_one_column_and_no_record_of_several(engine: hj.Engine, folder: Path) -> None:
    (folder / "a.csv").write_text('name\na\n\n""\nb\n')
    (folder / "b.csv").write_text("name,k\n\nc,1\n\n")
    engine.execute("DROP TABLE t; CREATE TABLE t (name text, k bigint)")
    source(engine, folder)
    engine.run_sources(0)
    found = [(row["name"], row["k"]) for row in engine.read("t").to_pylist()]
    assert sorted(found, key=str) == [("", None), ("a", None), ("b", None), ("c", 1), (None, None)]


def test_upserts_times_and_copies(tmp_path: Path, folder: Path) -> None:
    with hj.Engine(tmp_path / "w", clock="own") as engine:
        engine.execute(DDL)
        (folder / "a.csv").write_text("k,name,__time\n1,a,5\n2,b,5\n")
        (folder / "b.csv").write_text("k,__time\n1,6\n")
        (folder / "c.jsonl").write_text('{"k": 2, "name": "c", "__time": 7}\n{"k": 2, "name": "d", "__time": 8}\n')
        source(engine, folder, mode="upserts")
        engine.run_sources(0)
        found = [[row[:2] for row in sorted(tuple(one.values()) for one in engine.read("t", as_of=at).to_pylist())]
                 for at in (5, 6, 8)]  # fmt: skip
        assert found == [[(1, "a"), (2, "b")], [(1, "a"), (2, "b")], [(1, "a"), (2, "d")]]


def test_order_of_time(engine: hj.Engine, folder: Path) -> None:
    for name, changed in (("a", 30), ("b", 10), ("c", 20)):
        (folder / f"{name}.csv").write_text(f"k,name\n1,{name}\n")
        os.utime(folder / f"{name}.csv", (changed, changed))
    source(engine, folder, mode="upserts", order="time")
    engine.run_sources(0)
    assert [row[1] for row in rows(engine)] == ["a"]


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_a_large_file_comes_in_pieces_and_goes_on(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    for module in (csv_records, json_records):
        monkeypatch.setattr(module, "POLL_BYTES", 400)
    monkeypatch.setattr(formats, "POLL_ROWS", 50)
    file = folder / f"a.{ending}"
    lines = [f"{k},{'x' * (k % 7)}" for k in range(300)]
    if ending == "csv":
        lines[250] = "no number,x"
        file.write_text("\n".join(["k,name", *lines]))
    elif ending == "jsonl":
        file.write_text("\n".join(f'{{"k": {k}}}' if k != 250 else "bad" for k in range(300)) + "\n")
    else:
        pq.write_table(pa.table({"k": [k if k != 250 else None for k in range(300)]}), file)
    with hj.Engine(tmp_path / "w", memory=1) as engine:
        engine.execute(DDL)
        source(engine, folder)
        with pytest.raises(hj.InvalidRow, match=r"a\.\w+:25[12]"):
            engine.run_sources(0)
        assert engine.stats().upper == 0, "a part of the file is seen"
        position = engine.stats().sources[0].position
        assert position is not None and '"record"' in position
    for memory in (1, "1GB"):
        with hj.Engine(tmp_path / f"w{memory}", memory=memory) as engine:
            engine.execute(DDL)
            source(engine, folder, "table")
            assert engine.run_sources(0) == 1
            assert [row[0] for row in rows(engine)] == [k for k in range(300) if k != 250]
            (error,) = engine.read("s_errors").to_pylist()
            assert error["place"] in (f"a.{ending}:251", f"a.{ending}:252")
            assert (engine.stats().sources[0].batches > 3) == (memory == 1)


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_a_file_that_fits_the_memory_is_one_batch_or_none(
    engine: hj.Engine, folder: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    """Of a file that stops at a bad record, nobody sees a part, whatever others apply meanwhile."""
    for module in (csv_records, json_records):
        monkeypatch.setattr(module, "POLL_BYTES", 100)

    def write(bad: str) -> None:
        lines = [str(k) if ending == "csv" else f'{{"k": {k}}}' for k in range(100)]
        lines[70] = bad
        (folder / f"a.{ending}").write_text("\n".join([*(["k"] if ending == "csv" else []), *lines]) + "\n")

    source(engine, folder)
    for number, bad in enumerate(("x", "7" if ending == "csv" else '{"k": 7}')):  # it cannot be read; it is there twice
        write(bad)
        with pytest.raises(hj.HalfjoinError, match=r"a\.\w+:7[12]"):
            engine.run_sources(0)
        engine.execute(f"INSERT INTO t VALUES ({1000 + number})")
    assert [row[0] for row in rows(engine)] == [1000, 1001]
    write("1234" if ending == "csv" else '{"k": 1234}')
    assert engine.run_sources(0) == 1 and len(rows(engine)) == 102
    assert engine.stats().sources[0].batches == 1


def test_a_large_file_that_changes_on_the_way_is_refused(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_records, "POLL_BYTES", 100)
    with hj.Engine(tmp_path / "w", memory=1) as engine:
        engine.execute(DDL)
        _change_on_the_way(engine, folder)


def _change_on_the_way(engine: hj.Engine, folder: Path) -> None:
    (folder / "a.csv").write_text("k\n" + "\n".join(map(str, range(100))) + "\nx\n")
    source(engine, folder)
    with pytest.raises(hj.InvalidRow, match=r"a\.csv:102"):
        engine.run_sources(0)
    for other in ("k\n1\n", "k\n" + "\n".join(map(str, [7, *range(1, 100)])) + "\n100\n"):
        (folder / "a.csv").write_text(other)
        with pytest.raises(hj.StorageError, match=r"a\.csv has other records than before"):
            engine.run_sources(0)
    (folder / "a.csv").unlink()
    with pytest.raises(hj.StorageError, match=r"a\.csv was changed or removed after"):
        engine.run_sources(0)


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_a_large_file_that_is_mended_where_it_stopped_goes_on(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    for module in (csv_records, json_records):
        monkeypatch.setattr(module, "POLL_BYTES", 100)
    first = ["k"] if ending == "csv" else []

    def write(bad: str) -> None:
        lines = [str(k) if ending == "csv" else f'{{"k": {k}}}' for k in range(100)]
        lines[70] = bad
        (folder / f"a.{ending}").write_text("\n".join([*first, *lines]) + "\n")

    write("x")
    with hj.Engine(tmp_path / "w", memory=1) as engine:
        engine.execute(DDL)
        source(engine, folder)
        with pytest.raises(hj.InvalidRow):
            engine.run_sources(0)
        engine.execute("INSERT INTO t VALUES (1000)")  # it closes the time of the first pieces
    write("1234" if ending == "csv" else '{"k": 1234}')
    with hj.Engine(tmp_path / "w") as engine:
        assert engine.run_sources(0) == 1
        assert [row[0] for row in rows(engine)] == [*(k for k in range(100) if k != 70), 1000, 1234]


def test_a_folder_of_fsspec(engine: hj.Engine) -> None:
    import fsspec

    system = fsspec.filesystem("memory")
    system.pipe("/halfjoin-in/a.csv", b"k,name\n1,a\n")
    try:
        source(engine, "memory://halfjoin-in", settle=0)
        assert engine.run_sources(0) == 1 and rows(engine) == [(1, "a", None, None)]
        system.pipe("/halfjoin-in/b.csv", b"k,name\n2,b\n")
        assert engine.run_sources(0) == 1 and engine.run_sources(0) == 0
    finally:
        system.rm("/halfjoin-in", recursive=True)


def test_a_folder_that_is_not_there_or_empty(engine: hj.Engine, folder: Path) -> None:
    (folder / "empty.csv").write_text("")
    (folder / "header.csv").write_text("k,name\n")
    (folder / "empty.jsonl").write_text("")
    source(engine, folder)
    assert engine.run_sources(0) == 3 and rows(engine) == []
    engine.execute("DROP SOURCE s")
    source(engine, folder / "nowhere")
    with pytest.raises(hj.StorageError, match="there is no folder"):
        engine.run_sources(0)


def test_a_file_is_no_folder(engine: hj.Engine, folder: Path) -> None:
    (folder / "a.csv").write_text("k\n1\n")
    source(engine, folder / "a.csv")
    with pytest.raises(hj.StorageError, match=r"a\.csv is a file, and a source reads a folder.*halfjoin load"):
        engine.run_sources(0)


def test_a_relative_path_is_kept_whole(engine: hj.Engine, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.parent)
    (folder / "a.csv").write_text("k\n1\n")
    engine.execute("CREATE SOURCE s FROM FILES (path 'in', settle 0) INTO t")
    monkeypatch.chdir("/")
    assert engine.run_sources(0) == 1


def test_what_cannot_work_is_refused(engine: hj.Engine, folder: Path) -> None:
    engine.execute("CREATE TABLE bag (k bigint)")
    for sql, words in [
        ("CREATE SOURCE x FROM FILES (path 'a', mode 'upserts') INTO bag", "no PRIMARY KEY"),
        ("CREATE SOURCE x FROM FILES (path 'a') INTO t, bag", "feeds one table"),
        ("CREATE SOURCE x FROM FILES (format 'csv') INTO t", "path: is missing"),
        ("CREATE SOURCE x FROM FILES (path 'a', format 'xml') INTO t", "'csv', 'jsonl' or 'parquet'"),
        ("CREATE SOURCE x FROM FILES (path 'a', delimiter '§') INTO t", "delimiter: must be one"),
        ("CREATE SOURCE x FROM FILES (path 'a', quote E'\\n') INTO t", "quote: must be one"),
    ]:
        with pytest.raises(hj.UnsupportedSQL, match=words):
            engine.execute(sql)
    (folder / "a.dat").write_text("k\n1\n")
    source(engine, folder)
    with pytest.raises(hj.HalfjoinError, match="does not say its format"):
        engine.run_sources(0)


def test_a_long_position_is_shown_short_and_told_whole(engine: hj.Engine, folder: Path) -> None:
    for number in range(20):
        (folder / f"{number}.csv").write_text(f"k\n{number}\n")
    source(engine, folder)
    engine.run_sources(0)
    (line,), (known,) = engine.execute("SHOW SOURCES").to_pylist(), engine.stats().sources
    assert known.position is not None and len(known.position) > 80
    assert line["position"] == known.position[:77] + "..."


def test_many_files_are_listed_once(engine: hj.Engine, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(30):
        (folder / f"{number:02}.csv").write_text(f"k\n{number}\n")
    looks: list[int] = []
    listed = Folder.files
    monkeypatch.setattr(Folder, "files", lambda self: looks.append(1) or listed(self))
    source(engine, folder)
    assert engine.run_sources(0) == 30 and len(looks) == 2


@pytest.fixture
def interruptible() -> Iterator[None]:
    """A shell starts what it runs in the background with interrupts ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_ends_the_wait_for_files(engine: hj.Engine, folder: Path) -> None:
    source(engine, folder)
    with pytest.raises(KeyboardInterrupt):
        Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        engine.run_sources(60)
    (folder / "a.csv").write_text("k\n1\n")
    assert engine.run_sources(0) == 1


def test_a_text_that_is_not_utf8_is_a_bad_record_and_the_others_arrive(engine: hj.Engine, folder: Path) -> None:
    (folder / "a.csv").write_bytes(b"k,name\n1,a\n2,caf\xe9\n3,c\n")
    source(engine, folder, "table")
    assert engine.run_sources(0) == 1
    assert [row[:2] for row in rows(engine)] == [(1, "a"), (3, "c")]
    assert engine.query("SELECT place, text, reason FROM s_errors").to_pylist() == [
        {"place": "a.csv:3", "text": "2,caf\\xe9", "reason": "name: is not UTF-8"}]


def test_objects_with_and_without_copies_arrive_beside_a_bad_one(engine: hj.Engine, folder: Path) -> None:
    engine.execute("CREATE TABLE bag (k bigint)")
    (folder / "a.jsonl").write_text('{"k": 1, "__diff": 2}\n{"k": "q"}\n{"k": 3}\n')
    engine.create_source("s", "files", "bag", errors="table", path=folder, settle=0)
    assert engine.run_sources(0) == 1
    assert sorted(row["k"] for row in engine.read("bag").to_pylist()) == [1, 1, 3]
    assert engine.query("SELECT place FROM s_errors").to_pylist() == [{"place": "a.jsonl:2"}]


@pytest.mark.parametrize(("name", "text"), [
    ("a.csv", "k,__time\n1,5\n2,\n3,9223372036854775807\n4,6\n"),
    ("a.jsonl", '{"k": 1, "__time": 5}\n{"k": 2}\n{"k": 3, "__time": 9223372036854775807}\n{"k": 4, "__time": 6}\n'),
])  # fmt: skip
def test_a_row_without_a_time_that_can_be_is_a_bad_record(tmp_path: Path, folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text)
    with hj.Engine(tmp_path / "w", clock="own") as engine:
        engine.execute(DDL)
        source(engine, folder, "table")
        assert engine.run_sources(0) == 1
        assert [row[0] for row in rows(engine)] == [1, 4]
        first = 2 if name == "a.csv" else 1
        assert sorted(row["place"] for row in engine.query("SELECT place FROM s_errors").to_pylist()) == [
            f"{name}:{first + 1}", f"{name}:{first + 2}"]  # fmt: skip


def test_a_source_cannot_feed_the_table_of_its_bad_records(engine: hj.Engine, folder: Path) -> None:
    engine.execute("CREATE TABLE s_errors (place text, text text, reason text, time timestamptz)")
    with pytest.raises(hj.Conflict, match="the source cannot feed it"):
        engine.create_source("s", "files", "s_errors", errors="table", path=folder)
    engine.create_source("s", "files", "s_errors", path=folder)


def test_json_lines_may_begin_with_the_mark_of_utf8(engine: hj.Engine, folder: Path) -> None:
    (folder / "a.jsonl").write_bytes(b'\xef\xbb\xbf{"k": 1}\r\n{"k": 2}')
    (folder / "b.jsonl").write_bytes(b'\xef\xbb\xbf')
    source(engine, folder)
    assert engine.run_sources(0) == 2 and [row[0] for row in rows(engine)] == [1, 2]


@pytest.mark.parametrize(("text", "words"), [(b"k,k\n1,2\n", "has k twice"), (b"k,\xe9\n1,2\n", "its header is not")])
def test_a_header_that_cannot_be_names_the_file(engine: hj.Engine, folder: Path, text: bytes, words: str) -> None:
    (folder / "a.csv").write_bytes(text)
    source(engine, folder)
    with pytest.raises(hj.InvalidRow, match=f"a.csv: .*{words}"):
        engine.run_sources(0)


def test_a_bad_record_of_a_file_whose_name_is_not_utf8_is_kept(engine: hj.Engine, folder: Path) -> None:
    with open(os.fsencode(folder) + b"/\xff.csv", "w") as file:
        file.write("k\nq\n1\n")
    source(engine, folder, "table")
    assert engine.run_sources(0) == 1 and [row[0] for row in rows(engine)] == [1]
    assert engine.query("SELECT place FROM s_errors").to_pylist() == [{"place": "\\udcff.csv:2"}]


def test_a_moment_that_python_lacks_is_a_bad_record(engine: hj.Engine, folder: Path) -> None:
    engine.execute("CREATE TABLE moments (at timestamp)")
    pq.write_table(pa.table({"at": pa.array([2**62, 0], pa.timestamp("ms"))}), folder / "a.parquet")
    engine.create_source("s", "files", "moments", errors="table", path=folder, settle=0)
    assert engine.run_sources(0) == 1 and len(engine.read("moments")) == 1
    assert engine.query("SELECT place, text FROM s_errors").to_pylist() == [
        {"place": "a.parquet:1", "text": "{'at': 4611686018427387904}"}]


@pytest.mark.parametrize(("end", "bad"), [
    ('2,"b\n3,c\n', True), ('2,"b\n3,"",c', True), ('2,"', True), ('2,"""', True), ('2,"b""', True), ('2,"é\n', True),
    ('2,""', False), ('2,""\n', False), ('2,""""', False), ('2,"b"', False), ('2,"\n"\n', False), ('2,"""b"""', False),
    ("2,", False), ("2,\n\n", False), ('2,b"', False), ('2,b"\n', False), ('2,"b\n"\r\n', False), ('2,"b"c', False),
])  # fmt: skip
def test_a_quote_that_nobody_closes_is_a_bad_record(engine: hj.Engine, folder: Path, end: str, bad: bool) -> None:
    (folder / "a.csv").write_bytes(("k,name\n1,a\n" + end).encode())
    source(engine, folder, "table")
    assert engine.run_sources(0) == 1
    assert [row[0] for row in rows(engine)] == ([1] if bad else [1, 2])
    assert [row["place"] for row in engine.query("SELECT place FROM s_errors").to_pylist()] == ["a.csv:3"] * bad


@pytest.mark.parametrize("header", ["k", "k,name"])
def test_nobody_else_moves_in_a_file_that_is_read_ahead(
    engine: hj.Engine, folder: Path, monkeypatch: pytest.MonkeyPatch, header: str
) -> None:
    """Arrow reads ahead in a thread of its own. A second reader of the same file would begin where the first one is."""
    opened = []

    def noted(file: Any, *rest: Any) -> Any:
        opened.append(file)
        return open_csv(file, *rest)

    open_csv = csv_records.arrow_csv.open_csv
    monkeypatch.setattr(csv_records.arrow_csv, "open_csv", noted)
    (folder / "a.csv").write_text(f"{header}\n{header.replace('k', '1')}\n")
    source(engine, folder)
    engine.run_sources(0)
    assert len(rows(engine)) == 1
    assert len([one for one in opened if not isinstance(one, pa.BufferReader)]) == 1
