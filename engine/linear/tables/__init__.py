"""Table functions: they take one row and give several weighted rows. They are the general form of a linear operator."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TypeAlias

from halfjoin.engine.linear.tables.arrays import regexp_split_to_table, unnest
from halfjoin.engine.linear.tables.exploded import Exploded, TableFunction, ordinality
from halfjoin.engine.linear.tables.lockstep import Part, lockstep
from halfjoin.engine.linear.tables.series import generate_series
from halfjoin.engine.linear.tables.user import GroupFunction, ReduceFunction, UserFunction, call_user_function
from halfjoin.engine.linear.tables.weights import repeat_row
from halfjoin.errors import HalfjoinError
from halfjoin.planner.linear import Explode

Registered: TypeAlias = UserFunction | GroupFunction | ReduceFunction
Registry: TypeAlias = Mapping[str, Registered]
NO_FUNCTIONS: Registry = MappingProxyType({})

_BUILT_IN: dict[str, TableFunction] = {
    "generate_series": generate_series,
    "regexp_split_to_table": regexp_split_to_table,
    "repeat_row": repeat_row,
    "unnest": unnest,
}

__all__ = [
    "NO_FUNCTIONS", "Exploded", "GroupFunction", "ReduceFunction", "Registered", "Registry", "TableFunction",
    "UserFunction", "call_user_function", "group_function", "is_built_in", "ordinality", "reduce_function",
    "row_function", "table_function",
]  # fmt: skip


def is_built_in(name: str) -> bool:
    """Whether a table function is the same in every process, and safe to call in any thread."""
    return name in _BUILT_IN


def table_function(step: Explode, registry: Registry) -> TableFunction:
    """The function that a step calls. It maps the arguments (an array each) and the number of rows to `Exploded`.

    A user's function is looked up at each call, because a warehouse keeps its name, not its code. The call raises
    HalfjoinError if the function is not registered.
    """
    if step.calls:
        parts = [Part(_named(call.function, registry), call.args, call.outputs) for call in step.calls]
        return lambda arguments, length: lockstep(parts, arguments, length)
    return _named(step.function, registry)


def _named(name: str, registry: Registry) -> TableFunction:
    built_in = _BUILT_IN.get(name)
    if built_in is not None:
        return built_in
    return lambda arguments, length: call_user_function(row_function(name, registry), arguments, length)


def row_function(name: str, registry: Registry) -> UserFunction:
    """The user's function of rows that has that name: a table function, or the lift or result of an aggregate.

    Raises:
        HalfjoinError: it is not registered.
    """
    found = registry.get(name)
    if isinstance(found, UserFunction):
        return found
    _, of_aggregate, aggregate = name.rpartition(" of ")
    raise not_registered("aggregate" if of_aggregate else "table_function", aggregate)


def group_function(name: str, registry: Registry) -> GroupFunction:
    """The user's aggregate of that name that sees all rows of a group.

    Raises:
        HalfjoinError: it is not registered.
    """
    found = registry.get(name)
    if isinstance(found, GroupFunction):
        return found
    raise not_registered("aggregate", name)


def reduce_function(name: str, registry: Registry) -> ReduceFunction:
    """The user's reduce of that name.

    Raises:
        HalfjoinError: it is not registered.
    """
    found = registry.get(name)
    if isinstance(found, ReduceFunction):
        return found
    raise not_registered("reduce", name)


def not_registered(kind: str, name: str) -> HalfjoinError:
    """The error for a function that the user has not registered again after the warehouse was opened."""
    return HalfjoinError(
        f"the {kind.replace('_', ' ')} {name} is not registered: a warehouse keeps its name, not its code",
        remedy=f"call engine.register_{kind}({name!r}, ...) first",
    )
