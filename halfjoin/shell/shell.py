"""The shell without its terminal: it carries out statements and commands, and says what went wrong."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from halfjoin.shell.output import Output
from halfjoin.shell.script import Step, steps, takes_rows
from halfjoin.shell.splitting import bare
from halfjoin.shell.targets import ShellError, Target

_COPY_OUT = re.compile(r"\s*COPY\b.*\bTO\s+STDOUT\b", re.IGNORECASE | re.DOTALL)
_SUBSCRIBE = re.compile(r"\s*SUBSCRIBE\s+(?:TO\s+)?([\w.\"]+)\s*\Z", re.IGNORECASE)
TAIL = re.compile(r"\\(gx|g|watch)\b[ \t]*([^\n]*)\Z")  # a command behind a statement
_NESTING = 20  # scripts in scripts


class Quit(Exception):
    """The user leaves the shell."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command: what it does with the words after its name, and its line in the help."""

    run: Callable[[Shell, str], None]
    form: str
    help: str


class Shell:
    """Runs what a user types against a target.

    Args:
        target: runs the statements.
        output: shows the answers.
        commands: what begins with a backslash, by name.
    """

    def __init__(self, target: Target, output: Output, commands: Mapping[str, Command]) -> None:
        self.target, self.output, self._commands = target, output, commands
        self.last = ""  # the last statement, which \g, \watch and \explain repeat
        self._depth = 0

    def script(self, text: str) -> bool:
        """Run a script up to the first error, and say whether there was none."""
        if self._depth == _NESTING:
            return self.fail(f"scripts are nested more than {_NESTING} deep")
        self._depth += 1
        try:
            return all(self.step(step) for step in steps(text))
        finally:
            self._depth -= 1

    def step(self, step: Step) -> bool:
        """Run one statement or command, and say whether it went well. Ctrl-C ends it alone.

        Raises:
            Quit: the user leaves.
        """
        began = time.perf_counter()
        try:
            if step.is_command:
                self._command(step.text)
            else:
                self._statement(step)
        except ShellError as error:
            return self.fail(str(error))
        except KeyboardInterrupt:
            return self.fail("cancelled")
        if self.output.timing and not step.is_command:
            self.output.say(f"Time: {(time.perf_counter() - began) * 1000:.1f} ms")
        return True

    def fail(self, problem: str) -> bool:
        """Say what is wrong; the answer is False."""
        kind, colon, text = problem.partition(": ")
        console = Console(stderr=True, highlight=False)
        marked = f"[red]{escape(kind)}[/red]{colon}{escape(text)}" if kind.isidentifier() else escape(problem)
        console.print(marked, soft_wrap=True)
        return False

    def run(self, statement: str) -> None:
        """Run a statement and show its answer."""
        self.output.show(self.target.run(statement))

    def _statement(self, step: Step) -> None:
        statement = step.text
        tail = TAIL.search(statement)
        if tail is not None:
            statement = statement[: tail.start()].strip()
        self.last = statement or self.last
        if takes_rows(statement):
            rows = step.rows if step.rows is not None else _typed_rows()
            self.output.say(self.target.copy_in(statement, rows.encode()))
        elif _COPY_OUT.match(bare(statement)):
            self.output.write(self.target.copy_out(statement).decode())
        elif found := _SUBSCRIBE.match(bare(statement)):
            self.follow(found[1])
        elif tail is not None:
            self._command(f"\\{tail[1]} {tail[2]}")
        else:
            self.run(statement)

    def follow(self, view: str) -> None:
        """Show a view's contents and its changes as they come, until Ctrl-C."""
        try:
            for changes in self.target.subscribe(view):
                if changes.rows:
                    self.output.show(changes)
        except KeyboardInterrupt:
            self.output.say("ended")

    def _command(self, text: str) -> None:
        name, _, rest = text[1:].partition(" ")
        found = self._commands.get(name)
        if found is None and name.endswith("+"):
            found = self._commands.get(name[:-1])
        if found is None:
            raise ShellError(f"unknown command \\{name}: \\? lists the commands")
        found.run(self, rest.strip())

    def include(self, path: str) -> None:
        """Run a script from a file.

        Raises:
            ShellError: the file cannot be read, or a step of it failed.
        """
        if not self.script(read(path)):
            raise ShellError(f"{path} ended at its first error")


def _typed_rows() -> str:
    """The lines of standard input up to one with `\\.` alone."""
    lines = []
    for line in sys.stdin:
        if line.rstrip() == "\\.":
            break
        lines.append(line)
    return "".join(lines)


def read(path: str) -> str:
    """The text of a file; `-` is standard input.

    Raises:
        ShellError: it cannot be read.
    """
    try:
        if path == "-":
            return sys.stdin.read().removeprefix("\ufeff")  # a mark that editors on Windows write
        return Path(path).expanduser().read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ShellError(f"{path}: {getattr(error, 'strerror', None) or error}") from error
