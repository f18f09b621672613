"""What users give to methods in Python: names and numbers. Anything else has a plain error."""

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


def given_count(given: Any, what: str) -> int:
    """How many there may be of something, such as `lines`.

    Raises:
        HalfjoinError: it is not a whole number from 0 on.
    """
    if type(given) is not int or given < 0:
        raise HalfjoinError(f"{reprlib.repr(given)} is not a number of {what}", remedy="give an int, 0 or more")
    return given
