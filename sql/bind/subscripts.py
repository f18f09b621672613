"""Binds subscripts: elements and slices of arrays, `a[1][2]`, `a[1:2]`, and parts of a jsonb, `j['a'][0]`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql import functions
from halfjoin.sql.bind.reg_types import from_one
from halfjoin.sql.expr import Call, Expr, Literal
from halfjoin.sql.system import VECTORS
from halfjoin.sql.types import INTEGER, INTEGERS, STRINGS, TEXT, Kind, dimensions, innermost

if TYPE_CHECKING:
    from halfjoin.sql.bind.scalar import Scalars

_LAST = Literal(2**31 - 1, INTEGER)


def subscript(scalars: Scalars, node: exp.Bracket) -> Expr:
    """The value at all subscripts after an expression."""
    below, written = node, list[exp.Expr]()
    while isinstance(below, exp.Bracket) and id(below) not in scalars.bound:
        written.insert(0, one_of(scalars, below))
        below = below.this
    value = scalars.value(below)
    if value.type.kind is Kind.JSON:
        raise UnsupportedSQL("cannot subscript type json because it does not support subscripting", code="42804",
                             remedy="write j -> 'a', or j::jsonb")
    if value.type.kind is Kind.JSONB:
        for one in written:
            value = _of_json(scalars, value, one)
        return value
    count = dimensions(value.type)
    if not count and value.type.kind is not Kind.UNKNOWN and value.type.named not in VECTORS:
        raise scalars.context.wrong(node, f"cannot subscript type {value.type} because it does not support "
                                    "subscripting").with_(code="42804")  # fmt: skip
    if any(isinstance(one, exp.Slice) for one in written):
        return _slice(scalars, value, written)
    steps = [functions.cast(scalars.value(one), INTEGER) for one in written]
    if count and len(steps) != count:
        return Literal(None, innermost(value.type))  # no element has fewer or more subscripts than dimensions
    for step in steps:
        value = functions.resolve("[]", (value, from_one(value, step)))
    return value


def one_of(scalars: Scalars, node: exp.Expr) -> exp.Expr:
    """The number, key or slice between two brackets."""
    if len(node.expressions) != 1:
        raise scalars.context.wrong(node, "a subscript is one number", "write a[1][2]")
    found: exp.Expr = node.expressions[0]
    return found


def _of_json(scalars: Scalars, value: Expr, node: exp.Expr) -> Expr:
    """`j['a'][0]`: each subscript is a path of one step."""
    step = functions.cast(json_step(scalars, node), TEXT)
    return functions.resolve("#>", (value, functions.resolve("array", (step,))))


def json_step(scalars: Scalars, node: exp.Expr) -> Expr:
    """A subscript of a jsonb, a text or a whole number."""
    if isinstance(node, exp.Slice):
        error = scalars.context.wrong(node, "jsonb subscript does not support slices", "write one subscript: j['a']")
        raise error.with_(code="42804")
    step = scalars.value(node)
    if step.type.kind not in (*STRINGS, Kind.UNKNOWN, *INTEGERS):
        raise scalars.context.wrong(node, f"subscript type {step.type} is not supported",
                                    "jsonb subscript must be coercible to either integer or text"
                                    ).with_(code="42804")  # fmt: skip
    return step


def _slice(scalars: Scalars, array: Expr, written: list[exp.Expr]) -> Expr:
    """`a[1:2][3]`; a bound that is left out is that of the array, and a number alone is from 1 to it."""
    bounds = [(Literal(1, INTEGER), _LAST)[n % 2] if bound is None else bound
              for n, bound in enumerate(bounds_of(scalars, written))]  # fmt: skip
    if len(written) > dimensions(array.type) > 0:
        bounds = [Literal(1, INTEGER), Literal(0, INTEGER)]  # nothing
    made = functions.resolve("slice", (array, *bounds[:2]))
    return Call("slice", (*made.args, *bounds[2:]), made.type) if isinstance(made, Call) else made


def bounds_of(scalars: Scalars, written: Sequence[exp.Expr]) -> list[Expr | None]:
    """The first and the last subscript of each slice; None for one that is left out."""
    bounds: list[Expr | None] = []
    for one in written:
        first = one.this if isinstance(one, exp.Slice) else exp.Literal.number(1)
        last = one.args.get("expression") if isinstance(one, exp.Slice) else one
        bounds += [None if bound is None else functions.cast(scalars.value(bound), INTEGER) for bound in (first, last)]
    return bounds
