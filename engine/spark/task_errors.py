"""Carry our errors from a task to the driver, with all their fields.

Spark keeps the text of a task's error inside the text of its own error. So an error that leaves a task gets a note
with its pickled form, which `unpacked` finds in Spark's text. A row's values may be in that text as well, so
`unpacked` loads only our errors and plain values.
"""

from __future__ import annotations

import base64
import gc
import io
import pickle
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from datetime import datetime, timezone
from functools import cache
from typing import Any

from halfjoin import errors
from halfjoin.errors import DataError, HalfjoinError
from halfjoin.nesting import headroom

_PACKED = re.compile(r"halfjoin-error:([A-Za-z0-9+/=]+);")
_VALUES = {
    *(("datetime", name) for name in ("date", "datetime", "time", "timedelta", "timezone")),
    ("decimal", "Decimal"), ("uuid", "UUID"),
}  # fmt: skip


class TooHeavy(DataError):
    """An int64 cannot hold a weight, or a sum of weights. This process then computes with unbounded integers."""


def call(task: Callable[[Iterator[Any]], Iterator[Any]], batches: Iterator[Any]) -> Iterator[Any]:
    """Run a task as the function that Spark wants. Its errors arrive at the driver unchanged."""
    _freeze(len(sys.modules))
    try:
        with headroom():
            yield from task(batches)
    except HalfjoinError as error:
        error.add_note(packed(error))
        raise


@cache
def _freeze(_modules: int) -> None:
    """Spare the garbage collector what modules hold, each time that a task has brought more of them.

    Spark's Python processes collect all garbage after each task. To look at all our modules takes longer than a small
    task does.
    """
    gc.freeze()


def packed(error: HalfjoinError) -> str:
    """An error as characters that need no quotes in SQL. A value that is not plain becomes text."""
    values = {one.name: getattr(error, one.name) for one in fields(error) if one.init}
    error = error.with_(**{name: _plain(value) for name, value in values.items() if not _is_plain(value)})
    return f"halfjoin-error:{base64.b64encode(pickle.dumps(error)).decode()};"


def unpacked(text: str) -> HalfjoinError | None:
    """The error that is packed in a text. None if there is none."""
    found = _PACKED.search(text)
    try:
        error = None if found is None else _Plain(io.BytesIO(base64.b64decode(found[1]))).load()
    except Exception:  # the text is cut, or not ours
        return None
    return error if isinstance(error, HalfjoinError) else None


def _plain(value: Any) -> Any:
    """A plain value for one that is not: a moment at the offset of its zone, a row's values one by one, or text."""
    if _is_plain(value):
        return value
    if isinstance(value, Mapping):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, datetime) and (offset := value.utcoffset()) is not None:
        return value.astimezone(timezone(offset))
    return repr(value)


def _is_plain(value: object) -> bool:
    try:
        _Plain(io.BytesIO(pickle.dumps(value))).load()
    except Exception:  # anything that a user's class raises
        return False
    return True


class _Plain(pickle.Unpickler):
    """Loads our errors and plain values, and no other class or function."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in _VALUES or (module in (errors.__name__, __name__) and "." not in name):
            found = super().find_class(module, name)
            if (module, name) in _VALUES or found is errors._made_again or _is_error(found):
                return found
        raise pickle.UnpicklingError(f"{module}.{name} is neither an error of ours nor a plain value")


def _is_error(found: object) -> bool:
    return isinstance(found, type) and issubclass(found, HalfjoinError)
