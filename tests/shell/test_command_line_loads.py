"""The commands that bring rows in and show what is there: load, apply, init, subscribe, doctor, and the shell by -c."""

from __future__ import annotations

import datetime as dt
import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from deltalake import write_deltalake
from typer.testing import CliRunner

import halfjoin as hj
from halfjoin.cli.commands import app
from halfjoin.engine.kernels import native
from tests.support.deletion_vectors import PROTOCOL, delete

ROWS = pa.table({"k": pa.array([1, 2], pa.int64()), "s": ["a", None]})


def run(*arguments: object, given: str | None = None, code: int = 0) -> str:
    found = CliRunner().invoke(app, [str(one) for one in arguments], input=given)
    assert found.exit_code == code, found.output
    return found.stdout if code == 0 else found.stderr


def rows(warehouse: Path, query: str) -> list[object]:
    return [json.loads(line) for line in run(warehouse, "-c", query, "--json").splitlines()]


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    named = {kind: tmp_path / f"f.{kind}" for kind in ("csv", "jsonl", "parquet", "arrow", "delta")}
    named["csv"].write_text("k,s\n1,a\n2,\n")
    named["jsonl"].write_text('{"k": 1, "s": "a"}\n\n{"k": 2, "s": null}\n')
    pyarrow.parquet.write_table(ROWS, named["parquet"])
    pyarrow.feather.write_feather(ROWS, str(named["arrow"]))
    write_deltalake(str(named["delta"]), ROWS)
    return named


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet", "arrow", "delta"])
def test_a_file_becomes_a_table(kind: str, files: dict[str, Path], tmp_path: Path) -> None:
    run("load", tmp_path / "w", "t", files[kind], "--key", "k")
    assert rows(tmp_path / "w", "SELECT * FROM t ORDER BY k") == [{"k": 1, "s": "a"}, {"k": 2, "s": None}]
    assert rows(tmp_path / "w", "SHOW COLUMNS FROM t")[0] == {"name": "k", "type": "bigint", "nullable": False}


@pytest.mark.parametrize(("ending", "codec"), [(".gz", "gzip"), (".zst", "zstd"), (".bz2", "bz2")])
@pytest.mark.parametrize("kind", ["csv", "jsonl", "arrow"])
def test_a_packed_file_becomes_a_table(
    kind: str, ending: str, codec: str, files: dict[str, Path], tmp_path: Path
) -> None:
    packed = tmp_path / f"f.{kind}{ending}"
    with pa.output_stream(str(packed), compression=codec) as written:
        written.write(files[kind].read_bytes())
    run("load", tmp_path / "w", "t", packed)
    assert rows(tmp_path / "w", "SELECT * FROM t ORDER BY k") == [{"k": 1, "s": "a"}, {"k": 2, "s": None}]
    assert run("init", packed).startswith("CREATE TABLE f (k bigint")
    packed.write_bytes(packed.read_bytes()[:9])
    assert packed.name in run("load", tmp_path / "w", "t", packed, code=1)


@pytest.mark.parametrize("kind", ["parquet", "delta"])
def test_moments_that_are_written_as_spark_does(kind: str, tmp_path: Path) -> None:
    """As INT96, of which nanoseconds would reach from 1677 to 2262 alone."""
    moments = [dt.datetime(9999, 12, 31, tzinfo=dt.UTC), dt.datetime(1, 1, 1, tzinfo=dt.UTC)]
    table, place = pa.table({"at": pa.array(moments, pa.timestamp("us", "UTC"))}), tmp_path / f"f.{kind}"
    if kind == "delta":
        write_deltalake(str(place), table)
    for file in place.glob("*.parquet") if kind == "delta" else [place]:
        pyarrow.parquet.write_table(table, file, use_deprecated_int96_timestamps=True)
    run("load", tmp_path / "w", "t", place)
    with hj.Engine(tmp_path / "w") as engine:
        years = engine.query("SELECT extract(year FROM at)::bigint AS y FROM t ORDER BY at")
        assert years["y"].to_pylist() == [1, 9999]


