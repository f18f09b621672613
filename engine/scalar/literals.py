"""Converts constants to Arrow scalars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from halfjoin.engine.scalar.arrow_types import arrow_type
from halfjoin.sql.expr import Literal
from halfjoin.sql.functions.calendar import Far
from halfjoin.sql.types import Kind, SqlType, field_names


def scalar_of(literal: Literal) -> Any:
    """The Arrow scalar of a literal."""
    return pa.scalar(_python(literal.value, literal.type), arrow_type(literal.type))


def array_of_constants(values: Sequence[object], type: SqlType) -> Any:
    """The Arrow array of values as they are in literals."""
    return pa.array([_python(value, type) for value in values], arrow_type(type))


def _python(value: Any, type: SqlType) -> Any:
    """The value in the form that pyarrow takes. An interval's microseconds become nanoseconds."""
    if value is None:
        return None
    if type.kind is Kind.INTERVAL:
        months, days, micros = value
        return pa.MonthDayNano([months, days, micros * 1000])
    if type.kind is Kind.ARRAY:
        assert type.element is not None
        return [_python(item, type.element) for item in value]
    if type.kind is Kind.RECORD:
        return {name: _python(item, field) for name, item, (_, field) in
                zip(field_names(type), value, type.fields, strict=True)}  # fmt: skip
    return value.count if isinstance(value, Far) else value
