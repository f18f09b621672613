"""Rows of a batch, in any of the forms users have them, to Arrow columns of the table's types."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfjoin.engine.columns import convert
from halfjoin.engine.scalar.arrow_types import arrow_type
from halfjoin.engine.times import to_time
from halfjoin.engine.updates import DIFF, MINIMUM, TIME, Ints
from halfjoin.engine.upserts import refuse_unordered
from halfjoin.sql.errors import InvalidRow, InvalidTime, UnknownName

if TYPE_CHECKING:
    from halfjoin.catalog.models import Table

_MOST_COPIES = 2**31  # of one row in one update: products of a few of them still fit into an int64


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows and what is meant by them. Made by `inserts`, `deletes`, `upserts`, and feeds.

    `plain` rows say by their `__diff`, if they have one; `contents` are all that the table has from then on.

    `ordered`: whether the order in which they stand means anything; that of a Spark DataFrame's rows does not.
    """

    data: Any
    meaning: Literal["plain", "inserts", "deletes", "upserts", "contents", "messages"]
    ordered: bool = True

    def checked(self, table: Table) -> Submitted:
        """As `submitted`."""
        if self.meaning == "upserts" and not table.primary_key:
            raise InvalidRow(
                f"{table.name} has no PRIMARY KEY, so there is nothing that an upsert could replace a row by; "
                "submit hj.deletes of the old rows and hj.inserts of the new ones"
            )
        rows = _checked(table, self.data, self.meaning)
        if self.meaning == "contents":
            return replace(rows, whole=True)
        if not self.ordered:
            refuse_unordered(table, rows)
        return rows


def inserts(rows: Any) -> Rows:
    """Rows to add, one copy each."""
    return Rows(rows, "inserts")


def deletes(rows: Any) -> Rows:
    """Rows to take away, one copy each; all their columns must be as they are in the table."""
    return Rows(rows, "deletes")


def upserts(rows: Any) -> Rows:
    """Rows that replace the row with the same PRIMARY KEY, if there is one. Of several with one key the last stays.

    The rows of a Spark DataFrame have no order; there no key may come twice.
    """
    return Rows(rows, "upserts")


@dataclass(frozen=True, slots=True)
class Submitted:
    """Checked rows of one table; `time` and `diff` are None where the rows did not say.

    With `upsert` a row says how many rows of its key there are from its time on: it alone (`diff` 1 or None), or none
    (0; what is not its key is then without meaning). With `whole` nothing else stays of what the table had. Rows that
    are not `numbered` have no order, so an error cannot name one by its number.
    """

    columns: dict[str, pa.Array]
    length: int
    time: Ints | None
    diff: Ints | None
    upsert: bool = False
    whole: bool = False
    numbered: bool = True

    @property
    def timed(self) -> bool:
        """Whether the rows came with times."""
        return self.time is not None

    @property
    def last(self) -> int:
        """The last of the rows' own times, the least of all where there are none."""
        return MINIMUM if self.time is None or not self.length else int(self.time.max())


def submitted(table: Table, rows: Any) -> Submitted:
    """Columns by name, in the table's order and exactly its types.

    Raises:
        UnknownName: a column that the table does not have.
        InvalidRow: a value that is not of its column's type, or NULL where it must not be.
    """
    return rows.checked(table) if isinstance(rows, Rows) else _checked(table, rows, "plain")


def _checked(table: Table, rows: Any, meaning: str) -> Submitted:
    source, length = _source(table, rows)
    known = [column.name for column in table.columns]
    for name in source:
        if name not in known and name not in (TIME, DIFF):
            raise UnknownName(f"column of {table.name}", name, known)
    columns = {}
    for column in table.columns:
        given = source.get(column.name)
        absent = given is None
        if absent:
            array = pa.nulls(length, arrow_type(column.type))
        else:
            array = convert(table.name, column.name, column.type, given)
        if column.not_null and array.null_count:
            row = int(np.flatnonzero(array.is_null().to_numpy(zero_copy_only=False))[0])
            why = "is missing" if absent else "is NULL"
            raise InvalidRow(f"{table.name}.{column.name}: row {row}: {why}, and the column is NOT NULL")
        columns[column.name] = array
    diff = _diffs(table, source[DIFF]) if DIFF in source else None
    if meaning != "plain" and diff is not None:
        raise InvalidRow(f"{table.name}: rows given as {meaning} cannot have a column {DIFF} too")
    if meaning == "deletes":
        diff = np.full(length, -1, np.int64)
    time = _times(table, source[TIME]) if TIME in source else None
    return Submitted(columns, length, time, diff, meaning == "upserts")


def unnumbered(problem: InvalidRow, table: Table, given: pa.Table | None) -> InvalidRow:
    """The same refusal, with the row's key (without a PRIMARY KEY its values), as far as it is given, in place of its
    number: a frame has no order."""
    found = re.match(r"(?P<where>.*?): row (?P<row>\d+): (?P<why>.*)", str(problem), re.DOTALL)
    if found is None:
        return problem
    name = "a row"
    if given is not None and all(column in given.column_names for column in table.primary_key):
        names = table.primary_key or given.column_names
        values = ", ".join(_shown(given.column(column)[int(found["row"])].as_py()) for column in names)
        name = f"the row with ({', '.join(names)}) = ({values})"
    return InvalidRow(f"{found['where']}: {name}: {found['why']}")


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:100]}..."


