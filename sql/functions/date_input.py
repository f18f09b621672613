"""Parses the patterns of to_date and to_timestamp, which read dates from text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.expr import Expr, Literal
from halfjoin.sql.functions.date_format import tokens

# How many digits a number has.
WIDTHS = {
    "HH": 2, "HH12": 2, "HH24": 2, "MI": 2, "SS": 2, "MS": 3, "US": 6, "FF1": 1, "FF2": 2, "FF3": 3, "FF4": 4, "FF5": 5,
    "FF6": 6, "SSSS": 4, "SSSSS": 5, "MM": 2, "DD": 2, "DDD": 3, "YYYY": 4, "YYY": 3, "YY": 2, "Y": 1, "J": 1, "Q": 1,
    "CC": 2, "WW": 2, "W": 1, "D": 1, "IYYY": 4, "IYY": 3, "IY": 2, "I": 1, "IW": 2, "IDDD": 3, "ID": 1, "Y,YYY": 5,
}  # fmt: skip
_WORDS = ("MONTH", "MON", "DAY", "DY", "AM", "PM", "A.M.", "P.M.", "BC", "AD", "B.C.", "A.D.", "RM", "TZH", "TZM")


_KINDS = {
    **dict.fromkeys(("YYYY", "YYY", "YY", "Y", "IYYY", "IYY", "IY", "I", "Y,YYY"), "year"),
    **dict.fromkeys(("MM", "MON", "MONTH", "RM"), "month"),
    **dict.fromkeys(("HH", "HH12", "HH24"), "hour"), **dict.fromkeys(("AM", "PM", "A.M.", "P.M."), "half"),
    **dict.fromkeys(("BC", "AD", "B.C.", "A.D."), "era"), **dict.fromkeys(("SSSS", "SSSSS"), "seconds"),
    **dict.fromkeys(("DAY", "DY", "D", "ID"), "weekday"), "US": "US", **{f"FF{digits}": "US" for digits in range(1, 7)},
}  # fmt: skip
_APART = (("J", {"year", "month", "DD", "DDD", "era"}), ("seconds", {"hour", "MI", "SS", "half"}),
          ("DDD", {"month", "DD", "era", "WW", "W"}), ("WW", {"month", "DD", "era", "W"}), ("W", {"DD", "J"}),
          ("IW", {"IDDD"}), ("CC", {"J"}))  # fmt: skip
OF_WEEKS = {"IYYY", "IYY", "IY", "I", "IW", "IDDD", "ID"}
OF_MONTHS = {"Y,YYY", "YYYY", "YYY", "YY", "Y", "MM", "MON", "MONTH", "RM", "DD", "DDD", "D", "WW", "W"}


def _refuse_odd(pattern: str, fields: Sequence[str]) -> None:
    """Refuse a pattern that says something twice. (One that mixes `OF_WEEKS` and `OF_MONTHS` reads short texts.)"""
    kinds = [_KINDS.get(field, field) for field in fields]
    twice = len(set(kinds)) < len(kinds) or any(one in kinds and others & set(kinds) for one, others in _APART)
    if twice or ("era" in kinds and "year" not in kinds and "CC" not in kinds):
        raise UnsupportedSQL(f"the pattern '{pattern}' has two fields for one part of a date, or an era without a year",
                             remedy="use each field once")


@dataclass(frozen=True, slots=True)
class Step:
    """A field of a pattern (in upper case), a separator (`-`), or another character (`c`).

    `greedy`: the number takes all digits there are, since no digit can follow it.
    """

    name: str
    greedy: bool = True
    ordinal: bool = False


@lru_cache(maxsize=1024)
def input_steps(pattern: str) -> tuple[Step, ...]:
    """The steps that read a text, or UnsupportedSQL."""
    if "FX" in pattern.upper():
        raise UnsupportedSQL(f"a pattern with FX: '{pattern}'", remedy="leave FX out")
    parts: list[tuple[str, bool]] = []
    for name, flag in tokens(pattern):
        if name.startswith("'"):
            parts += [("c" if flag or char.isalnum() or ord(char) > 126 else "-", False) for char in name[1:]]
            parts[-1:] = [("7", False)] if name[-1].isdigit() else parts[-1:]
            continue
        field = name.partition("+")[0].upper()
        if field not in WIDTHS and field not in _WORDS:
            raise UnsupportedSQL(f"the pattern '{pattern}' has {field}, which reads no date",
                                 remedy="use YYYY, MM, DD, HH24, ...")
        parts.append((field + ("+" if "+" in name else ""), flag))
    _refuse_odd(pattern, [name.rstrip("+") for name, _ in parts if name not in ("c", "-", "7")])
    steps = []
    for i, (name, fill) in enumerate(parts):
        field = name.rstrip("+")
        following = parts[i + 1][0].rstrip("+") if i + 1 < len(parts) else ""
        greedy = fill or name.endswith("+") or not (following in WIDTHS or following in ("7", "TZM"))
        steps.append(Step("c" if field == "7" else field, greedy, name.endswith("+")))
    return tuple(steps)


def check_input(args: Sequence[Expr]) -> None:
    """Refuse a constant pattern that cannot be read."""
    if len(args) == 2 and isinstance(args[1], Literal) and isinstance(args[1].value, str):
        input_steps(args[1].value)
