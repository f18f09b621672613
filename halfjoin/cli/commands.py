"""The commands of `python -m halfjoin`: run scripts, query and inspect warehouses, explain plans, list functions."""

from __future__ import annotations

import csv
import json
import logging
import re
import sys
from collections.abc import Callable, Mapping
from errno import ENOENT
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import typer
from rich.console import Console
from rich.markup import escape

from halfjoin.cli.show import only_tag, show
from halfjoin.engine.batch.clock import Clock, shown
from halfjoin.engine.engine import Engine
from halfjoin.engine.scalar.casts_text import from_text
from halfjoin.engine.scalar.failures import Failed
from halfjoin.errors import HalfjoinError
from halfjoin.sql.functions import documentation
from halfjoin.sql.parse.type_names import type_named
from halfjoin.sql.types import FLOATS, INTEGERS, Kind, SqlType

app = typer.Typer(help="Incremental view maintenance in SQL.", no_args_is_help=True, add_completion=False,
                  pretty_exceptions_enable=False)
T = TypeVar("T")

Warehouse = Annotated[str, typer.Argument(help="the folder or URL of a warehouse; another process may write to it")]
Load = Annotated[list[str], typer.Option("--load", help=(
    "table=file.parquet or table=file.csv: inserts the file's rows into the table; repeat it for more files. The first "
    'line of a CSV file names the columns; an empty field is NULL, and "" is an empty text'))]  # fmt: skip


@app.command()
def run(
    script: Annotated[Path, typer.Argument(help="a file of SQL statements; - for standard input")],
    load: Load = [],  # noqa: B006  typer reads the default, nobody changes it
    then: Annotated[list[Path], typer.Option("--then", help="a script to run after the loads")] = [],  # noqa: B006
    warehouse: Annotated[str, typer.Option(help="the folder or URL of the warehouse; default: in memory")] = "",
    clock: Annotated[Clock | None, typer.Option(help=(
        "wall: times are milliseconds since 1970 and default to now; own: you set them (SET TIME = ..., a column "
        "__time). The first batch fixes the clock"))] = None,
) -> None:
    """Run a script (tables and views), load files into tables, run further scripts, and print the last result."""
    with _guarded(lambda: Engine(warehouse or None, clock=clock)) as engine:
        logging.getLogger("halfjoin").addHandler(_Lines())
        logging.getLogger("halfjoin").setLevel(logging.INFO)
        result = _guarded(engine.execute, _text(script))
        for item in load:
            name, _, path = item.partition("=")
            if not path:
                raise typer.BadParameter(f"{item!r}: write table=file", param_hint="--load")
            columns = _guarded(_columns, engine, name)
            applied = _guarded(engine.apply, {name: _guarded(_rows, Path(path), columns)})
            for view, changes in applied.diffs.items():
                typer.echo(f"{name}: {view} changed by {changes.num_rows:,} rows in {applied.seconds:.3f} s", err=True)
        for more in then:
            result = _guarded(engine.execute, _text(more))
        if result is not None and only_tag(result) is None:  # `_Lines` has printed the tags
            show(result)


class _Lines(logging.Handler):
    """Prints what the engine logs, such as `INSERT 0 3`, on standard error, one line a record."""

    def emit(self, record: logging.LogRecord) -> None:
        typer.echo(record.getMessage(), err=True)


@app.command()
def explain(
    script: Annotated[Path, typer.Argument(help="a file of CREATE statements; - for standard input")],
    view: Annotated[str, typer.Option(help="the view to explain; default: the last one")] = "",
    format: Annotated[Literal["text", "mermaid", "json", "html"], typer.Option()] = "text",
) -> None:
    """Print the dataflow of a view that a script creates."""
    with Engine() as engine:
        _guarded(engine.execute, _text(script))
        if not view:
            views = engine.execute("SHOW VIEWS")
            if views is None or not views.num_rows:
                raise typer.BadParameter("the script creates no view", param_hint="script")
            view = views["name"][-1].as_py()
        typer.echo(_guarded(engine.explain, view, format))


@app.command()
def query(
    warehouse: Warehouse,
    sql: Annotated[str, typer.Argument(help="a SELECT over the warehouse's tables and views")],
    as_of: Annotated[str, typer.Option(help="a number, or a timestamp's text; default: the last closed time")] = "",
    csv: Annotated[bool, typer.Option("--csv", help="print all rows, as comma-separated values")] = False,
) -> None:
    """Print the answer to a query over a warehouse, while another process may write to it."""
    with _guarded(lambda: Engine(warehouse, read_only=True)) as engine:
        time = int(as_of) if as_of.lstrip("-").isdigit() else as_of or None
        answer = _guarded(engine.query, sql, None, time)
    if csv:
        pyarrow.csv.write_csv(_flat(answer), sys.stdout.buffer)
    else:
        show(answer)


