"""Names that users give to methods in Python: texts, or several texts. Anything else has a plain error."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable
from typing import Any

from halfjoin.errors import HalfjoinError


def given_name(given: Any, what: str) -> str:
    """The name of something, such as `a source`.

    Raises:
        HalfjoinError: it is not text.
    """
    if not isinstance(given, str):
        raise HalfjoinError(f"{reprlib.repr(given)} is not the name of {what}", remedy="give the name as a str")
    return given


def given_names(given: Any, what: str) -> tuple[str, ...]:
    """The names of several things, or of one.

    Raises:
        HalfjoinError: one of them is not text.
    """
    if isinstance(given, str):
        return (given,)
    if not isinstance(given, Iterable) or isinstance(given, bytes):
        return (given_name(given, what),)
    return tuple(given_name(one, what) for one in given)
