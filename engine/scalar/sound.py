"""Finds what Arrow can hold and no SQL value is: texts with a NUL or not in UTF-8, moments beyond the calendar, and
decimals with more digits than their type has.

One pass over the bytes of a column tells whether it has any: the least byte of its texts, the ends of its moments and
decimals.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from halfjoin.sql.functions.calendar import DAY_MICROS, FIRST_DAY, LAST_DATE, LAST_DAY

_BAD_TEXT = "22021"
_BAD_NUMBER = "22003"
DAYS = (FIRST_DAY, LAST_DATE)
MICROS = (FIRST_DAY * DAY_MICROS, (LAST_DAY + 1) * DAY_MICROS - 1)


class Unsound(ValueError):
    """A value is none of SQL: the reason, its SQLSTATE, and what to do."""

    def __init__(self, reason: str, code: str, remedy: str | None = None) -> None:
        super().__init__(reason)
        self.reason, self.code, self.remedy = reason, code, remedy


def check_sound(array: Any) -> None:
    """Check an array of a column's type.

    Raises:
        Unsound: a text has a NUL character or is not valid UTF-8; a date or timestamp is before 4714-11-24 BC, or
            beyond the last one; a decimal has more digits than its type.
    """
    while pt.is_list(array.type):
        array = array.flatten()
    if pt.is_struct(array.type):
        for member in array.flatten():
            check_sound(member)
    if pt.is_string(array.type):
        _check_texts(array)
    elif pt.is_date(array.type) or pt.is_timestamp(array.type):
        _check_moments(array)
    elif pt.is_decimal(array.type):
        _check_digits(array)


def _check_texts(array: Any) -> None:
    _, offsets, data = array.buffers()
    if data is None or not len(array):
        return
    ends = np.frombuffer(offsets, np.int32)[[array.offset, array.offset + len(array)]]
    read = np.frombuffer(data, np.uint8)[ends[0] : ends[1]]
    if not read.size:
        return
    if not read.min() and pc.any(pc.match_substring(array, "\0"), min_count=0).as_py():  # not only under a NULL
        raise Unsound("has a NUL character (0x00), which no text has", _BAD_TEXT, "leave it out, or declare a bytea")
    if read.max() < 0x80:
        return
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        raise Unsound("is not valid UTF-8", _BAD_TEXT, "decode it first, or declare the column bytea") from None


def _check_moments(array: Any) -> None:
    dates = pt.is_date(array.type)
    first, last = DAYS if dates else MICROS
    if array.null_count:
        array = array.drop_null()
    if not len(array):
        return
    width = np.dtype(np.int32 if dates else np.int64)
    values = np.frombuffer(array.buffers()[1], width, len(array), width.itemsize * array.offset)
    if not first <= values.min() <= values.max() <= last:
        raise Unsound(f"is outside of the {'dates' if dates else 'timestamps'} that there are; none is infinite",
                      "22008", "write NULL, or a date such as 9999-12-31")  # fmt: skip


def _check_digits(array: Any) -> None:
    """Arithmetic relies on the digits of types: an unsafe cast of Arrow's leaves more, and products of them wrap."""
    end = Decimal(1).scaleb(array.type.precision - array.type.scale)  # abs() would round to 28 digits
    if any(one is not None and one.copy_abs() >= end for one in pc.min_max(array).as_py().values()):
        raise Unsound(f"has more digits than {array.type} has", _BAD_NUMBER, "cast it without safe=False")
