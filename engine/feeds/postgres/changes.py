"""Changes of one table, as pgoutput sends them, become the rows of a batch.

In a table with a PRIMARY KEY a change says what the row of its key is from then on. A change of the key deletes the row
of the old key as well. Without a key a change removes its row before and adds its row after, so the server must send
whole rows (REPLICA IDENTITY FULL).

A value that is stored out of line (TOAST) and was not changed is not sent. It comes from the row before, if the server
sends that as a whole; else from the table's own row, as of a column that an upsert does not name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfjoin.catalog.models import Table
from halfjoin.engine.feeds.postgres.typed import typed
from halfjoin.engine.feeds.postgres.wire import DELETE, INSERT, NEW, OLD, Messages, Relation, Tuples, tuples
from halfjoin.engine.intake.rows import GivenRows, Submitted
from halfjoin.engine.updates.updates import Ints, Mask
from halfjoin.errors import Conflict


@dataclass(frozen=True, slots=True)
class Part:
    """Changes that one description of the table holds for: the numbers of their messages, in order."""

    relation: Relation
    which: Ints


@dataclass(frozen=True, slots=True)
class Changes(GivenRows):
    """The changes of a table in some messages. `emptied`: a TRUNCATE came before them."""

    parts: Sequence[Part] = ()
    emptied: bool = False

    def __len__(self) -> int:
        """How many changes there are."""
        return sum(len(part.which) for part in self.parts)

    def checked(self, table: Table) -> Submitted:
        """The rows that the changes make.

        Raises:
            InvalidRow: a column does not take a value.
            Conflict: the server does not send what tells the changed row from others.
        """
        images = [image for part in self.parts for image in _images(table, self.data, part)]
        order = np.argsort(np.concatenate([np.zeros(0, np.int64), *(image.order for image in images)]), kind="stable")
        diff = np.concatenate([np.zeros(0, np.int64), *(np.full(len(one.order), one.diff) for one in images)])[order]
        taken = pa.array(order)
        keyed = bool(table.primary_key)
        names = [column.name for column in table.columns if column.generated is None]
        texts = {name: _all([image.texts(name) for image in images], pa.string()).take(taken) for name in names}
        unnamed, moved = {}, None
        if keyed:
            lacking = {name: _all([image.lacking(name) for image in images], pa.bool_()).take(taken) for name in names
                       if name not in table.primary_key}  # fmt: skip
            masks = {name: mask.to_numpy(zero_copy_only=False) for name, mask in lacking.items() if mask.true_count}
            unnamed = {name: mask for name, mask in masks.items() if (mask & (diff > 0)).any()}
            if unnamed:
                moves = np.concatenate([image.moves for image in images])[order]
                # the row of the old key comes just before
                moved = np.where(moves & (diff > 0), np.arange(len(order)) - 1, -1)
        free = {name: (diff == 0) | unnamed.get(name, False) for name in names if name not in table.primary_key}
        columns = typed(table, texts, free if keyed else {})
        return Submitted(columns, len(order), None, diff, keyed, self.emptied, unnamed=unnamed, moved=moved)


@dataclass(frozen=True, slots=True)
class _Image:
    """Rows before or after changes, with their place in the order of all rows, and their diff.

    `before` has the rows before these, for the changes at `has`: they give values that were not sent. They have the
    columns `known`; None: all. `moves`: the rows that have another key than before.
    """

    relation: Relation
    found: Tuples
    order: Ints
    diff: int
    moves: Mask
    key: frozenset[str] | None = None  # the columns to take; None: all
    before: Tuples | None = None
    has: Mask | None = None
    known: frozenset[str] | None = None

    def texts(self, name: str) -> pa.StringArray:
        """The values of a column."""
        number = _number(self.relation, name)
        if number is None or (self.key is not None and name not in self.key):
            return pa.nulls(len(self.order), pa.string())
        values = self.found.texts(number)
        if self.before is None or self.has is None or (self.known is not None and name not in self.known):
            return values
        unchanged = self.found.unchanged(number)
        if not unchanged.any():
            return values
        return pc.replace_with_mask(values, pa.array(unchanged & self.has),
                                    self.before.texts(number).filter(pa.array(unchanged[self.has])))  # fmt: skip

    def lacking(self, name: str) -> pa.BooleanArray:
        """Where a value is that of the row before. The row of an old key passes its values on."""
        number = _number(self.relation, name)
        if number is None:
            return pa.array(np.zeros(len(self.order), np.bool_))
        if self.key is not None:
            return pa.array(self.moves)
        unchanged = self.found.unchanged(number)
        return pa.array(unchanged if self.known is not None or self.has is None else unchanged & ~self.has)


def _images(table: Table, data: Messages, part: Part) -> list[_Image]:
    """The rows before the changes, where they matter, and those after."""
    which, count = part.which, len(part.relation.columns)
    kinds, first = data.kinds[which], data.starts[which] + 5
    tags = data.data[first]
    old = (tags != NEW).nonzero()[0]
    whole = bool(len(old)) and bool((tags[old] == OLD).all())
    if len(old) and not whole and (tags[old] == OLD).any():  # REPLICA IDENTITY was changed between them
        halves = [Part(part.relation, which[(tags == OLD) == flag]) for flag in (False, True)]
        return [image for half in halves for image in _images(table, data, half)]
    before = tuples(data.data, first[old] + 1, count)
    at = first.copy()
    at[old] = before.stop
    new = (kinds != DELETE).nonzero()[0]
    after = tuples(data.data, at[new] + 1, count)
    given = np.isin(new, old, assume_unique=True)  # the rows after that have a row before
    updated = np.isin(old, new, assume_unique=True)  # the rows before that have a row after
    sent = _taken(before, updated)
    if not table.primary_key:
        if (~given & (kinds[new] != INSERT)).any() or (len(old) and not whole):
            raise needs_full(table.name, part.relation)
        none = np.zeros(len(which), np.bool_)
        return [_Image(part.relation, before, 2 * which[old], -1, none[old]),
                _Image(part.relation, after, 2 * which[new] + 1, 1, none[new], None, sent, given)]  # fmt: skip
    other = _differ(table, part.relation, _taken(before, updated), _taken(after, given)) if len(old) else updated
    ends = ~updated
    ends[updated] = other
    moves = np.zeros(len(new), np.bool_)
    moves[given] = other
    key = frozenset(table.primary_key)
    moving = np.zeros(len(old), np.bool_)
    moving[updated] = other
    return [_Image(part.relation, _taken(before, ends), 2 * which[old][ends], 0, moving[ends], key),
            _Image(part.relation, after, 2 * which[new] + 1, 1, moves, None, sent, given, None if whole else key)]


def _differ(table: Table, relation: Relation, before: Tuples, after: Tuples) -> Mask:
    """Where the key is another one than before."""
    found = np.zeros(len(before.stop), np.bool_)
    for name in table.primary_key:
        number = _number(relation, name)
        assert number is not None
        same = pc.equal(before.texts(number), after.texts(number)).fill_null(False)
        sent = after.kinds[number] != ord("u")
        found |= ~np.asarray(same) & sent
    return found


def _taken(rows: Tuples, mask: Mask) -> Tuples:
    return Tuples(rows.data, tuple(one[mask] for one in rows.kinds), tuple(one[mask] for one in rows.places),
                  tuple(one[mask] for one in rows.sizes), rows.stop[mask])  # fmt: skip


def _number(relation: Relation, name: str) -> int | None:
    return next((i for i, column in enumerate(relation.columns) if column.name == name), None)


def _all(arrays: Sequence[pa.Array], type: Any) -> pa.Array:
    return pa.concat_arrays(arrays) if arrays else pa.nulls(0, type)


def needs_full(table: str, relation: Relation) -> Conflict:
    """The error of a table without a key whose rows before a change are not sent."""
    name = f"{relation.schema}.{relation.name}"
    return Conflict(f"{table} has no PRIMARY KEY, and the server does not send the rows of {name} before a change",
                    remedy=f"run ALTER TABLE {name} REPLICA IDENTITY FULL on the server, or give the table a key",
                    name=table)  # fmt: skip
