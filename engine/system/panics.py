"""Make an ordinary error of a panic, and plain text of an error. A library in Rust panics if it can open no more files
or start no more threads, and colours what it says.

A panic is no `Exception`, so `except Exception` of a program would not see it, and it would end the program.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

_COLOUR = re.compile("\x1b\\[[0-9;]*m")


def is_panic(problem: BaseException) -> bool:
    """Whether it is a panic. Each library in Rust has a class of this name, which it does not export."""
    return not isinstance(problem, Exception) and type(problem).__name__ == "PanicException"


@contextmanager
def panics_caught() -> Iterator[None]:
    """Wrap calls of such a library. Its errors have no colours.

    Raises:
        OSError: it has panicked.
    """
    try:
        yield
    except BaseException as problem:
        if is_panic(problem):
            raise OSError(str(problem)) from problem
        problem.args = tuple(_COLOUR.sub("", one) if isinstance(one, str) else one for one in problem.args)
        raise
