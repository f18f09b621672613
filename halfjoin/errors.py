"""The errors of the public face, sorted by what the caller can do about them.

An error has fields. Its text is rendered from them once, when it is made; nothing reads a text to learn a field.
`error.with_(table="orders")` is the same error with another field. Errors can be pickled and copied.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any, Self

_SHOWN = 80  # characters of a value that a text shows
_CANDIDATES = 12  # names that a text lists


@dataclass(eq=False, repr=False)
class HalfjoinError(Exception):
    """Base of every error raised on purpose.

    Attributes:
        reason (str): what is wrong.
        remedy (str | None): what to do about it, where that can be said.
    """

    reason: str
    remedy: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        """Render the text."""
        super().__init__(self._text())

    def __reduce__(self) -> tuple[Any, ...]:
        return _made_again, (type(self), self.args), self.__dict__

    def with_(self, **changes: Any) -> Self:
        """The same error with other values in some fields."""
        return replace(self, **changes)

    def _text(self) -> str:
        return self._with_remedy(self.reason)

    def _with_remedy(self, text: str) -> str:
        if not self.remedy:
            return text
        return f"{text}\n  {self.remedy}" if "\n" in text else f"{text}; {self.remedy}"


@dataclass(eq=False, repr=False, kw_only=True)
class _InStatement(HalfjoinError):
    """An error with a place in a statement, which the text underlines."""

    sql: str | None = None
    line: int | None = None
    column: int | None = None

    def at(self, sql: str, line: int | None, column: int | None) -> Self:
        """The same error with its place in the statement, unless it has one already."""
        return self if self.line is not None or line is None else self.with_(sql=sql, line=line, column=column)

    def _text(self) -> str:
        text = self.reason
        if self.sql is not None and self.line is not None and self.column is not None:
            text += f" (line {self.line}, column {self.column})"
            lines = self.sql.splitlines()
            if self.line <= len(lines):
                text += f"\n  {lines[self.line - 1]}\n  {' ' * (self.column - 1)}^"
        return self._with_remedy(text)


@dataclass(eq=False, repr=False, kw_only=True)
class UnsupportedSQL(_InStatement):
    """The statement is not SQL that is supported; the text says where, why, and what to write instead.

    Attributes:
        sql (str | None): the text of the statement.
        line, column (int | None): where in `sql` it goes wrong, both from 1.
        wrong (bool): PostgreSQL refuses it as well, so no other way to carry it out may be tried.
    """

    wrong: bool = False


@dataclass(eq=False, repr=False)
class UnknownName(_InStatement):
    """A table, view, column or function that does not exist; the text says what to do instead, or names near ones.

    Attributes:
        kind (str): what was looked for, such as `table` or `column of orders`.
        name (str): the name that is not known.
        candidates (tuple[str, ...]): the names that are known; where no remedy is given, they make it.
        sql, line, column: as of `UnsupportedSQL`.
    """

    reason: str = field(init=False)
    kind: str
    name: str
    candidates: Iterable[str] = ()

    def __post_init__(self) -> None:
        """Find names near the unknown one, and render the text."""
        self.reason, self.candidates = f"unknown {self.kind} {self.name!r}", tuple(self.candidates)
        if self.remedy is None and self.candidates:
            near = get_close_matches(str(self.name), self.candidates, n=3, cutoff=0.5)
            shown, more = sorted(self.candidates)[:_CANDIDATES], len(self.candidates) > _CANDIDATES
            known = "known: " + ", ".join(shown) + (", ..." if more else "")
            self.remedy = "did you mean " + " or ".join(near) + "?" if near else known
        super().__post_init__()


@dataclass(eq=False, repr=False, kw_only=True)
class InvalidRow(HalfjoinError):
    """A row of a batch breaks the table's columns, types, NOT NULL or key, or rows are not given as rows.

    Attributes:
        table (str | None): the table that the rows were for.
        column (str | None): the column at fault, None where it is the row as a whole.
        row (int | None): the row's number in what was given for the table, from 0; of a feed, the message's number.
            None where rows have no order, as in a Spark DataFrame, and where no single row is at fault.
        key (dict[str, object] | None): the row's PRIMARY KEY (in a table without one, all its values), where it is
            known and the rows have no numbers.
        value (object): the value at fault, as Python has it. None if it is NULL, or if no single value is at fault.
        called (str | None): how the text names the row, where that is not `row N` or by its key: `message 3`. Empty
            where `reason` names it.
    """

    table: str | None = None
    column: str | None = None
    row: int | None = None
    key: Mapping[str, Any] | None = None
    value: Any = None
    called: str | None = None

    def _text(self) -> str:
        where = ".".join(part for part in (self.table, self.column) if part is not None)
        called = self.called
        if called is None and self.row is not None:
            called = f"row {self.row}"
        elif called is None and self.key is not None:
            called = f"the row with {key_text(self.key)}"
        why = self.reason if self.value is None else f"{shown(self.value)} {self.reason}"
        return self._with_remedy(": ".join(part for part in (where, called, why) if part))


@dataclass(eq=False, repr=False, kw_only=True)
class InvalidTime(HalfjoinError):
    """A time below `upper` was written, or one outside `[since, upper)` was read.

    Attributes:
        time (object): the time in question: an int64 (milliseconds since 1970 with clock="wall", the user's units with
            clock="own"), or what was given where it is not a time. None where none was given.
        upper (int | None): the least open time; those below are closed.
        since (int | None): the least time that can be read.
        table (str | None): the table or view that was to be read or written.
    """

    time: Any = None
    upper: int | None = None
    since: int | None = None
    table: str | None = None


@dataclass(eq=False, repr=False, kw_only=True)
class Conflict(HalfjoinError):
    """Another writer holds the warehouse, a batch id came back with other content, or a name is taken.

    Attributes:
        name (str | None): what is contended for: a table, view, function, warehouse or batch id.
        holder (str | None): who has it: another process, a view that reads it, a Delta table that is followed.
    """

    name: str | None = None
    holder: str | None = None


@dataclass(eq=False, repr=False, kw_only=True)
class DataError(HalfjoinError):
    """An expression fails for a row that is in the tables, or an answer would be too large.

    Attributes:
        view (str | None): the view or table that cannot be read.
        time (int | None): the time as of which it cannot be read.
        row (str | None): a row for which the expression fails, as `t.x = 1, t.y = NULL`; long values are cut.
        more (int): how many other rows fail as well.
    """

    view: str | None = None
    time: int | None = None
    row: str | None = None
    more: int = 0

    def _text(self) -> str:
        where = f"{self.view} cannot be read as of {self.time}: " if self.time is not None else ""
        row = f", for a row with {self.row}" if self.row else ""
        return self._with_remedy(f"{where}{self.reason}{row}{f' (and {self.more} more)' if self.more else ''}")


@dataclass(eq=False, repr=False, kw_only=True)
class StorageError(HalfjoinError):
    """The disk or object store failed; nothing of the batch is kept.

    Attributes:
        path (str | None): the folder, file or URL in question.
    """

    path: str | None = None


@contextmanager
def bounded() -> Iterator[None]:
    """What goes deeper than Python's stack is refused: a statement whose parts are inside each other too often."""
    try:
        yield
    except RecursionError:
        raise UnsupportedSQL("the statement is nested too deep", remedy="make a part of it a view of its own") from None


def shown(value: object, most: int = _SHOWN) -> str:
    """A value as a text shows it, cut to `most` characters."""
    text = repr(value)
    return text if len(text) <= most else f"{text[: most - 3]}..."


def key_text(key: Mapping[str, Any]) -> str:
    """A row's key as a text shows it: `(a, b) = (1, 'x')`."""
    return f"({', '.join(key)}) = ({', '.join(shown(value) for value in key.values())})"


def _made_again(kind: type[HalfjoinError], args: tuple[Any, ...]) -> HalfjoinError:
    """An error without its fields, which `pickle` and `copy` set after it."""
    return kind.__new__(kind, *args)
