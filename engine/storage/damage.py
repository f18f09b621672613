"""Turn errors that libraries raise over a damaged file into one error that names the file."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from halfjoin.engine.system.panics import panics_caught
from halfjoin.errors import HalfjoinError, StorageError, UnknownName, UnsupportedSQL

_RAISED = (OSError, ValueError, LookupError, TypeError, AttributeError, AssertionError, ArithmeticError, sqlite3.Error,
           pa.ArrowException, UnknownName, UnsupportedSQL)  # fmt: skip
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")  # for a terminal, in errors of deltalake


@contextmanager
def naming(file: object, *more: type[Exception], fails: str = "cannot be read") -> Iterator[None]:
    """Wrap code that reads a file or a part of it. `more` are further exceptions that it may raise; `fails` says what
    fails.

    Raises:
        StorageError: the file is missing or damaged.
        KeyboardInterrupt: Ctrl-C reached a library that has an error of its own for it, as those in Rust have.
    """
    try:
        with panics_caught():
            yield
    except (*_RAISED, *more) as problem:
        if isinstance(problem, HalfjoinError) and not isinstance(problem, UnknownName | UnsupportedSQL):
            raise
        found = repr(problem) if isinstance(problem, LookupError) else str(problem)
        said = " ".join(_COLOURS.sub("", found).split())  # in one line
        if said.endswith("KeyboardInterrupt:"):
            raise KeyboardInterrupt from problem
        raise StorageError(f"{file} {fails}: {said}") from problem
