"""Converts the rows of a batch from any form that users submit to Arrow columns of the table's types."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfjoin.engine.intake.as_they_are import MOST_COPIES, as_they_are
from halfjoin.engine.intake.not_rows import no_row, no_rows
from halfjoin.engine.intake.schemas import counts_rows
from halfjoin.engine.intake.times import to_time
from halfjoin.engine.intake.upserts import refuse_unordered
from halfjoin.engine.kernels import computing
from halfjoin.engine.scalar.arrow_types import arrow_type
from halfjoin.engine.scalar.cells import cell
from halfjoin.engine.scalar.columns import convert, ends_of, is_checked, refuse_unsound
from halfjoin.engine.scalar.plain_texts import too_long
from halfjoin.engine.system.identity import by_identity
from halfjoin.engine.system.value import value
from halfjoin.engine.updates.updates import DIFF, MINIMUM, TIME, Ints, Mask, ends, some_below_zero
from halfjoin.errors import InvalidRow, InvalidTime, UnknownName

if TYPE_CHECKING:
    from halfjoin.catalog.models import Table

# Python's types whose values Arrow reads as they are, also beside each other, where it does not refuse them. A date
# beside a datetime it would cut, True beside a number is 1, and dicts become structs, which all have the same fields.
_ALIKE = {"NoneType", "NAType", "str", "bytes", "int", "float", "Decimal", "date"}


@dataclass(frozen=True, slots=True)
class GivenRows:
    """Rows and their meaning. `inserts`, `deletes`, `upserts` and feeds make them.

    `plain` rows have their meaning from `__diff`, if they have that column. `contents` replace all rows of the table.

    `ordered`: whether the order of the rows has a meaning. The order of a Spark DataFrame's rows has none.
    """

    data: Any
    meaning: Literal["plain", "inserts", "deletes", "upserts", "contents", "messages"]
    ordered: bool = True

    def checked(self, table: Table) -> Submitted:
        """The checked rows, as `submitted` returns them. Raises the same errors."""
        if self.meaning == "upserts" and not table.primary_key:
            raise InvalidRow("the table has no PRIMARY KEY, so an upsert cannot find the row to replace",
                             remedy="submit hj.deletes of the old rows and hj.inserts of the new ones",
                             table=table.name)  # fmt: skip
        rows = _checked(table, self.data, self.meaning, {})
        if self.meaning == "contents":
            return replace(rows, whole=True)
        if not self.ordered:
            refuse_unordered(table, rows)
        return rows


def inserts(rows: Any) -> GivenRows:
    """Rows to add, one copy each."""
    return GivenRows(rows, "inserts")


def deletes(rows: Any) -> GivenRows:
    """Rows to delete, one copy each. The columns that a row names must have the values that the table has.

    In a table with a PRIMARY KEY, a row may name only the key. In a table without one, a column that a row does not
    name is NULL, as in inserts.
    """
    return GivenRows(rows, "deletes")


def upserts(rows: Any) -> GivenRows:
    """Rows that replace the row with the same PRIMARY KEY, if there is one.

    A row names the key and any other columns. A column that a row does not name keeps its value; in a new row it is
    NULL. Several rows with the same key apply in their order. In a list of dicts, each row names the columns of its
    dict.

    The rows of a Spark DataFrame have no order, so no key may come twice in it.
    """
    return GivenRows(rows, "upserts")


@value
class Submitted:
    """Checked rows of one table. `time` and `diff` are None if the rows have no such column.

    With `upsert`, a row with `diff` 1 (or None) is the only row of its key from its time on. With `diff` 0 the key has
    no row from then on, and only the row's key has a meaning. With `whole`, the rows replace all rows of the table. If
    the rows are not `numbered`, they have no order, so an error cannot name a row's number. `unnamed` has, for each
    column that some upserts or deletions do not name, the mask of these rows: they keep the column's value in the table
    (`engine.intake.unnamed`). `moved` has for each row the position of the row of its old key, if the key was changed,
    or else -1: what the row does not name is the value of that row.
    """

    columns: dict[str, pa.Array]
    length: int
    time: Ints | None
    diff: Ints | None
    upsert: bool = False
    whole: bool = False
    numbered: bool = True
    unnamed: Mapping[str, Mask] = field(default_factory=dict)
    moved: Ints | None = None

    @property
    def timed(self) -> bool:
        """Whether the rows have their own times."""
        return self.time is not None

    @property
    def last(self) -> int:
        """The greatest of the rows' own times. If they have none, the least int64."""
        return MINIMUM if self.time is None or not self.length else ends(self.time)[1]


