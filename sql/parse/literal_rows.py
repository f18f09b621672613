"""The rows of an INSERT with many constants, read from its text as columns. To parse each constant takes far longer."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

FEWEST, SHORTEST = 8, 100  # rows, and characters of a text, for which it is worth while
_STRING = r"'[^']*(?:''[^']*)*'(?:::[A-Za-z_]\w*)?"
_NUMBER = r"-?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
_CELL = rf"{_STRING}|{_NUMBER}|(?i:NULL|TRUE|FALSE)"
_NAMES = r'(?:[\w.\s]|"[^"]*")+(?:\((?:[\w\s,]|"[^"]*")*\)[\w\s]*)?'  # of the table and columns, and words after them
_HEAD = re.compile(rf"\s*INSERT\s+INTO\s{_NAMES}\bVALUES\s*(?=\()", re.IGNORECASE)
_FIRST = re.compile(rf"\(\s*(?:{_CELL})(?:\s*,\s*(?:{_CELL}))*\s*\)")
_EACH = re.compile(_CELL)


@dataclass(frozen=True)
class LiteralRows:
    """Rows of constants: `cells` has them as they are written, for each row. They are between `start` and `end` of the
    statement's `text`."""

    text: str
    start: int
    end: int
    cells: list[tuple[str, ...]]

    @property
    def width(self) -> int:
        """The number of columns."""
        return len(self.cells[0])

    @property
    def shortened(self) -> str:
        """The text with one row of NULLs instead."""
        return f"{self.text[:self.start]}({', '.join(['NULL'] * self.width)}){self.text[self.end:]}"

    def __deepcopy__(self, memo: dict[int, Any]) -> LiteralRows:
        """Itself: sqlglot copies what a node carries with the node."""
        return self


def literal_rows(text: str) -> LiteralRows | None:
    """The rows of the INSERT that a text begins with; None if they are few, or one has more than plain constants."""
    head = _HEAD.match(text) if len(text) >= SHORTEST else None
    first = None if head is None else _FIRST.match(text, head.end())
    if head is None or first is None:
        return None
    row = re.compile(r"\(\s*" + r"\s*,\s*".join([f"({_CELL})"] * len(_EACH.findall(first[0]))) + r"\s*\)(\s*,\s*)?")
    cells, at, more = list[tuple[str, ...]](), head.end(), True
    while more:
        found = row.match(text, at)
        if found is None:
            return None
        *values, comma = found.groups()
        cells.append(tuple(values))
        at, more = found.end(), comma is not None
    return LiteralRows(text, head.end(), at, cells) if len(cells) >= FEWEST else None


def marked(tree: exp.Expr, rows: LiteralRows) -> bool:
    """Let the VALUES of a shortened INSERT carry its rows. False if the tree is none."""
    values = tree.expression if isinstance(tree, exp.Insert) else None
    if not isinstance(values, exp.Values) or len(values.expressions) != 1:
        return False
    (row,) = values.expressions
    nulls = row.expressions if isinstance(row, exp.Tuple) else [row]
    if len(nulls) != rows.width or not all(isinstance(one, exp.Null) for one in nulls):
        return False
    values.meta["rows"] = rows
    return True


def rows_of(query: exp.Expr | None) -> LiteralRows | None:
    """The rows that a VALUES carries."""
    found = None if query is None else query.meta.get("rows")
    return found if isinstance(found, LiteralRows) else None
