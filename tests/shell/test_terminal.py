"""At a terminal Enter runs what is complete, names are completed with what they are, and Ctrl-C ends no shell."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from halfjoin.shell.commands import COMMANDS
from halfjoin.shell.completing import Names
from halfjoin.shell.local import Local
from halfjoin.shell.output import Output
from halfjoin.shell.shell import Shell
from halfjoin.shell.terminal import complete, interact


@pytest.fixture(autouse=True)
def _own_history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


@pytest.fixture
def shell() -> Iterator[Shell]:
    target = Local(None, lambda _: None)
    target.run("CREATE TABLE orders (id bigint PRIMARY KEY, amount numeric(10,2))")
    yield Shell(target, Output(io.StringIO()), COMMANDS)
    target.close()


def typed(shell: Shell, keys: str) -> str:
    with create_pipe_input() as given:
        given.send_text(keys)
        interact(shell, given, DummyOutput())
    assert isinstance(shell.output.stream, io.StringIO)
    return shell.output.stream.getvalue()


def test_a_statement_goes_over_several_lines(shell: Shell) -> None:
    assert "│ 3 │" in typed(shell, "SELECT 1\r+ 2 AS\ra;\r\x04")


def test_ctrl_c_drops_what_is_typed(shell: Shell, tmp_path: Path) -> None:
    assert "│ 7 │" in typed(shell, "SELECT (\x03SELECT 7 AS a;\r\\q\r")
    assert "SELECT 7 AS a;" in (tmp_path / "halfjoin" / "history").read_text()


def test_rows_of_copy_are_typed(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("1\t2.50\n2\t\\N\n\\.\nmore"))
    assert "COPY 2" in typed(shell, "COPY orders FROM STDIN;\r\x04")


@pytest.mark.parametrize(("text", "whole"), [
    ("SELECT 1;", True), ("SELECT 1", False), ("SELECT ';", False), ("\\d", True), ("", True),
    ("SELECT 1; SELECT", False), ("SELECT 1 \\gx", True), ("SELECT (1;", False),
])  # fmt: skip
def test_enter_runs_what_is_complete(text: str, whole: bool) -> None:
    assert complete(text) is whole


@pytest.mark.parametrize(("text", "found"), [
    ("SELECT am", ("amount", "numeric(10,2), orders")), ("SELECT * FROM ord", ("orders", "table")),
    ("SELECT orders.i", ("id", "bigint, orders")), ("SELECT low", ("lower", "function")), ("sel", ("SELECT", "")),
    ("\\tim", ("timing", "how long each statement takes")), ("\\d ord", ("orders", "table")),
])  # fmt: skip
def test_names_are_completed_with_what_they_are(shell: Shell, text: str, found: tuple[str, str]) -> None:
    made = Names(shell.target).get_completions(Document(text), CompleteEvent())
    assert found in [(one.text, one.display_meta_text) for one in made]


def test_new_names_are_known_after_ddl(shell: Shell) -> None:
    names = Names(shell.target)

    def known() -> list[str]:
        return [one.text for one in names.get_completions(Document("SELECT * FROM par"), CompleteEvent())]

    assert "parts" not in known()
    shell.script("CREATE TABLE parts (p int)")
    names.ran("CREATE TABLE parts (p int)")
    assert "parts" in known()
