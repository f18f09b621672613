"""Takes columns of json and jsonb from batches: texts of JSON, and Python's dicts, lists, numbers and booleans."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from halfjoin.engine.scalar.python_values import missing
from halfjoin.sql.functions.json_text import Json, JsonError, canonical, checked, in_order, written
from halfjoin.sql.types import Kind, SqlType


def holds_json(kind: SqlType) -> bool:
    """Whether the type is json or jsonb, or an array of it."""
    return kind.kind in (Kind.JSON, Kind.JSONB) or (kind.element is not None and holds_json(kind.element))


def texts_of(kind: Kind, texts: pa.Array) -> pa.Array:
    """Each text of JSON as a column keeps it: of jsonb the canonical one. Each distinct text is read once.

    Raises:
        JsonError: one is not JSON.
    """
    distinct = texts.dictionary_encode()
    read = canonical if kind is Kind.JSONB else checked
    made = [None if text is None else read(text) for text in distinct.dictionary.to_pylist()]
    return pa.array(made, pa.string()).take(distinct.indices)


def json_text(value: Any, kind: SqlType) -> Any:
    """The text of one Python value of a column: of a str itself, which is a text of JSON. What is missing is NULL.

    Raises:
        JsonError, TypeError: it is not JSON.
    """
    if missing(value):
        return None
    if kind.element is not None:
        if isinstance(value, dict | bytes):  # whose elements would be its keys, or numbers
            raise TypeError(f"a {type(value).__name__} is no array")
        return [json_text(item, kind.element) for item in value]
    if isinstance(value, str):
        return value
    try:
        made = _json(value)
    except RecursionError:
        raise JsonError("it is nested too deep") from None
    return canonical(written(made)) if kind.kind is Kind.JSONB else in_order(made)


def _json(value: Any) -> Json:
    match value:
        case None | bool() | str():
            return value
        case int():
            return Decimal(value)
        case float() | Decimal():
            number = Decimal(repr(value)) if isinstance(value, float) else value
            if not number.is_finite():
                raise JsonError(f"JSON has no {value}")
            return number
        case dict():
            if not all(isinstance(key, str) for key in value):
                raise JsonError("a key of a JSON object is a str")
            return {key: _json(item) for key, item in value.items()}
        case list() | tuple() if not isinstance(value, pa.MonthDayNano):
            return [_json(item) for item in value]
        # pandas has them inside of lists and dicts that it read from a file. Moments with nanoseconds would be numbers.
        case np.ndarray() | np.generic() if value.dtype.kind not in "mM":
            made = value.tolist()
            if type(made) is not type(value):  # as of a longdouble
                return _json(made)
    raise TypeError(f"a {type(value).__name__} is not JSON")
