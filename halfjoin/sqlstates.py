"""PostgreSQL's SQLSTATE of each reason for which an expression fails.

The errors of a view's rows are kept with the view as texts, so the code follows from the text. The codes are those of
Appendix A of PostgreSQL's manual; class 22 are errors of data.

>>> of("division by zero in t.a / t.b"), of('invalid input syntax for type date: "x"'), of("anything else")
('22012', '22007', None)
"""

from __future__ import annotations

import re
from functools import lru_cache

# How reasons begin, as regular expressions. The first that fits decides. Class 42 is a statement that is wrong.
_REASONS: tuple[tuple[str, str], ...] = (
    (r"no (function|operator) |a row is compared with a value", "42883"),
    (r"column \"[^\"]*\" must appear in the GROUP BY|aggregate functions? (are not allowed|calls cannot be nested)",
     "42803"),
    (r"window functions? (are not allowed|calls cannot be nested)", "42P20"),
    (r"window function \w+ requires an OVER", "42809"),
    (r"types .* cannot be matched|(argument of \w+|a condition( of CASE)?|the condition of FILTER) must be boolean",
     "42804"),
    (r"column .* is named twice", "42701"),
    (r"WITH has two queries", "42712"),
    (r"a table has one PRIMARY KEY", "42P16"),
    (r"(ORDER|GROUP) BY position|for SELECT DISTINCT, ORDER BY|there is no unique constraint matching the ON|"
     r"SELECT DISTINCT ON expressions must match|in an aggregate with DISTINCT, ORDER BY", "42P10"),
    (r"ORDER BY \".*\" is ambiguous", "42702"),
    (r"an empty array has no type", "42P18"),
    (r"count\W+must be used to call", "42809"),
    (r"RANGE with offset PRECEDING/FOLLOWING is not supported", "0A000"),
    (r"relation \".*\" in FOR UPDATE clause not found", "42P01"),
    (r"column .* is GENERATED", "428C9"),
    (r".* reads itself, so it must be", "42P19"),
    (r"the length of a text type must be", "22023"),
    (r"DISTINCT is not implemented for window", "0A000"),
    ("division by zero", "22012"),
    (r"(smallint|integer|bigint|real|double precision|numeric) out of range|input is out of range|value out of range|"
     r"numeric field overflow|value \"[^\"]*\" is out of range for type|\"[^\"]*\" is out of range for type|"
     r"factorial of a negative|percentile value|cannot convert NaN or infinity to|numeric (constant|has no)|"
     r"value overflows numeric format|\"char\" out of range", "22003"),
    (r"(date|timestamp|time|interval)( field value)? out of range|date/time field value|timestamp cannot be NaN|"
     r"stride must be|value for \".*\" in source string|"
     r"a time of day ends|'[^']*' as a time", "22008"),
    (r"numeric time zone|invalid input syntax for type numeric time zone", "22023"),
    (r"invalid input syntax for type (date|time|timestamp|timestamptz|interval)\b|invalid value \".*\" for \"|"
     r"source string too short|conflicting values for \"|hour \".*\" is invalid|cannot calculate day of year|"
     r"invalid combination of date|invalid input string for \"Y|the pattern '|invalid format specification", "22007"),
    (r"\"\w*\" is not a number|invalid input syntax for|invalid input value for enum|malformed (array|record) literal|"
     r"path element at position \d+ is not an integer", "22P02"),
    (r"cannot take logarithm", "2201E"),
    (r"cannot take square root|a negative number raised|zero raised to a negative power", "2201F"),
    (r"operand, lower bound|lower (bound|and upper)|count must be greater than zero", "2201G"),
    (r"invalid regular expression: regular expression flag", "22023"),
    (r"invalid regular expression|the regular expression takes too many steps", "2201B"),
    (r"LIKE pattern", "22025"),
    (r"negative substring length", "22011"),
    (r"value too long for type", "22001"),
    (r"invalid byte sequence", "22021"),
    (r"character .* has no equivalent in encoding|unsupported Unicode escape sequence", "22P05"),
    (r"cannot accumulate (empty arrays|arrays of different)|"
     r"index -?\d+ out of valid range|number of elements to trim|array must have even|mismatched array dimensions|"
     r"array subscript out of range|wrong number of array subscripts|upper bound cannot be less than lower bound|"
     r"source array too small|array slice subscript must provide both", "2202E"),
    (r"cannot accumulate null arrays|"
     r"thresholds array must not|initial position must not be null|null values cannot be formatted|"
     r"null value not allowed for object key|frame (starting|ending) offset must not be null|"
     r"path element at position \d+ is null|(array|jsonb) subscript in assignment must not be null", "22004"),
    (r"assignment to an array (below|without)", "0A000"),
    (r"path element at position \d+ is out of range", "22023"),
    (r"requested character (too large|not valid)|null character not permitted|the result would be longer|"
     r"array size exceeds the maximum|an array of more than one dimension", "54000"),
    (r"invalid Unicode|multiple decimal points|\"EEEE\" must|\"EEEE\" is incompatible|cannot use \"|"
     r"\"[90S]\" (must be ahead|cannot be used)", "42601"),
    (r"expected JSON array", "22P02"),
    (r"more than one row returned by a subquery", "21000"),
    (r"LIMIT must not be negative", "2201W"),
    (r"OFFSET must not be negative", "2201X"),
    (r"argument of ntile", "22014"),
    (r"argument of nth_value", "22016"),
    (r"invalid preceding or following size|frame (starting|ending) offset", "22013"),
    (r"value for domain .* violates check constraint", "23514"),
    (r"domain .* does not allow null values", "23502"),
    (r"timestamps cannot be binned", "0A000"),
    (r"could not find jsonpath variable", "42704"),
    (r"unrecognized|invalid (source encoding|destination encoding|normalization form)|"
     r"encoding \"|time zone \"|an interval as a time zone|unterminated format|"
     r"too few arguments for format|format specifies|new bit must|invalid value for parameter|"
     r"field position|\"vars\" argument|character number|cannot set path|"
     r"cannot get array length|cannot delete|cannot replace|cannot extract elements|cannot call|cannot cast jsonb|"
     r"cannot deconstruct|argument of json|argument \d+(: key| cannot be null)|field name must|"
     r"invalid hexadecimal|invalid symbol|invalid base64|"
     r"unexpected \"=\"|step size cannot|(start|stop) value cannot|(extract|date_trunc) has no unit|"
     r"regexp_\w+\(\) does not support", "22023"),
)  # fmt: skip
_ANY = re.compile("|".join(f"({text.replace('(?:', '(').replace('(', '(?:')})" for text, _ in _REASONS))


@lru_cache(maxsize=4096)
def of(reason: str) -> str | None:
    """The SQLSTATE of a reason, which may be followed by the expression that failed; None if no reason is known."""
    found = _ANY.match(reason)
    return None if found is None else _REASONS[int(found.lastindex or 1) - 1][1]
