"""CREATE SEQUENCE and ALTER SEQUENCE, and what lets sequences begin anew."""

from __future__ import annotations

import uuid
from collections.abc import Collection

from halfjoin.catalog.catalog import Catalog
from halfjoin.catalog.models import BITS, Sequence
from halfjoin.engine.batch.state import State
from halfjoin.engine.statements.tables import check_schema
from halfjoin.errors import Conflict, UnknownName, UnsupportedSQL
from halfjoin.sql.named import AlterSequence, CreateSequence, SequenceOptions


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
    made = _settled(catalog, Sequence(name=name, next=1, id=uuid.uuid4().hex), statement.options, new=True)
    catalog.sequences[name] = made.model_copy(update={"next": made.start})


def restart(state: State, tables: Collection[str]) -> None:
    """Let the sequences that number columns of these tables begin anew."""
    for name, one in state.catalog.sequences.items():
        if one.owner in tables:
            state.catalog.sequences[name] = one.model_copy(update={"next": one.start, "id": uuid.uuid4().hex})


def alter_sequence(catalog: Catalog, statement: AlterSequence) -> None:
    """ALTER SEQUENCE. A sequence that begins anew gets another id, as the numbers of an id never go back."""
    one = catalog.sequences.get(statement.name)
    if one is None:
        if statement.if_exists:
            return
        raise UnknownName("sequence", statement.name, catalog.sequences, code="42P01")
    made = _settled(catalog, one, statement.options, new=False)
    following = catalog.numbers.get(one.id, one.next)
    last = following if following == one.start else following - one.step
    if statement.options.step is not None and following != one.start:  # the next number is a step after the last one
        following += made.step - one.step
    if statement.restart:
        following = last = made.start if statement.at is None else statement.at
    elif statement.options.start is not None and one.id not in catalog.numbers and following == one.start:
        following = last = made.start
    _check(last, made, "RESTART value")
    catalog.sequences[one.name] = made.model_copy(update={"next": following, "id": uuid.uuid4().hex})


def _settled(catalog: Catalog, one: Sequence, options: SequenceOptions, *, new: bool) -> Sequence:
    """A sequence with other options. What they do not say follows from the direction and the type, if it is `new`.

    Raises:
        UnsupportedSQL: the options contradict each other. UnknownName: there is no such table or column.
    """
    type, step = options.type or one.type, one.step if options.step is None else options.step
    size = 1 << (BITS[type] - 1)
    if step == 0:
        raise _wrong("INCREMENT must not be zero")
    before = 1 << (BITS[one.type] - 1)
    freed = options.most is True or (options.most is None and (new or (type != one.type and one.most == before - 1)))
    most = int(options.most or 0) if options.most not in (None, True) else one.most
    if freed:
        most = size - 1 if step > 0 else -1
    freed = options.least is True or (options.least is None and (new or (type != one.type and one.least == -before)))
    least = int(options.least or 0) if options.least not in (None, True) else one.least
    if freed:
        least = 1 if step > 0 else -size
    for word, bound in (("MAXVALUE", most), ("MINVALUE", least)):
        if not -size <= bound < size:
            raise _wrong(f"{word} ({bound}) is out of range for sequence data type {type}")
    if least >= most:
        raise _wrong(f"MINVALUE ({least}) must be less than MAXVALUE ({most})")
    start = (least if step > 0 else most) if new else one.start
    update: dict[str, object] = {
        "step": step, "least": least, "most": most, "type": type,
        "start": start if options.start is None else options.start,
        "cycle": one.cycle if options.cycle is None else options.cycle,
    }  # fmt: skip
    if options.owner is not None:
        update |= _owner(catalog, one, *options.owner)
    made = one.model_copy(update=update)
    _check(made.start, made, "START value")
    return made


def _owner(catalog: Catalog, one: Sequence, table: str, column: str) -> dict[str, object]:
    """What OWNED BY changes."""
    if one.owner and not one.column:
        raise UnsupportedSQL("cannot change ownership of identity sequence", code="0A000",
                             remedy="ALTER TABLE ... ALTER COLUMN ... DROP IDENTITY")  # fmt: skip
    if not table:
        return {"owner": "", "column": ""}
    found = catalog.table(table)
    if column not in (names := [one.name for one in found.columns]):
        raise UnknownName(f"column of {table}", column, names)
    if found.name.rpartition(".")[0] != one.name.rpartition(".")[0]:
        raise UnsupportedSQL("sequence must be in same schema as table it is linked to", code="55000",
                             remedy=f"create the sequence in the schema of {found.name}")  # fmt: skip
    return {"owner": found.name, "column": column}


def _check(number: int, one: Sequence, word: str) -> None:
    if number < one.least:
        raise _wrong(f"{word} ({number}) cannot be less than MINVALUE ({one.least})")
    if number > one.most:
        raise _wrong(f"{word} ({number}) cannot be greater than MAXVALUE ({one.most})")


def _wrong(reason: str) -> UnsupportedSQL:
    return UnsupportedSQL(reason, code="22023")
