"""The one evaluator of scalar expressions: `compile` an expression once, `evaluate` it on many batches.

An expression becomes a tree of closures over Arrow kernels. Literals stay scalars. A kernel runs on whole arrays; only
if it fails, the failing rows are searched. A row fails if an argument fails for it. But AND, OR, CASE and COALESCE
decide which arguments a row needs (`forms`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from halfjoin.engine.scalar.arrow_types import arrow_type
from halfjoin.engine.scalar.casts import cast_kernel
from halfjoin.engine.scalar.compared import operands
from halfjoin.engine.scalar.failures import Failures
from halfjoin.engine.scalar.forms import FORMS
from halfjoin.engine.scalar.kernels import kernel_of
from halfjoin.engine.scalar.literals import scalar_of
from halfjoin.engine.scalar.nodes import Batch, Node, strict
from halfjoin.engine.scalar.values import broadcast
from halfjoin.engine.system.value import value
from halfjoin.errors import UnsupportedSQL
from halfjoin.nesting import headroom
from halfjoin.sql.expr import Call, Cast, Column, Expr, Literal, depth_of
from halfjoin.sql.functions import always_null, render
from halfjoin.sql.kept import kept_if_small

_DEEP = 50  # levels of calls; a tree that has no more fits on any stack


@value
class Result:
    """The values and failures of a batch.

    `values`: an Array with a value for each row, of the expression's Arrow type. Failed rows have NULL.
    """

    values: Any
    failures: Failures | None


class Scalar:
    """A compiled expression. `column`: the name of a bare column; None: it is another expression."""

    __slots__ = ("_node", "arrow_type", "column", "expr")

    def __init__(self, expr: Expr) -> None:
        self.expr = expr
        self.arrow_type = arrow_type(expr.type)
        self._node = build(expr) if depth_of(expr) <= _DEEP else headroom()(build(expr))
        self.column = expr.name if isinstance(expr, Column) else None

    def evaluate(self, columns: Mapping[str, Any], n: int) -> Result:
        """The value for each of `n` rows. `columns` has an Array of length `n` for each column that it reads."""
        if n == 0:
            return Result(pa.nulls(0, self.arrow_type), None)
        if self.column is not None and columns[self.column].type == self.arrow_type:  # shortcut for a bare column
            return Result(columns[self.column], None)
        datum, failures = self._node(Batch(columns, n))
        if isinstance(datum, pa.Scalar):
            datum = broadcast(datum, n)
        if datum.type != self.arrow_type:
            datum = datum.cast(self.arrow_type)
        return Result(datum, failures)


@kept_if_small(8192)
def compile(expr: Expr) -> Scalar:
    """The evaluator of an expression. Equal expressions get the same object."""
    return Scalar(expr)


def build(expr: Expr) -> Node:
    """The closure that evaluates an expression."""
    match expr:
        case Column(name=name):
            return lambda batch: (batch.columns[name], None)
        case Literal():
            value = scalar_of(expr)
            return lambda batch: (value, None)
        case Cast(arg=arg, type=type):
            kernel = cast_kernel(arg.type, type)
            return build(arg) if kernel is None else strict(kernel, [build(arg)], arrow_type(type))
        case Call(function=name, args=args):
            form = FORMS.get(name)
            if form is not None:
                return form(expr, [build(arg) for arg in args])
            if always_null(expr):
                nothing = pa.scalar(None, arrow_type(expr.type))
                return lambda batch: (nothing, None)
            args = operands(expr)
            if name == "in":  # its kernel takes the constants from the expression, and there may be many
                args = args[:1]
            return strict(kernel_of(expr), [build(arg) for arg in args], arrow_type(expr.type))
        case _:
            raise UnsupportedSQL(f"{render(expr)} outside a temporal filter")
