"""Read the files of a Delta table that an engine follows, as the log describes them: data files, of which deletion
vectors leave out rows, and the files of the Change Data Feed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.types as pt

from halfjoin.engine.storage.place import Place
from halfjoin.engine.updates.updates import DIFF, Ints, Mask

CHANGE = "_change_type"
ADDS = ["insert", "update_postimage"]

# Spark writes moments as INT96 by default. Read as nanoseconds, those before 1677 and after 2262 would be others.
_FORMAT = ds.ParquetFileFormat(read_options=ds.ParquetReadOptions(coerce_int96_timestamp_unit="us"))

Read: TypeAlias = Callable[[], pa.Table]


@dataclass(frozen=True, slots=True)
class Column:
    """A column to read: its name, the name that it has in files and in the log's partitions, and its type."""

    name: str
    stored: str
    type: pa.DataType


@dataclass(frozen=True, slots=True)
class File:
    """A file of a table.

    Attributes:
        path: where it is in the table's folder. size: its bytes, if they are known. columns: those to read.
        fixed: the texts of the columns that partition the table, which the file does not have, by their stored names.
        rows: the numbers of the only rows to take; with `but`, of the rows to leave out. None: all rows are taken.
        diff: what to give all rows as `__diff`, if anything.
    """

    path: str
    size: int | None
    columns: Sequence[Column]
    fixed: Mapping[str, str | None] = field(default_factory=dict)
    rows: Ints | None = None
    but: bool = False
    diff: int | None = None


def parts(place: Place, file: File, most: int, which: Any = None) -> list[tuple[int, Read]]:
    """What reads a file, or its row groups if it has more than `most` bytes, and about how many bytes each has.

    `which`: a filter of the rows of the Change Data Feed. Its files say themselves what the diff of a row is.
    """
    size = most if file.size is None else file.size
    if size <= most:
        return [(size, lambda: _rows(place, file, None, which))]
    groups = range(_fragment(place, file).num_row_groups)

    def read(group: int) -> Read:
        return lambda: _rows(place, file, group, which)

    return [(size // len(groups), read(group)) for group in groups]


def _fragment(place: Place, file: File) -> Any:
    return _FORMAT.make_fragment(place.open(file.path))


def _rows(place: Place, file: File, group: int | None, which: Any) -> pa.Table:
    fragment = _fragment(place, file)
    first, count = 0, None
    if group is not None:
        lengths = [fragment.metadata.row_group(number).num_rows for number in range(group + 1)]
        first, count = sum(lengths[:-1]), lengths[-1]
        fragment = fragment.subset(row_group_ids=[group])
    stored = [one for one in file.columns if one.stored not in file.fixed]
    fields = [pa.field(one.stored, _unviewed(one.type)) for one in stored]
    if which is not None:
        fields.append(pa.field(CHANGE, pa.string()))
    rows = fragment.to_table(schema=pa.schema(fields), columns=[one.name for one in fields], filter=which)
    length = len(rows) if fields else fragment.count_rows()
    taken = _taken(file, first, length if count is None else count)
    if taken is not None:
        rows, length = rows.filter(pa.array(taken)), int(taken.sum())
    arrays = [_repeated(file.fixed[one.stored], one.type, length) if one.stored in file.fixed else rows[one.stored]
              for one in file.columns]  # fmt: skip
    names = [one.name for one in file.columns]
    if which is not None:
        comes = pc.is_in(rows[CHANGE], pa.array(ADDS))
        return pa.Table.from_arrays([*arrays, pc.if_else(comes, pa.scalar(1), pa.scalar(-1))], names=[*names, DIFF])
    if file.diff is not None:
        return pa.Table.from_arrays([*arrays, pa.repeat(file.diff, length)], names=[*names, DIFF])
    return pa.Table.from_arrays(arrays, names=names)


def _taken(file: File, first: int, count: int) -> Mask | None:
    """The mask of the rows to take, of `count` rows from the row number `first` on."""
    if file.rows is None:
        return None
    mask = np.full(count, file.but)
    mask[file.rows[(file.rows >= first) & (file.rows < first + count)] - first] = not file.but
    return mask


def _repeated(text: str | None, kind: pa.DataType, length: int) -> pa.Array:
    """A partition's value, which the log has as text; empty means NULL. Of bytes the text is UTF-8, whatever they are,
    as all readers take it. Types that rows may have as text stay text."""
    value = pa.scalar(text or None, pa.string())
    parsed = pt.is_integer(kind) or pt.is_floating(kind) or pt.is_boolean(kind)
    parsed = parsed or pt.is_binary(kind) or pt.is_binary_view(kind)
    return pa.repeat(value.cast(_unviewed(kind)) if parsed else value, length)


def text_of(value: Any) -> str | None:
    """A partition's value as the log has it."""
    if value is None:
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, bytes):
        return value.decode()
    return value.isoformat() if isinstance(value, date) else str(value)


def _unviewed(kind: pa.DataType) -> pa.DataType:
    """The type in which to read a column. Arrow cannot filter views, which delta-rs uses for texts and bytes."""
    if pt.is_list(kind):
        return pa.list_(_unviewed(kind.value_type))
    if pt.is_struct(kind):
        return pa.struct([(field.name, _unviewed(field.type)) for field in kind])
    return pa.string() if pt.is_string_view(kind) else pa.binary() if pt.is_binary_view(kind) else kind
