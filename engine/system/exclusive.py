"""Makes the calls of an engine take turns. A call after an interrupted one first repairs what that one left behind."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from halfjoin.engine.system.process import check_process

P = ParamSpec("P")
T = TypeVar("T")


def exclusive(method: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], T]:
    """Make a method of an engine hold the engine's lock. An exclusive method that it calls runs in the same turn.

    A `with` statement takes and releases the lock, so no interrupt comes in between. In a forked child the lock may
    never become free, so the child does not ask for it.

    Raises:
        Conflict: another process made the engine.
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
