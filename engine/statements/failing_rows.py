"""The rows because of which a view cannot be read: of the view, of its nodes, and of the views that it reads."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from halfjoin.engine.batch.readable import check_time, closed
from halfjoin.engine.batch.state import State
from halfjoin.engine.batch.unreadable import told, with_inputs
from halfjoin.engine.updates.consolidate import consolidate
from halfjoin.errors import DataError, UnknownName, UnsupportedSQL

SCHEMA = pa.schema([("view", pa.string()), ("error", pa.string()), ("row", pa.string()), ("count", pa.int64())])


def failing_rows(state: State, name: str, as_of: int | None, limit: int) -> pa.Table:
    """The failing rows as of a time; see `Engine.errors`.

    Raises:
        UnknownName: no table or view has that name.
        UnsupportedSQL: it is a plain view.
        InvalidTime: `as_of` is outside `[since, upper)`.
    """
    if name not in state.catalog.names():
        raise UnknownName("table or view", name, state.catalog.names())
    if name not in state.views and name not in state.tables:
        raise UnsupportedSQL(f"{name} is a plain view, which is evaluated when it is read",
                             remedy="read it: the error names a row")  # fmt: skip
    state = closed(state)
    time = max(state.upper - 1, 0) if as_of is None else as_of
    parts = []
    for one in with_inputs(state, [name]):
        check_time(state, one, [name], time, as_of)
        if one in state.maintained and len(state.maintained[one].errors):
            parts += [pa.Table.from_pylist(list(_of(state, one, time, limit)), SCHEMA)]
    every: pa.Table = pa.concat_tables([SCHEMA.empty_table(), *parts])
    return every.slice(0, limit)


def _of(state: State, name: str, time: int, limit: int) -> Iterator[dict[str, object]]:
    """A view's or node's own failing rows, in the user's words. Rows that look the same are one line, counted."""
    try:
        found = consolidate(state.maintained[name].errors.up_to(time), by_time=False)
    except DataError as problem:
        yield {"view": name, "error": problem.reason, "row": None, "count": 1}
        return
    texts = pa.table({key: found.columns[key] for key in ("error", "row")})
    alike = texts.group_by(["error", "row"], use_threads=False).aggregate([([], "count_all")])
    for line in alike.slice(0, limit).to_pylist():
        why = told(state, name, DataError(line["error"], row=line["row"] or None), time)
        yield {"view": why.view, "error": why.reason, "row": why.row, "count": line["count_all"]}
