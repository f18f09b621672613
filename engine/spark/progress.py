"""What Spark is doing, on a terminal; silence anywhere else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer

PATIENCE = 1.0  # seconds that a job may take before anything is shown


@contextmanager
def progress(doing: str) -> Iterator[None]:
    """A spinner on standard error for as long as the block takes, if that is a terminal and it takes long."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    status = console.status(f"Spark: {doing}")
    later = Timer(PATIENCE, status.start)
    later.daemon = True
    later.start()
    try:
        yield
    finally:
        later.cancel()
        later.join()
        status.stop()
