"""Takes the columns of an Arrow table as they are, where one call of a kernel finds all their values right.

A program that submits many batches gives Arrow tables that have just the columns of the engine's. `engine.intake.rows`
takes all other forms, and tells what is wrong with a row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from halfjoin.engine.kernels import computing, native
from halfjoin.engine.scalar.arrow_types import arrow_type
from halfjoin.engine.scalar.columns import ends_of, is_checked
from halfjoin.engine.system.identity import by_identity
from halfjoin.engine.updates.updates import DIFF, Ints

if TYPE_CHECKING:
    from halfjoin.catalog.models import Table

MOST_COPIES = 2**31  # per update, so that the product of two diffs fits into an int64


class _Form(NamedTuple):
    """What the rows of a table look like. `checked`: the positions of columns of which values may be wrong, with the
    `bounds` of these (`ends_of`). `whole`: the positions of columns without NULLs. `counted`: the last has diffs."""

    schema: pa.Schema
    names: tuple[str, ...]
    checked: tuple[int, ...]
    bounds: list[tuple[int, int]]
    whole: tuple[int, ...]
    counted: bool


def as_they_are(table: Table, rows: pa.Table) -> tuple[dict[str, pa.Array], int, Ints | None] | None:
    """The columns by name, the number of rows, and the diffs (None: there is no such column).

    None: the columns are others, or in another order, or in several chunks, or somebody must look closer at a value.
    """
    schema = rows.schema
    for form in _forms(table) if native.on else ():
        if schema.equals(form.schema):
            break
    else:
        return None
    batches = rows.to_batches()
    if len(batches) != 1:
        return None
    columns = batches[0].columns
    for at in form.whole:
        if columns[at].null_count:
            return None
    if not computing.sound([columns[at] for at in form.checked], form.bounds):
        return None
    diff = columns.pop().to_numpy() if form.counted else None
    return dict(zip(form.names, columns, strict=True)), rows.num_rows, diff


@by_identity
def _forms(table: Table) -> tuple[_Form, ...]:
    """The forms in which rows can be taken as they are, the more usual one first."""
    names, kinds = tuple(one.name for one in table.columns), [one.type for one in table.columns]
    bounds = {at: ends for at, kind in enumerate(kinds) if (ends := ends_of(kind)) is not None}
    if any(is_checked(kind) and at not in bounds for at, kind in enumerate(kinds)):
        return ()
    schema = pa.schema([pa.field(one.name, arrow_type(one.type)) for one in table.columns])
    whole = tuple(at for at, one in enumerate(table.columns) if one.not_null)
    plain = _Form(schema, names, tuple(bounds), [*bounds.values()], whole, False)
    last = len(names)
    return (
        plain._replace(
            schema=schema.append(pa.field(DIFF, pa.int64())), checked=(*plain.checked, last),
            bounds=[*plain.bounds, (-MOST_COPIES, MOST_COPIES)], whole=(*whole, last), counted=True),
        plain,
    )  # fmt: skip
