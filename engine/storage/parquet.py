"""Write Parquet files of updates: sorted by the collection's key, with statistics."""

from __future__ import annotations

import json
import re
import sys
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import isinf
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from halfjoin.engine.storage.place import Place
from halfjoin.engine.updates.intervals import IN_FILES, changed, has_intervals
from halfjoin.engine.updates.updates import DIFF, MINIMUM, TIME, Updates

FILE_ROWS = 1 << 20
GROUP_ROWS = 1 << 11  # the least that a lookup reads. Fewer rows make scans slower and footers larger
LOADED_BYTES = b"halfjoin.loaded_bytes"  # in a file's footer: the memory that its rows need
_INTEGER_DIGITS = 18  # digits of decimals that a 64-bit integer holds
_LONGEST_TEXT = 32  # characters of texts in statistics; of longer texts they have the beginning, as Spark's have


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file in a table's folder: name, bytes, rows, the last of the rows' times, and Delta's statistics (JSON)."""

    name: str
    size: int
    rows: int
    latest: int
    stats: str


def file_type(kind: Any) -> Any:
    """The type in files. Delta has no time of day, so files have microseconds since midnight; nor has it intervals."""
    if pa.types.is_interval(kind):
        return IN_FILES
    if pa.types.is_list(kind):
        return pa.list_(file_type(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, file_type(field.type)) for field in kind])
    return pa.int64() if pa.types.is_time(kind) else kind


def file_schema(schema: Mapping[str, pa.DataType]) -> pa.Schema:
    """The columns of a collection's files, `__time` and `__diff` last."""
    fields = [(name, file_type(kind)) for name, kind in schema.items()]
    return pa.schema([*fields, (TIME, pa.int64()), (DIFF, pa.int64())])


def write(
    place: Place, updates: Updates, schema: Mapping[str, pa.DataType], sort: Sequence[str]
) -> Iterator[StoredFile]:
    """Write updates as a run of files, sorted by these columns. Each file is as durable as its place when it is
    yielded."""
    run, table = uuid.uuid4(), ordered(_filed(updates, schema), sort)
    for number, start in enumerate(range(0, len(table), FILE_ROWS)):
        yield _write(place, file_name(run, number), table.slice(start, FILE_ROWS))


def write_file(
    place: Place, name: str, updates: Updates, schema: Mapping[str, pa.DataType], sort: Sequence[str]
) -> StoredFile:
    """Write updates as a file, sorted by these columns. The file is durable when the call returns."""
    return _write(place, name, ordered(_filed(updates, schema), sort))


def write_plain(place: Place, name: str, table: pa.Table) -> StoredFile:
    """Write rows without times, for other tools. The file is small rather than quick for lookups."""
    return _kept(place, name, table, MINIMUM, compression="zstd")


def file_name(run: uuid.UUID, number: int) -> str:
    """The name of a file of a run. The files of one run are sorted as a whole, one after the other."""
    return f"part-{run}-{number:05}.parquet"


def run_of(name: str) -> str:
    """The name of the run that a file belongs to. A file that somebody else wrote is a run of its own."""
    found = re.fullmatch(r"part-([0-9a-f-]{36})-\d{5,}\.parquet", name)
    return name if found is None else found.group(1)


def is_ours(name: str) -> bool:
    """Whether a file has a name that `file_name` returns."""
    return run_of(name) != name


def ordered(table: pa.Table, sort: Sequence[str]) -> pa.Table:
    """The rows sorted by those of the columns that have an order."""
    keys = [name for name in sort if not pa.types.is_nested(table.schema.field(name).type)]
    if keys and not _in_order(table, keys):
        table = table.take(pc.sort_indices(table, sort_keys=[(name, "ascending") for name in keys]))
    return table


def _filed(updates: Updates, schema: Mapping[str, pa.DataType]) -> pa.Table:
    return without_intervals(updates).table(changes=True).cast(file_schema(schema))


def without_intervals(updates: Updates) -> Updates:
    """The updates with structs in place of intervals, which files cannot hold."""
    found = {name: changed(column, file_type(column.type)) for name, column in updates.columns.items()
             if has_intervals(column.type)}  # fmt: skip
    return updates.with_columns(found) if found else updates


def _write(place: Place, name: str, table: pa.Table) -> StoredFile:
    # Lookups read small parts. Numbers as differences are quick to decode and small, especially when sorted.
    texts = [field.name for field in table.schema if pa.types.is_string(field.type)]
    numbers = {field.name: "DELTA_BINARY_PACKED" for field in table.schema if _is_number(field.type)}
    latest = pc.max(table.column(TIME)).as_py()
    table = table.replace_schema_metadata({LOADED_BYTES: str(table.nbytes)})
    return _kept(place, name, table, latest, compression="lz4", use_dictionary=texts, column_encoding=numbers,
                 store_decimal_as_integer=True, row_group_size=GROUP_ROWS)  # fmt: skip


def _is_number(kind: pa.DataType) -> bool:
    """Whether files hold the type as an integer of 32 or 64 bits."""
    t = pa.types
    return bool(t.is_integer(kind) or t.is_date(kind) or t.is_timestamp(kind)
                or (t.is_decimal(kind) and kind.precision <= _INTEGER_DIGITS))  # fmt: skip


