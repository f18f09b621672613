"""The commands of `python -m halfjoin`: run scripts, query and inspect warehouses, explain plans, list functions."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

import pyarrow as pa
import pyarrow.csv
import typer

from halfjoin.cli import loading, shelled
from halfjoin.cli.doctor import doctor
from halfjoin.cli.files import columns_of, rows_of
from halfjoin.cli.group import Commands
from halfjoin.cli.guard import guarded, text_of
from halfjoin.cli.opening import there, warehouse_of
from halfjoin.cli.serve import serve
from halfjoin.cli.settings import read_settings
from halfjoin.cli.show import only_tag, show
from halfjoin.engine.batch.clock import Clock, shown
from halfjoin.engine.engine import Engine
from halfjoin.engine.storage.backup import backup as copied
from halfjoin.errors import HalfjoinError
from halfjoin.shell.local import answer, changes
from halfjoin.shell.output import json_text
from halfjoin.sql.functions import documentation
from halfjoin.version import VERSION

app = typer.Typer(cls=Commands, help="Incremental view maintenance in SQL.", add_completion=False,
                  pretty_exceptions_enable=False)

app.command()(shelled.shell)
app.command()(loading.load)
app.command()(loading.apply)
app.command()(loading.init)
app.command()(doctor)
app.command()(serve)

Warehouse = Annotated[str, typer.Argument(help="the folder or URL of a warehouse; another process may write to it")]
Named = Annotated[str, typer.Argument(help=(
    "the folder or URL of a warehouse; default: HALFJOIN_WAREHOUSE, halfjoin.toml"))]  # fmt: skip
Load = Annotated[list[str], typer.Option("--load", help=(
    "table=file.parquet or table=file.csv: inserts the file's rows into the table; repeat it for more files. The first "
    'line of a CSV file names the columns; an empty field is NULL, and "" is an empty text'))]  # fmt: skip


@app.callback(invoke_without_command=True)
def version(
    version: Annotated[bool, typer.Option("--version", help="print halfjoin's version")] = False,
) -> None:
    """Incremental view maintenance in SQL. `halfjoin [WAREHOUSE]` starts the shell."""
    if version:
        typer.echo(f"halfjoin {VERSION}")
        raise typer.Exit


@app.command()
def run(
    script: Annotated[Path, typer.Argument(help="a file of SQL statements; - for standard input")],
    load: Load = [],  # noqa: B006  typer reads the default, nobody changes it
    then: Annotated[list[Path], typer.Option("--then", help="a script to run after the loads")] = [],  # noqa: B006
    warehouse: Annotated[str, typer.Option(help=(
        "the folder or URL of the warehouse; default: HALFJOIN_WAREHOUSE, or in memory"))] = "",
    clock: Annotated[Clock | None, typer.Option(help=(
        "wall: times are milliseconds since 1970 and default to now; own: you set them (SET TIME = ..., a column "
        "__time). The first batch fixes the clock"))] = None,
) -> None:
    """Run a script (tables and views), load files into tables, run further scripts, and print the last result."""
    found = guarded(read_settings, {"warehouse": warehouse, "clock": clock}).settings
    with guarded(lambda: Engine(found.warehouse, **found.engine)) as engine, _told():
        result = guarded(engine.execute, text_of(script))
        for item in load:
            name, _, path = item.partition("=")
            if not path:
                raise typer.BadParameter(f"{item!r}: write table=file", param_hint="--load")
            columns = guarded(columns_of, engine, name)
            applied = guarded(engine.apply, {name: guarded(rows_of, Path(path), columns)})
            for view, changes in applied.diffs.items():
                typer.echo(f"{name}: {view} changed by {changes.num_rows:,} rows in {applied.seconds:.3f} s", err=True)
        for more in then:
            result = guarded(engine.execute, text_of(more))
        if result is not None and only_tag(result) is None:  # `_Lines` has printed the tags
            show(result)


@contextmanager
def _told() -> Iterator[None]:
    """Print what the engine logs meanwhile. A program that calls this command finds its own logging as it was."""
    log, lines = logging.getLogger("halfjoin"), _Lines()
    before = log.level
    log.addHandler(lines)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.setLevel(before)
        log.removeHandler(lines)


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
        guarded(engine.execute, text_of(script))
        if not view:
            views = engine.execute("SHOW VIEWS")
            if views is None or not views.num_rows:
                raise typer.BadParameter("the script creates no view", param_hint="script")
            view = views["name"][-1].as_py()
        typer.echo(guarded(engine.explain, view, format))


@app.command()
def query(
    warehouse: Warehouse,
    sql: Annotated[str, typer.Argument(help="a SELECT over the warehouse's tables and views")],
    as_of: Annotated[str, typer.Option(help="a number, or a timestamp's text; default: the last closed time")] = "",
    csv: Annotated[bool, typer.Option("--csv", help="print all rows, as comma-separated values")] = False,
) -> None:
    """Print the answer to a query over a warehouse, while another process may write to it."""
    with guarded(lambda: Engine(warehouse, read_only=True)) as engine:
        time = int(as_of) if as_of.lstrip("-").isdigit() else as_of or None
        answer = guarded(engine.query, sql, None, time)
    if csv:
        pyarrow.csv.write_csv(_flat(answer), sys.stdout.buffer)
    else:
        show(answer)


@app.command()
def status(warehouse: Named = "") -> None:
    """Print a warehouse's tables and views, each with its number of updates and its least readable time; how far its
    sinks and sources are."""
    told = guarded(read_settings, {"warehouse": warehouse}).settings
    with guarded(lambda: Engine(warehouse_of(told), read_only=True)) as engine:
        found = engine.stats()
    last = shown(found.upper - 1, found.clock)
    typer.echo(f"readable up to time {last}" if found.upper else "nothing is closed yet")
    listed = [
        {"name": c.name, "kind": c.kind, "updates": f"{c.updates:,}", "readable from": c.since, "errors": c.errors}
        for c in found.collections
    ]
    show(pa.Table.from_pylist(listed))
    if found.sinks:
        show(pa.Table.from_pylist([
            {"sink": s.name, "of": s.collection, "into": s.target, "waiting": s.waiting,
             "as of": None if s.upper is None else s.upper - 1, "error": s.error} for s in found.sinks]))  # fmt: skip
    if found.sources:
        show(pa.Table.from_pylist([
            {"source": s.name, "kind": s.kind, "into": ", ".join(s.into), "rows": s.rows, "bad": s.bad,
             "state": s.state, "error": s.error} for s in found.sources]))  # fmt: skip


@app.command()
def subscribe(
    warehouse: Warehouse,
    view: Annotated[str, typer.Argument(help="a materialized view")],
    as_of: Annotated[str, typer.Option(help="the time to start from; default: the last closed time")] = "",
    snapshot: Annotated[bool, typer.Option(help="start with the contents")] = True,
    follow: Annotated[bool, typer.Option(help="wait for further changes, until Ctrl-C")] = True,
) -> None:
    """Print a view's contents and its changes as they close, as JSON lines with __time and __diff."""
    with guarded(lambda: Engine(warehouse, read_only=True)) as engine:
        start = int(as_of) if as_of.lstrip("-").isdigit() else as_of or None
        try:
            for rows in guarded(changes, engine, view, start, snapshot, follow):
                typer.echo(json_text(answer(rows)), nl=False)
        except KeyboardInterrupt:
            raise typer.Exit(0) from None
        except HalfjoinError as error:
            guarded(_raise, error)


