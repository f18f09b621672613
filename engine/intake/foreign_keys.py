"""Checks FOREIGN KEY: at every time from the batch on, a key that is in the table is in the table that it refers to.

Only keys that the batch adds to the one table or removes from the other can break the rule. Both tables have an
arrangement by the key, so a batch looks up these keys and scans nothing. Most keys have a row to refer to at all times,
and need no look at the rows that refer to them.

A key of one integer type may refer to one of another: they are compared as bigint.

A key is in a table if a row with it has a positive count. In a table without a PRIMARY KEY it is wrong to add up the
counts of a key: a row with the count -1 would hide another row that refers to nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from halfjoin.catalog.models import ForeignKey, Table
from halfjoin.engine.arrange.collection import Collection
from halfjoin.engine.intake.primary_key import key_of, known
from halfjoin.engine.scalar.cells import cell
from halfjoin.engine.updates.consolidate import consolidate, groups
from halfjoin.engine.updates.updates import MAXIMUM, Ints, Mask, Updates, concat, constant, empty
from halfjoin.errors import InvalidRow, key_text

_NARROW = (pa.int16(), pa.int32())


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables: their definitions, and their rows before the batch."""

    defined: Mapping[str, Table]
    rows: Mapping[str, Collection]


def check(tables: Tables, changed: Mapping[str, Updates], *, deferred: bool = True) -> None:
    """Check the foreign keys of the changed tables, and those that refer to them. `deferred`: also DEFERRED ones.

    Raises:
        InvalidRow: a row refers to a key that is not there, or the last row of a key goes that others refer to.
    """
    losing = {name for name, rows in changed.items() if bool((rows.diff < 0).any())}  # others lose no key
    for table in tables.defined.values():
        for key in table.foreign_keys:
            if (table.name in changed or key.table in losing) and (deferred or not key.deferred):
                _check(tables, table, key, changed)


def _check(tables: Tables, table: Table, key: ForeignKey, changed: Mapping[str, Updates]) -> None:
    empty = keys_of(tables.rows[table.name].changes(0, 0), key.columns)
    ours = keys_of(changed[table.name], key.columns) if table.name in changed else empty
    theirs = keys_of(changed[key.table], key.references) if key.table in changed else empty
    if not key.valid:  # a row that refers to nothing since before the constraint may change elsewhere
        ours = consolidate(ours)
    touched = concat([ours.filter(ours.diff > 0), theirs.filter(theirs.diff < 0)])
    touched = touched.filter(known(touched, list(touched.columns)))
    if not len(touched):
        return
    first = int(touched.time.min())
    numbers = groups(list(touched.columns.values()), len(touched))
    _, once = np.unique(numbers, return_index=True)
    wanted = touched.take(once)
    there = concat([_held(tables, tables.defined[key.table], key.references, wanted, first), theirs])
    missing = wanted.filter(~_always(wanted, there, first))
    if not len(missing):
        return
    here = _referring(tables, table, key, missing, changed, first)
    broken = _dangling(missing, here, there, first)
    if broken is not None:
        removed = table.name not in changed
        names = key.references if removed else key.columns  # as the table has them that the error is about
        values = {name: cell(column, broken) for name, column in zip(names, missing.columns.values(), strict=True)}
        text = f"violates foreign key constraint {key.name}: {key_text(values)} is "
        text += f"still referenced from {table.name}" if removed else f"not in {key.table}"
        raise InvalidRow(text, table=key.table if removed else table.name, constraint=key.name, code="23503",
                         key=values, called="")  # fmt: skip


def keys_of(rows: Updates, names: tuple[str, ...]) -> Updates:
    """The key columns of rows, named by their positions; integers as bigint."""
    keys = rows.renamed([(name, str(place)) for place, name in enumerate(names)])
    wide = {name: column.cast(pa.int64()) for name, column in keys.columns.items() if column.type in _NARROW}
    return keys.with_columns(wide) if wide else keys


