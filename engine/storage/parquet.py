"""Write Parquet files of updates: sorted by the collection's key, with statistics."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
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
_LONGEST_TEXT = 32  # statistics would have to cut longer texts; they leave them out instead


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
    """Delta's statistics of a file: the rows, each column's NULLs, and its bounds if the column has an order."""
    nulls, least, greatest = {}, {}, {}
    for name in table.column_names:
        column = table.column(name)
        nulls[name] = _null_counts(column)
        if len(column) == column.null_count or not _ordered(column):
            continue
        bounds = pc.min_max(column)
        low, high = _plain(bounds["min"]), _plain(bounds["max"])
        if low is not None and high is not None:
            least[name], greatest[name] = low, high
    found = {"numRecords": len(table), "minValues": least, "maxValues": greatest, "nullCount": nulls}
    return json.dumps(found, ensure_ascii=False)  # delta-rs misreads escaped characters beyond U+1FFFF


def _null_counts(column: pa.ChunkedArray) -> Any:
    """The number of NULLs; of a struct those of its fields, by name."""
    if not pa.types.is_struct(column.type):
        return column.null_count
    return {field.name: _null_counts(pc.struct_field(column, [number])) for number, field in enumerate(column.type)}


def has_order(kind: pa.DataType) -> bool:
    """Whether statistics have bounds for columns of this type; for texts only if they are short."""
    t, kind = pa.types, file_type(kind)
    plain = t.is_integer(kind) or t.is_date(kind) or t.is_timestamp(kind) or t.is_decimal(kind)
    return bool(plain or t.is_string(kind))


def _ordered(column: pa.ChunkedArray) -> bool:
    if pa.types.is_string(column.type):
        return bool(pc.max(pc.binary_length(column)).as_py() <= _LONGEST_TEXT)
    return has_order(column.type)


def _plain(value: pa.Scalar) -> Any:
    """A bound for JSON. None if JSON cannot hold it, or if rounding might move a number to its wrong side."""
    try:
        plain = value.as_py()
    except (OverflowError, ValueError):  # years beyond those of many tools
        return None
    if pa.types.is_timestamp(value.type):
        text = value.cast(pa.timestamp("us")).cast(pa.string()).as_py().replace(" ", "T")
        return f"{text}Z" if value.type.tz else text
    if isinstance(plain, Decimal):
        return float(plain) if plain == Decimal(float(plain)) else None
    return plain if isinstance(plain, int | str) else str(plain)
