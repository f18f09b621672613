"""What a query or a change asks that may be otherwise when it is run again, so that it is bound anew each time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from halfjoin.sql.functions.clock import was_read

if TYPE_CHECKING:
    from halfjoin.sql.bind.context import Context
    from halfjoin.sql.schema import Schema
    from halfjoin.sql.system import System


class _Asked:
    """PostgreSQL's catalog, which notes that it is asked."""

    def __init__(self, system: System, fleeting: list[str]) -> None:
        self._system, self._fleeting = system, fleeting

    def __getattr__(self, name: str) -> Any:
        self._fleeting.append(name)
        return getattr(self._system, name)


def noting(schema: Schema, fleeting: list[str]) -> System | None:
    """PostgreSQL's catalog, if there is one; `fleeting` gets what it is asked for."""
    system = schema.system()
    return None if system is None else cast("System", _Asked(system, fleeting))


def fleeting_in(context: Context) -> tuple[str, ...]:
    """What was asked in a context so far: the clock, chance, a sequence, a session, PostgreSQL's catalog. It is called
    at the moment of the context (`clock.at_one_moment`)."""
    return (*context.fleeting, "now") if was_read() else tuple(context.fleeting)
