"""Bytes that order as PostgreSQL orders jsonb, and casts from jsonb.

Kinds come first: null, string, number, boolean, array, object. Of two arrays or objects the one with more members is
greater. Then members decide, one after the other; of an object its keys and values. One exception is PostgreSQL's: an
empty array that is the whole value is below all others.

>>> texts = ['{"a": 1}', '[1]', '[]', 'true', '-1.5', '2', '"a"', 'null']
>>> sorted(texts, key=order_key)
['[]', 'null', '"a"', '-1.5', '2', 'true', '[1]', '{"a": 1}']
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

import pyarrow as pa

from halfjoin.engine.scalar.arrow_types import arrow_type
from halfjoin.engine.scalar.casts_text import from_text
from halfjoin.engine.scalar.json_parts import kind_of, of_json
from halfjoin.engine.scalar.values import Kernel
from halfjoin.sql.expr import Call, Literal
from halfjoin.sql.functions.json_text import Json, JsonError, canonical, checked, number_text, value_of, written
from halfjoin.sql.types import INTEGERS, TEXT, Kind, SqlType

_END = b"\x00"  # after a string or digits; no string of a jsonb has a NUL
_FLIP = bytes(255 - byte for byte in range(256))
_MIDDLE = 1 << 31
_WIDE = Context(prec=200_000)


def order_key(text: str) -> bytes:
    """The bytes for a canonical text."""
    if text == "[]":
        return b"\x00"
    out: list[bytes] = []
    _add(value_of(text), out)
    return b"".join(out)


def _add(value: Json, out: list[bytes]) -> None:
    if value is None:
        out.append(b"\x01")
    elif isinstance(value, str):
        out += (b"\x02", value.encode(), _END)
    elif isinstance(value, bool):
        out.append(b"\x04\x01" if value else b"\x04\x00")
    elif isinstance(value, Decimal):
        out += (b"\x03", _number(value))
    elif isinstance(value, list):
        out.append(b"\x05" + len(value).to_bytes(4, "big"))
        for item in value:
            _add(item, out)
    else:
        out.append(b"\x06" + len(value).to_bytes(4, "big"))
        for key, item in value.items():
            out += (b"\x02", key.encode(), _END)
            _add(item, out)


def _number(value: Decimal) -> bytes:
    """The sign, the exponent of the first digit, and the digits."""
    if not value:
        return b"\x01"
    digits = "".join(map(str, value.as_tuple().digits)).rstrip("0").encode()
    size = (value.adjusted() + _MIDDLE).to_bytes(4, "big") + digits + _END
    return b"\x02" + size if value > 0 else b"\x00" + size.translate(_FLIP)


def value_at(key: bytes) -> str:
    """The canonical text for the bytes."""
    return "[]" if key == b"\x00" else written(_read(key, 0)[0])


def _read(key: bytes, at: int) -> tuple[Json, int]:
    """The value whose bytes begin at a place, and the place after it."""
    kind, at = key[at], at + 1
    if kind == 1:
        return None, at
    if kind == 2:
        return _text(key, at)
    if kind == 3:
        return _number_at(key, at)
    if kind == 4:
        return key[at] == 1, at + 1
    count, at = int.from_bytes(key[at : at + 4], "big"), at + 4
    items, members = list[Json](), dict[str, Json]()
    for _ in range(count):
        if kind == 5:
            item, at = _read(key, at)
            items.append(item)
        else:
            name, at = _text(key, at + 1)
            members[name], at = _read(key, at)
    return (items if kind == 5 else members), at


def _text(key: bytes, at: int) -> tuple[str, int]:
    end = key.index(_END, at)
    return key[at:end].decode(), end + 1


def _number_at(key: bytes, at: int) -> tuple[Decimal, int]:
    sign, at = key[at], at + 1
    if sign == 1:
        return Decimal(0), at
    end = key.index(_END if sign == 2 else _END.translate(_FLIP), at + 4)
    size = key[at:end] if sign == 2 else key[at:end].translate(_FLIP)
    exponent, digits = int.from_bytes(size[:4], "big") - _MIDDLE, tuple(byte - 48 for byte in size[4:])
    return Decimal((0 if sign == 2 else 1, digits, exponent - len(digits) + 1)), end + 1


def from_jsonb(target: SqlType) -> Kernel:
    """The kernel of a cast to a boolean or a number; a number is rounded as a numeric is."""
    if target.kind is Kind.BOOLEAN:
        return of_json(lambda text: _only(text, bool, target), pa.bool_())(_CALL)
    parse = from_text(target)
    printed = of_json(lambda text: _digits(_only(text, Decimal, target), target), pa.string())(_CALL)
    return lambda datum: parse(printed(datum))


def _only(text: str, kind: type, target: SqlType) -> Any:
    value = value_of(text)
    if type(value) is not kind:
        raise JsonError(f"cannot cast jsonb {kind_of(value).replace('number', 'numeric')} to type {target.kind}")
    return value


def _digits(value: Decimal, target: SqlType) -> str:
    """The number as text; for an integer type rounded, and within its range."""
    if target.kind not in INTEGERS:
        return number_text(value)
    whole = value.quantize(Decimal(1), ROUND_HALF_UP, _WIDE)
    limit = 1 << (arrow_type(target).bit_width - 1)
    if not -limit <= whole < limit:
        raise JsonError(f"{target} out of range")
    return str(int(whole))


_CALL = Call("jsonb order", (Literal(None, TEXT),), TEXT)  # builders of these kernels read nothing of a call

to_checked: Kernel = of_json(checked, pa.string())(_CALL)
to_canonical: Kernel = of_json(canonical, pa.string())(_CALL)
JSON_ORDER: dict[str, Callable[[Call], Kernel]] = {
    "jsonb order": of_json(order_key, pa.binary()),
    "jsonb of order": of_json(value_at, pa.string()),
}
