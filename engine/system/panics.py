"""Make an ordinary error of a panic. A library in Rust panics if it can open no more files or start no more threads.

A panic is no `Exception`, so `except Exception` of a program would not see it, and it would end the program.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


def is_panic(problem: BaseException) -> bool:
    """Whether it is a panic. Each library in Rust has a class of this name, which it does not export."""
    return not isinstance(problem, Exception) and type(problem).__name__ == "PanicException"


@contextmanager
def panics_caught() -> Iterator[None]:
    """Wrap calls of such a library.

    Raises:
        OSError: it has panicked.
    """
    try:
        yield
    except BaseException as problem:
        if is_panic(problem):
            raise OSError(str(problem)) from problem
        raise
