"""Kernels of convert, convert_from and convert_to: texts as bytes in other encodings.

Python's codecs are used where they have exactly PostgreSQL's letters: those of one byte a letter, and some Chinese
ones. The Japanese and Korean ones and BIG5 are refused: Python and PostgreSQL read some of their bytes differently.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NoReturn

import pyarrow as pa

from halfjoin.engine.scalar.each import Bad, of_each
from halfjoin.engine.scalar.values import Kernel
from halfjoin.sql.expr import Call

_UTF8, _ASCII = "UTF8", "SQL_ASCII"
_LATIN = {1: 1, 2: 2, 3: 3, 4: 4, 5: 9, 6: 10, 7: 13, 8: 14, 9: 15, 10: 16}  # the part of ISO 8859 of each
# PostgreSQL's names, and Python's.
_CODECS = {
    **{f"LATIN{number}": f"iso8859-{part}" for number, part in _LATIN.items()},
    **{f"ISO_8859_{part}": f"iso8859-{part}" for part in (5, 6, 7, 8)},
    **{f"WIN{page}": f"cp{page}" for page in (866, 874, *range(1250, 1259))},
    "KOI8R": "koi8-r", "KOI8U": "koi8-u", "EUC_CN": "gb2312", "GBK": "cp936", "GB18030": "gb18030",
}  # fmt: skip
_OTHERS = ("EUC_JP", "EUC_KR", "EUC_TW", "EUC_JIS_2004", "SHIFT_JIS_2004", "SJIS", "BIG5", "UHC", "JOHAB",
           "MULE_INTERNAL")  # fmt: skip
_ALIASES = {
    **{name.lower().replace("_", ""): name for name in (_UTF8, _ASCII, *_CODECS, *_OTHERS)},
    **{f"iso8859{part}": f"LATIN{number}" for number, part in _LATIN.items()},
    **{f"windows{name[3:]}": name for name in _CODECS if name.startswith("WIN")},
    **dict.fromkeys(("abc", "tcvn", "tcvn5712", "vscii"), "WIN1258"),
    **dict.fromkeys(("mskanji", "shiftjis", "win932", "windows932"), "SJIS"),
    **dict.fromkeys(("win936", "windows936"), "GBK"), **dict.fromkeys(("win949", "windows949"), "UHC"),
    **dict.fromkeys(("win950", "windows950"), "BIG5"),
    "unicode": _UTF8, "alt": "WIN866", "koi8": "KOI8R", "win": "WIN1251",
}  # fmt: skip
_SIGN = {"GBK": ("€", b"\x80")}  # a letter that PostgreSQL writes and Python does not


def convert_from(data: bytes, encoding: str) -> str:
    """The text of bytes in an encoding."""
    return _decoded(data, _named(encoding, "source"), _UTF8)


def convert_to(text: str, encoding: str) -> bytes:
    """The bytes of a text in an encoding."""
    return _encoded(text, _named(encoding, "destination"))


def convert(data: bytes, source: str, target: str) -> bytes:
    """Bytes in one encoding as those in another. One of both is UTF8, or they are the same."""
    first, second = _named(source, "source"), _named(target, "destination")
    if first == second or _ASCII in (first, second):
        _check(data, second if first == _ASCII else first)
        return data
    if _UTF8 not in (first, second):
        raise Bad(f'encoding "{first}" to "{second}" is not supported: write '
                  f"convert(convert(x, '{first}', 'UTF8'), 'UTF8', '{second}')")  # fmt: skip
    return _encoded(_decoded(data, first, second), second)


def _named(encoding: str, what: str) -> str:
    name = _ALIASES.get(re.sub(r"[^a-z0-9]", "", encoding.lower()))
    if name is None:
        raise Bad(f'invalid {what} encoding name "{encoding}"')
    if name in _OTHERS:
        raise Bad(f'encoding "{name}" is not supported, since libraries read its bytes as different letters: '
                  "write UTF8, and convert outside")  # fmt: skip
    return name


def _check(data: bytes, encoding: str) -> None:
    """Fail unless bytes that stay as they are may be of the encoding."""
    if encoding == _UTF8:
        _decoded(data, _UTF8, _UTF8)
    elif b"\0" in data:
        raise Bad(f'invalid byte sequence for encoding "{encoding}": 0x00')


def _decoded(data: bytes, encoding: str, wanted: str) -> str:
    if b"\0" in data:
        raise Bad(f'invalid byte sequence for encoding "{encoding}": 0x00')
    try:
        return data.decode(_CODECS.get(encoding, "utf-8"))
    except UnicodeDecodeError as error:
        bad = data[error.start : max(error.end, error.start + 1)]
        if encoding in (_UTF8, _ASCII):
            raise Bad(f'invalid byte sequence for encoding "{_UTF8}": {_hex(bad)}') from None
        _no_equivalent(bad, encoding, wanted)


def _encoded(text: str, encoding: str) -> bytes:
    codec = _CODECS.get(encoding, "utf-8")
    sign, byte = _SIGN.get(encoding, ("", b""))
    try:
        if sign and sign in text:
            return byte.join(part.encode(codec) for part in text.split(sign))
        return text.encode(codec)
    except UnicodeEncodeError as error:
        _no_equivalent(error.object[error.start].encode(), _UTF8, encoding)


def _no_equivalent(data: bytes, source: str, target: str) -> NoReturn:
    raise Bad(f'character with byte sequence {_hex(data)} in encoding "{source}" has no equivalent '
              f'in encoding "{target}"')  # fmt: skip


def _hex(data: bytes) -> str:
    return " ".join(f"0x{byte:02x}" for byte in data)


CHAR_ENCODINGS: dict[str, Callable[[Call], Kernel]] = {
    "convert": of_each(convert, pa.binary()),
    "convert_from": of_each(convert_from, pa.string()),
    "convert_to": of_each(convert_to, pa.binary()),
}