def gone_from(tables: Tables, key: ForeignKey, gone: Updates, changed: Updates) -> Updates:
    """The keys of rows that go, if no other row of the table has them then; each once, with the time at which it goes.
    `changed`: all changes of the table."""
    asked = keys_of(gone, key.references)
    asked = asked.filter(known(asked, list(asked.columns)))
    if not len(asked):
        return asked
    first, theirs = int(asked.time.min()), keys_of(changed, key.references)
    numbers = groups(list(asked.columns.values()), len(asked))
    _, once = np.unique(numbers, return_index=True)
    held = _held(tables, tables.defined[key.table], key.references, asked.take(once), first)
    there = concat([held, theirs])
    numbers = groups(list(concat([asked, there]).columns.values()), len(asked) + len(there))
    mine, other = numbers[: len(asked)], numbers[len(asked) :]
    order = np.lexsort((there.time, other))
    number, time = other[order], there.time[order]
    absent = _settled(number, time) & (_running(number, there.diff[order]) <= 0)
    at = groups([pa.array(np.concatenate([mine, number])), pa.array(np.concatenate([asked.time, time]))],
                len(mine) + len(number))  # fmt: skip
    leaves = np.flatnonzero(np.isin(at[: len(mine)], at[len(mine) :][absent]))
    leaves = leaves[np.lexsort((asked.time[leaves], mine[leaves]))]
    _, once = np.unique(mine[leaves], return_index=True)
    return asked.take(leaves[once])


def referring_rows(tables: Tables, table: Table, key: ForeignKey, asked: Updates, changed: Updates | None
                   ) -> tuple[Updates, Ints]:  # fmt: skip
    """The rows that refer to the keys `asked` when these go, with that time and their counts; and the place of each
    one's key. `changed`: the changes of the table in the batch.

    Raises:
        InvalidRow: rows that refer to a key change after it has gone.
    """
    shown = [column.name for column in table.columns]
    rows = _rows(tables, table, key.columns, asked, int(asked.time.min()), shown)
    rows = rows if changed is None else concat([rows, changed.select(shown)])
    rows = rows.filter(known(rows, key.columns))
    every = concat([asked, keys_of(rows, key.columns)])
    numbers = groups(list(every.columns.values()), len(every))
    places = np.full(int(numbers.max(initial=-1)) + 1, -1)
    places[numbers[: len(asked)]] = np.arange(len(asked))
    place = places[numbers[len(asked) :]]
    rows, place = rows.take(np.flatnonzero(place >= 0)), place[place >= 0]
    same = groups(list(rows.columns.values()), len(rows))
    late = np.flatnonzero(rows.time > asked.time[place])
    if len(late):
        values = {name: cell(rows.columns[name], int(late[0])) for name in key.columns}
        raise InvalidRow(f"the key {key_text(values)} goes from {key.table} at {asked.time[place[late[0]]]}, but rows "
                         f"of {table.name} that refer to it change later", table=key.table, code="23503",
                         remedy="change them in the same batch")  # fmt: skip
    counts = np.zeros(int(same.max(initial=-1)) + 1, np.int64)
    np.add.at(counts, same, rows.diff)
    _, first = np.unique(same, return_index=True)
    first = first[counts > 0]
    return Updates(rows.take(first).columns, asked.time[place[first]], counts[counts > 0]), place[first]


def _held(tables: Tables, table: Table, names: tuple[str, ...], wanted: Updates, first: int) -> Updates:
    """What a table holds of some keys, as of `first` and later."""
    return keys_of(_rows(tables, table, names, wanted, first, names), names)


def _rows(tables: Tables, table: Table, names: tuple[str, ...], wanted: Updates, first: int,
          shown: Sequence[str]) -> Updates:
    """The columns `shown` of a table's rows with some keys, as of `first` and later."""
    collection = tables.rows[table.name]
    key = key_of(table, names)
    asked = _fitting(wanted.renamed([(str(place), name) for place, name in enumerate(names)]), collection)
    if not len(asked):
        return empty(collection.schema).select(shown)
    asked = Updates(asked.columns, constant(first, len(asked)), constant(1, len(asked)))
    candidates = key.candidates(collection.looked_up(len(asked)), asked, shown)
    found = key.rows(candidates, asked) if candidates else empty(collection.schema)
    return found.select(shown).not_before(first - 1)


