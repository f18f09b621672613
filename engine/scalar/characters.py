"""Kernels of characters and their codes, and of the bytes of a bytea."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfjoin.engine.scalar.bounds import LONG, bounded, lengths, sizes
from halfjoin.engine.scalar.each import Bad, each, of_each
from halfjoin.engine.scalar.values import Datum, Kernel, broadcast, call, count
from halfjoin.sql.expr import Call
from halfjoin.sql.functions.regex_chars import lower_of, upper_of
from halfjoin.sql.functions.regex_letters import is_alphanumeric
from halfjoin.sql.types import VALUE_BYTES, Kind

_TEXT, _BYTES, _INT = pa.string(), pa.binary(), pa.int32()
_ESCAPE = re.compile(
    r"\\(?:(?P<four>u?[0-9A-Fa-f]{4})|(?:\+(?P<six>[0-9A-Fa-f]{6}))|U(?P<eight>[0-9A-Fa-f]{8})|(?P<same>\\))|\\")


def _translate(text: str, source: str, target: str) -> str:
    table: dict[int, str | None] = {}
    for i, char in enumerate(source):
        table.setdefault(ord(char), target[i] if i < len(target) else None)
    return text.translate(table)


def _initcap(text: str) -> str:
    inside, found = False, []
    for char in text:
        found.append(lower_of(char) if inside else upper_of(char))
        inside = is_alphanumeric(char)
    return "".join(found)


def _chr(code: int) -> str:
    if code < 0:
        raise Bad("character number must be positive")
    if code == 0:
        raise Bad("null character not permitted")
    if code > 0x10FFFF:
        raise Bad(f"requested character too large for encoding: {code}")
    if 0xD800 <= code < 0xE000:
        raise Bad(f"requested character not valid for encoding: {code}")
    return chr(code)


def _repeat(_: Call) -> Kernel:
    copies = call("binary_repeat")

    def run(text: Datum, number: Datum) -> Datum:
        number = pc.max_element_wise(number, 0, skip_nulls=False)
        if isinstance(text, pa.Scalar) and not isinstance(number, pa.Scalar):
            text = broadcast(text, count(text, number))
        return copies(text, number)

    return bounded(run, lambda text, number: sizes(text) * np.maximum(lengths(number), 0))


def _overlay(text: Any, new: Any, start: int, length: int | None = None) -> Any:
    if start <= 0:
        raise Bad("negative substring length not allowed")
    after = start + (len(new) if length is None else length)
    if after >= 1 << 31:
        raise Bad("integer out of range")
    if len(text) + len(new) > VALUE_BYTES:
        raise Bad(LONG)
    return text[: start - 1] + new + text[max(after - 1, 0) :]


def _to_hex(expr: Call) -> Kernel:
    mask = (1 << (64 if expr.args[0].type.kind is Kind.BIGINT else 32)) - 1
    return each(lambda number: f"{number & mask:x}", _TEXT)


def _bit_length(_: Call) -> Kernel:
    size = call("binary_length")
    return lambda a: pc.multiply(size(a), pa.scalar(8, _INT))


def _unistr(text: str) -> str:
    if "\\" not in text:
        return text
    units = []
    for part in re.split(r"(\\(?:u?[0-9A-Fa-f]{4}|\+[0-9A-Fa-f]{6}|U[0-9A-Fa-f]{8}|\\)|\\)", text):
        found = _ESCAPE.fullmatch(part)
        if found is None:
            units.append(part)
        elif found["same"]:
            units.append("\\")
        else:
            digits = (found["four"] or "").lstrip("u") or found["six"] or found["eight"]
            code = int(digits, 16) if digits else 0
            if not digits or code == 0 or code > 0x10FFFF:
                raise Bad("invalid Unicode escape" if not digits else f"invalid Unicode code point: {code:04X}")
            units.append(chr(code))
    try:
        return "".join(units).encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise Bad("invalid Unicode surrogate pair") from None


def _normal(compute: Callable[[Any, str], Any]) -> Callable[..., Any]:
    """A function of a text and one of Unicode's normal forms, NFC if none is given."""

    def run(text: str, form: str = "NFC") -> Any:
        if form.upper() not in ("NFC", "NFD", "NFKC", "NFKD"):
            raise Bad(f"invalid normalization form: {form}")
        return compute(form.upper(), text)

    return run


def _get_byte(data: bytes, at: int) -> int:
    return data[_inside(data, at)]


def _get_bit(data: bytes, at: int) -> int:
    """The nth bit, from 0; the first is the lowest of the first byte."""
    return data[_bit_inside(data, at)] >> at % 8 & 1


def _set_bit(data: bytes, at: int, value: int) -> bytes:
    byte = _bit_inside(data, at)
    if value not in (0, 1):
        raise Bad("new bit must be 0 or 1")
    return data[:byte] + bytes([data[byte] & ~(1 << at % 8) | value << at % 8]) + data[byte + 1 :]


def _bit_inside(data: bytes, at: int) -> int:
    if not 0 <= at < 8 * len(data):
        raise Bad(f"index {at} out of valid range, 0..{8 * len(data) - 1}")
    return at // 8


def _set_byte(data: bytes, at: int, value: int) -> bytes:
    at = _inside(data, at)
    return data[:at] + bytes([value & 255]) + data[at + 1 :]


def _inside(data: bytes, at: int) -> int:
    if not 0 <= at < len(data):
        raise Bad(f"index {at} out of valid range, 0..{len(data) - 1}")
    return at


CHARACTERS: dict[str, Callable[[Call], Kernel]] = {
    "translate": of_each(_translate, _TEXT),
    "initcap": of_each(_initcap, _TEXT),
    "ascii": of_each(lambda text: ord(text[0]) if text else 0, _INT),
    "chr": of_each(_chr, _TEXT),
    "repeat": _repeat,
    "overlay": lambda expr: each(_overlay, _BYTES if expr.type.kind is Kind.BYTEA else _TEXT),
    "to_hex": _to_hex,
    "bit_length": _bit_length,
    "unistr": of_each(_unistr, _TEXT),
    "normalize": of_each(_normal(unicodedata.normalize), _TEXT),
    "is_normalized": of_each(_normal(unicodedata.is_normalized), pa.bool_()),
    "get_bit": of_each(_get_bit, _INT),
    "set_bit": of_each(_set_bit, _BYTES),
    "get_byte": of_each(_get_byte, _INT),
    "set_byte": of_each(_set_byte, _BYTES),
}
