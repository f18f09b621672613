"""What the engine warns of while it carries out a statement, for the client that sent it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import get_ident
from typing import TypeVar

T = TypeVar("T")
_ENGINE = logging.getLogger("halfjoin")


class _Heard(logging.Handler):
    """Keeps the warnings of one thread."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.texts: list[str] = []
        self._thread = get_ident()

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a warning of the engine itself, not of the server or the catalog."""
        if record.thread == self._thread and record.name == _ENGINE.name:
            self.texts.append(record.getMessage())


def heard(function: Callable[[], T]) -> tuple[T, list[str]]:
    """What a function returns, and the engine's warnings meanwhile in this thread. They go to the log as well."""
    handler = _Heard()
    _ENGINE.addHandler(handler)
    try:
        return function(), handler.texts
    finally:
        _ENGINE.removeHandler(handler)
