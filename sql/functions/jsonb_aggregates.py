"""jsonb_agg and jsonb_object_agg: they are array_agg, and a jsonb is made of its array."""

from __future__ import annotations

from collections.abc import Sequence

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.expr import Call, Expr
from halfjoin.sql.functions.jsonb_made import key_text, to_jsonb
from halfjoin.sql.functions.nested_arrays import shaped
from halfjoin.sql.functions.resolve import resolve
from halfjoin.sql.types import JSONB

_ARGUMENTS = {"jsonb_agg": 1, "jsonb_object_agg": 2}


def collected(name: str, args: Sequence[Expr], *, distinct: bool, ordered: bool) -> tuple[str, Sequence[Expr]]:
    """The aggregate that collects the values, and its argument; the aggregate itself, if it is not one of jsonb.

    With DISTINCT the values are collected as they are, so that they are ordered by their own type.
    """
    if name not in _ARGUMENTS:
        return name, args
    if len(args) != _ARGUMENTS[name]:
        raise UnsupportedSQL(f"{name} takes {_ARGUMENTS[name]} arguments", wrong=True)
    if name == "jsonb_agg":
        return "array_agg", args if distinct else (to_jsonb(args[0]),)
    if distinct and ordered:
        raise UnsupportedSQL("jsonb_object_agg with DISTINCT and ORDER BY is not supported",
                             remedy="aggregate over a subquery with DISTINCT")
    return "array_agg", (Call("jsonb_build_array", (to_jsonb(key_text(resolve, args[0])), to_jsonb(args[1])), JSONB),)


def finished(name: str, value: Expr) -> Expr:
    """The result of an aggregate from what `collected` says, by the aggregate's name; arrays must have one shape."""
    if name == "array_agg":
        return shaped(value, "agg")
    if name not in _ARGUMENTS:
        return value
    return Call("to_jsonb" if name == "jsonb_agg" else "jsonb of pairs", (value,), JSONB)
