"""Table functions: they take one row and give several weighted rows. They are the general form of a linear operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import pyarrow as pa

from halfjoin.engine.linear.tables.arrays import regexp_split_to_table, unnest
from halfjoin.engine.linear.tables.exploded import Exploded, ordinality
from halfjoin.engine.linear.tables.series import generate_series
from halfjoin.engine.linear.tables.user import UserFunction, call_user_function
from halfjoin.engine.linear.tables.weights import repeat_row
from halfjoin.errors import HalfjoinError
from halfjoin.planner.linear import Explode

Registry: TypeAlias = Mapping[str, UserFunction]
TableFunction: TypeAlias = Callable[[list[pa.Array], int], Exploded]

_BUILT_IN: dict[str, TableFunction] = {
    "generate_series": generate_series,
    "regexp_split_to_table": regexp_split_to_table,
    "repeat_row": repeat_row,
    "unnest": unnest,
}

__all__ = ["Exploded", "Registry", "TableFunction", "UserFunction", "is_built_in", "ordinality", "table_function"]


def is_built_in(name: str) -> bool:
    """Whether a table function is the same in every process, and safe to call in any thread."""
    return name in _BUILT_IN


def table_function(step: Explode, registry: Registry) -> TableFunction:
    """The function that a step calls. It maps the arguments (an array each) and the number of rows to `Exploded`.

    A user's function is looked up at each call, because a warehouse keeps its name, not its code. The call raises
    HalfjoinError if the function is not registered.
    """
    built_in = _BUILT_IN.get(step.function)
    if built_in is not None:
        return built_in

    def call(arguments: list[pa.Array], length: int) -> Exploded:
        user = registry.get(step.function)
        if user is None:
            raise HalfjoinError(
                f"the table function {step.function} is not registered: a warehouse keeps its name, not its code",
                remedy=f"call engine.register_table_function({step.function!r}, ...) first"
            )
        return call_user_function(user, arguments, length)

    return call
