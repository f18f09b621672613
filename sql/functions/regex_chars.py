"""The characters of regular expressions: the classes, and the other case of a letter, as in a UTF-8 database.

Case is mapped character by character, as `lower` and `upper` do: a letter of the pattern stands for itself and for its
lower and upper case, which for `ſ` is S and for S is s alone.
"""

from __future__ import annotations

from functools import lru_cache

from halfjoin.sql.functions.regex_nodes import Ranges, ranges_of

# Class: how RE2 spells it inside brackets, and its code points (all beyond ASCII where letters are meant).
_CLASSES = {
    "alpha": (r"\p{L}\p{Nl}", "AZaz\x80\U0010ffff"), "digit": ("0-9", "09"),
    "alnum": (r"\p{L}\p{Nl}\p{Nd}", "09AZaz\x80\U0010ffff"), "upper": (r"\p{Lu}\p{Lt}", "AZ\x80\U0010ffff"),
    "lower": (r"\p{Ll}", "az\x80\U0010ffff"),
    "space": (r"\t-\r \x{1680}\x{2000}-\x{2006}\x{2008}-\x{200a}\x{2028}\x{2029}\x{205f}\x{3000}",
              "\t\r  \x80\U0010ffff"),
    "word": (r"\p{L}\p{Nl}\p{Nd}_", "09AZ__az\x80\U0010ffff"),
    "punct": (r"!-/:-@\[-`{-~\p{P}\p{S}", "!/:@[`{~\x80\U0010ffff"),
    "blank": (r"\t ", "\t\t  "), "xdigit": ("0-9A-Fa-f", "09AFaf"),
    "cntrl": (r"\x00-\x1f\x7f-\x9f", "\0\x1f\x7f\x9f"),
}  # fmt: skip
SHORT = {"d": "digit", "w": "word", "s": "space"}


def named(name: str, fold: bool) -> tuple[str, Ranges] | None:
    """A class by its name; None for an unknown one. Without regard to case, upper and lower are all letters."""
    found = _CLASSES.get("alpha" if fold and name in ("upper", "lower") else name)
    return None if found is None else (found[0], ranges_of(found[1]))


def quoted(char: str) -> str:
    """The character for RE2, inside or outside brackets."""
    if char.isalnum() or ord(char) >= 128 or char in " _":
        return char
    return f"\\x{{{ord(char):x}}}" if ord(char) < 32 or ord(char) == 127 else "\\" + char


def exactly(bracket: str) -> str:
    """A bracket expression that RE2 takes as it stands: of `[sS]` alone, beside others, it would make `ſ`, too."""
    return f"(?:{bracket}{{1}})"


@lru_cache(maxsize=1024)
def cases(low: str, high: str) -> str:
    """The lower and upper case of the characters from `low` to `high`, without those that are in the range itself."""
    found = {case for code in range(ord(low), ord(high) + 1) for case in (_lower(chr(code)), _upper(chr(code)))}
    return "".join(sorted(case for case in found if not low <= case <= high))


def _lower(char: str) -> str:
    return char.lower()[0]  # of İ, without the dot above


def _upper(char: str) -> str:
    """One character for one: ß has no capital, ᾳ the one that is also its title case."""
    return next((case for case in (char.upper(), char.title()) if len(case) == 1), char)
