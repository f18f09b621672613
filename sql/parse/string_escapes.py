"""Decodes the escapes of `E'...'`: octal and hexadecimal escapes are bytes of UTF-8, the others characters."""

from __future__ import annotations

import re

from halfjoin.errors import UnsupportedSQL

_CONTROL = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_PART = re.compile(
    r"\\(?P<octal>[0-7]{1,3})|\\x(?P<hex>[0-9A-Fa-f]{1,2})|\\u(?P<u4>[0-9A-Fa-f]{4})|\\U(?P<u8>[0-9A-Fa-f]{8})"
    r"|(?P<bad>\\[uU])|\\(?P<char>.)|''|[^\\']+|.", re.DOTALL)  # fmt: skip


def unescaped(body: str) -> str:
    """The text that `body`, the part between the quotes, means.

    Raises:
        UnsupportedSQL: an escape is not a character, the bytes are not UTF-8, or the text contains character 0.
    """
    out = bytearray()
    high = ""  # the first half of a surrogate pair; the second half must follow at once
    for part in _PART.finditer(body):
        code = part["u4"] or part["u8"]
        if part["bad"] or (high and not (code and 0xDC00 <= int(code, 16) < 0xE000)):
            raise _refused(f"invalid Unicode escape in E'{body}'", "22025")
        if code:
            char = high + _character(int(code, 16), body)
            high = char if 0xD800 <= ord(char[0]) < 0xDC00 and len(char) == 1 else ""
            if not high and 0xDC00 <= ord(char[0]) < 0xE000:  # a second half without a first
                raise _refused(f"invalid Unicode escape in E'{body}'", "22025")
            if not high:
                out += char.encode("utf-16", "surrogatepass").decode("utf-16", "strict").encode()
        elif part["octal"] or part["hex"]:
            out.append(int(part["octal"], 8) & 0xFF if part["octal"] else int(part["hex"], 16))
        elif part["char"]:
            out += _CONTROL.get(part["char"], part["char"]).encode()
        else:
            out += b"'" if part[0] == "''" else part[0].encode()
    if high:
        raise _refused(f"invalid Unicode escape in E'{body}'", "22025")
    try:
        text = out.decode()
    except UnicodeDecodeError:
        raise _refused(f"the bytes of E'{body}' are not UTF-8") from None
    if "\0" in text:
        raise _refused(f"a text has no character of code 0: E'{body}'")
    return text


def _character(code: int, body: str) -> str:
    if not 0 < code <= 0x10FFFF:
        raise _refused(f"invalid Unicode escape in E'{body}'", "22025")
    return chr(code)


def unicode_text(body: str, escape: str = "\\") -> str:
    """The text that `body`, the part between the quotes of `U&'...'`, means.

    Raises:
        UnsupportedSQL: an escape is not a character, or the text contains character 0.
    """
    if len(escape) != 1 or escape in "0123456789abcdefABCDEF+'\" \t\n\r\f\v":
        raise _refused(f"invalid Unicode escape character: {escape!r}")
    mark = re.escape(escape)
    part = re.compile(rf"{mark}(?:([0-9A-Fa-f]{{4}})|\+([0-9A-Fa-f]{{6}})|({mark})|())")
    out = ""
    position = 0
    for found in part.finditer(body):
        code = found[1] or found[2]
        if not code and not found[3]:
            raise _refused(f"invalid Unicode escape in U&'{body}'")
        out += body[position : found.start()] + (_character(int(code, 16), body) if code else escape)
        position = found.end()
    out += body[position:]
    try:
        text = out.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise _refused(f"invalid Unicode surrogate pair in U&'{body}'") from None
    if "\0" in text:
        raise _refused(f"a text has no character of code 0: U&'{body}'")
    return text


def _refused(reason: str, code: str | None = None) -> UnsupportedSQL:
    return UnsupportedSQL(reason, wrong=True, code=code)
