"""What libraries raise over a damaged file, as the error that names it."""

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
    """Around what reads a file, or something in it; `more` may be raised by it, too.

    Raises:
        StorageError: it is not there, or damaged.
    """
    try:
        yield
    except (*_RAISED, *more) as problem:
        if isinstance(problem, HalfjoinError) and not isinstance(problem, UnknownName | UnsupportedSQL):
            raise
        raise StorageError(f"{file} cannot be read: {problem!r}" if isinstance(problem, LookupError)
                           else f"{file} cannot be read: {problem}") from problem  # fmt: skip