def submitted(table: Table, rows: Any) -> Submitted:
    """The checked rows, with columns by name, in the table's order and of exactly its types.

    Raises:
        UnknownName: the table does not have a column that the rows have.
        InvalidRow: a value does not fit its column's type, or is NULL in a column that is NOT NULL.
        InvalidTime: a value of `__time` is not a time.
    """
    return rows.checked(table) if isinstance(rows, GivenRows) else _checked(table, rows, "plain", {})


def keyed(table: Table, rows: pa.Table, unnamed: Mapping[str, Mask]) -> Submitted:
    """Upserts, and deletions by key among them, in their order.

    Args:
        table: it has a PRIMARY KEY.
        rows: as for `upserts`. With a column `__diff`: 1 for an upsert; 0, or -1, for a deletion of the key's row, of
            which only the key has a meaning.
        unnamed: by column, the mask of the upserts that do not name it.

    Raises:
        As `submitted`.
    """
    if DIFF not in rows.column_names:
        return _checked(table, rows, "upserts", unnamed)
    live = _diffs(table, _one_chunk(rows.column(DIFF))) > 0
    others = [column.name for column in table.columns if column.name not in table.primary_key]
    lacking = {name: ~live | unnamed[name] if name in unnamed else ~live for name in others}
    made = _checked(table, rows.drop_columns([DIFF]), "upserts", lacking)
    named = {name: mask & live for name, mask in made.unnamed.items() if (mask & live).any()}
    return replace(made, diff=live.astype(np.int64), unnamed=named)


def _checked(table: Table, rows: Any, meaning: str, lacking: Mapping[str, Mask]) -> Submitted:
    known = as_they_are(table, rows) if type(rows) is pa.Table and not lacking else None
    if known is not None and (meaning == "plain" or known[2] is None):
        columns, length, diff = known
        diff = np.full(length, -1, np.int64) if meaning == "deletes" else diff
        return Submitted(columns, length, None, diff, meaning == "upserts")
    try:
        source, length, found = _source(table, rows)
    except InvalidRow as problem:
        raise problem.with_(table=table.name) from None
    lacking = {**found, **lacking}
    plain, sound = _types(table), _sound(table, source)
    for name in source:
        if name not in plain and name not in (TIME, DIFF) and not counts_rows(name):
            raise UnknownName(f"column of {table.name}", name, list(plain))
    diff = _diffs(table, source[DIFF]) if DIFF in source else None
    leaving = meaning == "deletes" or (diff is not None and some_below_zero(diff))
    columns, unnamed, everywhere = dict[str, pa.Array](), dict[str, Mask](), None
    keyed = bool(table.primary_key) and meaning in ("upserts", "deletes")  # then rows may leave out other columns
    for column in table.columns:
        given = source.get(column.name)
        if given is None:
            array = pa.nulls(length, arrow_type(column.type))
            everywhere = np.ones(length, np.bool_) if everywhere is None else everywhere
            lacking[column.name] = everywhere
        elif column.name in sound or (isinstance(given, pa.Array) and given.type == plain[column.name]):
            array = given
        else:
            array = convert(table.name, column.name, column.type, given, leaving=leaving)
            if leaving and diff is not None:
                refuse_unsound(table.name, column.name, column.type, array, diff > 0)
        columns[column.name] = array
        missing = lacking.get(column.name) if lacking else None
        if missing is not None and keyed and column.name not in table.primary_key:
            unnamed[column.name] = missing
        if column.not_null and column.generated is None and array.null_count:
            coming = array if diff is None or not column.had_nulls else array.filter(pa.array(diff > 0))
            if coming.null_count:  # a row that goes may be older than NOT NULL
                _refuse_null(table, column.name, array, missing, kept=column.name in unnamed)
    if meaning != "plain" and diff is not None:
        raise InvalidRow(f"rows given as {meaning} cannot have a column {DIFF}", table=table.name, column=DIFF)
    if meaning == "deletes":
        diff = np.full(length, -1, np.int64)
    time = _times(table, source[TIME]) if TIME in source else None
    return Submitted(columns, length, time, diff, meaning == "upserts", unnamed=unnamed)


@by_identity
def _types(table: Table) -> Mapping[str, Any]:
    """For each column the Arrow type whose arrays it takes as they are; None if every array is converted."""
    return {column.name: None if is_checked(column.type) else arrow_type(column.type) for column in table.columns}


def _sound(table: Table, source: Mapping[str, Any]) -> Collection[str]:
    """Columns whose arrays a kernel finds to be right as they are. Others may be, too."""
    arrays, bounds = dict[str, pa.Array](), list[tuple[int, int]]()
    for name, (kind, between) in _bounded(table).items():
        given = source.get(name)
        if isinstance(given, pa.Array) and given.type == kind:
            arrays[name] = given
            bounds.append(between)
    return arrays if arrays and computing.sound([*arrays.values()], bounds) else ()


