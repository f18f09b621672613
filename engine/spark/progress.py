"""Show on a terminal what Spark is doing; show nothing elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer

from halfjoin.engine.system.starting import start

PATIENCE = 1.0  # seconds before the spinner appears


@contextmanager
def progress(doing: str) -> Iterator[None]:
    """Show a spinner on standard error while the block runs, if that is a terminal and the block takes long."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    status = console.status(f"Spark: {doing}")
    later = Timer(PATIENCE, status.start)
    later.daemon = True
    start(later)
    try:
        yield
    finally:
        later.cancel()
        later.join()
        status.stop()
