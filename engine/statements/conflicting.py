"""INSERT ... ON CONFLICT: which rows go in, and which rows of the table DO UPDATE changes instead."""

from __future__ import annotations

import numpy as np

from halfjoin.catalog.models import Table
from halfjoin.engine.batch.readable import closed
from halfjoin.engine.batch.state import State
from halfjoin.engine.intake.generated import check
from halfjoin.engine.intake.primary_key import key_of, known
from halfjoin.engine.intake.rows import submitted
from halfjoin.engine.statements.scratch import OverRows
from halfjoin.engine.statements.transaction import table_of
from halfjoin.engine.updates.consolidate import groups
from halfjoin.engine.updates.updates import Ints, Mask, Updates, concat, constant
from halfjoin.errors import InvalidRow
from halfjoin.sql.bind.conflicts import conflict_keys
from halfjoin.sql.bind.target import BoundChange
from halfjoin.sql.statements import Insert

ROUNDS = 32  # in which DO NOTHING decides rows together; more would cost more than to decide the rest one by one
NONE = -1  # the number of a key that has a NULL, or is not in the table


def inserted(
    state: State, statement: Insert, rows: Updates, update: OverRows[BoundChange] | None, sql: str
) -> tuple[Updates, Updates, Updates]:
    """The rows of the table that change, as they were; all new rows, in the order of the rows to insert; and the rows
    that change as they are, in the order of the first. `update`: what DO UPDATE makes of rows; None: DO NOTHING.

    Raises:
        InvalidRow: DO UPDATE would change a row twice.
    """
    assert statement.conflict is not None
    table = state.catalog.table(statement.table)
    submitted(table, table_of(rows))  # each row is checked, whether it goes in or not
    check(table, rows)
    keys = conflict_keys(statement, state.catalog, sql)
    numbers = [_numbers(rows, key) for key in keys]
    there = [_there(state, table, key, rows) for key in keys]
    if update is None:
        kept = _first(numbers, np.logical_or.reduce([place != NONE for _, place in there]) if there
                      else np.zeros(len(rows), np.bool_))  # fmt: skip
        return rows.slice(0, 0), rows.filter(kept), rows.slice(0, 0)
    (held, place), (own,) = there[0], numbers
    found = np.flatnonzero(place != NONE)
    columns = [*held.take(place[found]).columns.values(), *rows.take(found).columns.values()]
    bound, made = update.bound, update.of(state, columns, len(found))
    changed = found[made.columns[bound.others[0].name].to_numpy()]
    fresh = np.flatnonzero(place == NONE)
    again = _again(own, np.concatenate([fresh, changed]))
    if again is not None:
        raise _refused(state, table, rows, fresh[fresh < again], keys[0])
    old = made.renamed([(column.name, name) for column, name in zip(bound.old, rows.columns, strict=True)])
    new = made.renamed([(column.name, name) for column, name in zip(bound.new, rows.columns, strict=True)])
    order = np.argsort(np.concatenate([fresh, changed]), kind="stable")
    return old, concat([rows.take(fresh), new]).take(order), new


def _numbers(rows: Updates, key: tuple[str, ...]) -> Ints:
    """A number for each row, equal where the keys are equal; NONE for a key with a NULL, which equals no other."""
    numbers = groups([rows.columns[name] for name in key], len(rows))
    return np.where(known(rows, key), numbers, NONE)


def _there(state: State, table: Table, key: tuple[str, ...], rows: Updates) -> tuple[Updates, Ints]:
    """The rows of the table with these keys, and for each given row the position of the one with its key, or NONE."""
    start = closed(state)
    asked = np.flatnonzero(known(rows, key))
    _, first = np.unique(groups([rows.columns[name] for name in key], len(rows))[asked], return_index=True)
    wanted = rows.take(asked[first])
    wanted = Updates(wanted.columns, constant(max(start.upper - 1, 0), len(wanted)), wanted.diff)
    found = key_of(table, key)
    held = found.there(found.candidates(start.tables[table.name].runs, wanted), wanted)
    numbers = groups([concat([held, rows]).columns[name] for name in key], len(held) + len(rows))
    place = np.full(int(numbers.max(initial=-1)) + 1, NONE)
    place[numbers[: len(held)]] = np.arange(len(held))
    return held, np.where(known(rows, key), place[numbers[len(held) :]], NONE)


def _first(numbers: list[Ints], there: Mask) -> Mask:
    """The rows that DO NOTHING inserts: those without a key that the table has, or a row inserted before them.

    A row is in if it is the first of those still open that has its keys, whichever the key. Then the open rows that
    share a key with it are out, and others come to be first. Rows that keep each other open in a long chain are decided
    one by one.
    """
    kept, open_rows = np.zeros(len(there), np.bool_), np.flatnonzero(~there)
    for _ in range(ROUNDS):
        if not len(open_rows):
            return kept
        mine = [one[open_rows] for one in numbers]
        first = np.ones(len(open_rows), np.bool_)
        for one in mine:
            first &= (one == NONE) | _leads(one)
        kept[open_rows[first]] = True
        out = first.copy()
        for one in mine:
            out |= (one != NONE) & np.isin(one, one[first])
        open_rows = open_rows[~out]
    taken = [set(one[kept].tolist()) for one in numbers]
    for row in open_rows.tolist():
        keys = [int(one[row]) for one in numbers]
        if any(key != NONE and key in seen for key, seen in zip(keys, taken, strict=True)):
            continue
        kept[row] = True
        for key, seen in zip(keys, taken, strict=True):
            seen.add(key)
    return kept


def _leads(numbers: Ints) -> Mask:
    """Whether a row is the first with its number."""
    _, first = np.unique(numbers, return_index=True)
    leads = np.zeros(len(numbers), np.bool_)
    leads[first] = True
    return leads


def _again(numbers: Ints, changed: Ints) -> int | None:
    """The first row after one with its key that was inserted or has changed the table's row; None if there is none."""
    known_numbers = numbers != NONE
    done = np.full(int(numbers.max(initial=-1)) + 1, len(numbers))
    mine = changed[known_numbers[changed]]
    np.minimum.at(done, numbers[mine], mine)
    later = np.flatnonzero(known_numbers)
    later = later[done[numbers[later]] < later]
    return int(later[0]) if len(later) else None


def _refused(state: State, table: Table, rows: Updates, fresh: Ints, arbiter: tuple[str, ...]) -> InvalidRow:
    """The error of a statement that would change a row twice; or that of another key, if a row before has it.

    `fresh`: the rows to insert before the one that is refused.
    """
    some = rows.take(fresh)
    for name, key in table.keys.items():
        if key != arbiter:
            numbers, (_, place) = _numbers(some, key), _there(state, table, key, some)
            if (place != NONE).any() or not (_leads(numbers) | (numbers == NONE)).all():
                return InvalidRow(f'duplicate key value violates unique constraint "{name}"', table=table.name,
                                  constraint=name, code="23505",
                                  remedy="name the columns of that key, or use ON CONFLICT DO NOTHING")  # fmt: skip
    return InvalidRow("ON CONFLICT DO UPDATE command cannot affect row a second time", table=table.name,
                      code="21000", remedy="give each key once")  # fmt: skip
