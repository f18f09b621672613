"""Parses the patterns of to_char for numbers."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache

from halfjoin.errors import UnsupportedSQL

_WORDS = ("EEEE", "FM", "MI", "PL", "PR", "RN", "SG", "SP", "TH", ",", ".", "0", "9", "B", "C", "D", "G", "L", "S", "V")
_SPELLED = "|".join(re.escape(spelled) for word in _WORDS for spelled in (word, word.lower()))  # not in mixed case
_TOKEN = re.compile(_SPELLED + r'|"(?P<quoted>(?:\\.|[^"])*)"?|\\(?P<quote>")|(?P<char>.)', re.DOTALL)
_TOGETHER = '"S" cannot be used together with "PL", "MI", "SG" or "PR"'


@dataclass(slots=True)
class NumberFormat:
    """A parsed pattern: its fields and texts in order (a text begins with a quote), and what the fields say together.

    `before`, `after`: the digits before and after the point; `zeros_from`: the first digit that is a 0, counted from 0;
    `zeros_to`: the last one; `shift`: the digits after V; `sign`: where S stands.
    """

    fields: list[str] = field(default_factory=list)
    words: set[str] = field(default_factory=set)
    before: int = 0
    after: int = 0
    zeros_from: int = 0
    zeros_to: int = 0
    zero: bool = False
    shift: int = 0
    sign: str = ""
    sign_at: int = 0

    @property
    def decimal(self) -> bool:
        """Whether there is a point."""
        return bool(self.words & {".", "D"})


@lru_cache(maxsize=1024)
def number_format(pattern: str) -> NumberFormat:
    """The parsed pattern, or UnsupportedSQL."""
    found = NumberFormat()
    for token in _TOKEN.finditer(pattern):
        if token["quoted"] is not None:
            found.fields.append("'" + re.sub(r"(?s)\\(.)", r"\1", token["quoted"]))
        elif char := token["quote"] or token["char"]:  # outside quotes, a backslash is special only before a quote
            found.fields.append("'" + char)
        else:
            word = token[0].upper()
            found.fields.append(token[0] if word in ("TH", "RN") else word)  # in the case of the pattern
            _note(found, word)
            found.words.add(word)
    if found.words & {"EEEE"} and found.words & {"FM", "S", "PL", "MI", "SG", "PR", "RN", "V", "BLANK"}:
        raise UnsupportedSQL('"EEEE" is incompatible with other formats', wrong=True)
    if "PR" in found.words and found.words & {"S", "PL", "MI", "SG"}:
        raise UnsupportedSQL(_TOGETHER, wrong=True)
    if ("RN" in found.words and found.words - {"RN", "FM", "TH"}) or {"V", "S"} <= found.words or (
        {"V", "PR"} <= found.words) or ("TH" in found.words and not found.before and "RN" not in found.words) or (
        found.fields.count("EEEE") > 1):
        raise UnsupportedSQL(f"the pattern '{pattern}' mixes fields", remedy="use RN alone, and V without S and PR")
    return found


def _note(found: NumberFormat, word: str) -> None:
    """Count a field."""
    if "EEEE" in found.words and word != "EEEE":
        raise UnsupportedSQL('"EEEE" must be the last pattern used', wrong=True)
    if word in ("9", "0"):
        if "PR" in found.words:
            raise UnsupportedSQL(f'"{word}" must be ahead of "PR"', wrong=True)
        if word == "9" and "V" in found.words:
            found.shift += 1
            return
        if word == "0" and not found.zero and not found.decimal:
            found.zero, found.zeros_from = True, found.before
        if found.decimal:
            found.after += 1
        else:
            found.before += 1
        if word == "0":
            found.zeros_to = found.before + found.after
    elif word in (".", "D"):
        if found.decimal:
            raise UnsupportedSQL("multiple decimal points", wrong=True)
        if "V" in found.words:
            raise UnsupportedSQL('cannot use "V" and decimal point together', wrong=True)
    elif word == "B" and not (found.before or found.after):
        found.words.add("BLANK")
    elif word == "V" and found.decimal:
        raise UnsupportedSQL('cannot use "V" and decimal point together', wrong=True)
    elif word == "S":
        if "S" in found.words:
            raise UnsupportedSQL('cannot use "S" twice', wrong=True)
        if found.words & {"PL", "MI", "SG", "PR"}:
            raise UnsupportedSQL(_TOGETHER, wrong=True)
        if not found.decimal:
            found.sign, found.sign_at = "before", found.before
        else:
            found.sign = "after"
    elif word in ("PL", "MI", "SG", "PR") and "S" in found.words:
        raise UnsupportedSQL(_TOGETHER, wrong=True)
