"""Calls of an engine take turns, and none begins before what an interrupted one has left is put right."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from halfjoin.engine.system.process import check_process

P = ParamSpec("P")
T = TypeVar("T")


def exclusive(method: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], T]:
    """A method of an engine that holds the engine's lock; one that it calls is a part of it.

    The lock is taken and released by `with` itself, between which and the lock no interrupt comes. In a forked child it
    may never be free, so it is not asked for there.

    Raises:
        Conflict: another process has made the engine.
    """

    @wraps(method)
    def call(engine: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        check_process(engine._process)
        outermost = not engine._lock._is_owned()
        with engine._lock:
            if outermost:
                if engine._torn:
                    engine._recover()
                engine._torn = True
            result = method(engine, *args, **kwargs)
            if outermost:
                engine._torn = False
            return result

    return call
