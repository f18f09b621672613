"""Reads scripts: statements, commands that begin with a backslash, and the rows that follow COPY FROM STDIN."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from halfjoin.shell.splitting import bare, first

_COPY_IN = re.compile(r"\s*COPY\b.*\bFROM\s+STDIN\b", re.IGNORECASE | re.DOTALL)
_END_OF_ROWS = re.compile(r"^\\\.\r?$\n?", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Step:
    """One statement or command of a script. `rows`: those of COPY FROM STDIN; None: they are still to come."""

    text: str
    rows: str | None = None

    @property
    def is_command(self) -> bool:
        """Whether it is a command of the shell, not SQL."""
        return self.text.startswith("\\")


def takes_rows(statement: str) -> bool:
    """Whether rows follow a statement, up to a line with `\\.` alone."""
    return _COPY_IN.match(bare(statement)) is not None


def steps(text: str) -> Iterator[Step]:
    """The steps of a script. A last statement needs no semicolon.

    >>> [step.text for step in steps("SELECT 1;\\n\\\\x\\nSELECT 2")]
    ['SELECT 1', '\\\\x', 'SELECT 2']
    """
    while text := text.lstrip():
        if text.startswith("--"):
            text = text.partition("\n")[2]
            continue
        if text.startswith("\\"):
            line, _, text = text.partition("\n")
            yield Step(line.rstrip())
            continue
        statement, rest, _ = first(text)
        text = rest or ""
        if not bare(statement):
            continue
        if takes_rows(statement) and text.strip():
            rows, text = _rows(text.removeprefix("\r").removeprefix("\n"))
            yield Step(statement.strip(), rows)
        else:
            yield Step(statement.strip())


def _rows(text: str) -> tuple[str, str]:
    """The rows before `\\.`, and what follows it."""
    end = _END_OF_ROWS.search(text)
    return (text, "") if end is None else (text[: end.start()], text[end.end() :])
