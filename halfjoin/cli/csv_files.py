"""Reads CSV files as the types of a table say: an unquoted empty field is NULL, and texts stay as they are. In a file
of one column a blank line is such a field, as in PostgreSQL's COPY."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from halfjoin.engine.scalar.casts_text import from_text
from halfjoin.engine.scalar.failures import Failed
from halfjoin.sql.types import FLOATS, INTEGERS, Kind, SqlType

_ZEROS = r"^\s*[+-]?0\d"


def read_csv(path: Path, columns: Mapping[str, Kind]) -> pa.Table:
    """The rows of a CSV file, whose first line names columns of the table.

    Raises:
        pa.ArrowInvalid: a value is not of its column's type, or no column is the table's.
    """
    # Columns of other types stay text, which the engine casts exactly; pyarrow's guess would turn 007 into a number.
    plain = {**dict.fromkeys(INTEGERS, pa.int64()), Kind.BOOLEAN: pa.bool_()}
    options = pyarrow.csv.ConvertOptions(
        column_types={name: plain.get(kind, pa.string()) for name, kind in columns.items()},
        null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False,
        true_values=["true", "t", "1"], false_values=["false", "f", "0"],
    )  # fmt: skip
    parsing = pyarrow.csv.ParseOptions(ignore_empty_lines=len(_header(path)) != 1)
    try:
        rows = pyarrow.csv.read_csv(path, convert_options=options, parse_options=parsing)
    except pa.ArrowInvalid:  # read again in one thread: then the error names the row
        one = pyarrow.csv.ReadOptions(use_threads=False)
        try:
            rows = pyarrow.csv.read_csv(path, convert_options=options, parse_options=parsing, read_options=one)
        except pa.ArrowInvalid as error:
            raise pa.ArrowInvalid(_named(str(error), path)) from None
    if not {*columns} & {*rows.column_names}:
        raise pa.ArrowInvalid(f"its first line must name columns of the table ({', '.join(columns)}) with commas "
                              f"between them; it is {','.join(rows.column_names)}")  # fmt: skip
    return _with_floats(rows, columns)


def csv_schema(path: Path) -> pa.Schema:
    """The columns of a CSV file, with types guessed from all rows. Digits after a leading zero are a text: a number
    would lose the zero.

    Raises:
        pa.ArrowInvalid: as `read_csv`.
    """
    schema = pyarrow.csv.read_csv(path).schema
    numbers = [one.name for one in schema if pa.types.is_integer(one.type) or pa.types.is_floating(one.type)]
    if not numbers or len({*schema.names}) < len(schema):
        return schema
    converting = pyarrow.csv.ConvertOptions(include_columns=numbers,
                                            column_types=dict.fromkeys(numbers, pa.string()))  # fmt: skip
    texts = pyarrow.csv.read_csv(path, convert_options=converting)
    for name in numbers:
        if pc.any(pc.match_substring_regex(texts[name], _ZEROS), min_count=0).as_py():
            schema = schema.set(schema.get_field_index(name), pa.field(name, pa.string()))
    return schema


def _with_floats(rows: pa.Table, columns: Mapping[str, Kind]) -> pa.Table:
    """Cast the texts of float columns to numbers; a value beyond the range is an error, not infinity or zero."""
    for number, name in enumerate(rows.column_names):
        kind = columns.get(name)
        if kind in FLOATS:
            texts = pa.concat_arrays(rows[number].chunks) if rows.num_rows else pa.nulls(0, pa.string())
            try:
                rows = rows.set_column(number, name, from_text(SqlType(kind))(texts))
            except Failed as error:
                where = f" in row {int(error.mask.argmax()) + 1}" if error.mask is not None else ""
                raise pa.ArrowInvalid(f"column {name}{where}: {error.message}") from None
    return rows


def _named(problem: str, path: Path) -> str:
    """Arrow's error about a CSV file, with column names in place of its column numbers."""
    names = _header(path)

    def name(found: re.Match[str]) -> str:
        number = int(found[1])
        return f"column {names[number]}" if number < len(names) else found[0]

    return re.sub(r"CSV column #(\d+)", name, problem)


def _header(path: Path) -> list[str]:
    with path.open(newline="", encoding="utf-8-sig", errors="replace") as lines:
        return next(csv.reader(lines), [])
