"""The shape of a question: all that is said but the values of parameters. A query is made ready once for a shape, with
values that cannot be looked at (`sql.unseen`), and then each time the values of the question are put into their places.

What a plan needs of a value is looked at: LIMIT, the digits of a numeric, a text in GROUP BY. Such a parameter's value
belongs to the shape. So does NULL, and a truth value.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from typing import Any, TypeAlias
from uuid import UUID

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.bind.forms import number
from halfjoin.sql.expr import Literal
from halfjoin.sql.functions import cast
from halfjoin.sql.parse.parameters import Hidden, Params, check_nul, check_unicode, typed_text
from halfjoin.sql.parse.parse import Tree
from halfjoin.sql.types import UNKNOWN
from halfjoin.sql.unseen import MARK, Unseen, is_unseen

LONGEST_LIST = 100  # elements; the values of a longer list belong to the shape
_TYPED = (date, datetime, time, UUID, bytes)
_WHOLE = (str, int, bool, float, bytes, Decimal, type(None), Enum)  # nothing is inside
Constants: TypeAlias = Mapping[str, Sequence[Literal]]  # the values of parameters, by name
Fill: TypeAlias = Callable[[Constants], Any]  # makes a part of a plan with values in their places


@dataclass(frozen=True, slots=True)
class Shape:
    """`key`: all that is said but values. `values`: those of all parameters, by name, and `constants` of those that can
    be unseen. `text` and `trees`: the text, and its statements as syntax trees with parameters."""

    key: Hashable
    values: Mapping[str, object]
    constants: Constants
    named: bool
    text: str
    trees: Callable[[Params], Sequence[Tree]]

    def hidden(self, looked: frozenset[str]) -> Params:
        """The parameters of a query that is made once for the shape. The values in `looked` can be looked at."""
        made = {name: Hidden(value, tuple(Unseen(name, place, one.type)
                                          for place, one in enumerate(self.constants[name])))
                if name in self.constants and name not in looked else value
                for name, value in self.values.items()}  # fmt: skip
        return made if self.named else list(made.values())

    def narrowed(self, looked: frozenset[str]) -> Hashable:
        """The shape with the values that are looked at."""
        return self.key, tuple((name, repr(self.values[name])) for name in sorted(looked))


def shape_of(params: Params, text: str, trees: Callable[[Params], Sequence[Tree]], *told: Hashable) -> Shape | None:
    """The shape of a question with parameters; None if it has none whose value can be unseen. `told`: all that is said
    besides its text and parameters."""
    named = isinstance(params, Mapping)
    values = dict(params) if isinstance(params, Mapping) else {str(n): value for n, value in enumerate(params or (), 1)}
    found = {name: constants for name, value in values.items() if (constants := constants_of(value))}
    if not found:
        return None
    kinds = tuple((name, *_kind(value), *(one.type for one in found[name])) if name in found else (name, repr(value))
                  for name, value in values.items())  # fmt: skip
    return Shape((text, *told, named, kinds), values, found, named, text, trees)


def _kind(value: object) -> tuple[object, ...]:
    """What the syntax of a constant depends on, besides the types of its parts."""
    if isinstance(value, list | tuple):
        return ("list", *map(_kind, value))
    return type(value), getattr(value, "tzinfo", None) is None, isinstance(value, int) and value < 0


def constants_of(value: object) -> Sequence[Literal] | None:
    """The literals of a parameter's value, as the binder reads them; None if the value belongs to the shape."""
    kind = type(value)
    try:
        if kind is int:
            return (number(str(value)),)
        if isinstance(value, str):
            check_unicode(value, "a parameter")
            check_nul(value, "a parameter")
            return (Literal(value, UNKNOWN),)
    except UnsupportedSQL:  # it is an error wherever it is
        return None
    if kind in _TYPED:
        typed = typed_text(value)
        return None if typed is None else (Literal(typed[0], UNKNOWN),)
    if isinstance(value, list | tuple) and 0 < len(value) <= LONGEST_LIST:
        parts = [None if isinstance(one, list | tuple) else constants_of(one) for one in value]
        return None if None in parts else [one for part in parts for one in part or ()]
    return None


class Unfit(Exception):
    """A value cannot be put into its place, or a place cannot be found."""


def fill_of(part: Any) -> Fill | None:
    """What puts values into a part of a plan; None if it has no place for any.

    Raises:
        Unfit: there may be a place where none can be found.
    """
    if isinstance(part, Literal):
        value = part.value
        if is_unseen(value):
            return lambda given: _put(value, given)
        if type(value) is list and any(map(is_unseen, value)):
            return lambda given: replace(part, value=[_put(one, given).value if is_unseen(one) else one
                                                      for one in value])  # fmt: skip
        return None
    if isinstance(part, str) and MARK in part:  # a name made from the value
        raise Unfit
    if isinstance(part, _WHOLE):
        return None
    if isinstance(part, tuple | list):
        fills = [fill_of(one) for one in part]
        if not any(fills):
            return None
        kind = type(part)
        return lambda given: kind([one if fill is None else fill(given) for one, fill in zip(part, fills, strict=True)])
    if isinstance(part, frozenset | Mapping):
        inside = [*part, *part.values()] if isinstance(part, Mapping) else part
        if any(map(fill_of, inside)):
            raise Unfit
        return None
    if not is_dataclass(part) or isinstance(part, type):
        raise Unfit
    given_to = [one for one in fields(part) if one.init]
    values = [getattr(part, one.name) for one in given_to]
    filled = [fill_of(value) for value in values]
    if not any(filled):
        return None
    if any(one.kw_only for one in given_to):
        raise Unfit
    made, places = type(part), [(place, fill) for place, fill in enumerate(filled) if fill is not None]

    def fill_in(given: Constants) -> Any:
        arguments = values.copy()
        for place, fill in places:
            arguments[place] = fill(given)
        return made(*arguments)

    return fill_in


def _put(unseen: Unseen, given: Constants) -> Literal:
    """The value in the place of one that is unseen, cast as that was.

    Raises:
        Unfit: the binder would make something else of it.
        HalfjoinError: the type does not have the value.
    """
    made: object = given[unseen.parameter][unseen.position]
    for type, explicit in unseen.casts:
        made = cast(made, type, explicit) if isinstance(made, Literal) else made
    if not isinstance(made, Literal) or made.type != unseen.type or made.value is None:
        raise Unfit
    return made
