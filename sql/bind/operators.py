"""Binds operators that are other names of functions, such as `^@`, `|/` and `#`, and calls with words in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from halfjoin.sql import functions
from halfjoin.sql.expr import Expr, Literal
from halfjoin.sql.parse.string_escapes import unicode_text
from halfjoin.sql.types import DOUBLE, UNKNOWN

if TYPE_CHECKING:
    from halfjoin.sql.bind.scalar import Scalars


def _prefix(name: str) -> Callable[[Scalars, Any], Expr]:
    return lambda scalars, node: functions.resolve(name, (scalars.value(node.this),))


def _binary(name: str) -> Callable[[Scalars, Any], Expr]:
    return lambda scalars, node: functions.resolve(name, (scalars.value(node.this), scalars.value(node.expression)))


def _root(scalars: Scalars, node: exp.Sqrt) -> Expr:
    """`|/` is of double precision only, unlike sqrt."""
    return functions.resolve("sqrt", (functions.cast(scalars.value(node.this), DOUBLE),))


def _overlay(scalars: Scalars, node: exp.Overlay) -> Expr:
    parts = (node.this, node.expression, node.args.get("from_"), node.args.get("for_"))
    return functions.resolve("overlay", scalars.values([part for part in parts if part is not None]))


def _unicode(scalars: Scalars, node: exp.UnicodeString) -> Expr:
    escape = node.args.get("escape")
    return Literal(unicode_text(node.name, escape.name if isinstance(escape, exp.Expr) else "\\"), UNKNOWN)


def _overlaps(scalars: Scalars, node: exp.Overlaps) -> Expr:
    pairs = (node.this, node.expression)
    if not all(isinstance(pair, exp.Tuple) and len(pair.expressions) == 2 for pair in pairs):
        raise scalars.context.wrong(node, "OVERLAPS takes two pairs of values")
    return functions.resolve("overlaps", scalars.values([*pairs[0].expressions, *pairs[1].expressions]))


OPERATORS: dict[type, Callable[[Scalars, Any], Expr]] = {
    exp.Abs: _prefix("abs"),
    exp.Sqrt: _root,
    exp.Cbrt: _prefix("cbrt"),
    exp.BitwiseNot: _prefix("bit not"),
    exp.BitwiseAnd: _binary("&"),
    exp.BitwiseOr: _binary("|"),
    exp.BitwiseXor: _binary("#"),
    exp.BitwiseLeftShift: _binary("<<"),
    exp.BitwiseRightShift: _binary(">>"),
    exp.ArrayContainsAll: _binary("@>"),
    exp.ArrayContainedBy: _binary("<@"),
    exp.ArrayOverlaps: _binary("&&"),
    exp.JSONExtract: _binary("->"),
    exp.JSONExtractScalar: _binary("->>"),
    exp.JSONBExtract: _binary("#>"),
    exp.JSONBExtractScalar: _binary("#>>"),
    exp.JSONBContainsTopKey: _binary("?"),
    exp.JSONBContainsAnyTopKeys: _binary("?|"),
    exp.JSONBContainsAllTopKeys: _binary("?&"),
    exp.JSONBDeleteAtPath: _binary("#-"),
    exp.JSONBPathExists: _binary("@?"),
    exp.MatchAgainst: lambda scalars, node: functions.resolve("@@", scalars.values([*node.expressions, node.this])),
    exp.Overlaps: _overlaps,
    exp.StartsWith: _binary("starts_with"),
    exp.Overlay: _overlay,
    exp.UnicodeString: _unicode,
}
