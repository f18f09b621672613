"""json_agg, jsonb_agg and the aggregates of objects: they are array_agg, and a json or jsonb is made of its array."""

from __future__ import annotations

from collections.abc import Sequence

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.expr import Call, Expr, Literal
from halfjoin.sql.functions.json_made import LINES, to_json
from halfjoin.sql.functions.jsonb_made import key_text, to_jsonb
from halfjoin.sql.functions.nested_arrays import shaped
from halfjoin.sql.functions.order import check_equality
from halfjoin.sql.functions.resolve import resolve
from halfjoin.sql.types import JSON, JSONB, TEXT, Kind

JSON_AGGREGATES = {"json_agg": 1, "json_object_agg": 2, "jsonb_agg": 1, "jsonb_object_agg": 2}  # and their arguments


def collected(name: str, args: Sequence[Expr], *, distinct: bool, ordered: bool) -> tuple[str, Sequence[Expr]]:
    """The aggregate that collects the values, and its argument; the aggregate itself, if it is not one of jsonb.

    With DISTINCT the values are collected as they are, so that they are ordered by their own type.
    """
    if name not in JSON_AGGREGATES:
        return name, args
    if len(args) != JSON_AGGREGATES[name]:
        raise UnsupportedSQL(f"{name} takes {JSON_AGGREGATES[name]} arguments", wrong=True)
    if distinct and name == "json_agg" and args[0].type.kind is Kind.RECORD:
        raise UnsupportedSQL("json_agg with DISTINCT of rows is not supported",
                             remedy="aggregate over a subquery with DISTINCT")
    if name in ("json_agg", "jsonb_agg"):
        return "array_agg", args if distinct else (to_jsonb(args[0]) if name == "jsonb_agg" else _element(args[0]),)
    if distinct and ordered:
        raise UnsupportedSQL(f"{name} with DISTINCT and ORDER BY is not supported",
                             remedy="aggregate over a subquery with DISTINCT")
    if name == "json_object_agg":
        check_equality(*(arg.type for arg in args if distinct))
        return "array_agg", (Call("json pair", (key_text(resolve, args[0]), to_json(resolve, args[1])), TEXT),)
    return "array_agg", (Call("jsonb_build_array", (to_jsonb(key_text(resolve, args[0])), to_jsonb(args[1])), JSONB),)


def _element(value: Expr) -> Expr:
    """An element of json_agg. The mark of one that is an array or a row tells `finished` to write each into a line."""
    made = to_json(resolve, value)
    return Call("json in line", (made,), JSON) if value.type.kind in (Kind.ARRAY, Kind.RECORD) else made


def finished(name: str, value: Expr, args: Sequence[Expr]) -> Expr:
    """The result of an aggregate from what `collected` says, by the aggregate's name, and the arguments of the call
    that collected. Arrays must have one shape.
    """
    if name == "array_agg":
        return shaped(value, "agg")
    if name not in JSON_AGGREGATES:
        return value
    if name == "json_object_agg":
        return Call("json of pairs", (value,), JSON)
    if name == "json_agg":
        lines = any(arg.type.kind is Kind.ARRAY or (isinstance(arg, Call) and arg.function == "json in line")
                    for arg in args)
        return Call("to_json", (value, Literal(LINES if lines else ", ", TEXT)), JSON)
    return Call("to_jsonb" if name == "jsonb_agg" else "jsonb of pairs", (value,), JSONB)