@by_identity
def _bounded(table: Table) -> Mapping[str, tuple[pa.DataType, tuple[int, int]]]:
    """The columns of which arrays of this Arrow type only have to be sound, with `ends_of` their types."""
    found = ((column, ends_of(column.type)) for column in table.columns)
    return {column.name: (arrow_type(column.type), between) for column, between in found if between is not None}


def _refuse_null(table: Table, name: str, array: pa.Array, missing: Mask | None, *, kept: bool) -> None:
    """Refuse NULL in a column that is NOT NULL. If it is `kept`, the rows where it is `missing` keep their value."""
    null = array.is_null().to_numpy(zero_copy_only=False)
    if kept and missing is not None:
        null = null & ~missing
    if null.any():
        row = int(null.argmax())
        why = "is missing" if missing is not None and missing[row] else "is NULL"
        raise InvalidRow(f"{why}, and the column is NOT NULL", table=table.name, column=name, row=row, code="23502")


def unnumbered(problem: InvalidRow, table: Table, given: pa.Table | None) -> InvalidRow:
    """The same error, but with the row's key instead of its number, as a DataFrame has no order.

    Without a PRIMARY KEY it has all the row's values. If the key is not among the `given` columns, it has no key.
    """
    if problem.row is None:
        return problem
    if given is None or not all(column in given.column_names for column in table.primary_key):
        return problem.with_(row=None, called="a row")
    names = table.primary_key or given.column_names
    return problem.with_(row=None, key={name: cell(given.column(name), problem.row) for name in names})


def _source(table: Table, rows: Any) -> tuple[dict[str, Any], int, dict[str, Mask]]:
    """The columns by name (Arrow arrays or lists), the number of rows, and for each column the rows that lack it."""
    if type(rows) is pa.Table:
        return _from_table(table, rows)
    if isinstance(rows, pa.RecordBatchReader):
        rows = rows.read_all()
    elif isinstance(rows, pa.RecordBatch):
        rows = pa.Table.from_batches([rows])
    elif isinstance(rows, Mapping) and not hasattr(rows, "__arrow_c_stream__"):
        for name, values in rows.items():
            alone = not hasattr(values, "__len__") or getattr(values, "ndim", 1) == 0  # NumPy's value in an array
            if isinstance(values, str | bytes | Mapping) or alone:
                raise InvalidRow(
                    "rows must be a list of dicts, or a dict of columns; "
                    f"the column {name} is {type(values).__name__}, not a list (one row is a list of one dict)",
                    table=table.name,
                )
        columns = {str(name): _values(values) for name, values in rows.items()}
        lengths = {len(values) for values in columns.values()}
        if len(lengths) > 1:
            raise InvalidRow(f"the columns have different lengths: {sorted(lengths)}", table=table.name)
        return dict(columns), lengths.pop() if lengths else 0, {}
    elif hasattr(rows, "to_records") and hasattr(rows, "iloc"):
        return _from_pandas(table, rows), len(rows), {}
    elif not isinstance(rows, pa.Table) and hasattr(rows, "__arrow_c_stream__"):
        try:
            rows = pa.table(rows)
        except pa.ArrowException as problem:
            if type(rows).__name__ == "Series":  # a single column of polars
                raise no_rows(table.name, rows) from None
            raise InvalidRow(f"Arrow cannot read the {type(rows).__name__}: {problem}", table=table.name,
                             remedy="cast what Arrow does not know, such as polars' Int128") from None  # fmt: skip
    return _from_table(table, rows) if isinstance(rows, pa.Table) else _from_dicts(table, rows)


def _from_table(table: Table, rows: pa.Table) -> tuple[dict[str, Any], int, dict[str, Mask]]:
    batches = rows.to_batches()
    if len(batches) != 1:  # a column may be empty, or in several chunks
        batches = [rows.combine_chunks()]
        columns = [_one_chunk(column) for column in batches[0].columns]
    else:
        columns = batches[0].columns
    return dict(zip(_once(table, rows.schema.names), columns, strict=True)), rows.num_rows, {}


def _from_pandas(table: Table, frame: Any) -> dict[str, Any]:
    """A frame's columns, and the levels of its index that have a name. A level without a name only counts the rows."""
    names = _once(table, [str(name) for name in frame.columns])
    columns = {name: _values(frame.iloc[:, number]) for number, name in enumerate(names)}
    levels = ((str(name), number) for number, name in enumerate(frame.index.names) if name is not None)
    added = {name: _values(frame.index.get_level_values(number).to_series()) for name, number in levels
             if name not in columns}  # fmt: skip
    return added | columns


