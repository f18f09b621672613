"""The columns that folders name: a file in `day=2024-01-02` has rows of that day, as Hive and Spark lay tables out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from urllib.parse import unquote

import pyarrow as pa

from halfjoin.catalog.models import Table
from halfjoin.engine.feeds.files.block import Block, Raw
from halfjoin.engine.scalar.casts_text import from_text
from halfjoin.engine.scalar.failures import Failed
from halfjoin.engine.updates.updates import DIFF, TIME
from halfjoin.errors import InvalidRow
from halfjoin.sql.types import BIGINT

_NULL = "__HIVE_DEFAULT_PARTITION__"  # what Hive and Spark write for NULL and for an empty text


def values_of(name: str) -> dict[str, str | None]:
    """What the folders of a file say, by columns.

    >>> values_of("day=2024-01-02/city=S%C3%A3o Paulo/a.csv")
    {'day': '2024-01-02', 'city': 'São Paulo'}

    Raises:
        InvalidRow: a folder's name is not UTF-8.
    """
    parted = (part.partition("=") for part in name.split("/")[:-1])
    named = ((_plain(column), _plain(value)) for column, equals, value in parted if column and equals)
    return {column: None if value == _NULL else value for column, value in named}


def _plain(text: str) -> str:
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        raise InvalidRow(f"its folder has the name {text}, which is not UTF-8", called="the file") from None


def placed(blocks: Iterator[Raw], values: Mapping[str, str | None], table: Table) -> Iterator[Raw]:
    """The blocks of a file whose folders have these values. A column that the file has, too, has the folder's.

    Raises:
        InvalidRow: a value is not of its column's type.
    """
    kinds = {column.name: column.type for column in table.columns} | {TIME: BIGINT, DIFF: BIGINT}
    arrays: dict[str, pa.Array] = {}
    for name, value in values.items():
        text = pa.array([value], pa.string())
        try:
            arrays[name] = from_text(kinds[name])(text) if name in kinds else text
        except Failed as problem:
            why = problem.message if problem.messages is None else problem.messages[0]
            raise InvalidRow(f"its folder {name}={value}: {why}", called="the file") from None
    for raw in blocks:
        yield Raw(raw.last, partial(_with, raw.make, arrays))


def _with(make: Callable[[], Block], arrays: Mapping[str, pa.Array]) -> Block:
    block = make()
    rows = block.rows
    for name, array in arrays.items():
        column = pa.repeat(array[0], len(rows))
        at = rows.schema.get_field_index(name)
        rows = rows.append_column(name, column) if at < 0 else rows.set_column(at, name, column)
    return Block(rows, block.number, block.bad, block.text)


def without(table: Table, values: Mapping[str, str | None]) -> Table:
    """The table as a file without a header has it, whose folders have these values."""
    return table.model_copy(update={"columns": tuple(one for one in table.columns if one.name not in values)})
