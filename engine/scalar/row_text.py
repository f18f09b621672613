"""The kernel of a row's text, as PostgreSQL writes it: `(1,"a b",,"")`."""

from __future__ import annotations

from typing import Any

import pyarrow.compute as pc

from halfjoin.engine.scalar.bounds import Sizes, bounded, sizes
from halfjoin.engine.scalar.values import Kernel, call, on_arrays
from halfjoin.sql.expr import Call

_needs_quotes = call("match_substring_regex", pc.MatchSubstringOptions(r'^$|[\s\v(),"\\]'))
_doubled = call("replace_substring_regex", pc.ReplaceSubstringOptions(r'(["\\])', r"\1\1"))


@on_arrays
def row_text(*members: Any) -> Any:
    """The texts of rows from those of their members."""
    written = [_written(member) for member in members]
    return pc.binary_join_element_wise("(", pc.binary_join_element_wise(*written, ","), ")", "")


def _written(texts: Any) -> Any:
    """The texts of a member in quotes where they need them; nothing for NULL."""
    quoted = pc.binary_join_element_wise('"', _doubled(texts), '"', "")
    return pc.fill_null(pc.if_else(_needs_quotes(texts), quoted, texts), "")


def _build(_: Call) -> Kernel:
    return bounded(row_text, _most_bytes, strict=False)


def _most_bytes(*members: Any) -> Sizes:
    """As if every character were quoted."""
    total: Sizes = 2 * sizes(members[0]) + 3
    for member in members[1:]:
        total = total + 2 * sizes(member) + 3
    return total


ROW_TEXT = {"row text": _build}
