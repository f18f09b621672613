"""Functions of enums: their values are labels, which are stored as texts."""

from __future__ import annotations

from collections.abc import Sequence

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.expr import Expr, Literal
from halfjoin.sql.functions.signature import Resolve, Special, function
from halfjoin.sql.types import Kind, SqlType, array


def _end(name: str, place: int) -> Special:
    """The first or the last label of the enum of the argument."""

    def special(resolve: Resolve, args: Sequence[Expr]) -> Expr:
        type = _enum(name, args)
        if len(args) != 1:
            raise UnsupportedSQL(f"{name} takes one argument", wrong=True)
        return Literal(type.labels[place], type)

    return special


def _range(resolve: Resolve, args: Sequence[Expr]) -> Expr:
    """All labels, or those from the first argument to the second; a bound that is NULL leaves none out."""
    type = _enum("enum_range", args)
    bounds: list[int | None] = []
    for arg in args if len(args) == 2 else ():
        if not isinstance(arg, Literal) or arg.type.kind not in (type.kind, Kind.UNKNOWN):
            raise UnsupportedSQL("enum_range takes constants", remedy="compare the values")
        text = None if arg.value is None else str(arg.value)
        if text is not None and text not in type.labels:
            raise UnsupportedSQL(f'invalid input value for enum {type}: "{text}"', code="22P02")
        bounds.append(None if text is None else type.labels.index(text))
    if len(args) > 2:
        raise UnsupportedSQL("enum_range takes one or two arguments", wrong=True)
    first, last = bounds or (None, None)
    return Literal(list(type.labels[first : None if last is None else last + 1]), array(type))


def _enum(name: str, args: Sequence[Expr]) -> SqlType:
    """The enum of the arguments."""
    found = next((arg.type for arg in args if arg.type.kind is Kind.ENUM), None)
    if found is None:
        raise UnsupportedSQL(f"{name} takes an enum", remedy=f"write {name}(NULL::your_type)", wrong=True)
    return found


ENUMS = (
    function("enum_first", "casts", "The first value of the argument's enum", "any -> any",
             special=_end("enum_first", 0)),
    function("enum_last", "casts", "The last value of the argument's enum", "any -> any",
             special=_end("enum_last", -1)),
    function("enum_range", "casts", "The values of the argument's enum; or those between two constants, where NULL is "
             "no bound", "any -> any[]", "any, any -> any[]", special=_range),
)  # fmt: skip