@app.command()
def status(warehouse: Warehouse) -> None:
    """Print a warehouse's tables and views, each with its number of updates and its least readable time."""
    with _guarded(lambda: Engine(warehouse, read_only=True)) as engine:
        found = engine.stats()
    last = shown(found.upper - 1, found.clock)
    typer.echo(f"readable up to time {last}" if found.upper else "nothing is closed yet")
    listed = [
        {"name": c.name, "kind": c.kind, "updates": f"{c.updates:,}", "readable from": c.since, "errors": c.errors}
        for c in found.collections
    ]
    show(pa.Table.from_pylist(listed))


@app.command()
def functions() -> None:
    """Print the table of SQL functions, in Markdown."""
    typer.echo(documentation())


def _guarded(call: Callable[..., T], *arguments: Any) -> T:
    """Call; on an error of the engine or of a file, print the error's text without a traceback, and exit with 1."""
    try:
        return call(*arguments)
    except HalfjoinError as error:
        kind, text = type(error).__name__, str(error)
    except OSError as error:
        kind, text = "File", f"{error.filename or arguments[0]}: {error.strerror or error}"
    except (pa.ArrowException, UnicodeDecodeError) as error:
        kind, text = "File", f"{arguments[0]} cannot be read: {error}"
    Console(stderr=True).print(f"[red]{kind}[/red]: {escape(text)}", soft_wrap=True)
    raise typer.Exit(1)


def _text(script: Path) -> str:
    return sys.stdin.read() if str(script) == "-" else _guarded(script.read_text)


def _columns(engine: Engine, table: str) -> dict[str, Kind]:
    """The kind of type of each column of a table, by the column's name."""
    quoted = table.replace('"', '""')
    shown = engine.execute(f'SHOW COLUMNS FROM "{quoted}"')
    assert shown is not None
    return {column["name"]: type_named(column["type"]).kind for column in shown.to_pylist()}


def _rows(path: Path, columns: Mapping[str, Kind]) -> pa.Table:
    if not path.is_file():  # pyarrow would read a folder as a data set
        raise FileNotFoundError(ENOENT, "no such file", str(path))
    if path.suffix.lower() != ".csv":
        try:
            return pyarrow.parquet.read_table(path)
        except pa.ArrowInvalid as error:
            raise pa.ArrowInvalid(f"{error} Only a file whose name ends in .csv is read as CSV.") from error
    # Columns of other types stay text, which the engine casts exactly; pyarrow's guess would turn 007 into a number.
    plain = {**dict.fromkeys(INTEGERS, pa.int64()), Kind.BOOLEAN: pa.bool_()}
    options = pyarrow.csv.ConvertOptions(
        column_types={name: plain.get(kind, pa.string()) for name, kind in columns.items()},
        null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False,
        true_values=["true", "t", "1"], false_values=["false", "f", "0"],
    )  # fmt: skip
    try:
        rows = pyarrow.csv.read_csv(path, convert_options=options)
    except pa.ArrowInvalid:  # read again in one thread: then the error names the row
        one = pyarrow.csv.ReadOptions(use_threads=False)
        try:
            rows = pyarrow.csv.read_csv(path, convert_options=options, read_options=one)
        except pa.ArrowInvalid as error:
            raise pa.ArrowInvalid(_named(str(error), path)) from None
    if not {*columns} & {*rows.column_names}:
        raise pa.ArrowInvalid(f"its first line must name columns of the table ({', '.join(columns)}) with commas "
                              f"between them; it is {','.join(rows.column_names)}")  # fmt: skip
    return _with_floats(rows, columns)


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
    with path.open(newline="") as lines:
        names = next(csv.reader(lines), [])

    def name(found: re.Match[str]) -> str:
        number = int(found[1])
        return f"column {names[number]}" if number < len(names) else found[0]

    return re.sub(r"CSV column #(\d+)", name, problem)


def _flat(rows: pa.Table) -> pa.Table:
    """Turn arrays into JSON texts, since CSV files have no arrays."""
    for number, field in enumerate(rows.schema):
        if pa.types.is_nested(field.type):
            texts = [None if value is None else json.dumps(value, default=str) for value in rows[number].to_pylist()]
            rows = rows.set_column(number, field.name, pa.array(texts, pa.string()))
    return rows
