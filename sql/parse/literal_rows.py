"""The rows of an INSERT with many constants, read from its text as columns. To parse each constant takes far longer."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sqlglot import exp

from halfjoin.sql.parse.parameters import name_of_parameter
from halfjoin.sql.types import SqlType

FEWEST, SHORTEST = 8, 100  # rows, and characters of a text, for which it is worth while
# Types that may follow a value: names that mean the same with every search_path.
_TO = (r"(?:::(?i:date|time|timestamp|timestamptz|interval|bytea|uuid|json|jsonb|text|varchar|bool|boolean|smallint|"
       r"int|integer|bigint|int2|int4|int8|real|float4|float8|numeric|decimal))?")  # fmt: skip
_NUMBER = r"-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_CELL = rf"'[^']*(?:''[^']*)*'{_TO}|{_NUMBER}|\$[0-9]+{_TO}|(?i:NULL|TRUE|FALSE)"
_NAMES = r'(?:[\w.\s]|"[^"]*")+(?:\((?:[\w\s,]|"[^"]*")*\)[\w\s]*)?'  # of the table and columns, and words after them
_HEAD = re.compile(rf"\s*INSERT\s+INTO\s{_NAMES}\bVALUES\s*(?=\()", re.IGNORECASE)
_ROW = re.compile(rf"(\(\s*(?:{_CELL})(?:\s*,\s*(?:{_CELL}))*\s*\))(\s*,\s*)?", re.ASCII)
_EACH = re.compile(_CELL, re.ASCII)
_PARAMETER = re.compile(r"\$([0-9]+)")


@dataclass(frozen=True)
class LiteralRows:
    """Rows of constants: `cells` has them as they are written, for each row. They are between `start` and `end` of the
    statement's `text`. A column may be parameters instead, each with a number of its own; `values` and `types` are
    those of `$1`, `$2`, ..., if they are known."""

    text: str
    start: int
    end: int
    cells: list[list[str]]
    values: Sequence[str | None] = ()
    types: Sequence[SqlType | None] = ()

    @property
    def width(self) -> int:
        """The number of columns."""
        return len(self.cells[0])

    @property
    def shortened(self) -> str:
        """The text with one row instead: that of the first parameters, and NULL for constants. Blanks follow it, so all
        else is at its place."""
        row = ", ".join(cell if cell[0] == "$" else "NULL" for cell in self.cells[0])
        return f"{self.text[:self.start]}{f'({row})':<{self.end - self.start}}{self.text[self.end:]}"

    @cached_property
    def numbers(self) -> Mapping[int, Sequence[int]]:
        """The numbers of the parameters of each column that has them."""
        return {place: [int(cell.partition("::")[0][1:]) for cell in column]
                for place, column in enumerate(zip(*self.cells, strict=True)) if column[0][0] == "$"}

    @property
    def first(self) -> Mapping[int, int]:
        """For each parameter, that of the first row in its column."""
        return {number: column[0] for column in self.numbers.values() for number in column}

    def __deepcopy__(self, memo: dict[int, Any]) -> LiteralRows:
        """Itself: sqlglot copies what a node carries with the node."""
        return self


def literal_rows(text: str) -> LiteralRows | None:
    """The rows of the INSERT that a text begins with; None if they are few, or one has more than constants."""
    head = _HEAD.match(text) if len(text) >= SHORTEST else None
    first = None if head is None else _ROW.match(text, head.end())
    if head is None or first is None:
        return None
    cells, found = list[list[str]](), first
    while True:
        cells.append(_EACH.findall(found[1]))
        if len(cells[-1]) != len(cells[0]):
            return None
        if not found[2]:
            break
        following = _ROW.match(text, found.end())
        if following is None:
            return None
        found = following
    made = LiteralRows(text, head.end(), found.end(), cells)
    return made if len(cells) >= FEWEST and ("$" not in text or _are_apart(made)) else None


def marked(tree: exp.Expr, rows: LiteralRows) -> bool:
    """Let the VALUES of a shortened INSERT carry its rows. False if the tree is none."""
    values = tree.expression if isinstance(tree, exp.Insert) else None
    if not isinstance(values, exp.Values) or len(values.expressions) != 1:
        return False
    (row,) = values.expressions
    nodes = row.expressions if isinstance(row, exp.Tuple) else [row]
    bare = [one.this if isinstance(one, exp.Cast) else one for one in nodes]
    if len(bare) != rows.width or any(
            (name_of_parameter(one) is None) if place in rows.numbers else not isinstance(one, exp.Null)
            for place, one in enumerate(bare)):  # fmt: skip
        return False
    values.meta["rows"] = rows
    return True


def rows_of(query: exp.Expr | None) -> LiteralRows | None:
    """The rows that a VALUES carries."""
    found = None if query is None else query.meta.get("rows")
    return found if isinstance(found, LiteralRows) else None


def _are_apart(rows: LiteralRows) -> bool:
    """Whether a column has parameters only or none, all cast to the same type, and each parameter is written once."""
    for column in zip(*rows.cells, strict=True):
        begun = {cell[0] for cell in column}
        if "$" in begun and (len(begun) > 1 or len({cell.partition("::")[2] for cell in column}) > 1):
            return False
    numbers = [number for column in rows.numbers.values() for number in column]
    numbers += map(int, set(_PARAMETER.findall(rows.text, rows.end)))
    return len(set(numbers)) == len(numbers)
