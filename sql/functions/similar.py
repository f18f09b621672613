"""Translates the patterns of SIMILAR TO, and of SUBSTRING ... SIMILAR, to regular expressions."""

from __future__ import annotations

from halfjoin.errors import UnsupportedSQL

_ENDS = ("){1,1}?(", "){1,1}(?:")  # before and after the part that SUBSTRING returns


def similar_pattern(pattern: str, escape: str) -> str:
    """The regular expression of a pattern.

    >>> similar_pattern("a%(b|c)_", "#")
    '^(?:a.*(?:b|c).)$'
    """
    if len(escape) > 1:
        raise UnsupportedSQL(f"ESCAPE '{escape}'", remedy="the escape must be one character", wrong=True,
                             code="22025")
    out, quotes, bracket = "^(?:", 0, False
    characters = iter(pattern)
    for char in characters:
        if char == escape:
            following = next(characters, None)
            if following == '"' and not bracket:
                if quotes == 2:
                    raise UnsupportedSQL(f"SIMILAR pattern '{pattern}' has more than two escaped quotes", wrong=True)
                out += _ENDS[quotes]
                quotes += 1
            elif following is not None:
                out += "\\" + following
        elif bracket:
            out += "\\\\" if char == "\\" else char
            bracket = char != "]"
        elif char == "[":
            out, bracket = out + char, True
        elif char in "%_(":
            out += {"%": ".*", "_": ".", "(": "(?:"}[char]
        else:
            out += "\\" + char if char in "\\.^$" else char
    return out + ")$"
