"""Kernels of upper and lower case, character by character, as in a database with the letters of Unicode 15.

Arrow knows letters that Unicode added later. Here they keep their case, as in PostgreSQL, whatever Arrow's version is:
so a row is retracted with the text that it was added with.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from halfjoin.engine.scalar.each import each
from halfjoin.engine.scalar.values import Datum, Kernel, any_true, call
from halfjoin.sql.functions.regex_chars import lower_of, upper_of

# Letters that are newer, and those that got another case from them.
_NEWER = (
    "19b 264 277 27c 1c89-1c8a a7cb-a7cf a7d2-a7d5 a7da-a7dd a7e2 ab4b-ab4c ab6c-ab6d 10d50-10d65 10d70-10d85 "
    "16ea0-16eb8 16ebb-16ed3 1df40-1df41"
)
_SET = "".join("-".join(f"\\x{{{code}}}" for code in part.split("-")) for part in _NEWER.split())
_newer = call("match_substring_regex", pc.MatchSubstringOptions(f"[{_SET}]"))
_ascii = call("string_is_ascii")
_upper, _lower = call("utf8_upper"), call("utf8_lower")
_sharp_capital = call("match_substring", pc.MatchSubstringOptions("ẞ"))
_hidden = call("replace_substring", pc.ReplaceSubstringOptions("ß", "\0"))
_shown = call("replace_substring", pc.ReplaceSubstringOptions("\0", "ß"))
_FIXED = {chr(code) for low, _, high in (part.partition("-") for part in _NEWER.split())
          for code in range(int(low, 16), int(high or low, 16) + 1)}  # fmt: skip


def _one_by_one(change: Callable[[str], str]) -> Kernel:
    return each(lambda text: "".join(char if char in _FIXED else change(char) for char in text), pa.string())


_uppers, _lowers = _one_by_one(upper_of), _one_by_one(lower_of)


def upper(a: Datum) -> Datum:
    """Upper case. The German `ß` stays, although Arrow makes it `ẞ`."""
    if _has_newer(a):
        return _uppers(a)
    result = _upper(a)
    return _shown(_upper(_hidden(a))) if any_true(_sharp_capital(result)) else result


def lower(a: Datum) -> Datum:
    """Lower case."""
    return _lowers(a) if _has_newer(a) else _lower(a)


def _has_newer(a: Datum) -> bool:
    return any_true(pc.invert(_ascii(a))) and any_true(_newer(a))
