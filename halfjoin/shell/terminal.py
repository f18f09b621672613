"""The terminal of the shell: editing over several lines, history, completion, colours."""

from __future__ import annotations

import os
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.document import Document
from prompt_toolkit.filters import completion_is_selected, is_done
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer
from prompt_toolkit.output import Output as Screen
from pygments.lexers.sql import PostgresLexer

from halfjoin.shell.completing import Names
from halfjoin.shell.script import steps
from halfjoin.shell.shell import Quit, Shell
from halfjoin.shell.splitting import split
from halfjoin.version import VERSION


def interact(shell: Shell, input: Input | None = None, screen: Screen | None = None) -> None:
    """Read and run what the user types, until `\\q` or Ctrl-D. Ctrl-C drops what is typed, or cancels what runs."""
    names = Names(shell.target)
    session: PromptSession[str] = PromptSession(
        history=_history(), completer=names, complete_while_typing=True, lexer=PygmentsLexer(PostgresLexer),
        multiline=True, key_bindings=_keys(), enable_open_in_editor=True, input=input, output=screen,
        prompt_continuation=lambda width, _, __: f"{shell.target.name}-> "[-width:].rjust(width),
    )  # fmt: skip
    shell.output.say(f"halfjoin {VERSION}: {shell.target.name}. \\? for help, \\q to leave.")
    while True:
        try:
            typed = session.prompt(f"{shell.target.name}=>{shell.target.in_transaction()} ")
            for step in steps(typed):
                went_well = shell.step(step)
                names.ran(step.text)
                if not went_well:
                    break
        except KeyboardInterrupt:
            continue
        except (EOFError, Quit):
            return


def complete(text: str) -> bool:
    """Whether Enter runs what is typed: a command, or statements that all end."""
    typed = text.strip()
    if not typed or typed.startswith("\\"):
        return True
    return split(typed).complete


def _keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter", filter=~completion_is_selected & ~is_done)
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if complete(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.document = Document(*_with_line(buffer.document))

    return keys


def _with_line(document: Document) -> tuple[str, int]:
    before, after = document.text_before_cursor, document.text_after_cursor
    return f"{before}\n{after}", len(before) + 1


def _history() -> History:
    """The file of what was typed before; in memory where none can be written."""
    folder = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "halfjoin"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        (folder / "history").touch(mode=0o600)
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(folder / "history"))
