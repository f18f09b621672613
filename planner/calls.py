"""Which functions a plan calls."""

from __future__ import annotations

from dataclasses import fields, is_dataclass

from halfjoin.planner.plan import ViewPlan


def calls(plan: ViewPlan, name: str) -> bool:
    """Whether a node of the plan calls the user's function of that name, or the lift or result of the aggregate."""
    return any(function == name or function.endswith(f" of {name}") for function in _called(plan.nodes))


def _called(value: object) -> set[str]:
    """The functions of all parts that call one."""
    if isinstance(value, (tuple, list)):
        return set[str]().union(*map(_called, value))
    if not is_dataclass(value):
        return set()
    own = getattr(value, "function", None)
    found = {own} if isinstance(own, str) else set()
    return found.union(*(_called(getattr(value, one.name)) for one in fields(value)))