def _once(table: Table, names: Sequence[str]) -> Sequence[str]:
    if len(set(names)) < len(names):
        raise InvalidRow(f"a column is given twice: {', '.join(names)}", table=table.name)
    return names


def _from_dicts(table: Table, rows: Any) -> tuple[dict[str, Any], int, dict[str, Mask]]:
    if isinstance(rows, str | bytes) or not isinstance(rows, Sequence):
        raise no_rows(table.name, rows)
    for number, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise no_row(table.name, number, row)
    names = dict.fromkeys(name for row in rows for name in row)
    source: dict[str, Any] = {}
    for name in names:
        default = 1 if name == DIFF else None
        source[str(name)] = [row.get(name, default) for row in rows]
    if TIME in source and any(value is None for value in source[TIME]):
        raise InvalidRow("must be given in every row or in none", table=table.name, column=TIME)
    lacking: dict[str, Mask] = {}
    if any(len(row) < len(names) for row in rows):
        has = {str(name): np.array([name not in row for row in rows]) for name in names}
        lacking = {name: missing for name, missing in has.items() if missing.any()}
    return source, len(rows), lacking


def _values(values: Any) -> Any:
    """A column as an Arrow array, or as a list if Arrow cannot convert it. NaN in pandas is NULL."""
    if isinstance(values, pa.ChunkedArray):
        return _one_chunk(values)
    if hasattr(values, "iloc"):  # pandas
        if values.dtype == object and not {one.__name__ for one in set(map(type, values.to_numpy()))} <= _ALIKE:
            return _listed(values)
        try:
            made = pa.array(values, from_pandas=True)
        except (pa.ArrowException, UnicodeEncodeError, OverflowError):  # several types, invalid text, a wide integer
            return _listed(values)
        return _one_chunk(made) if isinstance(made, pa.ChunkedArray) else made
    if hasattr(values, "__arrow_c_stream__"):
        return _one_chunk(pa.chunked_array(values))
    return values if isinstance(values, pa.Array) else list(values)


def _listed(values: Any) -> list[Any]:
    return [None if isinstance(value, float) and value != value else value for value in values.tolist()]


def _one_chunk(column: pa.ChunkedArray) -> pa.Array:
    try:
        return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    except pa.ArrowInvalid:
        raise too_long() from None


def _diffs(table: Table, given: Any) -> Ints:
    try:
        array = given if isinstance(given, pa.Array) else pa.array(given)
        exact = array.type == pa.int64()
        if array.null_count or not (exact or pa.types.is_integer(array.type) or len(array) == 0):
            raise TypeError
        values: Ints = (array if exact else array.cast(pa.int64())).to_numpy(zero_copy_only=False)
        if len(values):
            least, most = ends(values)
            if least < -MOST_COPIES or most > MOST_COPIES:
                raise OverflowError
    except (pa.ArrowException, TypeError, OverflowError):
        plain = given.to_pylist() if isinstance(given, pa.Array) else given
        wrong = (row for row, value in enumerate(plain)
                 if not isinstance(value, Integral) or abs(int(value)) > MOST_COPIES)  # fmt: skip
        row = next(wrong, None)
        value = None if row is None else plain[row]
        why = "must be whole numbers" if row is None else f"{'NULL ' if value is None else ''}is not a whole number"
        raise InvalidRow(f"{why} within {MOST_COPIES:,}", table=table.name, column=DIFF, row=row,
                         value=value) from None  # fmt: skip
    return values


def _times(table: Table, given: Any) -> Ints:
    array = given if isinstance(given, pa.Array) else None
    if array is None:
        return np.array([to_time(value) for value in given], np.int64)
    if array.null_count:
        raise InvalidTime(f"{table.name}.{TIME} must not be NULL", table=table.name)
    if pa.types.is_timestamp(array.type) or pa.types.is_date(array.type):
        # What is finer than a millisecond has no meaning: a datetime loses it, too.
        fine = getattr(array.type, "unit", "") == "ns"
        try:
            moments = array.cast(pa.timestamp("ns" if fine else "us"))
        except pa.ArrowInvalid:  # seconds that do not fit
            raise InvalidTime(f"{table.name}.{TIME} has a time beyond the year 294247", table=table.name) from None
        counts: Ints = moments.cast(pa.int64()).to_numpy(zero_copy_only=False)
        return counts // (1_000_000 if fine else 1000)
    if not pa.types.is_integer(array.type):
        raise InvalidTime(f"{table.name}.{TIME} must be int64 or a timestamp, not {array.type}", table=table.name)
    if len(array):  # refuse the greatest int64: it means never
        to_time(pc.max(array).as_py())
    values: Ints = array.cast(pa.int64()).to_numpy(zero_copy_only=False)
    return values
