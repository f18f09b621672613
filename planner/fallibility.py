"""What may fail for some row, and so has one place only where its failure is reported.

Errors must not depend on the path by which a row came. What reads one input fails in the operator of that input, and is
reported where the input itself changes; what reads several fails on complete rows, whichever path made them.
"""

from __future__ import annotations

from halfjoin.planner.block import expressions
from halfjoin.planner.linear import Explode, Extend, Filter, Formula, Keep, Step, Temporal
from halfjoin.sql.expr import Literal
from halfjoin.sql.functions import fallible


def formula_fallible(formula: Formula) -> bool:
    """Whether an expression of a temporal filter may fail."""
    return any(fallible(expr) for expr in expressions(formula))


def step_fallible(step: Step) -> bool:
    """Whether a step of a linear operator may fail for some row."""
    match step:
        case Explode():
            return explode_fallible(step)
        case Temporal(formula):
            return formula_fallible(formula)
        case Filter(predicates):
            return any(map(fallible, predicates))
        case Extend(items):
            return any(fallible(expr) for _, expr in items)
        case Keep():
            return False


def explode_fallible(step: Explode) -> bool:
    """Whether a table function, or an argument of it, may fail."""
    return any(fallible(arg) for arg in step.args) or _function_fallible(step)


def _function_fallible(step: Explode) -> bool:
    match step.function:
        case "generate_series":
            return len(step.args) > 2 and not _is_step(step.args[2])
        case "regexp_split_to_table":
            return not isinstance(step.args[1], Literal)
        case "repeat_row" | "unnest":
            return False
        case _:  # a user's
            return True


def _is_step(arg: object) -> bool:
    """Whether it is a constant that is not zero; of months, days and the rest none may lead back."""
    if not isinstance(arg, Literal) or arg.value in (0, (0, 0, 0)):
        return False
    parts = arg.value if isinstance(arg.value, tuple) else ()
    return not parts or not parts[0] or min(parts) >= 0 or max(parts) <= 0