def test_a_delta_table_with_deletion_vectors_is_loaded(tmp_path: Path) -> None:
    place = tmp_path / "f"
    write_deltalake(str(place), pa.table({"k": [1, 2, 3]}))
    log = place / "_delta_log" / f"{0:020}.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    log.write_text("\n".join(json.dumps({"protocol": PROTOCOL} if "protocol" in one else one) for one in actions))
    delete(place, next(one["add"] for one in actions if "add" in one), [1], runs=False, kept=True)
    run("load", tmp_path / "w", "t", place)
    assert rows(tmp_path / "w", "SELECT k FROM t ORDER BY k") == [{"k": 1}, {"k": 3}]


def test_a_file_is_loaded_once(files: dict[str, Path], tmp_path: Path) -> None:
    for _ in range(2):
        run("load", tmp_path / "w", "t", files["csv"], files["parquet"])
    assert rows(tmp_path / "w", "SELECT count(*) AS n FROM t") == [{"n": 4}]


def test_a_new_table_of_the_name_takes_the_file_again(files: dict[str, Path], tmp_path: Path) -> None:
    warehouse, file = tmp_path / "w", files["csv"]
    for _ in range(2):
        for table in ("t", "t2", "t2 3"):
            run("load", warehouse, table, file)
        with hj.Engine(warehouse) as engine:
            assert [engine.read(table).num_rows for table in ("t", "t2", "t2 3")] == [2, 2, 2]
            engine.execute("DROP TABLE t")
    with hj.Engine(warehouse) as engine:
        engine.execute("DROP TABLE t2")  # its ids begin as those of "t2 3"
    assert "dropped and made anew" in run("load", warehouse, "t2", file, code=1)


def test_upserts_replace_rows_of_their_key(files: dict[str, Path], tmp_path: Path) -> None:
    run("load", tmp_path / "w", "t", files["csv"], "--key", "k")
    files["csv"].write_text("k,s\n2,new\n3,c\n")
    run("load", tmp_path / "w", "t", files["csv"], "--upsert")
    assert [list(row.values()) for row in rows(tmp_path / "w", "SELECT * FROM t ORDER BY k")] == [  # type: ignore[attr-defined]
        [1, "a"], [2, "new"], [3, "c"]]


