"""Errors as data: a row for which an expression fails becomes an update of the view's error collection.

Error law. A failing row is an error of only the views that read it. The error has the row's own time and diff, and it
is the same on every path. A view is readable at a time if its errors up to that time add up to nothing.

>>> import halfjoin as hj
>>> engine = hj.Engine(clock="own")
>>> engine.execute("CREATE TABLE t (k bigint, d bigint)")
>>> engine.execute("CREATE MATERIALIZED VIEW v AS SELECT k / d AS q FROM t")
>>> engine.execute("CREATE MATERIALIZED VIEW w AS SELECT k FROM t")
>>> applied = engine.apply({"t": [{"k": 6, "d": 2}]}, time=1)
>>> applied = engine.apply({"t": [{"k": 1, "d": 0}]}, time=2)
>>> applied = engine.apply({"t": hj.deletes([{"k": 1, "d": 0}])}, time=3)
>>> engine.read("v", as_of=1).to_pylist() == engine.read("v", as_of=3).to_pylist() == [{"q": 3}]
True
>>> engine.read("v", as_of=2)
Traceback (most recent call last):
halfjoin.errors.DataError: v cannot be read as of 2: division by zero in t.k / t.d, for a row with t.d = 0, t.k = 1
>>> engine.read("w", as_of=2).num_rows  # w does not evaluate the failing expression
2

Wrong ways. If the engine refused the batch, one view would stop all others. If it left the row out, or used NULL for
the value, the view would have an answer that the SQL does not have. If each path that meets the row reported the error,
some errors would stay after the row's deletion, as a deletion may take other paths than the insertion.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from numpy.typing import NDArray

from halfjoin.engine.scalar.cells import cells
from halfjoin.engine.scalar.texts import texts
from halfjoin.engine.system.value import value
from halfjoin.engine.updates.codes import codes
from halfjoin.engine.updates.updates import Positions, Updates, constant, empty
from halfjoin.planner.linear import Reports
from halfjoin.sql.expr import Expr, columns_of
from halfjoin.sql.functions.render import column_text, render
from halfjoin.sql.types import DATE, TIMESTAMP, TIMESTAMPTZ
from halfjoin.version import VERSION

SCHEMA = {"error": pa.string(), "row": pa.string(), "code": pa.int64()}
NO_ERRORS = empty(SCHEMA)
# What errors look like: their codes, the words of halfjoin, and the texts that Arrow makes of values. Deletions do not
# cancel errors that look otherwise.
FORM = f"4 {VERSION} {pa.__version__}"
_YEAR_1, _YEAR_10000 = -62_135_596_800_000_000, 253_402_300_800_000_000  # in microseconds since 1970
_MOST = 500  # the most characters of a value that an error shows


@value
class Errors:
    """Collects the failing rows that an operator reports.

    `parts`: the error updates so far. `identity`: the columns that tell rows apart; they are the same on every path.
    With None, errors are dropped, because another path or stage reports the rows.
    """

    parts: list[Updates]
    identity: Reports | None

    def report(self, updates: Updates, rows: Positions, messages: Iterable[str], expr: Expr) -> None:
        """Add one error per failing row, with the row's time and diff, so the error goes away with the row.

        `messages[i]` belongs to `rows[i]`. For people, the text names the expression and the values that it read; long
        values are cut. The code tells rows apart: it is a digest of all columns that the view reads of the row. So
        errors of different rows do not cancel, even if their texts are equal. An error is small, however large its row.
        """
        if self.identity is None:
            return
        failing = updates.take(rows)
        told = [failing.columns[name] for name in self.identity.columns if name in failing.columns]
        code = codes([pa.array(constant(self.identity.branch, len(failing))), *told], len(failing))
        place = render(expr)  # takes long, and many rows may fail
        text = pa.array([f"{_cut(message)} in {place}" for message in messages], pa.string())
        row = _describe(failing, _told(failing, columns_of(expr)))
        self.parts.append(Updates({"error": text, "row": row, "code": pa.array(code)}, failing.time, failing.diff))


DROPPED = Errors([], None)


def _cut(text: str) -> str:
    return text if len(text) <= _MOST else f"{text[:_MOST]}..."


def of_rows(updates: Updates, message: str | NDArray[Any]) -> Updates:
    """Error updates about whole rows, with one message for all or one for each. They show all columns."""
    code = codes(list(updates.columns.values()), len(updates))
    messages = [message] * len(updates) if isinstance(message, str) else message
    text = pa.array([_cut(one) for one in messages], pa.string())
    columns = {"error": text, "row": _describe(updates, list(updates.columns)), "code": pa.array(code)}
    return Updates(columns, updates.time, updates.diff)


def of_view(message: str, time: int) -> Updates:
    """An error of a whole view, not of a row: from `time` on the contents of the view are unknown."""
    text = f"{message}; it lacks rows from time {time} on: drop it and create it anew"
    columns = {"error": pa.array([text]), "row": pa.array([""]), "code": pa.array([0])}
    return Updates(columns, np.array([time]), np.array([1]))


def of_loop(message: str, time: int) -> Updates:
    """As `of_view`, of a loop, whose next batch may fill it anew."""
    text = f"{message}; its rows are thrown away from time {time} on, until a batch changes what it reads"
    columns = {"error": pa.array([text]), "row": pa.array([""]), "code": pa.array([0])}
    return Updates(columns, np.array([time]), np.array([1]))


def _told(updates: Updates, names: Iterable[str]) -> list[str]:
    """The columns that tell people which row it is: those that are read; of a group also its keys, and no sums, which
    are bytes."""
    read = set(names)
    groups = {name.rpartition(".")[0] for name in read if name.rpartition(".")[0].startswith("=")}
    keys = {name for name in updates.columns if name.rpartition(".")[0] in groups and ".#" not in name}
    sums = {name for name in read if ".#" in name and pt.is_binary(updates.columns[name].type)}
    return sorted((read | keys) - sums)


def _describe(updates: Updates, names: Sequence[str]) -> pa.Array:
    """The rows as text: `a.x = 1, a.y = two`."""
    parts = [pa.array(np.full(len(updates), ""), pa.string())]
    parts += [pc.binary_join_element_wise(f"{_name(name)} = ", shown(updates.columns[name]), "") for name in names]
    return parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*parts[1:], ", ")


def _name(name: str) -> str:
    """A column's name as the user wrote it; what a reduce keeps is shown as `render` shows it."""
    return column_text(name) if "#" in name or name.startswith("=") else name