def _fitting(keys: Updates, collection: Collection) -> Updates:
    """The keys in the types that a table's columns have, without those that no value of these types is equal to."""
    types = {name: collection.schema[name] for name, column in keys.columns.items()
             if column.type != collection.schema[name]}  # fmt: skip
    for name, type in types.items():
        least = -(1 << (type.bit_width - 1))
        value = keys.columns[name].to_numpy(zero_copy_only=False)
        keys = keys.filter((value >= least) & (value < -least))
    return keys.with_columns({name: keys.columns[name].cast(type) for name, type in types.items()}) if types else keys


def _referring(tables: Tables, table: Table, key: ForeignKey, missing: Updates, changed: Mapping[str, Updates],
               first: int) -> Updates:
    """When rows with the keys `missing`, and with a positive count, come and go. Only they refer to a key."""
    shown = key.columns if table.primary_key else [column.name for column in table.columns]
    there = _rows(tables, table, key.columns, missing, first, shown)
    rows = concat([there, changed[table.name].select(shown)]) if table.name in changed else there
    if table.primary_key:  # no row has a negative count
        return keys_of(rows, key.columns)
    keys = keys_of(rows, key.columns)
    numbers = groups(list(concat([missing, keys]).columns.values()), len(missing) + len(rows))
    rows = rows.filter(np.isin(numbers[len(missing):], numbers[: len(missing)]))
    number = groups(list(rows.columns.values()), len(rows))
    order = np.lexsort((rows.time, number))
    number, time = number[order], rows.time[order]
    positive = np.maximum(_running(number, rows.diff[order]), 0)
    settled = _settled(number, time)
    order, number, positive = order[settled], number[settled], positive[settled]
    before = np.roll(positive, 1)
    before[np.diff(number, prepend=-1) != 0] = 0
    found = keys_of(rows.take(order), key.columns)
    return Updates(found.columns, found.time, positive - before)


def _always(wanted: Updates, there: Updates, first: int) -> Mask:
    """The keys that are there at every time from `first` on."""
    numbers = groups(list(concat([wanted, there]).columns.values()), len(wanted) + len(there))
    mine, theirs = numbers[: len(wanted)], numbers[len(wanted) :]
    order = np.lexsort((there.time, theirs))
    number, time, running = theirs[order], there.time[order], _running(theirs[order], there.diff[order])
    settled = _settled(number, time)
    absent = np.unique(number[settled & (running <= 0) & (_until(number, time, settled) > first)])
    begun = np.unique(number[settled & (time <= first)])
    return np.isin(mine, begun) & ~np.isin(mine, absent)


def _dangling(missing: Updates, here: Updates, there: Updates, first: int) -> int | None:
    """The first key with rows here, and none there, at some time from `first` on."""
    every = concat([missing, here, there])
    numbers = groups(list(every.columns.values()), len(every))
    mine = numbers[: len(missing)]
    changes = numbers[len(missing) :]
    time = every.time[len(missing) :]
    ours = np.concatenate([here.diff, constant(0, len(there))])
    theirs = np.concatenate([constant(0, len(here)), there.diff])
    order = np.lexsort((time, changes))
    number, at = changes[order], time[order]
    settled = _settled(number, at)
    bad = settled & (_running(number, ours[order]) > 0) & (_running(number, theirs[order]) <= 0)
    broken = np.flatnonzero(np.isin(mine, np.unique(number[bad & (_until(number, at, settled) > first)])))
    return int(broken[0]) if len(broken) else None


def _settled(number: Ints, time: Ints) -> Mask:
    """The last change of each key at each time."""
    last = np.ones(len(number), np.bool_)
    last[:-1] = (number[1:] != number[:-1]) | (time[1:] != time[:-1])
    return last


def _until(number: Ints, time: Ints, settled: Mask) -> Ints:
    """For the last change of a key at a time, the time of the key's next change."""
    until = np.full(len(number), MAXIMUM)
    places = np.flatnonzero(settled)
    follows = number[places[1:]] == number[places[:-1]]
    until[places[:-1][follows]] = time[places[1:][follows]]
    return until


def _running(number: Ints, diff: Ints) -> Ints:
    """Running sums within each key."""
    total = np.cumsum(diff)
    starts = np.ones(len(number), np.bool_)
    starts[1:] = number[1:] != number[:-1]
    first = np.flatnonzero(starts)
    base = np.concatenate([[0], total[first[1:] - 1]]) if len(first) else np.zeros(0, np.int64)
    return total - np.repeat(base, np.diff(np.append(first, len(number))))
