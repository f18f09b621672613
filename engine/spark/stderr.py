"""Pass on what Java writes as it starts, without its warning about the modules that Spark asks for."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

from halfjoin.engine.system.starting import start

_WARNING = b"WARNING: Using incubator modules"


@contextmanager
def without_warning() -> Iterator[None]:
    """Wrap the start of a process that inherits our standard error and writes there as long as it lives."""
    stderr = os.dup(2)
    end, begin = os.pipe()
    start(Thread(target=_pass_on, args=(end, stderr), name="halfjoin-stderr", daemon=True))
    os.dup2(begin, 2)
    os.close(begin)
    try:
        yield
    finally:
        os.dup2(stderr, 2)


def _pass_on(source: int, target: int) -> None:
    """Copy line by line, until the last process with the other end has gone."""
    with os.fdopen(source, "rb", buffering=0) as lines:
        for line in iter(lines.readline, b""):
            if not line.startswith(_WARNING):
                os.write(target, line)
    os.close(target)
