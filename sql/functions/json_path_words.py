"""The words of SQL/JSON paths: numbers, strings, variables, signs and names, as PostgreSQL 15 reads them."""

from __future__ import annotations

import re

from halfjoin.errors import UnsupportedSQL

_OTHER = r"[^?%$.\[\]{}()|&!=<>@#,*:\-+/\\\" \t\n\r\f]"
_NUMBER = r"(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[Ee][-+]?[0-9]+)?"
_TOKEN = re.compile(
    rf"(?P<blank>[ \t\n\r\f]+|/\*.*?\*/)|(?P<number>{_NUMBER})"
    rf"|(?P<variable>\$(?:\"(?:[^\"\\]|\\.)*\"|(?:{_OTHER}|\\.)+))"
    rf"|(?P<string>\"(?:[^\"\\]|\\.)*\")|(?P<sign>&&|\|\||\*\*|<=|>=|==|<>|!=|[?%$.\[\]{{}}()!<>@,*:\-+/])"
    rf"|(?P<word>(?:{_OTHER}|\\.)+)", re.DOTALL,
)  # fmt: skip
_ESCAPE = re.compile(r"\\(?:u\{([0-9A-Fa-f]{1,6})\}|u([0-9A-Fa-f]{4})|x([0-9A-Fa-f]{2})|(.))", re.DOTALL)
_SHORT = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def words(text: str) -> list[tuple[str, str]]:
    """The words of a path, each with its kind: `number`, `string`, `variable`, `sign` or `word`.

    Raises:
        UnsupportedSQL: there is something else.
    """
    found, place = list[tuple[str, str]](), 0
    while place < len(text):
        one = _TOKEN.match(text, place)
        if one is None:
            raise failure(f"syntax error at or near {text[place]!r} of jsonpath input")
        place, kind = one.end(), str(one.lastgroup)
        if kind == "number" and re.match(_OTHER, text[place : place + 1]):
            raise failure("trailing junk after numeric literal of jsonpath input")
        if kind != "blank":
            found.append((kind, one[0]))
    return found


def plain(text: str) -> str:
    """The characters of a string or a name, without escapes."""
    made = _ESCAPE.sub(_unescaped, text)
    try:
        return made.encode("utf-16", "surrogatepass").decode("utf-16")  # halves of a pair become one
    except UnicodeDecodeError:
        raise failure("Unicode low surrogate must follow a high surrogate", "22P02") from None


def _unescaped(found: re.Match[str]) -> str:
    code = found[1] or found[2] or found[3]
    if code is None:
        return _SHORT.get(found[4], found[4])
    if not int(code, 16) or int(code, 16) > 0x10FFFF:
        raise failure("unsupported Unicode escape sequence", "22P05")
    return chr(int(code, 16))


def failure(reason: str, code: str = "42601") -> UnsupportedSQL:
    """The error of a path, with PostgreSQL's SQLSTATE."""
    return UnsupportedSQL(reason, code=code)
