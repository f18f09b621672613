"""Registers the user's table functions and reduces: Python functions that SQL can call in FROM."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa

from halfjoin.engine.batch.state import State
from halfjoin.engine.batch.writer import Writer, writing
from halfjoin.engine.intake.incarnation import Incarnation, code_of
from halfjoin.engine.linear.tables import ReduceFunction, UserFunction
from halfjoin.errors import Conflict, HalfjoinError
from halfjoin.planner.calls import calls
from halfjoin.sql.functions.aggregates import is_aggregate_name
from halfjoin.sql.functions.table import ALIASES, ENTRIES
from halfjoin.sql.functions.table_functions import returns_rows
from halfjoin.sql.functions.window_functions import WINDOW_FUNCTIONS
from halfjoin.sql.parse.type_names import type_named
from halfjoin.sql.types import Kind, SqlType, numeric
from halfjoin.sql.user_aggregate import lift_of


def register_table_function(
    state: State, writer: Writer | None, name: str, function: Callable[[pa.RecordBatch], pa.RecordBatch],
    returns: Mapping[str, str], version: str | None,
) -> None:  # fmt: skip
    """Make a function usable in FROM. A new function is defined; one that the warehouse knows must keep its columns.

    Raises:
        HalfjoinError: the function cannot be called, its name or its columns are not valid, or it is new and the engine
            only reads.
        Conflict: another function has that name, or it has other code, and views keep what the old one has returned.
    """
    types = _defined(state, writer, "table function", name, function, returns, version, state.catalog.functions)
    state.functions[name] = UserFunction(name, function, types)


def register_reduce(
    state: State, writer: Writer | None, name: str, function: Callable[[pa.RecordBatch], pa.RecordBatch],
    returns: Mapping[str, str], version: str | None, *, vectorised: bool,
) -> None:  # fmt: skip
    """Make a function of groups usable in FROM.

    Raises:
        HalfjoinError, Conflict: as `register_table_function`.
    """
    types = _defined(state, writer, "reduce", name, function, returns, version, state.catalog.reductions)
    state.functions[name] = ReduceFunction(name, function, types, vectorised)


def _defined(
    state: State, writer: Writer | None, what: str, name: str, function: object, returns: Mapping[str, str],
    version: str | None, known: dict[str, tuple[tuple[str, SqlType], ...]],
) -> dict[str, SqlType]:  # fmt: skip
    """Check a function that returns rows, and define it if the warehouse does not know it. Returns its columns."""
    _check(name, function, returns)
    kept = known.get(name)
    check_free(state, name, known=kept is not None)
    types = {column: type_named(kind) for column, kind in returns.items()}
    if what == "reduce":
        types = {column: stored(kind) for column, kind in types.items()}
    if kept is not None and kept != tuple(types.items()):
        columns = ", ".join(f"{column} {kind}" for column, kind in kept)
        raise Conflict(f"the warehouse knows the {what} {name} with the columns ({columns})", name=name,
                       remedy="register it with these, or choose another name")  # fmt: skip
    settle(state, writer, name, (function,), version, lambda: known.update({name: tuple(types.items())}))
    return types


def settle(
    state: State, writer: Writer | None, name: str, code: Sequence[object], version: str | None,
    define: Callable[[], None],
) -> None:  # fmt: skip
    """Define a function if it is new, and keep what tells its code apart.

    Raises:
        Conflict: the code is not that of the answers that views keep.
    """
    kept, catalog = state.catalog.incarnations.get(name), state.catalog
    new = name not in (catalog.functions | catalog.aggregates | catalog.reductions)
    made = Incarnation(version or "", code_of(*code))
    before = None if kept is None else Incarnation(*kept)
    if before is not None and not before.same(made):
        readers = [view for view, one in state.views.items() if one.plan is not None and calls(one.plan, name)]
        if readers:
            what = "version" if made.version and before.version else "code"
            problem = f"{name} is not the function of which {', '.join(readers)} has answers: its {what} is another"
            remedy = "register what it was, or drop what reads it, or choose another name"
            if not before.comparable(made):
                problem = (f"another version of Python compiled {name}, of which {', '.join(readers)} has answers, so "
                           "their code cannot be compared")  # fmt: skip
                remedy = "if it is the same function, say so: register it with version='1'"
            raise Conflict(problem, remedy=remedy, name=name, holder=", ".join(readers))
    elif before is not None and not made.version:
        made = made._replace(version=before.version)
    if new or (kept != made and writer is not None):
        def change() -> None:
            define()
            state.catalog.incarnations[name] = made

        writing(writer).define(change)


def stored(type: SqlType) -> SqlType:
    """The type of a column; a bare numeric gets the default precision and scale of a column."""
    return numeric() if type == SqlType(Kind.NUMERIC) else type


def check_name(name: object) -> None:
    """Refuse what is not a name for a function."""
    if not isinstance(name, str) or re.fullmatch("[a-z_][a-z0-9_]*", name) is None:
        raise HalfjoinError(f"{name!r} is not a name for a function", remedy="use lower case letters, digits and _")


def check_free(state: State, name: str, *, known: bool) -> None:
    """Refuse the name of another function. `known`: the warehouse knows the function that is to be registered, and
    perhaps it is registered already: a cell of a notebook runs again."""
    catalog = state.catalog
    taken = returns_rows(name, catalog) or is_aggregate_name(name, catalog) or catalog.reduce(name) is not None
    built_in = name in ENTRIES or name in ALIASES or name in WINDOW_FUNCTIONS
    taken = taken or name in state.functions or lift_of(name) in state.functions
    if (taken and not known) or built_in:
        raise Conflict(f"a function {name} exists already", remedy="choose another name", name=name)


def _check(name: object, function: object, returns: object) -> None:
    """Refuse what is not a function that returns rows.

    Raises:
        HalfjoinError: it says what is wrong.
    """
    check_name(name)
    if not callable(function):
        raise HalfjoinError(f"{name}: {function!r} cannot be called")
    if not isinstance(returns, Mapping) or not all(isinstance(kind, str) for kind in returns.values()):
        raise HalfjoinError(f"{name}: returns must be a dict of SQL types by column, such as {{'x': 'bigint'}}")
    if not returns or any(column.startswith("__") for column in returns):
        raise HalfjoinError(f"{name}: returns must name the result's columns, none of which begins with __")
