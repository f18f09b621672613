"""Answers queries that call nextval or pg_notify for their rows: see `sql.bind.numbered_rows`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from halfjoin.catalog.catalog import Catalog
from halfjoin.engine.batch.state import State
from halfjoin.engine.statements.evaluating import evaluate
from halfjoin.engine.statements.scratch import SCRATCH, beside, numbered
from halfjoin.engine.updates.updates import Ints
from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.bind.numbered_rows import NumberedRows, bind_second
from halfjoin.sql.bind.query import BoundQuery
from halfjoin.sql.expr import Column


def numbers(calls: Sequence[tuple[str, str]], catalog: Catalog, length: int) -> list[pa.Array]:
    """The value of each call for each row. A row computes its calls in order, before the next row does.

    Raises:
        UnknownName: there is no such sequence. UnsupportedSQL: currval comes before any nextval.
    """
    last = {name: catalog.last_number(name) for called, name in calls if called != "nextval"}
    for place, (called, name) in enumerate(calls):
        if called != "nextval" and not _nexts(calls[:place], name) and length and last[name] is None:
            what = f'currval of sequence "{name}"' if name else "lastval"
            raise UnsupportedSQL(f"{what} is not yet defined in this session", remedy="call nextval first",
                                 code="55000")  # fmt: skip
    nexts = [name for called, name in calls if called == "nextval"]
    given: dict[str, Ints] = {}
    for name in dict.fromkeys(nexts):
        count = nexts.count(name)
        every = catalog.next_number(name, length * count)
        given[name] = np.array(every, np.int64).reshape(length, count)
    found: list[Ints] = []
    for place, (called, name) in enumerate(calls):
        if called == "nextval":
            found.append(given[name][:, len(_nexts(calls[:place], name))])
        elif before := _nexts(calls[:place], name):
            found.append(found[before[-1]])
        else:
            found.append(_of_the_row_before(calls, given, name, np.full(length, last[name] or 0, np.int64)))
    return [pa.array(one) for one in found]


def _nexts(calls: Sequence[tuple[str, str]], name: str) -> list[int]:
    """The places of the calls of nextval for a sequence; empty: for any."""
    return [place for place, (called, one) in enumerate(calls) if called == "nextval" and name in ("", one)]


def _of_the_row_before(calls: Sequence[tuple[str, str]], given: Mapping[str, Ints], name: str, first: Ints) -> Ints:
    """What currval finds that comes before all calls of nextval in a row. `first`: what the first row finds."""
    if (places := _nexts(calls, name)) and len(first):
        _, last = calls[places[-1]]
        first[1:] = given[last][:-1, -1]
    return first


def set_all(rows: NumberedRows, columns: Mapping[str, pa.Array], catalog: Catalog) -> None:
    """Do what setval asks for, row by row. One of NULL does nothing.

    Raises:
        UnknownName: there is no such sequence. UnsupportedSQL: a number is beyond its bounds.
    """
    asked = [[(sequence, number, called) for number, called in
              zip(columns[number].to_pylist(), columns[called].to_pylist(), strict=True)]
             for sequence, number, called in rows.sets]  # fmt: skip
    for row in zip(*asked, strict=True):
        for sequence, number, called in row:
            if number is not None:
                catalog.set_number(sequence, number, called=called)


def _notify_all(rows: NumberedRows, columns: Mapping[str, pa.Array], catalog: Catalog) -> None:
    """Tell a server's clients what pg_notify of each row says.

    Raises:
        UnsupportedSQL: there is no server, or it cannot be said.
    """
    if not rows.notes:
        return
    if (notify := catalog.asker.notify) is None:
        raise UnsupportedSQL("pg_notify is for the clients of a server", remedy="subscribe tells the changes of a view")
    said = [zip(columns[channel].to_pylist(), columns[text].to_pylist(), strict=True) for channel, text in rows.notes]
    for row in zip(*said, strict=True):
        for channel, text in row:
            notify(channel or "", text or "")


def with_numbers(
    state: State, rows: NumberedRows, bound: BoundQuery, first: Sequence[pa.Array], length: int, sql: str
) -> tuple[pa.Table, tuple[Column, ...]]:
    """The rows of the query, from those of its first half in their order; and its columns."""
    columns_of_first = dict(zip(bound.names, first, strict=False))
    set_all(rows, columns_of_first, state.catalog)
    _notify_all(rows, columns_of_first, state.catalog)
    made = numbered([*first, *numbers(rows.calls, state.catalog, length)], length)
    second = bind_second(rows, bound, state.catalog, sql, SCRATCH)
    found = evaluate(beside(state, made), second.relation, None, distinct=False).columns
    *outputs, number = found.values()
    order = pa.array(np.argsort(number.to_numpy(zero_copy_only=False), kind="stable")[rows.skipped :])
    table = pa.Table.from_arrays([column.take(order) for column in outputs], names=list(second.names))
    columns = second.relation.columns
    return table, tuple(Column(name, column.type) for name, column in zip(second.names, columns, strict=False))
