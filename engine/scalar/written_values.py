"""Reads the values that texts stand for, as PostgreSQL writes them: numbers, dates, bytea, arrays."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from halfjoin.engine.scalar.literals import array_of_constants
from halfjoin.engine.scalar.sound import Unsound
from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.functions.json_text import value_of
from halfjoin.sql.functions.text_input import parse
from halfjoin.sql.types import FLOATS, INTEGERS, TEXT, Kind, SqlType, innermost
from halfjoin.sql.types import array as array_type

_NOT_OF_TEXT = frozenset((*INTEGERS, *FLOATS, Kind.BOOLEAN))


def parsed(text: str, kind: SqlType, shown: SqlType | None = None) -> object:
    """The value of a text. `shown`: the type that an error names instead.

    Raises:
        Unsound: the text is no value of the type.
    """
    try:
        return parse(text, kind)
    except UnsupportedSQL as problem:
        raise Unsound(f"is not a valid {shown or kind}: {problem.reason}", problem.sqlstate) from None


def parsed_each(texts: pa.Array, kind: SqlType, shown: SqlType | None = None) -> pa.Array:
    """As `parsed`, of a column of texts."""
    values = [None if text is None else parsed(text, kind, shown) for text in texts.to_pylist()]
    return array_of_constants(values, kind)


def lists_of_texts(texts: pa.Array, kind: SqlType) -> pa.Array:
    """Texts such as `{1,2}` as lists: of the type's values if these are no texts in a batch, else of their texts."""
    return parsed_each(texts, kind if innermost(kind).kind in _NOT_OF_TEXT else _of_texts(kind), kind)


def elements(value: Any, kind: SqlType) -> Any:
    """The elements of an array of json that is given as a text: `{1,2}`, as of any array, or a list in JSON."""
    if not isinstance(value, str) or kind.element is None:
        return value
    text = value.strip()
    return value_of(text) if text[:1] + text[-1:] == "[]" else lists_of_texts(pa.array([value]), kind)[0].as_py()


def _of_texts(kind: SqlType) -> SqlType:
    """The type of arrays of texts with as many dimensions."""
    return TEXT if kind.element is None else array_type(_of_texts(kind.element))
