"""ON DELETE and ON UPDATE of foreign keys: what else changes when rows go that others refer to.

When a key goes from a table, the rows that refer to it go too (CASCADE), or get NULLs or defaults (SET NULL, SET
DEFAULT). When a statement changes a key, they follow it. These changes have effects of their own, so the work goes on
until nothing is left. All of it is in the same batch, and the keys are looked up in arrangements.

Only a statement can change a key. In the rows of a batch a key that goes and another one that comes are two keys.
Wrong: to let ON DELETE act when UPDATE changes a key. Then a key that ON UPDATE protects would take its rows along.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import pyarrow as pa

from halfjoin.catalog.catalog import Catalog
from halfjoin.catalog.models import ColumnModel, ForeignKey, Table
from halfjoin.engine.intake.foreign_keys import Tables, gone_from, keys_of, referring_rows
from halfjoin.engine.intake.generated import values, with_generated
from halfjoin.engine.intake.primary_key import known
from halfjoin.engine.scalar import Scalar, compile
from halfjoin.engine.scalar.arrow_types import arrow_type
from halfjoin.engine.scalar.cells import cell
from halfjoin.engine.updates.consolidate import consolidate, groups
from halfjoin.engine.updates.updates import Ints, Updates, concat, constant, gather
from halfjoin.errors import InvalidRow, key_text
from halfjoin.sql import functions
from halfjoin.sql.bind.constraints import bind_default
from halfjoin.sql.expr import Literal

MOST = 10_000_000  # rows that one batch can change so
Pairs = tuple[Updates, Updates]  # rows as they were and as they are, in one order


@dataclass(slots=True)
class Effects:
    """The changes of a batch by table, and those that follow from them. `made`: the number of the latter."""

    tables: Tables
    changed: dict[str, Updates]
    made: int = 0
    _waiting: deque[tuple[str, Updates, Pairs | None]] = field(default_factory=deque)

    def follow(self, pairs: Mapping[str, Pairs]) -> dict[str, Updates]:
        """All changes. `pairs`: the rows that a statement has updated; their old rows are among the changes.

        Raises:
            InvalidRow: too many rows would change, a row would break NOT NULL, or a row that refers to a key changes
                after the key has gone.
        """
        for name, changed in list(self.changed.items()):
            gone, both = changed.filter(changed.diff < 0), pairs.get(name)
            if both is not None and len(gone):
                every = concat([gone, Updates(both[0].columns, both[0].time, np.abs(both[0].diff))])
                gone = consolidate(every, by_time=False)
                gone = Updates(gone.columns, constant(int(changed.time.min()), len(gone)), gone.diff)
                gone = gone.filter(gone.diff < 0)
            self._waiting.append((name, gone, both))
        while self._waiting:
            name, gone, both = self._waiting.popleft()
            for table in list(self.tables.defined.values()):
                for key in table.foreign_keys:
                    if key.table == name:
                        self._act(table, key, gone, both)
        return self.changed

    def _act(self, table: Table, key: ForeignKey, gone: Updates, both: Pairs | None) -> None:
        if key.on_delete and len(gone):
            asked = gone_from(self.tables, key, gone, self.changed[key.table])
            self._apply(table, key, key.on_delete, asked, None)
        if key.on_update and both is not None and len(both[0]):
            asked, now = _moved(key, both)
            self._apply(table, key, key.on_update, asked, now)

    def _apply(self, table: Table, key: ForeignKey, action: str, asked: Updates, now: Updates | None) -> None:
        """Change the rows that refer to the keys `asked`. `now`: the keys that they have become."""
        if not len(asked):
            return
        old, place = referring_rows(self.tables, table, key, asked, self.changed.get(table.name))
        if not len(old):
            return
        self.made += len(old)
        if self.made > MOST:
            raise InvalidRow(f"{key.name} would change more than {MOST:,} rows of {table.name} with this batch",
                             table=table.name, code="54000", remedy="change fewer rows at once")  # fmt: skip
        there = Updates(old.columns, old.time, -old.diff)
        if action == "cascade" and now is None:
            changes, both = there, None
        else:
            new = self._new(table, key, action, old, place, now)
            changes, both = concat([there, new]), (old, new)
        before = self.changed.get(table.name)
        self.changed[table.name] = changes if before is None else concat([before, changes])
        self._waiting.append((table.name, there if both is None else there.slice(0, 0), both))

    def _new(self, table: Table, key: ForeignKey, action: str, old: Updates, place: Ints, now: Updates | None
             ) -> Updates:  # fmt: skip
        """The rows with other values in the columns of the key."""
        columns = {column.name: column for column in table.columns}
        made = {}
        for number, name in enumerate(key.columns):
            if action == "cascade":
                assert now is not None
                made[name] = _as(gather(now.columns[str(number)], pa.array(place)), table, columns[name])
            elif action == "set null":
                made[name] = pa.nulls(len(old), arrow_type(columns[name].type))
            else:
                made[name] = values(table, _default(columns[name]), old).cast(arrow_type(columns[name].type))
            if columns[name].not_null and made[name].null_count:
                row = int(made[name].is_null().to_numpy(zero_copy_only=False).argmax())
                raise InvalidRow(f"is NULL by {key.name}, and the column is NOT NULL: the row was "
                                 f"{key_text({one: cell(old.columns[one], row) for one in old.columns})}",
                                 table=table.name, column=name, code="23502")  # fmt: skip
        return with_generated(table, old.with_columns(made))


def _as(keys: pa.Array, table: Table, column: ColumnModel) -> pa.Array:
    """Keys in the type of the column that refers to them."""
    try:
        return keys.cast(arrow_type(column.type))
    except pa.ArrowInvalid:
        raise InvalidRow(f"{column.type} out of range", table=table.name, column=column.name, code="22003") from None


def _moved(key: ForeignKey, both: Pairs) -> Pairs:
    """The keys that a statement has changed, each once: as they were, and as they are."""
    was, now = keys_of(both[0], key.references), keys_of(both[1], key.references)
    numbers = groups(list(concat([was, now]).columns.values()), 2 * len(was))
    other = np.flatnonzero((numbers[: len(was)] != numbers[len(was) :]) & known(was, list(was.columns)))
    _, first = np.unique(numbers[other], return_index=True)
    return was.take(other[first]), now.take(other[first])


@lru_cache(maxsize=256)
def _default(column: ColumnModel) -> Scalar:
    text = column.default or (column.domain and column.domain.default)
    value = bind_default(text, column.type, Catalog()) if text else Literal(None, column.type)
    return compile(functions.cast(value, column.type))
