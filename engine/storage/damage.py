"""Turn errors that libraries raise over a damaged file into one error that names the file."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from halfjoin.errors import HalfjoinError, StorageError, UnknownName, UnsupportedSQL

_RAISED = (OSError, ValueError, LookupError, TypeError, AttributeError, AssertionError, ArithmeticError, sqlite3.Error,
           pa.ArrowException, UnknownName, UnsupportedSQL)  # fmt: skip


@contextmanager
def naming(file: object, *more: type[Exception]) -> Iterator[None]:
    """Wrap code that reads a file or a part of it. `more` are further exceptions that it may raise.

    Raises:
        StorageError: the file is missing or damaged.
    """
    try:
        yield
    except (*_RAISED, *more) as problem:
        if isinstance(problem, HalfjoinError) and not isinstance(problem, UnknownName | UnsupportedSQL):
            raise
        raise StorageError(f"{file} cannot be read: {problem!r}" if isinstance(problem, LookupError)
                           else f"{file} cannot be read: {problem}") from problem  # fmt: skip
