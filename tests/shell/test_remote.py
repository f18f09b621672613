"""The shell on a server speaks PostgreSQL's protocol: rows, tags, errors with their place, COPY, transactions."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import pytest

from halfjoin.shell.commands import COMMANDS
from halfjoin.shell.output import Output
from halfjoin.shell.shell import Shell

pytest.importorskip("psycopg", reason="psycopg is not installed: pip install '.[test-postgres]'")
pytest_plugins = ("tests.support.postgres",)


@pytest.fixture
def shell(postgres: Any) -> Iterator[Shell]:
    info = postgres.info
    url = f"postgresql://{info.user}@{info.host}:{info.port}/{info.dbname}"
    from halfjoin.shell.remote import Remote

    made = Shell(Remote(url, lambda _: None), Output(io.StringIO()), COMMANDS)
    assert made.script("CREATE TABLE t (k int PRIMARY KEY, b boolean, n numeric); INSERT INTO t VALUES (1, true, 1.50)")
    yield made
    made.target.close()


def said(shell: Shell, text: str, *, well: bool = True) -> str:
    stream = shell.output.stream = io.StringIO()
    assert shell.script(text) is well
    return stream.getvalue()


def test_rows_and_tags_come_from_the_server(shell: Shell) -> None:
    shell.output.form = "json"
    assert said(shell, "SELECT * FROM t") == '{"k": 1, "b": true, "n": 1.50}\n'
    shell.output.form = "table"
    assert said(shell, "UPDATE t SET n = NULL; SELECT n FROM t").startswith("UPDATE 1\n")
    assert "NULL" in said(shell, "\\g")


def test_an_error_shows_its_place(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    said(shell, "SELECT k,\n  nothing FROM t", well=False)
    assert "ERROR: column \"nothing\" does not exist\n    nothing FROM t\n    ^" in capsys.readouterr().err


def test_rows_are_copied(shell: Shell) -> None:
    assert said(shell, "COPY t FROM STDIN;\n2\tf\t\\N\n\\.\nCOPY t TO STDOUT;") == "COPY 1\n1\tt\t1.50\n2\tf\t\\N\n"


def test_the_prompt_shows_the_server_s_transaction(shell: Shell) -> None:
    marks = []
    for statement in ("BEGIN", "SELECT nothing", "ROLLBACK"):
        shell.script(statement)
        marks.append(shell.target.in_transaction())
    assert marks == ["*", "!", ""]
