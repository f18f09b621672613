"""Describes the steps of linear operators in words."""

from __future__ import annotations

from collections.abc import Iterator

from halfjoin.planner.linear import (
    Atom,
    Combination,
    Explode,
    Extend,
    Filter,
    Formula,
    Linear,
    Static,
    Step,
    Temporal,
)
from halfjoin.sql.expr import Call, Column, Expr, Now, substitute
from halfjoin.sql.functions.render import render
from halfjoin.sql.types import BOOLEAN


class Words:
    """The texts of one path, in order. An equality member that is computed as a column is shown as its expression."""

    def __init__(self) -> None:
        self._computed: dict[str, Expr] = {}

    def expr(self, expr: Expr) -> str:
        """An expression over the path's columns."""
        return render(substitute(expr, self._computed))

    def operator(self, operator: Linear, verb: str = "compute") -> tuple[str, ...]:
        """One line per step; the columns kept are not shown. `verb` introduces the last computed columns."""
        last = [step for step in operator.steps if isinstance(step, Extend)][-1:]
        return tuple(line for step in operator.steps for line in self._step(step, verb if step in last else "compute"))

    def _step(self, step: Step, verb: str) -> Iterator[str]:
        match step:
            case Filter(predicates):
                yield "filter " + self.expr(_all(predicates))
            case Extend(items, members):
                yield f"{verb} " + ", ".join(_item(column, expr, members) for column, expr in items)
                self._computed |= {column.name: expr for column, expr in items if members}
            case Explode():
                yield f"each row with {call_text(step)}"
            case Temporal(formula):
                yield "temporal filter " + render(formula_expr(formula))


def _all(predicates: tuple[Expr, ...]) -> Expr:
    return predicates[0] if len(predicates) == 1 else Call("and", predicates, BOOLEAN)


def _item(column: Column, expr: Expr, member: bool) -> str:
    if isinstance(expr, Column) and not member:
        own = expr.name.rpartition(".")[2] == column.name
        return render(expr) if own else f"{column.name} = {render(expr)}"
    return render(expr) if member else f"{column.name} = {render(expr)}"


def call_text(step: Explode) -> str:
    """A call as FROM writes it: `generate_series(1, t.n) AS g(x)`."""
    call = render(step.call)
    columns = [column.name.rpartition(".")[2] for column in step.outputs]
    if step.ordinality is not None:
        call += " WITH ORDINALITY"
        columns.append(step.ordinality.name.rpartition(".")[2])
    return f"{call} AS {step.alias}({', '.join(columns)})" if columns else call


def formula_expr(formula: Formula) -> Expr:
    """A temporal formula as the predicate that it was made from."""
    match formula:
        case Static(expr):
            return expr
        case Atom(op, bound):
            return Call(op, (Now(), bound), BOOLEAN)
        case Combination(op, args):
            return Call(op, tuple(formula_expr(arg) for arg in args), BOOLEAN)