def _kept(place: Place, name: str, table: pa.Table, latest: int, **options: Any) -> StoredFile:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, write_page_checksum=True, **options)
    data = sink.getvalue()
    place.write(name, data)
    return StoredFile(name, data.size, len(table), latest, statistics(table))


def _in_order(table: pa.Table, keys: Sequence[str]) -> bool:
    """Whether the rows are already sorted by the keys, as with generated keys. Always false if there are NULLs."""
    before, after = table.slice(0, max(len(table) - 1, 0)), table.slice(1)
    tied: Any = True
    for name in keys:
        left, right = before.column(name), after.column(name)
        descends = pc.any(pc.and_(pc.greater(left, right), tied)).as_py()
        if descends or table.column(name).null_count:
            return False
        tied = pc.and_(pc.equal(left, right), tied)
    return True


def statistics(table: pa.Table) -> str:
    """Delta's statistics of a file: the rows, each column's NULLs, and the bounds of columns whose types have an order.

    Of a column that has values but no bounds, beside columns that have some, delta-rs takes NULL for the bounds: no row
    of the file meets a filter of its dataset by this column. So a file for other tools has all bounds or none. A file
    of updates has those of its times in any case, which the engine needs.
    """
    counts, least, greatest, whole = dict[str, str](), dict[str, str](), dict[str, str](), True
    for name in table.column_names:
        column = table.column(name)
        counts[name] = json.dumps(_null_counts(column))
        if has_bounds(column.type) and column.null_count < len(column):
            bounds = _bounds(column)
            if bounds is None:
                whole = False
            else:
                least[name], greatest[name] = bounds
    found = {"numRecords": str(len(table)), "nullCount": _object(counts)}
    if whole or TIME in counts:
        found |= {"minValues": _object(least), "maxValues": _object(greatest)}
    return _object(found)


def _object(members: Mapping[str, str]) -> str:
    """An object of JSON, of members in JSON."""
    return f"{{{', '.join(f'{_text(name)}: {member}' for name, member in members.items())}}}"


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)  # delta-rs misreads escaped characters beyond U+1FFFF


def _null_counts(column: pa.ChunkedArray) -> Any:
    """The number of NULLs; of a struct those of its fields, by name."""
    if not pa.types.is_struct(column.type):
        return column.null_count
    return {field.name: _null_counts(pc.struct_field(column, [number])) for number, field in enumerate(column.type)}


def has_order(kind: pa.DataType) -> bool:
    """Whether files are sorted by columns of this type, so that their bounds tell rows apart."""
    t, kind = pa.types, file_type(kind)
    plain = t.is_integer(kind) or t.is_date(kind) or t.is_timestamp(kind) or t.is_decimal(kind)
    return bool(plain or t.is_string(kind))


def has_bounds(kind: pa.DataType) -> bool:
    """Whether statistics have bounds for columns of this type, as those of delta-rs do."""
    return has_order(kind) or bool(pa.types.is_floating(kind) or pa.types.is_boolean(kind))


def _bounds(column: pa.ChunkedArray) -> tuple[str, str] | None:
    """The bounds of a column with values, in JSON. None if JSON cannot hold them."""
    found = pc.min_max(column)
    low, high = found["min"], found["max"]
    if pa.types.is_floating(column.type):
        return None if pc.any(pc.is_nan(column)).as_py() else (_float(low.as_py(), -0.0), _float(high.as_py(), 0.0))
    try:
        least, greatest = low.as_py(), high.as_py()
    except (OverflowError, ValueError):  # years beyond those of many tools
        return None
    if isinstance(least, str):
        above = _above(greatest)
        return None if above is None else (_text(least[:_LONGEST_TEXT]), _text(above))
    return _plain(low, least), _plain(high, greatest)


def _float(value: float, zero: float) -> str:
    """A bound of floats, among which -0.0 and 0.0 are equal. JSON has no infinities, so they are texts, as Spark writes
    them."""
    if isinf(value):
        return _text("Infinity" if value > 0 else "-Infinity")
    return json.dumps(value or zero)


def _above(text: str) -> str | None:
    """The text, or a shorter one that is above it if it is long. None if there is none.

    >>> _above("x" * 40) == "x" * 31 + "y"
    True
    """
    if len(text) <= _LONGEST_TEXT:
        return text
    kept = text[:_LONGEST_TEXT].rstrip(chr(sys.maxunicode))
    if not kept:
        return None
    return kept[:-1] + chr(0xE000 if kept[-1] == "\ud7ff" else ord(kept[-1]) + 1)  # between them are no characters


def _plain(bound: pa.Scalar, value: Any) -> str:
    if pa.types.is_timestamp(bound.type):
        text = bound.cast(pa.timestamp("us")).cast(pa.string()).as_py().replace(" ", "T")
        return _text(f"{text}Z" if bound.type.tz else text)
    if isinstance(value, Decimal):
        return f"{value:f}"  # all digits, as Spark writes them
    return json.dumps(value) if isinstance(value, int) else _text(str(value))
