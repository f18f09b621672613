"""The errors that the public API raises, sorted by what the caller can do about them.

An error has fields. Its constructor renders its text from them, once; no code parses a text to learn a field.
`error.with_(table="orders")` is a copy of the error with another field. Errors can be pickled and copied.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any, Self

from halfjoin import sqlstates

_SHOWN = 80  # the most characters of a value that a text shows
_CANDIDATES = 12  # the most names that a text lists


@dataclass(eq=False, repr=False)
class HalfjoinError(Exception):
    """Base class of every error that halfjoin raises on purpose.

    Attributes:
        reason (str): what is wrong.
        remedy (str | None): what the caller can do about it, None if we have no advice.
        code (str | None): PostgreSQL's SQLSTATE, if it is more than that of the kind of error; see `sqlstate`.
    """

    reason: str
    remedy: str | None = field(default=None, kw_only=True)
    code: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        """Render the text."""
        super().__init__(self._text())

    def __reduce__(self) -> tuple[Any, ...]:
        return _made_again, (type(self), self.args), self.__dict__

    @property
    def sqlstate(self) -> str:
        """The error's SQLSTATE as PostgreSQL has it, five letters and digits; the first two are its class."""
        return self.code or self._sqlstate()

    def _sqlstate(self) -> str:
        return "22023"  # an error of no other kind is about what a caller gave: a format, a size, an option

    def with_(self, **changes: Any) -> Self:
        """A copy of the error with other values in some fields."""
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
        """A copy of the error with this place in the statement; the error itself if it already has a place."""
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
    """halfjoin does not support the statement; the text says where, why, and what to write instead.

    Attributes:
        sql (str | None): the text of the statement.
        line, column (int | None): the place of the error in `sql`, both counted from 1.
        wrong (bool): PostgreSQL refuses the statement as well, so halfjoin must not try another way to run it.
        constant (str | None): the text of a constant that is no value of the type it should have.
        argument (int | None): which argument of a call is at fault, from 0.
    """

    wrong: bool = False
    constant: str | None = None
    argument: int | None = None

    def _sqlstate(self) -> str:
        return sqlstates.of(self.reason) or ("42601" if self.wrong else "0A000")


@dataclass(eq=False, repr=False)
class UnknownName(_InStatement):
    """A table, view, column or function does not exist; the text gives a remedy, or lists similar names.

    Attributes:
        kind (str): what the name should have been, such as `table` or `column of orders`.
        name (str): the unknown name.
        candidates (tuple[str, ...]): the known names; an error without a `remedy` builds its remedy from them.
        sql, line, column: as in `UnsupportedSQL`.
    """

    reason: str = field(init=False)
    kind: str
    name: str
    candidates: Iterable[str] = ()

    def __post_init__(self) -> None:
        """Find names similar to the unknown one, and render the text."""
        kind, of, owner = self.kind.partition(" of ")  # unknown column 'amout' of orders
        self.reason, self.candidates = f"unknown {kind} {self.name!r}{of}{owner}", tuple(self.candidates)
        if self.remedy is None and self.candidates:
            lower = str(self.name).lower()
            same = [one for one in self.candidates if one.lower() == lower != one]
            near = same or get_close_matches(str(self.name), self.candidates, n=3, cutoff=0.5)
            shown, more = sorted(self.candidates)[:_CANDIDATES], len(self.candidates) > _CANDIDATES
            known = "known: " + ", ".join(shown) + (", ..." if more else "")
            self.remedy = "did you mean " + " or ".join(near) + "?" if near else known
            if same:  # they differ in capitals: SQL puts names in lower case
                quoted = (".".join(f'"{part}"' for part in one.split(".")) for one in same)
                self.remedy += f" SQL keeps capitals of names in quotes only: {' or '.join(quoted)}"
        super().__post_init__()

    def _sqlstate(self) -> str:
        kinds = {"column": "42703", "function": "42883", "table": "42P01", "view": "42P01", "materialized": "42P01"}
        return kinds.get(self.kind.split()[0], "42704")