def test_apply_of_a_file_or_of_nothing_leaves_no_source(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("k\n1\n")
    run(tmp_path / "w", "-c", "CREATE TABLE t (k bigint)")
    assert "is a file, and apply reads a folder; halfjoin load WAREHOUSE t" in run(
        "apply", tmp_path / "w", "t", tmp_path / "a.csv", code=1)  # fmt: skip
    assert "there is no folder" in run("apply", tmp_path / "w", "t", tmp_path / "none", code=1)
    assert "apply t" not in run(tmp_path / "w", "-c", "SHOW SOURCES", "--csv")


def test_a_blank_line_is_a_row_of_a_file_of_one_column(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('k\na\n\n""\n')
    run("load", tmp_path / "w", "t", tmp_path / "a.csv", "--type", "k=text")
    assert run(tmp_path / "w", "-c", "SELECT count(*), count(k) FROM t", "--csv") == "count,count\n3,2\n"


def test_guessed_types_may_be_overridden(tmp_path: Path) -> None:
    (tmp_path / "zips.csv").write_text("zip,x\n007,1.10\n")
    assert run("init", tmp_path / "zips.csv") == "CREATE TABLE zips (zip text, x double precision);\n"
    types = ("--type", "zip=varchar(5)", "--type", "x=numeric(10,2)")
    run("load", tmp_path / "w", "t", tmp_path / "zips.csv", *types)
    assert run(tmp_path / "w", "-c", "SELECT * FROM t", "--csv") == "zip,x\n007,1.10\n"
    problem = run("load", tmp_path / "v", "t", tmp_path / "zips.csv", "--type", "zap=text", code=1)
    assert "unknown column 'zap' of t" in problem


@pytest.mark.parametrize(("name", "text", "said"), [
    ("no.csv", None, "no such file"), ("x.jsonl", "[1]\n", "line 1 is not an object"),
    ("x.jsonl", "{'k': 1}\n", "line 1: "), ("x.parquet", "k", "cannot be read"), ("", None, "halfjoin apply WAREHOUSE"),
])  # fmt: skip
def test_files_that_hold_no_rows_are_named(name: str, text: str | None, said: str, tmp_path: Path) -> None:
    run(tmp_path / "w", "-c", "CREATE TABLE t (k bigint)")
    if text is not None:
        (tmp_path / name).write_text(text)
    problem = run("load", tmp_path / "w", "t", tmp_path / name, code=1)
    assert said in problem and name in problem and "Traceback" not in problem


def test_lines_of_standard_input_are_applied(tmp_path: Path) -> None:
    run(tmp_path / "w", "-c", "CREATE TABLE t (k bigint, n numeric(10,2), j jsonb)")
    run("apply", tmp_path / "w", "t", given='{"k": 1, "n": 1.10, "j": {"a": 1.5}}\n{"k": 2}\n')
    run("apply", tmp_path / "w", "t", given='{"k": 2, "__diff": -1}\n')
    assert rows(tmp_path / "w", "SELECT * FROM t") == [{"k": 1, "n": 1.1, "j": '{"a": 1.5}'}]


def test_a_folder_is_applied_once_also_to_a_renamed_table_and_in_one_mode(tmp_path: Path) -> None:
    folder, w = tmp_path / "in", tmp_path / "w"
    folder.mkdir()
    (folder / "a.csv").write_text("k\n1\n")
    run(w, "-c", "CREATE TABLE t (k bigint PRIMARY KEY)")
    run("apply", w, "t", folder)
    assert "earlier calls applied" in run("apply", w, "t", folder, "--upsert", code=1)
    run(w, "-c", "ALTER TABLE t RENAME TO u; CREATE TABLE t (k bigint)")
    run("apply", w, "u", folder)
    run("apply", w, "t", folder)
    assert rows(w, "SELECT * FROM u") == rows(w, "SELECT * FROM t") == [{"k": 1}]


def test_changes_of_a_view_are_printed_as_lines(tmp_path: Path) -> None:
    made = "CREATE TABLE t (k bigint); CREATE MATERIALIZED VIEW v AS SELECT k FROM t; INSERT INTO t VALUES (5)"
    run(tmp_path / "w", "-c", made)
    (line,) = run("subscribe", tmp_path / "w", "v", "--no-follow").splitlines()
    assert {name: json.loads(line)[name] for name in ("k", "__diff")} == {"k": 5, "__diff": 1}
    assert "unknown materialized view 'x'" in run("subscribe", tmp_path / "w", "x", code=1)


@pytest.mark.parametrize("command", [["compact"], ["apply"]])
def test_a_command_makes_no_warehouse_of_a_wrong_name(tmp_path: Path, command: list[str]) -> None:
    wrong = tmp_path / "wrong"
    given = [*command, wrong, *(["t"] if command == ["apply"] else [])]
    assert f"there is no warehouse in {wrong}" in run(*given, given='{"k": 1}', code=1)
    assert not wrong.exists()
    run(wrong, "-c", "CREATE TABLE t (k bigint)")
    run(*given, given='{"k": 1}')


def test_a_script_of_standard_input_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    assert run("--csv", given="\ufeffSELECT 1 AS a") == run("--csv", "-f", "-", given="\ufeffSELECT 1 AS a") == "a\n1\n"
    script = "CREATE TABLE t (k bigint)"
    assert run("run", "-", given=f"\ufeff{script}") == run("run", "-", given=script)


def test_the_doctor_names_what_is_wrong(tmp_path: Path) -> None:
    run(tmp_path / "w", "-c", "CREATE TABLE t (k bigint)")
    assert f"halfjoin: {hj.__version__}" in (told := run("doctor", tmp_path / "w")) and "1 table" in told
    found = CliRunner().invoke(app, ["doctor", str(tmp_path / "none")])
    assert found.exit_code == 1 and "wrong" in found.stdout


def test_the_doctor_says_whether_kernels_are_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    with native.used(True):
        assert f"native kernels: {'in use' if native.BUILT else 'not built'}" in run("doctor")
    with native.used(False):
        assert f"native kernels: {'turned off' if native.BUILT else 'not built'}" in run("doctor")
    monkeypatch.setattr(native, "BUILT", False)
    with native.used(False):
        assert "native kernels: not built" in run("doctor")


def test_the_shell_needs_no_name(tmp_path: Path) -> None:
    assert "│ 1 │" in run("-c", "SELECT 1 AS a")
    assert "│ 2 │" in run(given="SELECT 2 AS a;\n")
    script = tmp_path / "s.sql"
    script.write_text("SELECT 3 AS a; SELECT 1/0; SELECT 4 AS a")
    assert "division by zero" in run("-f", script, code=1)
    assert run("--version") == f"halfjoin {hj.__version__}\n"


def test_a_warehouse_in_use_is_read(tmp_path: Path) -> None:
    with hj.Engine(str(tmp_path / "w")) as engine:
        engine.execute("CREATE TABLE t (k bigint); INSERT INTO t VALUES (5)")
        assert "│ 5 │" in run(tmp_path / "w", "-c", "SELECT * FROM t")
        assert "HalfjoinError" in run(tmp_path / "w", "-c", "INSERT INTO t VALUES (6)", code=1)


def test_a_table_is_made_like_a_frame() -> None:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    engine = hj.Engine()
    data = {"k": [1], "at time": ["x"]}
    frames = [pa.table(data), pa.schema({"k": pa.int64(), "at time": pa.string()}), pandas.DataFrame(data),
              polars.DataFrame(data), [{"k": 1, "at time": "x"}]]  # fmt: skip
    for number, like in enumerate(frames):
        engine.create_table(f"t{number}", like=like, key=["k"])
        shown = engine.execute(f"SHOW COLUMNS FROM t{number}")
        assert shown is not None and shown["name"].to_pylist() == ["k", "at time"]
        assert shown["type"].to_pylist() == ["bigint", "text"] and shown["nullable"].to_pylist() == [False, True]
    with pytest.raises(hj.HalfjoinError, match="int has no columns"):
        engine.create_table("x", like=3)
    with pytest.raises(hj.UnknownName, match="unknown column 'z' of x"):
        engine.create_table("x", like=ROWS, key="z")


def test_status_tells_of_sinks_and_sources(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("a\n1\n")
    with hj.Engine(tmp_path / "w") as engine:
        engine.execute(f"""
            CREATE TABLE t (a integer); CREATE MATERIALIZED VIEW v AS SELECT a FROM t;
            CREATE SINK out FROM v INTO DELTA '{tmp_path}/out';
            CREATE SOURCE incoming FROM FILES (path '{tmp_path}/in', settle 0) INTO t;
        """)
        engine.run_sources(seconds=0)
    said = CliRunner().invoke(app, ["status", str(tmp_path / "w")])
    assert said.exit_code == 0
    assert "out" in said.stdout and "incoming" in said.stdout and "FILES" in said.stdout


def test_a_leading_zero_is_no_number(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text("k,zip,share\n1,0150,0.5\n10,9010,0\n")
    assert run("init", tmp_path / "f.csv") == "CREATE TABLE f (k bigint, zip text, share double precision);\n"
    run("load", tmp_path / "w", "f", tmp_path / "f.csv")
    assert rows(tmp_path / "w", "SELECT zip FROM f ORDER BY k") == [{"zip": "0150"}, {"zip": "9010"}]


def test_row_numbers_of_pandas_are_no_column(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"k": [1, 2]})
    frame[frame.k > 1].to_parquet(tmp_path / "f.parquet")
    run("load", tmp_path / "w", "f", tmp_path / "f.parquet")
    assert rows(tmp_path / "w", "SELECT * FROM f") == [{"k": 2}]


@pytest.mark.parametrize("separator", ["\u2028", "\x85"])
def test_a_line_of_json_ends_at_its_line_feed(tmp_path: Path, separator: str) -> None:
    text = json.dumps({"s": f"a{separator}b"}, ensure_ascii=False)
    (tmp_path / "f.jsonl").write_bytes(f"\ufeff{text}\r\n".encode())
    run("load", tmp_path / "w", "f", tmp_path / "f.jsonl")
    with hj.Engine(tmp_path / "w") as engine:
        assert engine.read("f").to_pylist() == [{"s": f"a{separator}b"}]


def test_a_wrong_line_of_standard_input_is_named(tmp_path: Path) -> None:
    run(tmp_path / "w", "-c", "CREATE TABLE t (k integer)")
    said = run("apply", tmp_path / "w", "t", given='{"k": 1}\n\nx\n', code=1)
    assert said.startswith("File: standard input cannot be read: line 3: ")


def test_bytes_that_are_no_text_end_standard_input(tmp_path: Path) -> None:
    """The thread that reads ended, and the command waited for ever."""
    run(tmp_path / "w", "-c", "CREATE TABLE t (k integer)")
    found = subprocess.run([sys.executable, "-m", "halfjoin", "apply", str(tmp_path / "w"), "t"], input=b"\xff\n",
                           capture_output=True, timeout=60, env=os.environ | {"PYTHONIOENCODING": "utf-8:strict"},
                           check=False)  # fmt: skip
    assert found.returncode == 1
    assert b"standard input cannot be read: 'utf-8' codec" in found.stderr


def test_a_script_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "f.sql").write_bytes("\ufeffCREATE TABLE t (k integer);".encode())
    run(tmp_path / "w", "-f", tmp_path / "f.sql")
    run("run", tmp_path / "f.sql", "--warehouse", tmp_path / "v")
    assert rows(tmp_path / "w", "SELECT count(*) AS n FROM t") == [{"n": 0}]


def test_a_field_that_only_later_lines_have_is_a_column(tmp_path: Path) -> None:
    file = tmp_path / "f.jsonl"
    file.write_text('{"k": 1}\n{"k": 2, "doc": {"x": [1]}}\n{"parts": [{"y": null}], "tags": ["a"]}\n')
    assert "(k bigint, doc jsonb, parts jsonb, tags text[])" in run("init", file)
    run("load", tmp_path / "w", "t", file)
    found = rows(tmp_path / "w", "SELECT k, doc -> 'x' ->> 0 AS x, parts -> 0 ? 'y' AS y FROM t ORDER BY k")
    assert found == [{"k": 1, "x": None, "y": None}, {"k": 2, "x": "1", "y": None}, {"k": None, "x": None, "y": True}]


@pytest.mark.parametrize(("text", "reason"), [
    ('[{"k": 1}, {"k": 2}]', "line 1 is not an object"),
    ('{"k": 1}\n5\n', "line 2 is not an object"),
    ('{"k": 1}\n{bad\n', "line 2: Expecting property name"),
])
def test_lines_that_are_no_objects_are_named_before_there_is_a_table(text: str, reason: str, tmp_path: Path) -> None:
    file = tmp_path / "f.json"
    file.write_text(text)
    assert f"File: {file} cannot be read: {reason}" in run("load", tmp_path / "w", "t", file, code=1)
    assert rows(tmp_path / "w", "SHOW TABLES") == []


def test_values_without_a_common_type_are_named(tmp_path: Path) -> None:
    file = tmp_path / "f.jsonl"
    file.write_text('{"k": 1, "s": 1}\n{"k": 2, "s": "a"}\n')
    assert "the column s has no Arrow type" in run("init", file, code=1)


def test_json_of_a_parquet_file_is_jsonb(tmp_path: Path) -> None:
    file = tmp_path / "f.parquet"
    pyarrow.parquet.write_table(pa.table({"doc": pa.array(['{"x":1}', None], pa.json_())}), file)
    run("load", tmp_path / "w", "t", file)
    assert rows(tmp_path / "w", "SELECT doc ->> 'x' AS x FROM t ORDER BY x") == [{"x": "1"}, {"x": None}]


def test_what_is_printed_can_be_loaded(tmp_path: Path) -> None:
    warehouse = tmp_path / "w"
    columns = "k integer, a integer[], n numeric(4,2)[][], s text[], b bytea, d interval, j jsonb"
    run(warehouse, "-c", f"CREATE TABLE t ({columns}); CREATE MATERIALIZED VIEW v AS SELECT * FROM t")
    run(warehouse, "-c", r"""INSERT INTO t VALUES (1, '{1,NULL}', '{{1.5},{2}}', '{"a,b",NULL,""}', '\xdead', '1 day',
        '{"x": [1.5]}'), (2, NULL, NULL, '{}', '', NULL, NULL)""")
    for name, kind in [("c", "csv"), ("l", "json")]:
        file = tmp_path / f"f.{kind}"
        file.write_text(run(warehouse, "-c", "SELECT * FROM t", f"--{kind}"))
        run(warehouse, "-c", f"CREATE TABLE {name} ({columns})")
        run("load", warehouse, name, file)
        assert rows(warehouse, f"SELECT count(*) AS n FROM (TABLE t EXCEPT ALL TABLE {name}) AS x") == [{"n": 0}]
    run(tmp_path / "other", "-c", f"CREATE TABLE s ({columns})")
    run("apply", tmp_path / "other", "s", given=run("subscribe", warehouse, "v", "--no-follow"))
    assert rows(tmp_path / "other", "TABLE s ORDER BY k") == rows(warehouse, "TABLE t ORDER BY k")
