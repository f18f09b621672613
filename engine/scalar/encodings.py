"""Kernels of hashes, and of bytes written as text."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable

import pyarrow as pa

from halfjoin.engine.scalar.each import Bad, each, of_each
from halfjoin.engine.scalar.values import Kernel
from halfjoin.sql.expr import Call
from halfjoin.sql.functions.one_byte import byte_of, code_of, first_byte

_BLANKS = b" \t\n\r"
_ESCAPED = re.compile(rb"\\(?:([0-3][0-7][0-7])|(\\))|(\\)")


def _hashed(name: str) -> Callable[[Call], Kernel]:
    digest = getattr(hashlib, name)
    kernel = each(lambda data: digest(data).digest(), pa.binary())
    return lambda _: kernel


def _md5(data: str | bytes) -> str:
    return hashlib.md5(data.encode() if isinstance(data, str) else data, usedforsecurity=False).hexdigest()


def _encode(data: bytes, encoding: str) -> str:
    match encoding.lower():
        case "hex":
            return data.hex()
        case "base64":  # a line has at most 76 characters
            text = base64.b64encode(data).decode()
            return "\n".join(text[i : i + 76] for i in range(0, len(text), 76))
        case "escape":
            return "".join(f"\\{byte:03o}" if byte == 0 or byte > 127 else "\\\\" if byte == 92 else chr(byte)
                           for byte in data)  # fmt: skip
        case _:
            raise Bad(f'unrecognized encoding: "{encoding}"')


def _decode(text: str, encoding: str) -> bytes:
    match encoding.lower():
        case "hex":
            return _from_hex(text)
        case "base64":
            return _from_base64(text)
        case "escape":
            return _from_escapes(text)
        case _:
            raise Bad(f'unrecognized encoding: "{encoding}"')


def _from_hex(text: str) -> bytes:
    """Pairs of digits, with blanks between pairs."""
    out = bytearray()
    position = 0
    while position < len(text):
        if text[position] in " \t\n\r":
            position += 1
            continue
        pair = text[position : position + 2]
        for char in pair:
            if char not in "0123456789abcdefABCDEF":
                raise Bad(f'invalid hexadecimal digit: "{char}"')
        if len(pair) < 2:
            raise Bad("invalid hexadecimal data: odd number of digits")
        out.append(int(pair, 16))
        position += 2
    return bytes(out)


def _from_base64(text: str) -> bytes:
    bits = count = end = 0
    out = bytearray()
    for char in text:
        if char in " \t\n\r":
            continue
        if char == "=":
            if not end:
                if count < 2:
                    raise Bad('unexpected "=" while decoding base64 sequence')
                end = count - 1
            value = 0
        else:
            value = _DIGITS.get(char, -1)
            if value < 0:
                raise Bad(f'invalid symbol "{char}" found while decoding base64 sequence')
        bits, count = bits << 6 | value, count + 1
        if count == 4:
            out += bits.to_bytes(3, "big")[: end or 3]
            bits = count = 0
    if count:
        raise Bad("invalid base64 end sequence")
    return bytes(out)


_DIGITS = {char: i for i, char in enumerate("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")}


def _from_escapes(text: str) -> bytes:
    def byte(found: re.Match[bytes]) -> bytes:
        if found[3]:
            raise Bad("invalid input syntax for type bytea")
        return bytes([int(found[1], 8)]) if found[1] else b"\\"

    return _ESCAPED.sub(byte, text.encode())


def _one_byte(value: str | int) -> str:
    made = first_byte(value) if isinstance(value, str) else byte_of(value)
    if made is None:
        raise Bad('"char" out of range')
    return made


ENCODINGS: dict[str, Callable[[Call], Kernel]] = {
    **{name: _hashed(name) for name in ("sha224", "sha256", "sha384", "sha512")},
    "md5": of_each(_md5, pa.string()),
    "encode": of_each(_encode, pa.string()),
    "decode": of_each(_decode, pa.binary()),
    "letters of bytes": of_each(lambda data: data.decode("latin-1"), pa.string()),
    "one byte": of_each(_one_byte, pa.string()),
    "code of byte": of_each(code_of, pa.int32()),
}