def _source(table: Table, rows: Any) -> tuple[dict[str, Any], int]:
    """Columns by name (Arrow arrays or lists of Python values) and the number of rows."""
    if isinstance(rows, pa.RecordBatchReader):
        rows = rows.read_all()
    elif isinstance(rows, pa.RecordBatch):
        rows = pa.Table.from_batches([rows])
    elif isinstance(rows, Mapping) and not hasattr(rows, "__arrow_c_stream__"):
        for name, values in rows.items():
            if isinstance(values, str | bytes | Mapping) or not hasattr(values, "__len__"):
                raise InvalidRow(
                    f"{table.name}: rows must be a list of dicts, or a dict of columns; "
                    f"the column {name} is {type(values).__name__}, not a list"
                )
        columns = {str(name): _values(values) for name, values in rows.items()}
        lengths = {len(values) for values in columns.values()}
        if len(lengths) > 1:
            raise InvalidRow(f"{table.name}: the columns have different lengths: {sorted(lengths)}")
        return dict(columns), lengths.pop() if lengths else 0
    elif hasattr(rows, "to_records") and hasattr(rows, "__dataframe__"):  # pandas: its index is no column
        rows = pa.Table.from_pandas(rows, preserve_index=False)
    elif not isinstance(rows, pa.Table) and hasattr(rows, "__arrow_c_stream__"):
        rows = pa.table(rows)
    if isinstance(rows, pa.Table):
        names = rows.column_names
        if len(set(names)) < len(names):
            raise InvalidRow(f"{table.name}: a column is given twice: {', '.join(names)}")
        return {name: _one_chunk(column) for name, column in zip(names, rows.columns, strict=True)}, rows.num_rows
    return _from_dicts(table, rows)


def _from_dicts(table: Table, rows: Any) -> tuple[dict[str, Any], int]:
    if isinstance(rows, str | bytes) or not isinstance(rows, Sequence):
        raise InvalidRow(
            f"{table.name}: rows must be a pyarrow Table, a list of dicts, or anything with __arrow_c_stream__, "
            f"not {type(rows).__name__}"
        )
    for number, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise InvalidRow(f"{table.name}: row {number}: a row must be a dict, not {type(row).__name__}")
    names = dict.fromkeys(name for row in rows for name in row)
    source: dict[str, Any] = {}
    for name in names:
        default = 1 if name == DIFF else None
        source[str(name)] = [row.get(name, default) for row in rows]
    if TIME in source and any(value is None for value in source[TIME]):
        raise InvalidRow(f"{table.name}: {TIME} must be given in every row or in none")
    return source, len(rows)


def _values(values: Any) -> Any:
    """A column as an Arrow array where it can be one by itself (pandas' NaN becomes NULL), or as a list."""
    if isinstance(values, pa.ChunkedArray):
        return _one_chunk(values)
    if hasattr(values, "iloc"):  # pandas
        made = pa.array(values, from_pandas=True)
        return _one_chunk(made) if isinstance(made, pa.ChunkedArray) else made
    if hasattr(values, "__arrow_c_stream__"):
        return _one_chunk(pa.chunked_array(values))
    return values if isinstance(values, pa.Array) else list(values)


def _one_chunk(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _diffs(table: Table, given: Any) -> Ints:
    try:
        array = given if isinstance(given, pa.Array) else pa.array(given)
        if array.null_count or not (pa.types.is_integer(array.type) or len(array) == 0):
            raise TypeError
        values: Ints = (array if array.type == pa.int64() else array.cast(pa.int64())).to_numpy(zero_copy_only=False)
        if len(values) and max(-int(values.min()), int(values.max())) > _MOST_COPIES:
            raise OverflowError
    except (pa.ArrowException, TypeError, OverflowError):
        plain = given.to_pylist() if isinstance(given, pa.Array) else given
        wrong = (f": row {row}: {value!r} is no whole number" for row, value in enumerate(plain)
                 if not isinstance(value, Integral) or abs(int(value)) > _MOST_COPIES)  # fmt: skip
        why = next(wrong, " must be whole numbers")
        raise InvalidRow(f"{table.name}.{DIFF}{why} within {_MOST_COPIES:,}") from None
    return values


def _times(table: Table, given: Any) -> Ints:
    array = given if isinstance(given, pa.Array) else None
    if array is None:
        return np.array([to_time(value) for value in given], np.int64)
    if array.null_count:
        raise InvalidTime(f"{table.name}.{TIME} must not be NULL")
    if pa.types.is_timestamp(array.type) or pa.types.is_date(array.type):
        micros: Ints = array.cast(pa.timestamp("us")).cast(pa.int64()).to_numpy(zero_copy_only=False)
        return micros // 1000
    if not pa.types.is_integer(array.type):
        raise InvalidTime(f"{table.name}.{TIME} must be int64 or a timestamp, not {array.type}")
    if len(array):  # the greatest int64 stands for never
        to_time(pc.max(array).as_py())
    values: Ints = array.cast(pa.int64()).to_numpy(zero_copy_only=False)
    return values
