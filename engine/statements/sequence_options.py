"""The options of sequences: what they say, and what follows from the direction and the type."""

from __future__ import annotations

import uuid

from halfjoin.catalog.catalog import Catalog
from halfjoin.catalog.models import BITS, Sequence
from halfjoin.errors import UnknownName, UnsupportedSQL
from halfjoin.sql.named import SequenceOptions


def new_sequence(catalog: Catalog, name: str, options: SequenceOptions, owner: str = "") -> Sequence:
    """A sequence with the options of a statement; `owner`: the table whose identity it numbers.

    Raises:
        UnsupportedSQL: the options contradict each other.
    """
    one = Sequence(name=name, next=1, owner=owner, id=uuid.uuid4().hex)
    made = settled(catalog, one, options, new=True)
    return made.model_copy(update={"next": made.start})


def settled(catalog: Catalog, one: Sequence, options: SequenceOptions, *, new: bool) -> Sequence:
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
    check_number(made.start, made, "START value")
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


def check_number(number: int, one: Sequence, word: str) -> None:
    """Refuse a number that is outside of a sequence's bounds."""
    if number < one.least:
        raise _wrong(f"{word} ({number}) cannot be less than MINVALUE ({one.least})")
    if number > one.most:
        raise _wrong(f"{word} ({number}) cannot be greater than MAXVALUE ({one.most})")


def _wrong(reason: str) -> UnsupportedSQL:
    return UnsupportedSQL(reason, code="22023")
