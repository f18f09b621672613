"""Binds LIKE, ILIKE, SIMILAR TO and `~`, with ESCAPE, and with ANY or ALL of an array of patterns."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from halfjoin.sql import functions
from halfjoin.sql.expr import Expr, Literal
from halfjoin.sql.parse.operators import quantifier
from halfjoin.sql.types import BOOLEAN, TEXT, array

if TYPE_CHECKING:
    from halfjoin.sql.bind.scalar import Scalars

_NAMES: dict[type[exp.Expr], str] = {
    exp.Like: "like", exp.ILike: "ilike", exp.SimilarTo: "similar to", exp.RegexpLike: "~", exp.RegexpILike: "~*",
}  # fmt: skip


def _like(scalars: Scalars, node: exp.Binary, *escape: Expr) -> Expr:
    name = _NAMES[type(node)]
    asked = quantifier(node.expression)
    every, written = asked or (False, node.expression)
    patterns = _patterns(scalars, node, name, written) if asked else [scalars.value(_written_out(written))]
    if patterns is None:
        return Literal(None, BOOLEAN)
    if not patterns:
        return Literal(every, BOOLEAN)
    value, matched = scalars.value(node.this), []
    for pattern in patterns:
        one = functions.resolve(name, (value, pattern, *escape))
        matched.append(functions.resolve("not", (one,)) if node.args.get("negate") else one)
    return matched[0] if len(matched) == 1 else functions.resolve("and" if every else "or", tuple(matched))


def _patterns(scalars: Scalars, node: exp.Binary, name: str, written: exp.Expr) -> list[Expr] | None:
    """The patterns of `LIKE ANY (array)`; None for an array that is NULL."""
    written, name = written.unnest(), name.upper()
    if isinstance(written, exp.Array):
        return [scalars.value(pattern) for pattern in written.expressions]
    if not isinstance(written, exp.Query | exp.Values):
        found = functions.cast(scalars.value(written), array(TEXT), explicit=True)
        if isinstance(found, Literal):
            values: Any = found.value
            return None if values is None else [Literal(pattern, TEXT) for pattern in values]
        raise scalars.context.refuse(node, f"{name} takes ANY and ALL of a constant array only",
                                     f"write EXISTS (SELECT FROM unnest(array) AS p WHERE x {name} p)")  # fmt: skip
    raise scalars.context.refuse(node, f"{name} takes ANY and ALL of an array only",
                                 f"write EXISTS (SELECT FROM (query) AS q (p) WHERE x {name} p)")  # fmt: skip


def _written_out(pattern: exp.Expr) -> exp.Expr:
    """`'a' || 'b'` as one constant."""
    if not isinstance(pattern, exp.DPipe):
        return pattern
    parts = [_written_out(part.unnest()) for part in (pattern.this, pattern.expression)]
    if not all(isinstance(part, exp.Literal) and part.is_string for part in parts):
        return pattern
    return exp.Literal.string("".join(part.name for part in parts))


def _escape(scalars: Scalars, node: exp.Escape) -> Expr:
    if isinstance(node.this, exp.Not):
        return functions.resolve("not", (_like(scalars, node.this.this, scalars.value(node.expression)),))
    return _like(scalars, node.this, scalars.value(node.expression))


PATTERNS: dict[type, Callable[[Scalars, Any], Expr]] = {**dict.fromkeys(_NAMES, _like), exp.Escape: _escape}
