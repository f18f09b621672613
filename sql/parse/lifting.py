"""Finds the constants that a query or a change compares with, without parsing it: `k = 5`, `d > date '2024-01-01'`,
`k IN (1, 2)`. So it finds those that a change gives: `SET x = 5`, `SET x = x + 5`, `VALUES (1, 'a')`.

What is left is a text with parameters, `k = $1`, `d > $1::date`, `k IN ($1, $2)`, and their values. It says the same,
so texts that differ in such constants only are one question with other values. A constant in another place stays: there
it may name a column (ORDER BY 2), belong to a type (numeric(8, 2)) or decide how the query is read (interval '1 day').

No value that is found can change how the rest is read: a number is digits, a text has no backslash, dollar or control
character, and what ends a constant comes after it. Where a quote may be of another kind, nothing is found.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from halfjoin.sql.parse.json_paths import CALLED
from halfjoin.sql.system import DATABASE, INFORMATION, PG_CATALOG

MOST = 100  # constants of a text
_WORDS = (DATABASE, INFORMATION, PG_CATALOG, CALLED)  # a text with one of them is read in another way
_SPACE = r"[ \t\r\n]"
_TEXT = r"'(?:[^'\\$\x00-\x1f]|'')*+'"
_CONSTANT = rf"(?:(?:0|[1-9][0-9]{{0,17}})(?![\w.])|{_TEXT})"
_COMPARES = r"(?<![-+*/<>=~!@#%^&|`?:])(?:=|<>|!=|<=|>=|<|>)(?![-+*/<>=~!@#%^&|`?])"
_ADDED_TO = rf"(?:[^\W\d]\w*+\.)?[^\W\d]\w*+{_SPACE}*+(?:[-+]|\|\|){_SPACE}*+"  # a column, and what adds to it
_ENDS = rf"""(?={_SPACE}*+(?:[),;]|::|--|\Z|(?<={_SPACE})(?:AND|OR|AS|ORDER|GROUP|HAVING|LIMIT|OFFSET|FETCH|UNION|
                                     EXCEPT|INTERSECT|WHERE|JOIN|LEFT|RIGHT|FULL|INNER|CROSS|THEN|WINDOW|FROM|
                                     RETURNING)\b))"""
_BEGINS = re.compile(rf"{_SPACE}*+(?:SELECT|WITH|INSERT|UPDATE|DELETE|MERGE)\b", re.IGNORECASE)
_PART = re.compile(
    rf"""{_COMPARES}{_SPACE}*+(?:(?P<type>date|timestamp|timestamptz){_SPACE}++(?P<typed>{_TEXT})|
         (?:{_ADDED_TO})?(?P<one>{_CONSTANT}))
         {_ENDS}
    | \bBETWEEN{_SPACE}++(?P<low>{_CONSTANT}){_SPACE}++AND{_SPACE}++(?P<high>{_CONSTANT}){_ENDS}
    | \b(?:IN|VALUES){_SPACE}*+\({_SPACE}*+(?P<list>{_CONSTANT}(?:{_SPACE}*+,{_SPACE}*+{_CONSTANT})*+){_SPACE}*+\)
    | (?<![\w&])(?:'(?:[^'\\]|'')*+' | "(?:[^"]|"")*+")
    | --[^\r\n]*+(?:\n|\Z) | /\*(?!\+)(?:[^*/]|\*(?!/)|/(?!\*))*+\*/
    | (?P<unclear>['"$\x00] | -- | /\*)""",
    re.VERBOSE | re.IGNORECASE,
)
_EACH = re.compile(_CONSTANT)
_TIME = re.compile(rf"{_SPACE}++AS{_SPACE}++OF{_SPACE}++(-?[0-9]{{1,18}})[ \t\r\n;]*+\Z", re.IGNORECASE)
_NEAR = 100  # characters from the end, in which AS OF begins


def without_time(text: str) -> tuple[str, int | None]:
    """A text without the number of the AS OF at its end, and that number; a text that has none, or a comment, as it is.

    >>> without_time("SELECT a FROM t AS OF 5")
    ('SELECT a FROM t', 5)
    """
    found = _TIME.search(text, max(0, len(text) - _NEAR))
    if found is None or "--" in text or "/*" in text:
        return text, None
    return text[: found.start()], int(found[1])


@dataclass(frozen=True, slots=True)
class Lifted:
    """A statement whose constants are parameters: its text, and the values of `$1`, `$2`, ..."""

    text: str
    values: list[int | str]


def lifted(text: str) -> Lifted | None:
    """A query or a change with its constants as parameters; None if there is no constant that can be one.

    >>> lifted("UPDATE t SET n = n + 5")
    Lifted(text='UPDATE t SET n = n + $1', values=[5])

    >>> lifted("SELECT a FROM t WHERE k = 5 AND x IN ('a', 'it''s') ORDER BY 1")
    Lifted(text='SELECT a FROM t WHERE k = $1 AND x IN ($2, $3) ORDER BY 1', values=[5, 'a', "it's"])
    """
    if _BEGINS.match(text) is None or any(word in text.lower() for word in _WORDS):
        return None
    said, values, at = list[str](), list[int | str](), 0
    for part in _PART.finditer(text):
        match part.lastgroup:
            case None:
                continue
            case "unclear":
                return None
            case "typed":
                places = [(part.start("type"), part.end(), f"::{part['type']}")]
            case "high":
                places = [(*part.span("low"), ""), (*part.span("high"), "")]
            case "list":
                places = [(*one.span(), "") for one in _EACH.finditer(text, *part.span("list"))]
            case name:
                places = [(*part.span(name or ""), "")]
        for start, end, type in places:
            written = text[text.index("'", start, end) if type else start : end]
            values.append(written[1:-1].replace("''", "'") if written[0] == "'" else int(written))
            said += (text[at:start], f"${len(values)}", type)
            at = end
        if len(values) > MOST:
            return None
    return Lifted("".join((*said, text[at:])), values) if values else None
