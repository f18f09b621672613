"""Composes the text of an operator: from texts, the user's expressions, and the collections that it reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from halfjoin.collections import text
from halfjoin.collections.nodes import Node, Query
from halfjoin.collections.text import Fragment, expression, is_name, is_star
from halfjoin.errors import HalfjoinError

Names: TypeAlias = str | Sequence[str]
Parts: TypeAlias = list[str | Fragment | Node]


def query(*parts: str | Fragment | Node) -> Query:
    """A query of its parts."""
    texts = tuple(part.text if isinstance(part, Fragment) else part for part in parts)
    mentions = [part.mentions for part in parts if isinstance(part, Fragment)]
    return Query(texts, frozenset[str]().union(*mentions))


def joined(items: Sequence[Parts], between: str = ", ") -> Parts:
    """The parts of all items, with a text between the items."""
    found: Parts = []
    for item in items:
        found += [between, *item] if found else item
    return found


def items(columns: Sequence[str], computed: Mapping[str, Any]) -> list[Parts]:
    """Items of a SELECT list: expressions that name their columns, and expressions or values with names for theirs."""
    found: list[Parts] = [[expression(column)] for column in columns]
    return found + [_named(column, value) for column, value in computed.items()]


def _named(column: str, value: Any) -> Parts:
    found = expression(value if isinstance(value, str) else text.lit(value))
    if is_star(found):
        raise HalfjoinError(f"{column}={value!r} is not one column", remedy="write '*' without a keyword")
    if is_name(found) and found.text == text.name(column):
        return [found]
    return [found, f" AS {text.name(column)}"]


def several(given: Names | Mapping[str, str]) -> list[str]:
    """One text, or several."""
    return [given] if isinstance(given, str) else list(given)


def matched(on: Names) -> tuple[list[Fragment], Fragment | None]:
    """What makes two rows fit together: names of columns that must be equal, or one condition.

    Raises:
        HalfjoinError: it is neither.
    """
    found = [expression(one) for one in several(on)]
    if found and all(map(is_name, found)):
        return found, None
    if isinstance(on, str):
        return [], found[0]
    raise HalfjoinError(f"on={on!r} are not names of columns", remedy="write one condition over this and other")