def shown(column: pa.Array) -> pa.Array:
    """The values as texts for people. Long texts are cut."""
    text = pc.fill_null(_as_text(column), "NULL")
    short = pc.binary_join_element_wise(pc.utf8_slice_codeunits(text, 0, _MOST), "...", "")
    return pc.if_else(pc.greater(pc.utf8_length(text), _MOST), short, text)


def _as_text(column: pa.Array) -> pa.Array:
    if pt.is_date(column.type):  # Arrow has no texts for years beyond Python's
        return texts(column, DATE)
    try:
        text = column.cast(pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # bytes that are not text, and arrays
        return pa.array([None if value is None else _cut(str(value)) for value in cells(column)], pa.string())
    return text if not pt.is_timestamp(column.type) else _far(column, text)


def _far(column: pa.Array, text: pa.Array) -> pa.Array:
    """Texts of moments, those before year 1 and after 9999 as PostgreSQL writes them: Arrow's years have 16 bits."""
    since = column.cast(pa.int64())
    far = pc.or_(pc.less(since, _YEAR_1), pc.greater_equal(since, _YEAR_10000))
    if not pc.any(far).as_py():
        return text
    return pc.if_else(far, texts(column, TIMESTAMP if column.type.tz is None else TIMESTAMPTZ), text)
