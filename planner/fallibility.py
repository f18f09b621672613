"""Decides what may fail for some row. Such a failure is reported in one place only.

Errors must not depend on the path by which a row came. An expression that reads one input fails in the operator of that
input, and is reported where the input itself changes. An expression that reads several inputs fails on complete rows,
whichever path made them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from halfjoin.planner.block import expressions
from halfjoin.planner.linear import Explode, Extend, Filter, Formula, Keep, Step, Temporal
from halfjoin.planner.series import is_short
from halfjoin.sql.expr import Literal, columns_of
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
        case "ROWS FROM":
            return any(map(_function_fallible, _calls(step)))
        case "generate_series":
            stepless = len(step.args) > 2 and not _is_step(step.args[2])
            return stepless or (_of_one_input(step) and not is_short(step.args))
        case "regexp_split_to_table":
            return not isinstance(step.args[1], Literal)
        case "repeat_row" | "unnest":
            return False
        case _:  # a user's own function
            return True


def _calls(step: Explode) -> Iterator[Explode]:
    """The calls of ROWS FROM, each as a step of its own."""
    start = 0
    for call in step.calls:
        yield replace(step, function=call.function, args=step.args[start : start + call.args], calls=())
        start += call.args


def _of_one_input(step: Explode) -> bool:
    """Whether its arguments read columns of at most one alias.

    A series over several inputs that is too long fails the view, not the row. Otherwise the series would run on
    complete rows only, and an input that is joined by its numbers would first be joined to everything before.
    """
    return len({name.split(".")[0] for arg in step.args for name in columns_of(arg)}) <= 1


def _is_step(arg: object) -> bool:
    """Whether the argument is a constant that is not zero. The parts of an interval with months must have one sign."""
    if not isinstance(arg, Literal) or arg.value in (0, (0, 0, 0)):
        return False
    parts = arg.value if isinstance(arg.value, tuple) else ()
    return not parts or not parts[0] or min(parts) >= 0 or max(parts) <= 0
