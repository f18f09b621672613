"""The command line: it runs scripts over files, and reports unreadable files in one line, without a traceback."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from typer.testing import CliRunner

from halfjoin.cli.commands import app

RUNNER = CliRunner()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "s.sql").write_text("CREATE TABLE t (k integer, s text); CREATE MATERIALIZED VIEW v AS SELECT k FROM t")
    (tmp_path / "q.sql").write_text("SELECT k, count(*) AS n FROM v GROUP BY k ORDER BY k")
    (tmp_path / "t.csv").write_text("k,s\n1,a\n2,b\n2,c\n")
    (tmp_path / "bad.csv").write_text("k,s\n1,a\nx,b\n")
    (tmp_path / "plain.csv").write_text("1,a\n2,b\n")
    (tmp_path / "t.tsv").write_text("k\ts\n1\ta\n")
    return tmp_path


def test_run_loads_files_and_prints_the_last_rows(folder: Path) -> None:
    found = RUNNER.invoke(app, ["run", str(folder / "s.sql"), "--load", f"t={folder / 't.csv'}",
                                "--then", str(folder / "q.sql")])
    assert found.exit_code == 0
    shown = [line.split()[1::2] for line in found.stdout.splitlines() if line.startswith("│")]
    assert shown == [["1", "1"], ["2", "2"]]


def test_run_leaves_the_logging_of_its_process_as_it_was(folder: Path) -> None:
    log = logging.getLogger("halfjoin")
    before = log.level, list(log.handlers)
    for script in ("s.sql", "wrong.sql"):
        (folder / "wrong.sql").write_text("SELECT nothing FROM nowhere")
        RUNNER.invoke(app, ["run", str(folder / script)])
        assert (log.level, log.handlers) == before


def test_a_warehouse_is_made_shown_and_asked(folder: Path) -> None:
    warehouse = str(folder / "w")
    load = ["--load", f"t={folder / 't.csv'}"]
    made = RUNNER.invoke(app, ["run", str(folder / "s.sql"), *load, "--warehouse", warehouse])
    assert made.exit_code == 0
    status = RUNNER.invoke(app, ["status", warehouse]).stdout
    assert status.startswith("readable up to time 1") and "materialized view" in status
    answer = RUNNER.invoke(app, ["query", warehouse, "SELECT k, ARRAY[k, 0] AS a FROM v ORDER BY k", "--csv"])
    assert answer.stdout.split("\n") == ['"k","a"', '1,"[1, 0]"', '2,"[2, 0]"', '2,"[2, 0]"', ""]
    shown = RUNNER.invoke(app, ["query", warehouse, "SELECT max(k) AS m FROM v"])
    assert "│ 2 │" in shown.stdout
    early = RUNNER.invoke(app, ["query", warehouse, "SELECT k FROM v", "--as-of", "2001-01-01"])
    assert early.exit_code == 1 and "InvalidTime: cannot read v as of 978307200000" in early.stderr


def test_a_csv_file_is_read_as_the_table_s_types_say(folder: Path) -> None:
    (folder / "s.sql").write_text("""
        CREATE TABLE t (k smallint, zip text, n numeric(30,2), b boolean, f real, d date, z timestamptz, note text);
        CREATE MATERIALIZED VIEW v AS SELECT * FROM t
    """)
    (folder / "t.csv").write_text(
        "note,k,zip,n,b,f,d,z\n"
        "NA,1,007,12345678901234567.89,t,NaN,2024-02-29,2024-01-01 00:00:00+01\n"
        "2024-01-01,,,,,,,\n"
        '"",,1,,false,1.5,,\n'
    )
    warehouse = str(folder / "w")
    load = ["--load", f"t={folder / 't.csv'}", "--warehouse", warehouse]
    assert RUNNER.invoke(app, ["run", str(folder / "s.sql"), *load]).exit_code == 0
    answer = RUNNER.invoke(app, ["query", warehouse, "SELECT * FROM v ORDER BY note", "--csv"])
    assert answer.stdout.splitlines()[1:] == [
        ',"1",,false,1.5,,,""'.join(["", ""]),
        ',,,,,,,"2024-01-01"',
        '1,"007",12345678901234567.89,true,nan,2024-02-29,2023-12-31 23:00:00.000000Z,"NA"',
    ]
    (folder / "t.csv").write_text("k\n40000\n")
    assert "40000 is out of range for smallint" in RUNNER.invoke(app, ["run", str(folder / "s.sql"), *load[:2]]).stderr


@pytest.mark.parametrize(("arguments", "said"), [
    (["run", "{}/no.sql"], "no.sql: No such file"),
    (["explain", "{}/no.sql"], "no.sql: No such file"),
    (["run", "{}/s.sql", "--load", "t={}/no.csv"], "no.csv: no such file"),
    (["run", "{}/s.sql", "--load", "t={}/q.sql"], "q.sql cannot be read"),
    (["run", "{}/s.sql", "--load", "x={}/t.csv"], "UnknownName: unknown table"),
    (["run", "{}/s.sql", "--load", "v={}/t.csv"], "unknown table 'v'; it is a materialized view"),
    (["run", "{}/s.sql", "--load", "t={}/bad.csv"], "bad.csv cannot be read: In column k: Row #3: CSV conversion"),
    (["run", "{}/s.sql", "--load", "t={}/plain.csv"], "first line must name columns of the table (k, s)"),
    (["run", "{}/s.sql", "--load", "t={}/t.tsv"], "Only a file whose name ends in .csv is read as CSV"),
    (["run", "{}/t.csv"], "UnsupportedSQL"),
    (["query", "{}/none", "SELECT 1"], "StorageError: there is no warehouse in"),
    (["status", "{}/none"], "StorageError: there is no warehouse in"),
    (["status", "s4://none/of/these"], "StorageError: s4://none/of/these cannot be reached"),
])  # fmt: skip
def test_what_cannot_be_read_is_said_in_a_line(arguments: list[str], said: str, folder: Path) -> None:
    found = RUNNER.invoke(app, [argument.replace("{}", str(folder)) for argument in arguments])
    assert found.exit_code == 1 and isinstance(found.exception, SystemExit)
    assert said in found.stderr and "Traceback" not in found.stderr


def test_functions_shows_null_as_sql_does() -> None:
    shown = RUNNER.invoke(app, ["functions"]).stdout
    assert "`NULL`" in shown and "None" not in shown
