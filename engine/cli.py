"""The command line: run SQL scripts over files, look at plans, list the functions."""

from __future__ import annotations

import sys
from collections.abc import Callable
from errno import ENOENT
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from halfjoin.engine.engine import Engine
from halfjoin.sql.errors import HalfjoinError
from halfjoin.sql.functions import documentation

app = typer.Typer(help="Incremental view maintenance in SQL.", no_args_is_help=True, add_completion=False,
                  pretty_exceptions_enable=False)
_MOST_SHOWN = 40
T = TypeVar("T")

Load = Annotated[list[str], typer.Option("--load", help="table=file.parquet or table=file.csv, applied to the table")]


@app.command()
def run(
    script: Annotated[Path, typer.Argument(help="a file of SQL statements; - for standard input")],
    load: Load = [],  # noqa: B006  typer reads the default, nobody changes it
    then: Annotated[list[Path], typer.Option("--then", help="another script, after the files are loaded")] = [],  # noqa: B006
) -> None:
    """Run a script (tables and views), load files into tables, run further scripts; the last rows are printed."""
    with Engine() as engine:
        result = _guarded(engine.execute, _text(script))
        for item in load:
            name, _, path = item.partition("=")
            if not path:
                raise typer.BadParameter(f"{item!r}: write table=file", param_hint="--load")
            applied = _guarded(engine.apply, {name: _guarded(_rows, Path(path))})
            for view, changes in applied.diffs.items():
                typer.echo(f"{name}: {view} changed by {changes.num_rows:,} rows in {applied.seconds:.3f} s", err=True)
        for more in then:
            result = _guarded(engine.execute, _text(more))
        if result is not None:
            _print(result)


@app.command()
def explain(
    script: Annotated[Path, typer.Argument(help="a file of CREATE statements; - for standard input")],
    view: Annotated[str, typer.Option(help="the view to explain; the last one if not given")] = "",
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
def functions() -> None:
    """Print the table of SQL functions, in Markdown."""
    typer.echo(documentation())


def _guarded(call: Callable[..., T], *arguments: Any) -> T:
    """An error of the engine's, or of a file, ends the program with its text, without a traceback."""
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


def _rows(path: Path) -> pa.Table:
    if not path.is_file():  # pyarrow would take a folder for a data set
        raise FileNotFoundError(ENOENT, "no such file", str(path))
    return pyarrow.csv.read_csv(path) if path.suffix == ".csv" else pyarrow.parquet.read_table(path)


def _print(rows: pa.Table) -> None:
    shown = Table()
    for name in rows.column_names:
        shown.add_column(escape(name))
    for row in rows.slice(0, _MOST_SHOWN).to_pylist():
        shown.add_row(*("" if value is None else escape(str(value)) for value in row.values()))
    console = Console()
    console.print(shown)
    if rows.num_rows > _MOST_SHOWN:
        console.print(f"{rows.num_rows - _MOST_SHOWN:,} more rows")
