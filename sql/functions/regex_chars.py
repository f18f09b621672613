"""The characters of regular expressions: classes, and the other case of letters, as in a UTF-8 database.

Case is mapped character by character, as in `lower` and `upper`: a letter of the pattern matches itself and its lower
and upper case; so `ſ` also matches S, but S matches only s besides itself.
"""

from __future__ import annotations

from functools import lru_cache

from halfjoin.sql.functions.regex_letters import LETTERS, LOWER, UPPER, signs
from halfjoin.sql.functions.regex_nodes import Ranges, ranges_of

# Each class: RE2's text for it inside brackets, and its code points (classes of letters: all beyond ASCII).
_CLASSES = {
    "alpha": (r"\p{L}\p{Nl}" + LETTERS, "AZaz\x80\U0010ffff"), "digit": ("0-9", "09"),
    "alnum": (r"0-9\p{L}\p{Nl}" + LETTERS, "09AZaz\x80\U0010ffff"),
    "upper": (r"\p{Lu}\p{Lt}" + UPPER, "AZ\x80\U0010ffff"), "lower": (r"\p{Ll}" + LOWER, "az\x80\U0010ffff"),
    "space": (r"\t-\r \x{1680}\x{2000}-\x{2006}\x{2008}-\x{200a}\x{2028}\x{2029}\x{205f}\x{3000}",
              "\t\r  \x80\U0010ffff"),
    "word": (r"0-9\p{L}\p{Nl}_" + LETTERS, "09AZ__az\x80\U0010ffff"),
    "punct": ("", "!/:@[`{~\x80\U0010ffff"),  # `signs`, when somebody asks
    "blank": (r"\t ", "\t\t  "), "xdigit": ("0-9A-Fa-f", "09AFaf"),
    "cntrl": (r"\x00-\x1f\x7f-\x9f", "\0\x1f\x7f\x9f"),
}  # fmt: skip
SHORT = {"d": "digit", "w": "word", "s": "space"}


def named(name: str, fold: bool) -> tuple[str, Ranges] | None:
    """A class by its name, None for an unknown name. With `fold`, upper and lower mean all letters."""
    found = _CLASSES.get("alpha" if fold and name in ("upper", "lower") else name)
    return None if found is None else (found[0] or signs(), ranges_of(found[1]))


def quoted(char: str) -> str:
    """RE2's text for the character, inside or outside brackets."""
    if char.isalnum() or ord(char) >= 128 or char in " _":
        return char
    return f"\\x{{{ord(char):x}}}" if ord(char) < 32 or ord(char) == 127 else "\\" + char


def exactly(bracket: str) -> str:
    """A bracket expression that RE2 takes literally; RE2 would turn a bare `[sS]` into a fold that also matches `ſ`."""
    return f"(?:{bracket}{{1}})"


@lru_cache(maxsize=1024)
def cases(low: str, high: str) -> str:
    """The lower and upper case of the characters from `low` to `high`, except those in the range itself."""
    found = {case for code in range(ord(low), ord(high) + 1) for case in (lower_of(chr(code)), upper_of(chr(code)))}
    return "".join(sorted(case for case in found if not low <= case <= high))


def alike(char: str) -> str:
    """The characters that a single character of a pattern matches without regard to case: its lower and upper case.

    A letter in title case, such as ǅ, does not match itself.
    """
    return "".join(sorted({lower_of(char), upper_of(char)}))


def lower_of(char: str) -> str:
    """The lower case of a character, which is one character."""
    return char.lower()[0]  # İ becomes i, without the combining dot


def upper_of(char: str) -> str:
    """The upper case if it is one character, else the title case (as of ᾳ), else the character itself (as of ß)."""
    return next((case for case in (char.upper(), char.title()) if len(case) == 1), char)