@dataclass(eq=False, repr=False, kw_only=True)
class InvalidRow(HalfjoinError):
    """A row of a batch violates the table's columns, types, NOT NULL or key, or the argument does not hold rows.

    Attributes:
        table (str | None): the table that the caller passed the rows for.
        column (str | None): the column at fault, None if the whole row is at fault.
        row (int | None): the row's number among the rows passed for the table, from 0; in a feed, the message's number.
            None if the rows have no order, as in a Spark DataFrame, or if no single row is at fault.
        key (dict[str, object] | None): the row's PRIMARY KEY (all its values, if the table has no key), if it is
            known and the rows have no numbers. Of a foreign key: what the row refers to, or is referred to by.
        value (object): the value at fault, as a Python object. None if it is NULL, or if no single value is at fault.
        called (str | None): how the text names the row, if not as `row N` or by its key: `message 3`. Empty if
            `reason` names the row.
        constraint (str | None): the name of the constraint that the row violates; None for NOT NULL.
    """

    table: str | None = None
    column: str | None = None
    row: int | None = None
    key: Mapping[str, Any] | None = None
    value: Any = None
    called: str | None = None
    constraint: str | None = None

    def _text(self) -> str:
        where = ".".join(part for part in (self.table, self.column) if part is not None)
        called = self.called
        if called is None and self.row is not None:
            called = f"row {self.row}"
        elif called is None and self.key is not None:
            called = f"the row with {key_text(self.key)}"
        why = self.reason if self.value is None else f"{shown(self.value)} {self.reason}"
        return self._with_remedy(": ".join(part for part in (where, called, why) if part))

    def _sqlstate(self) -> str:
        return "23000"


@dataclass(eq=False, repr=False, kw_only=True)
class InvalidTime(HalfjoinError):
    """The caller wrote at a time below `upper`, or read at a time outside `[since, upper)`.

    Attributes:
        time (object): the time: an int64 (milliseconds since 1970 with clock="wall", the user's units with
            clock="own"), or the caller's argument if it is not a time. None if the caller gave no time.
        upper (int | None): the least open time; times below it are closed.
        since (int | None): the least readable time.
        table (str | None): the table or view that the caller read or wrote.
    """

    time: Any = None
    upper: int | None = None
    since: int | None = None
    table: str | None = None

    def _sqlstate(self) -> str:
        return "22023"


@dataclass(eq=False, repr=False, kw_only=True)
class Conflict(HalfjoinError):
    """Another writer holds the warehouse, a batch repeats a batch id with other content, or a name is already in use.

    Attributes:
        name (str | None): the name in conflict: of a table, view, function or warehouse, or a batch id.
        holder (str | None): who holds it: another process, a view that reads it, a Delta table that it follows.
    """

    name: str | None = None
    holder: str | None = None

    def _sqlstate(self) -> str:
        return "42710"


@dataclass(eq=False, repr=False, kw_only=True)
class DataError(HalfjoinError):
    """An expression fails for a row of the tables, or an answer would be too large.

    Attributes:
        view (str | None): the view or table that is unreadable.
        time (int | None): the time as of which it is unreadable.
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

    def _sqlstate(self) -> str:
        return sqlstates.of(self.reason) or "22000"


@dataclass(eq=False, repr=False, kw_only=True)
class StorageError(HalfjoinError):
    """The disk or object store failed; the engine keeps no part of the batch.

    Attributes:
        path (str | None): the folder, file or URL that failed.
    """

    path: str | None = None

    def _sqlstate(self) -> str:
        cause = self.__cause__
        full = isinstance(cause, OSError) and cause.errno in (errno.ENOSPC, errno.EDQUOT)
        return "53100" if full or getattr(cause, "sqlite_errorname", "") == "SQLITE_FULL" else "58030"


def shown(value: object, most: int = _SHOWN) -> str:
    """The `repr` of a value for an error text, cut to `most` characters."""
    try:
        text = repr(value)
    except RecursionError:
        return f"a {type(value).__name__} that is nested too deep"
    return text if len(text) <= most else f"{text[: most - 3]}..."


def key_text(key: Mapping[str, Any]) -> str:
    """A row's key for an error text: `(a, b) = (1, 'x')`."""
    return f"({', '.join(key)}) = ({', '.join(shown(value) for value in key.values())})"


def _made_again(kind: type[HalfjoinError], args: tuple[Any, ...]) -> HalfjoinError:
    """Build an error without its fields; `pickle` and `copy` set the fields afterwards."""
    return kind.__new__(kind, *args)
