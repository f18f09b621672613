"""Registers the user's aggregates: Python functions that SQL can call over the rows of a group."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from halfjoin.engine.batch.state import State
from halfjoin.engine.batch.writer import Writer
from halfjoin.engine.linear.tables import GroupFunction, Registered
from halfjoin.engine.linear.tables.lifts import lift_function, result_function, sums_of
from halfjoin.engine.statements.register import check_free, check_name, settle, stored
from halfjoin.errors import Conflict, HalfjoinError
from halfjoin.sql.parse.type_names import type_named
from halfjoin.sql.types import Kind, SqlType
from halfjoin.sql.user_aggregate import UserAggregate


def register_aggregate(
    state: State, writer: Writer | None, name: str, takes: Sequence[str], returns: str,
    function: Callable[..., Any] | None, lift: Callable[..., Any] | None, result: Callable[..., Any] | None,
    version: str | None,
) -> None:  # fmt: skip
    """Make an aggregate usable in views. A new one is defined; one that the warehouse knows must be the same.

    Raises:
        HalfjoinError: the functions cannot be called, or the name or the types are not valid, or the aggregate is new
            and the engine only reads.
        Conflict: another function has that name, or the warehouse knows the aggregate with other types, or with other
            code, and views keep what the old one has returned.
    """
    check_name(name)
    kept = state.catalog.aggregate(name)
    check_free(state, name, known=kept is not None)
    types = _types(name, takes, returns)
    made: dict[str, Registered]
    if function is not None and lift is None and result is None and callable(function):
        defined = UserAggregate(name, types, stored(type_named(returns)))
        made = {name: GroupFunction(name, function, defined.returns)}
    elif function is None and callable(lift) and callable(result):
        sums = sums_of(name, lift, types)
        defined = UserAggregate(name, types, stored(type_named(returns)), tuple(sums.items()))
        both = lift_function(name, lift, sums), result_function(defined, result)
        _check_names(name, result, sums)
        made = {one.name: one for one in both}
    else:
        raise HalfjoinError(f"{name}: an aggregate is a function, or a lift and a result",
                            remedy="give function=..., or lift=... and result=...")  # fmt: skip
    if kept is not None and kept != defined:
        raise Conflict(f"the warehouse knows the aggregate {name} as {_shown(kept)}", name=name,
                       remedy="register it as that, or choose another name")  # fmt: skip
    code = [one for one in (function, lift, result) if one is not None]
    settle(state, writer, name, code, version, lambda: state.catalog.aggregates.update({name: defined}))
    state.functions.update(made)


def _types(name: str, takes: object, returns: object) -> tuple[SqlType, ...]:
    if isinstance(takes, str) or not isinstance(takes, Sequence) or not all(isinstance(kind, str) for kind in takes):
        raise HalfjoinError(f"{name}: takes must be a list of SQL types, such as ['double precision', 'bigint']")
    if not takes:
        raise HalfjoinError(f"{name}: an aggregate takes at least one argument")
    if not isinstance(returns, str):
        raise HalfjoinError(f"{name}: returns must be a SQL type, such as 'bigint'")
    types = tuple(stored(type_named(kind)) for kind in takes)
    for type in (*types, type_named(returns)):
        if type.kind is Kind.INTERVAL:
            raise HalfjoinError(f"{name}: an aggregate neither takes nor returns intervals",
                                remedy="use a number of seconds")  # fmt: skip
    return types


def _check_names(name: str, result: Callable[..., Any], sums: Mapping[str, SqlType]) -> None:
    """Refuse a result that does not take the sums by their names."""
    try:
        signature = inspect.signature(result)
    except (TypeError, ValueError):  # a function of C has none
        return
    try:
        signature.bind(**sums)
    except TypeError as problem:
        raise HalfjoinError(f"the result of {name} does not take the lift's columns ({', '.join(sums)}): {problem}",
                            remedy="name its arguments like the columns") from None  # fmt: skip


def _shown(known: UserAggregate) -> str:
    sums = f", with the sums ({', '.join(f'{name} {type}' for name, type in known.sums)})" if known.sums else ""
    return f"{known.name}({', '.join(map(str, known.takes))}) returning {known.returns}{sums}"
