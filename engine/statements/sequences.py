"""CREATE SEQUENCE and ALTER SEQUENCE, and what lets sequences begin anew."""

from __future__ import annotations

from collections.abc import Collection

from halfjoin.catalog.catalog import Catalog
from halfjoin.engine.batch.state import State
from halfjoin.engine.statements.sequence_options import check_number, new_sequence, settled
from halfjoin.engine.statements.tables import check_schema
from halfjoin.errors import Conflict, UnknownName
from halfjoin.sql.named import AlterSequence, CreateSequence


def changes_sequence(sql: str) -> bool:
    """Whether a query may call what gives out a number or sets one. Another state than the engine's would lose that."""
    return any(word in sql.lower() for word in ("nextval", "setval"))


def create_sequence(catalog: Catalog, statement: CreateSequence) -> None:
    """CREATE SEQUENCE.

    Raises:
        Conflict: the name is taken.
    """
    name = statement.name
    check_schema(name, catalog)
    if name in catalog.sequences or name in catalog.names():
        if statement.if_not_exists:
            return
        raise Conflict(f"{name} already exists", remedy="drop it first, or write IF NOT EXISTS", name=name,
                       code="42P07")  # fmt: skip
    catalog.sequences[name] = new_sequence(catalog, name, statement.options)


def restart(state: State, tables: Collection[str]) -> None:
    """Let the sequences that number columns of these tables begin anew."""
    for name, one in state.catalog.sequences.items():
        if one.owner in tables:
            state.catalog.sequences[name] = one.going_on(one.start)


def alter_sequence(catalog: Catalog, statement: AlterSequence) -> None:
    """ALTER SEQUENCE. A sequence that begins anew gets another id, as the numbers of an id never go back."""
    one = catalog.sequences.get(statement.name)
    if one is None:
        if statement.if_exists:
            return
        raise UnknownName("sequence", statement.name, catalog.sequences, code="42P01")
    made = settled(catalog, one, statement.options, new=False)
    following = catalog.numbers.get(one.id, one.next)
    last = following if following == one.start else following - one.step
    if statement.options.step is not None and following != one.start:  # the next number is a step after the last one
        following += made.step - one.step
    if statement.restart:
        following = last = made.start if statement.at is None else statement.at
    elif statement.options.start is not None and one.id not in catalog.numbers and following == one.start:
        following = last = made.start
    check_number(last, made, "RESTART value")
    catalog.sequences[one.name] = made.going_on(following)
