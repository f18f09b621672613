"""Prints answers: as tables, one column a line, CSV or JSON lines; long ones through a pager."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from halfjoin.shell.targets import Answer

Form = Literal["table", "csv", "json"]
_NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?")
_QUOTED = re.compile(r'[",\r\n]|^\s|\s$')
_NULL = Text("NULL", style="dim")


@dataclass(slots=True)
class Output:
    """Where answers go, and how they look.

    Args:
        stream: where they go; None is standard output, through a pager if it is a terminal and they are long.
        form: a table, CSV, or a JSON object a row.
        expanded: show each row as lines of `column | value`; None: if a table would be wider than the terminal.
        timing: say how long each statement took.
    """

    stream: TextIO | None = None
    form: Form = "table"
    expanded: bool | None = False
    timing: bool = False

    def show(self, answer: Answer) -> None:
        """Print the rows of an answer, or its tag."""
        if answer.names is None:
            self.say(answer.tag)
        elif self.form == "csv":
            self.write(csv_text(answer))
        elif self.form == "json":
            self.write(json_text(answer))
        else:
            self.write(self._table(answer))

    def say(self, text: str) -> None:
        """Print a line for people; scripts that read CSV or JSON do not get it."""
        if text and self.form == "table":
            self.write(text + "\n")

    def to(self, path: str) -> None:
        """Send what follows to a file; without a name, to standard output again.

        Raises:
            OSError: the file cannot be written.
        """
        new = Path(path).expanduser().open("w", encoding="utf-8") if path else None
        if self.stream is not None:
            self.stream.close()
        self.stream = new

    def _table(self, answer: Answer) -> str:
        width = shutil.get_terminal_size((120, 40)).columns
        wanted = sum(widths(answer)) + 3 * len(widths(answer)) + 1
        if self.expanded or (self.expanded is None and wanted > width):
            return self._text(_expanded(answer), width)
        count = len(answer.rows)
        return self._text(_table(answer), wanted) + f"({count:,} row{'' if count == 1 else 's'})\n"

    def _text(self, made: Table, width: int) -> str:
        colours = self.stream is None and sys.stdout.isatty()
        console = Console(file=io.StringIO(), width=max(width, 8), force_terminal=colours, legacy_windows=False)
        console.print(made, crop=False, overflow="ignore", no_wrap=True)
        text = console.file.getvalue()  # type: ignore[attr-defined]
        return "".join(f"{line.rstrip()}\n" for line in text.splitlines())

    def write(self, text: str) -> None:
        """Print a text as it is."""
        if self.stream is not None:
            self.stream.write(text)
            self.stream.flush()
            return
        size = shutil.get_terminal_size((120, 40))
        if sys.stdout.isatty() and sys.stdin.isatty() and text.count("\n") > size.lines - 2 and _paged(text):
            return
        sys.stdout.write(text)
        sys.stdout.flush()


def widths(answer: Answer) -> list[int]:
    """How many characters the widest line of each column has."""
    found = []
    for place, name in enumerate(answer.names or ()):
        longest = max((len(line) for row in answer.rows for line in (row[place] or "NULL").split("\n")), default=0)
        found.append(max(longest, len(name)))
    return found


def _table(answer: Answer) -> Table:
    made = Table(header_style="bold")
    for name, kind in zip(answer.names or (), answer.kinds, strict=True):
        made.add_column(Text(name), justify="right" if kind == "number" else "left", no_wrap=True)
    for row in answer.rows:
        made.add_row(*(_NULL if value is None else Text(value) for value in row))
    return made


def _expanded(answer: Answer) -> Table:
    made = Table(show_header=False)
    made.add_column(style="bold", no_wrap=True)
    made.add_column(overflow="fold")
    for row in answer.rows:
        for name, value in zip(answer.names or (), row, strict=True):
            made.add_row(Text(name), _NULL if value is None else Text(value))
        made.add_section()
    return made


def csv_text(answer: Answer) -> str:
    """The rows as CSV with a header. NULL is nothing, an empty text is `""`."""
    return "".join(f"{','.join(map(_csv, row))}\n" for row in (answer.names or (), *answer.rows))


def _csv(value: str | None) -> str:
    if value is None:
        return ""
    return '"' + value.replace('"', '""') + '"' if not value or _QUOTED.search(value) else value


def json_text(answer: Answer) -> str:
    """The rows as JSON objects, one a line: numbers with all their digits; NaN and infinities as texts."""
    lines = []
    for row in answer.rows:
        named = zip(answer.names or (), row, answer.kinds, strict=True)
        lines.append(", ".join(f"{json.dumps(name, ensure_ascii=False)}: {_json(value, kind)}"
                               for name, value, kind in named))  # fmt: skip
    return "".join(f"{{{line}}}\n" for line in lines)


def _json(value: str | None, kind: str) -> str:
    if value is None:
        return "null"
    if kind == "boolean":
        return "true" if value == "t" else "false"
    return value if kind == "number" and _NUMBER.fullmatch(value) else json.dumps(value, ensure_ascii=False)


def _paged(text: str) -> bool:
    """Show a text in the user's pager. False: there is none."""
    pager = os.environ.get("PAGER") or shutil.which("less") or ""
    if not pager:
        return False
    kept = {**os.environ, "LESS": os.environ.get("LESS", "-SFRX")}
    try:
        subprocess.run(pager, input=text, text=True, shell=os.environ.get("PAGER") is not None, env=kept, check=False)
    except (OSError, KeyboardInterrupt):
        return False
    return True