def _raise(error: HalfjoinError) -> None:
    raise error


@app.command()
def compact(warehouse: Named = "") -> None:
    """Forget times that are no longer readable, merge files, and remove those that nothing needs."""
    told = guarded(read_settings, {"warehouse": warehouse}).settings
    with guarded(lambda: Engine(there(warehouse_of(told)), **told.engine)) as engine:
        guarded(engine.compact)


@app.command()
def backup(
    warehouse: Warehouse, to: Annotated[str, typer.Argument(help="a folder that does not exist yet")]
) -> None:
    """Copy a warehouse to a new folder, as it is at one moment, while another process may write to it."""
    made = guarded(copied, warehouse, to)
    typer.echo(f"{to} has {made.files:,} files of {made.bytes:,} bytes, and upper = {made.upper}")


@app.command()
def functions() -> None:
    """Print the table of SQL functions, in Markdown."""
    typer.echo(documentation())


def _flat(rows: pa.Table) -> pa.Table:
    """Turn arrays into JSON texts, since CSV files have no arrays."""
    for number, field in enumerate(rows.schema):
        if pa.types.is_nested(field.type):
            texts = [None if value is None else json.dumps(value, default=str) for value in rows[number].to_pylist()]
            rows = rows.set_column(number, field.name, pa.array(texts, pa.string()))
    return rows
