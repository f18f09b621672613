"""Reads files of rows, each as its name's ending says: CSV, JSON lines, Parquet, Arrow, also packed; and folders of
Delta tables."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from errno import ENOENT
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet

from halfjoin.cli import json_values
from halfjoin.cli.csv_files import csv_schema, read_csv
from halfjoin.engine.engine import Engine
from halfjoin.engine.feeds.delta_source import DeltaSource
from halfjoin.engine.feeds.files.options import PACKED
from halfjoin.engine.intake.schemas import type_of, values_by_name
from halfjoin.sql.parse.type_names import type_named
from halfjoin.sql.types import Kind

_JSON = (".json", ".jsonl", ".ndjson")
_ARROW = (".arrow", ".feather", ".ipc")
ENDINGS = ".csv, .jsonl, .json, .ndjson, .parquet, .arrow, .feather"


def columns_of(engine: Engine, table: str) -> dict[str, Kind]:
    """The kind of type of each column of a table, by the column's name."""
    quoted = table.replace('"', '""')
    shown = engine.execute(f'SHOW COLUMNS FROM "{quoted}"')
    assert shown is not None
    return {column["name"]: type_named(column["type"]).kind for column in shown.to_pylist()}


def rows_of(path: Path, columns: Mapping[str, Kind]) -> Any:
    """The rows of a file for a table: an Arrow table, or a list of dicts.

    Raises:
        OSError: the file cannot be read. pa.ArrowException: it does not hold rows.
    """
    if path.is_dir():
        return _delta(path).snapshot()
    with _unpacked(path) as plain:
        return _rows_of(plain, columns)


def _rows_of(path: Path, columns: Mapping[str, Kind]) -> Any:
    ending = path.suffix.lower()
    if ending == ".csv":
        return read_csv(path, columns)
    if ending in _JSON:
        return json_rows(_lines(path))
    if ending in _ARROW:
        return _arrow(path)
    try:
        # Spark writes moments as INT96; read as nanoseconds, those before 1677 and after 2262 would be others.
        return pyarrow.parquet.read_table(path, coerce_int96_timestamp_unit="us", page_checksum_verification=True)
    except pa.ArrowInvalid as error:
        hint = ("Only a file whose name ends in .csv is read as CSV; known endings: "
                f"{ENDINGS}, and {', '.join(PACKED)} after them.")  # fmt: skip
        raise pa.ArrowInvalid(f"{error} {hint}") from error


def _lines(path: Path) -> list[str]:
    """The lines of a text. Only a line feed ends one: other separators may stand in a string of JSON."""
    return path.read_text(encoding="utf-8-sig").split("\n")


def json_rows(lines: list[str], first: int = 1) -> list[dict[str, Any]]:
    """The objects of JSON lines, from line `first` on, as rows; see `json_values`.

    Raises:
        pa.ArrowInvalid: a line is not an object.
    """
    return [json_values.row(row) for row in _objects(lines, json_values.loads, first)]


def _objects(lines: list[str], loads: Callable[[str], Any], first: int = 1) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(lines, first):
        if not line.strip():
            continue
        try:
            row = loads(line)
        except ValueError as error:
            raise pa.ArrowInvalid(f"line {number}: {error}") from None
        if not isinstance(row, dict):
            raise pa.ArrowInvalid(f"line {number} is not an object: write {{\"column\": value, ...}}")
        yield row


def schema_of(path: Path) -> pa.Schema:
    """The columns of a file and their types. Those of CSV and JSON are guessed from all rows.

    Raises:
        OSError, pa.ArrowException: as of `rows_of`.
    """
    if path.is_dir():
        return _delta(path).schema
    with _unpacked(path) as plain:
        return _schema_of(plain)


def _schema_of(path: Path) -> pa.Schema:
    ending = path.suffix.lower()
    if ending == ".csv":
        return csv_schema(path)
    if ending in _JSON:
        return _of_objects(list(_objects(_lines(path), json.loads)))
    return _arrow(path).schema if ending in _ARROW else pyarrow.parquet.read_schema(path)


def name_of(path: Path) -> str:
    """The name of a file without the endings that say how it is read."""
    return Path(path.stem).stem if path.suffix.lower() in PACKED else path.stem


@contextmanager
def _unpacked(path: Path) -> Iterator[Path]:
    """A file that is not packed, with the rest of the name."""
    if not path.is_file():
        raise FileNotFoundError(ENOENT, "no such file", str(path))
    codec = PACKED.get(path.suffix.lower())
    if codec is None:
        yield path
        return
    with TemporaryDirectory() as folder:
        plain = Path(folder, path.stem)
        with pa.input_stream(str(path), compression=codec) as packed, plain.open("wb") as written:
            copyfileobj(packed, written)
        yield plain


def _of_objects(rows: list[dict[str, Any]]) -> pa.Schema:
    """The columns of JSON lines. What holds objects is a jsonb."""
    return pa.schema([
        (name, pa.json_() if any(map(json_values.holds_objects, values)) else type_of(name, values))
        for name, values in values_by_name(rows).items()
    ])


def _arrow(path: Path) -> pa.Table:
    with pa.memory_map(str(path)) as source:
        try:
            return pyarrow.ipc.open_file(source).read_all()
        except pa.ArrowInvalid:
            source.seek(0)
            return pyarrow.ipc.open_stream(source).read_all()


def _delta(path: Path) -> DeltaSource:
    if not (path / "_delta_log").is_dir():
        raise IsADirectoryError(ENOENT, "a folder that is not a Delta table: name the files in it, or apply it with "
                                "halfjoin apply WAREHOUSE TABLE FOLDER", str(path))  # fmt: skip
    return DeltaSource(path)
