"""The errors of the public face, sorted by what the caller can do about them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches


class HalfjoinError(Exception):
    """Base of every error raised on purpose."""


class UnsupportedSQL(HalfjoinError):
    """The statement is not SQL that is supported; the text says where, why, and what to write instead.

    `wrong`: PostgreSQL refuses it, too, so that no other way to carry it out may be tried.
    """

    def __init__(self, reason: str, *, instead: str | None = None, sql: str | None = None,
                 line: int | None = None, column: int | None = None, wrong: bool = False) -> None:
        self.reason, self.instead, self.sql, self.line, self.column = reason, instead, sql, line, column
        self.wrong = wrong
        super().__init__(_located(reason, instead, sql, line, column))

    def at(self, sql: str, line: int | None, column: int | None) -> UnsupportedSQL:
        """The same error with its place in the statement, unless it has one already."""
        if self.line is not None or line is None:
            return self
        return type(self)(self.reason, instead=self.instead, sql=sql, line=line, column=column, wrong=self.wrong)


@contextmanager
def bounded() -> Iterator[None]:
    """What goes deeper than Python's stack is refused: a statement whose parts are inside each other too often."""
    try:
        yield
    except RecursionError:
        raise UnsupportedSQL("the statement is nested too deep",
                             instead="make a part of it a view of its own") from None


class UnknownName(HalfjoinError):
    """A table, view, column or function that does not exist; the text says what to do instead, or the near ones."""

    def __init__(self, kind: str, name: str, known: Iterable[str] = (), *, instead: str | None = None,
                 sql: str | None = None, line: int | None = None, column: int | None = None) -> None:
        self.kind, self.name, self.known, self.instead = kind, name, tuple(known), instead
        self.sql, self.line, self.column = sql, line, column
        near = get_close_matches(str(name), self.known, n=3, cutoff=0.5) if instead is None else []
        if near:
            instead = "did you mean " + " or ".join(near) + "?"
        elif self.known and instead is None:
            instead = "known: " + ", ".join(sorted(self.known)[:12]) + (", ..." if len(self.known) > 12 else "")
        super().__init__(_located(f"unknown {kind} {name!r}", instead, sql, line, column))

    def at(self, sql: str, line: int | None, column: int | None) -> UnknownName:
        """The same error with its place in the statement, unless it has one already."""
        if self.line is not None or line is None:
            return self
        return type(self)(self.kind, self.name, self.known, instead=self.instead, sql=sql, line=line, column=column)


class InvalidRow(HalfjoinError):
    """A row of a batch breaks the table's columns, types, NOT NULL or key; names table, column, row and value."""


class InvalidTime(HalfjoinError):
    """A time below `upper` was written, or one outside `[since, upper)` was read."""


class Conflict(HalfjoinError):
    """Another writer holds the warehouse, a batch id came back with other content, or a name is taken."""


class DataError(HalfjoinError):
    """A maintained expression fails for a row that is in the tables; names the expression and a row."""


class StorageError(HalfjoinError):
    """The disk or object store failed; nothing of the batch is kept."""


def _located(reason: str, instead: str | None, sql: str | None, line: int | None, column: int | None) -> str:
    """Reason, place with the line of SQL underlined, remedy."""
    text = reason
    if sql is not None and line is not None and column is not None:
        text += f" (line {line}, column {column})"
        lines = sql.splitlines()
        if line <= len(lines):
            text += f"\n  {lines[line - 1]}\n  {' ' * (column - 1)}^"
    if instead:
        text += f"\n  {instead}" if "\n" in text else f"; {instead}"
    return text
