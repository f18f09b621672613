"""The shell runs statements and commands, and shows what they answer; an error ends a script, never the shell."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from halfjoin.shell.commands import COMMANDS
from halfjoin.shell.local import Local
from halfjoin.shell.output import Output
from halfjoin.shell.shell import Quit, Shell

TABLE = "CREATE TABLE t (k int PRIMARY KEY, s text); INSERT INTO t VALUES (1, 'a'), (2, NULL);"


@pytest.fixture
def shell() -> Shell:
    made = Shell(Local(None, lambda _: None), Output(io.StringIO()), COMMANDS)
    views = "CREATE MATERIALIZED VIEW v AS SELECT s, count(*) AS n FROM t GROUP BY s; CREATE VIEW w AS TABLE v"
    assert made.script(TABLE + views)
    return made


def said(shell: Shell, text: str, *, well: bool = True) -> str:
    stream = shell.output.stream = io.StringIO()
    assert shell.script(text) is well
    return stream.getvalue()


def test_rows_are_shown_as_a_table(shell: Shell) -> None:
    assert said(shell, "SELECT k, s, k > 1 AS b FROM t ORDER BY k").splitlines() == [
        "┏━━━┳━━━━━━┳━━━┓", "┃ k ┃ s    ┃ b ┃", "┡━━━╇━━━━━━╇━━━┩",
        "│ 1 │ a    │ f │", "│ 2 │ NULL │ t │", "└───┴──────┴───┘", "(2 rows)",
    ]  # fmt: skip


def test_rows_are_shown_as_lines(shell: Shell) -> None:
    lines = "┌───┬──────┐\n│ k │ 2    │\n│ s │ NULL │\n└───┴──────┘\n"
    assert said(shell, "SELECT * FROM t WHERE k = 2 \\gx") == lines
    assert said(shell, "\\x\nSELECT * FROM t WHERE k = 2") == "Expanded display is on.\n" + lines


def test_tags_say_what_was_done(shell: Shell) -> None:
    assert said(shell, "INSERT INTO t VALUES (3, 'c'); DELETE FROM t WHERE k = 3; TRUNCATE t") == (
        "INSERT 0 1\nDELETE 1\nTRUNCATE TABLE\n")


def test_csv_has_no_tags_and_tells_null_from_nothing(shell: Shell) -> None:
    shell.output.form = "csv"
    assert said(shell, """INSERT INTO t VALUES (3, ''), (4, 'a,"b'); SELECT * FROM t ORDER BY k""") == (
        'k,s\n1,a\n2,\n3,""\n4,"a,""b"\n')


def test_json_keeps_all_digits(shell: Shell) -> None:
    shell.output.form = "json"
    query = "SELECT 1.50 AS n, true AS b, NULL AS x, 'NaN'::float8 AS f, 'é\"' AS s, 12345678901234567890 AS i"
    assert said(shell, query) == (
        '{"n": 1.50, "b": true, "x": null, "f": "NaN", "s": "é\\"", "i": 12345678901234567890}\n')


def test_an_error_ends_a_script(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    assert said(shell, "SELECT 1 AS a; SELECT nothing FROM t; SELECT 2 AS b", well=False).count("┏") == 1
    told = capsys.readouterr().err
    assert "UnknownName: unknown column 'nothing'" in told and "\n         ^" in told


def test_a_cancelled_statement_leaves_the_shell(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: str) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(shell.target, "run", interrupted)
        said(shell, "SELECT 1", well=False)
    assert "(2 rows)" in said(shell, "SELECT * FROM t")


def test_the_prompt_shows_the_transaction(shell: Shell) -> None:
    marks = []
    for statement in ("BEGIN", "INSERT INTO t VALUES (9, 'x')", "SELECT nothing", "ROLLBACK", "BEGIN", "COMMIT"):
        shell.script(statement)
        marks.append(shell.target.in_transaction())
    assert marks == ["*", "*", "!", "", "*", ""]
    assert "(2 rows)" in said(shell, "SELECT * FROM t")


@pytest.mark.parametrize(("command", "shown"), [
    ("\\d", ["t", "v", "w"]), ("\\dt", ["t"]), ("\\dv", ["w"]), ("\\dm", ["v"]), ("\\dm x*", []),
    ("\\df lo*r", ["lower"]), ("\\dn", ["public"]), ("\\d t", ["k", "s"]),
])  # fmt: skip
def test_what_exists_is_listed(shell: Shell, command: str, shown: list[str]) -> None:
    assert [line.split()[1] for line in said(shell, command).splitlines() if line.startswith("│")] == shown


def test_a_view_is_described_with_its_text(shell: Shell) -> None:
    assert "CREATE MATERIALIZED VIEW v AS SELECT s, count(*) AS n FROM t GROUP BY s;" in said(shell, "\\d v")


def test_the_plan_of_the_last_statement_is_shown(shell: Shell) -> None:
    assert "keep for each group: its number of rows" in said(shell, "\\explain v")
    assert "change of t" in said(shell, "SELECT k FROM t; \\explain")


def test_answers_go_to_a_file_and_back(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "out.txt"
    shell.script(f"\\o {file}\nSELECT 1 AS a;\n\\o")
    assert "│ 1 │" in file.read_text() and shell.output.stream is None
    assert said(shell, f"\\o {tmp_path}/none/x", well=False) == ""


def test_copy_takes_rows_of_scripts_and_files(shell: Shell, tmp_path: Path) -> None:
    shown = said(shell, "COPY t FROM STDIN;\n7\tg\n\\.\nCOPY t TO STDOUT;")
    assert shown.splitlines() == ["COPY 1", "1\ta", "2\t\\N", "7\tg"]
    file = tmp_path / "t.csv"
    assert said(shell, f"\\copy t TO '{file}' WITH (FORMAT csv, HEADER)") == f"15 bytes to {file}\n"
    assert said(shell, f"TRUNCATE t;\n\\copy t FROM {file} WITH (FORMAT csv, HEADER)\n") == "TRUNCATE TABLE\nCOPY 3\n"
    said(shell, f"\\copy t FROM {tmp_path}/none", well=False)


def test_scripts_may_read_scripts_but_not_themselves(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "a.sql").write_text("SELECT 5 AS five;")
    assert "five" in said(shell, f"\\i {tmp_path}/a.sql")
    (tmp_path / "b.sql").write_text(f"\\i {tmp_path}/b.sql")
    said(shell, f"\\i {tmp_path}/b.sql", well=False)


def test_the_contents_and_changes_of_a_view_are_followed(shell: Shell) -> None:
    assert said(shell, "SUBSCRIBE v").count("│ a ") == 1


WRONG = ["\\nothing", "\\x maybe", "\\d 'x'", "\\watch soon", "\\watch -1", "\\copy t", "\\i none.sql"]


@pytest.mark.parametrize("command", WRONG)
def test_wrong_commands_say_so(shell: Shell, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    said(shell, f"SELECT 1; {command}" if command.startswith("\\w") else command, well=False)
    assert "Traceback" not in (told := capsys.readouterr().err) and len(told) > 10


def test_the_help_names_every_command(shell: Shell) -> None:
    text = said(shell, "\\?")
    assert all(one.form in text and one.help in text for one in COMMANDS.values())
    with pytest.raises(Quit):
        shell.script("\\q")
