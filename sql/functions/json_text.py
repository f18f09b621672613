"""JSON values and their texts. A json is kept as it was written, a jsonb as its canonical text.

A value is a dict, list, str, Decimal, bool or None. Equal values have one text: the keys of an object are ordered by
length and then byte by byte, as PostgreSQL prints them; of several equal keys the last counts; numbers are written
without an exponent and without zeros at the end. (PostgreSQL keeps those zeros: it prints 1.0 and 1 for equal values.)

>>> canonical('{"bb": 1.50, "a": [1e2, -0.0], "a": null}')
'{"a": null, "bb": 1.5}'
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from json import JSONDecodeError, JSONDecoder
from json.encoder import encode_basestring
from typing import NoReturn, TypeAlias

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.types import VALUE_BYTES

Json: TypeAlias = "dict[str, Json] | list[Json] | str | Decimal | bool | None"

DEPTH = 200  # the most levels of arrays and objects: reading and writing recurse
_MOST_DIGITS, _MOST_DECIMALS = 131_072, 16_383  # of PostgreSQL's numeric
_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")
_SHORT = 2048  # longer texts are not kept in the cache


class JsonError(ValueError):
    """A text is not JSON, or a value has no text. `code` is PostgreSQL's SQLSTATE."""

    def __init__(self, reason: str, code: str = "22P02") -> None:
        super().__init__(reason)
        self.reason, self.code = reason, code


def canonical(text: str) -> str:
    """The canonical text of any JSON text.

    Raises:
        JsonError: it is not JSON, or jsonb cannot hold it.
    """
    made = written(_read(text, _DECODER))
    if "\\u0000" in made and _NUL.search(made):
        raise JsonError("unsupported Unicode escape sequence: \\u0000 cannot be converted to text", "22P05")
    if not made.isascii():
        try:
            made.encode()
        except UnicodeEncodeError:
            raise JsonError("invalid input syntax for type json: half of a Unicode surrogate pair") from None
    return made


def checked(text: str) -> str:
    """The text itself, which is how json is kept.

    Raises:
        JsonError: it is not JSON.
    """
    value = _read(text, _READER)
    if text.count("[") + text.count("{") > DEPTH:
        in_order(value)
    return text


def _read(text: str, decoder: JSONDecoder) -> Json:
    if len(text) > VALUE_BYTES:
        raise _too_long()
    try:
        value: Json = decoder.decode(text)
        return value
    except JSONDecodeError as error:
        why = error.msg[:1].lower() + error.msg[1:].removesuffix(" at")
        raise JsonError(f"invalid input syntax for type json: {why} at character {error.pos + 1}") from None
    except RecursionError:
        raise _too_deep() from None


def value_of(text: str) -> Json:
    """The value of a canonical text. It is shared: do not change it."""
    try:
        found: Json = _cached(text) if len(text) <= _SHORT else _DECODER.decode(text)
        return found
    except RecursionError:
        raise _too_deep() from None


def written(value: Json) -> str:
    """The canonical text of a value.

    Raises:
        JsonError: it is nested too deeply, or a number has too many digits.
    """
    return _written(value, DEPTH)


def in_order(value: Json, depth: int = DEPTH) -> str:
    """The text of a value for json, with the keys of objects in their order.

    Raises:
        JsonError: it is nested too deeply.
    """
    if not isinstance(value, dict | list):
        return _written(value, depth)
    if depth == 0:
        raise _too_deep()
    if isinstance(value, list):
        return f"[{', '.join(in_order(item, depth - 1) for item in value)}]"
    parts = (f"{encode_basestring(key)}: {in_order(item, depth - 1)}" for key, item in value.items())
    return f"{{{', '.join(parts)}}}"


def number_text(value: Decimal) -> str:
    """A finite number without an exponent, and without zeros after the point that it does not need."""
    if not value:
        return "0"
    text = str(value)
    if len(text) < _SHORT and "E" not in text:
        return text.rstrip("0").rstrip(".") if "." in text else text
    exponent = value.as_tuple().exponent
    if value.adjusted() >= _MOST_DIGITS or not isinstance(exponent, int) or exponent < -_MOST_DECIMALS:
        raise JsonError("value overflows numeric format", "22003")
    text = format(value, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def parse_jsonb(text: str) -> str:
    """The canonical text of a constant.

    Raises:
        UnsupportedSQL: the text is not JSON.
    """
    return _constant(canonical, text)


def parse_json(text: str) -> str:
    """The text of a constant itself.

    Raises:
        UnsupportedSQL: it is not JSON.
    """
    return _constant(checked, text)


def _constant(read: Callable[[str], str], text: str) -> str:
    try:
        return read(text)
    except JsonError as error:
        raise UnsupportedSQL(error.reason, code=error.code) from None


def key_order(key: str) -> tuple[int, bytes]:
    """What orders the keys of an object."""
    data = key.encode(errors="surrogatepass")
    return len(data), data


def _written(value: Json, depth: int) -> str:
    if isinstance(value, str):
        return encode_basestring(value)
    if isinstance(value, Decimal):
        return number_text(value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if depth == 0:
        raise _too_deep()
    parts, size = list[str](), 0
    if isinstance(value, dict):
        for key in sorted(value, key=key_order) if len(value) > 1 else value:
            parts.append(f"{encode_basestring(key)}: {_written(value[key], depth - 1)}")
            size += len(parts[-1])
            if size > VALUE_BYTES:  # a number such as 1e99999 is short, its text is not
                raise _too_long()
        return f"{{{', '.join(parts)}}}"
    for item in value:
        parts.append(_written(item, depth - 1))
        size += len(parts[-1])
        if size > VALUE_BYTES:
            raise _too_long()
    return f"[{', '.join(parts)}]"


def _number(text: str) -> Decimal:
    try:
        return Decimal(text)
    except ArithmeticError:  # the exponent is beyond all bounds
        raise JsonError("value overflows numeric format", "22003") from None


def _no_constant(word: str) -> NoReturn:
    raise JsonError(f"invalid input syntax for type json: token {word} is invalid")


def _too_long() -> JsonError:
    return JsonError(f"a json value has at most {VALUE_BYTES:,} bytes", "54000")


def _too_deep() -> JsonError:
    return JsonError(f"a json value has at most {DEPTH} levels", "54001")


_DECODER = JSONDecoder(parse_float=_number, parse_int=_number, parse_constant=_no_constant)
_READER = JSONDecoder(parse_float=str, parse_int=str, parse_constant=_no_constant)  # what json keeps is not computed
_cached = lru_cache(maxsize=8192)(_DECODER.decode)
