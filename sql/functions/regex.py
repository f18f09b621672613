"""Translates PostgreSQL's regular expressions to the syntax of RE2, which evaluates them.

This module refuses syntax that RE2 lacks or reads differently: lookaround, back references, word boundaries. If a
match's extent matters (`regexp_replace`, `regexp_match`), PostgreSQL takes the longest match, and RE2 the first
alternative that leads to a match; RE2 runs only expressions for which both agree (`regex_extent`). The others run on
`engine.scalar.regex_match`, which is slower.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.functions import regex_extent
from halfjoin.sql.functions.regex_parse import parsed


@dataclass(frozen=True, slots=True)
class Regex:
    """A translated expression: `text` for RE2, the number of groups, whether it can match the empty text."""

    text: str
    groups: int
    nullable: bool
    everywhere: bool  # flag g
    optional: bool  # a match may leave a group out


@lru_cache(maxsize=1024)
def to_re2(pattern: str, flags: str = "", *, spans: bool = False) -> Regex:
    """Translate an expression for RE2, or raise UnsupportedSQL; `spans`: the extent of a match matters."""
    found = parsed(pattern, flags)
    tree, options = found.tree, found.options
    if not regex_extent.is_plain(tree):
        raise UnsupportedSQL(f"regular expression '{pattern}': RE2 has no lookaround, back references, word boundaries")
    if spans:
        reason = regex_extent.ambiguity(tree)
        if reason:
            raise UnsupportedSQL(
                f"regular expression '{pattern}': {reason}, so that its longest match is not its first",
                remedy="write it so that each part can begin in one way only")
    return Regex(f"(?s){tree.text()}", found.groups, tree.width()[0] == 0, options.everywhere,
                 regex_extent.has_optional_group(tree))


def separator(pattern: str) -> str:
    """A pattern to split at, for RE2; the empty pattern splits between all characters.

    Raises:
        UnsupportedSQL: RE2 cannot run the pattern as PostgreSQL does, or it is not empty but matches the empty text.
    """
    if pattern == "":
        return ""
    regex = to_re2(pattern, spans=True)
    if regex.nullable:
        raise UnsupportedSQL(f"regular expression '{pattern}' as a separator: it can match the empty text",
                             remedy="write one that matches at least a character, with + for *")
    return regex.text


def replacement(text: str, groups: int) -> str:
    """Translate a replacement to RE2's syntax. PostgreSQL's: `\\1` to `\\9` a group, `\\&` the match, `\\\\` a `\\`."""
    out, rest = "", iter(text)
    for char in rest:
        if char != "\\":
            out += char
            continue
        following = next(rest, "\\")
        if following == "&":
            out += "\\0"
        elif following in "123456789":
            out += "\\" + following if int(following) <= groups else ""
        else:
            out += "\\\\" + (following if following != "\\" else "")
    return out


