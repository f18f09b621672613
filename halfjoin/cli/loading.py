"""Commands that bring rows into a warehouse: `load` files, `apply` lines of standard input, `init` for the tables."""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import Annotated, Any

import pyarrow as pa
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from halfjoin.cli.files import columns_of, json_rows, name_of, rows_of, schema_of
from halfjoin.cli.guard import guarded
from halfjoin.cli.opening import opened, there
from halfjoin.engine.batch.ids import load_id
from halfjoin.engine.engine import Engine
from halfjoin.engine.intake.rows import inserts, upserts
from halfjoin.engine.statements.creating import create_like
from halfjoin.errors import Conflict, HalfjoinError

Files = Annotated[list[Path], typer.Argument(help="CSV, JSON lines, Parquet, Arrow, or folders of Delta tables")]
Warehouse = Annotated[str, typer.Argument(help="the folder or URL of a warehouse; it is created if it does not exist")]
Upsert = Annotated[bool, typer.Option("--upsert", help="replace the rows of the same PRIMARY KEY")]
Types = Annotated[list[str], typer.Option("--type", help="column=type: where the guess is wrong, as in zip=text")]
Key = Annotated[str, typer.Option("--key", help="the PRIMARY KEY of a new table: columns with commas between them")]
_FLAGS = {"mode": "--upsert", "recursive": "--recursive"}
_ROWS = 10_000  # of standard input in one batch
_SECONDS = 1.0  # a batch of standard input waits for no more rows than come in this time


def load(
    warehouse: Warehouse,
    table: Annotated[str, typer.Argument(help="a table; it is created from the first file if it does not exist")],
    files: Files,
    upsert: Upsert = False,
    key: Key = "",
    types: Types = [],  # noqa: B006
) -> None:
    """Load files into a table, each as one batch. A file that is loaded already is passed over, so a load goes on."""
    with guarded(opened, warehouse) as engine:
        if table not in _tables(engine):
            guarded(engine.execute, guarded(_created, files[0], table, key, types))
        columns = guarded(columns_of, engine, table)
        shown = Progress(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
                         console=Console(stderr=True), transient=True)  # fmt: skip
        with shown:
            task = shown.add_task(table, total=len(files))
            for file in files:
                shown.update(task, description=file.name)
                rows = guarded(rows_of, file, columns)
                batch = {table: upserts(rows) if upsert else inserts(rows)}
                before = engine.stats().upper
                applied = guarded(lambda given=batch, of=file: engine.apply(given, batch_id=_id(table, of)))
                again = ", loaded already" if applied.upper <= before else ""
                shown.console.print(f"{file.name}: {_count(rows):,} rows{again}", highlight=False)
                shown.advance(task)


def apply(
    warehouse: Warehouse,
    table: Annotated[str, typer.Argument(help="a table of the warehouse")],
    folder: Annotated[str, typer.Argument(help="a folder of CSV, JSON lines or Parquet, or its URL; without it: "
                                          "standard input")] = "",
    upsert: Upsert = False,
    watch: Annotated[bool, typer.Option("--watch", help="go on with each new file of the folder")] = False,
    recursive: Annotated[bool, typer.Option("--recursive", help=(
        "the folders in it, too; a folder day=2024-01-02 names a column of its rows"))] = False,
) -> None:
    """Apply JSON lines of standard input as they come, in batches of up to 10,000 rows or one second.

    A line may have "__diff" (-1 deletes the row) and "__time". With a folder: apply each of its files once, as a source
    FROM FILES does, also over several calls.
    """
    with guarded(lambda: opened(there(warehouse))) as engine:
        guarded(columns_of, engine, table)
        if folder:
            options = {"mode": "upserts" if upsert else "rows", "recursive": recursive}
            guarded(_apply_folder, engine, table, folder, options, watch)
            return
        first, batches = 1, _batches(sys.stdin)
        while lines := guarded(lambda _: next(batches, None), "standard input"):
            rows = guarded(lambda _, given=lines, number=first: json_rows(given, number), "standard input")
            first += len(lines)
            applied = guarded(engine.apply, {table: upserts(rows) if upsert else rows})
            typer.echo(f"{len(rows):,} rows in {applied.seconds:.3f} s", err=True)


def _apply_folder(engine: Engine, table: str, folder: str, options: dict[str, Any], watch: bool) -> None:
    """Apply the new files of a folder; the source that remembers them stays in the warehouse, paused."""
    place = folder if "://" in folder else str(Path(folder).resolve())
    if "://" not in folder and not Path(place).is_dir():  # before a source remembers it
        if Path(place).exists():
            raise HalfjoinError(f"{folder} is a file, and apply reads a folder",
                                remedy=f"halfjoin load WAREHOUSE {table} {folder}")  # fmt: skip
        raise HalfjoinError(f"there is no folder {folder}")
    name = _remembering(engine, table, place, options)
    quoted, before = name.replace('"', '""'), _done(engine, name)
    engine.execute(f'ALTER SOURCE "{quoted}" RESUME')
    try:
        while True:
            engine.run_sources(_SECONDS * 2, only=name)
            rows = _done(engine, name)
            if rows > before:
                typer.echo(f"{rows - before:,} rows", err=True)
            before = rows
            if not watch:
                return
    except KeyboardInterrupt:
        typer.echo("stopped; the next call goes on from here", err=True)
    finally:
        engine.execute(f'ALTER SOURCE "{quoted}" PAUSE')


def _remembering(engine: Engine, table: str, place: str, options: dict[str, Any]) -> str:
    """The name of the source that remembers the files of a folder. A table that was renamed keeps its own.

    Raises:
        Conflict: earlier calls applied the folder with other options.
    """
    digest = hashlib.sha256(place.encode()).hexdigest()[:16]
    known = {one.name: one for one in engine.stats().sources}
    for one in known.values():
        if one.into == [table] and one.name.startswith("apply ") and digest in one.name.split():
            before = {"recursive": False, **json.loads(one.options)}
            for option, now in options.items():
                if before.get(option) != now:
                    said = "without" if now in ("upserts", True) else "with"
                    raise Conflict(f"earlier calls applied {place} {said} {_FLAGS[option]}", name=one.name, remedy=(
                        f'go on like this; or DROP SOURCE "{one.name}", which forgets the files that are applied'))
            return one.name
    names = (f"apply {table} {digest}{more}" for more in ("", *(f" {number}" for number in range(2, len(known) + 3))))
    name = next(one for one in names if one not in known)
    engine.create_source(name, "files", table, path=place, **options)
    return name


def _done(engine: Engine, source: str) -> int:
    return next(one.rows for one in engine.stats().sources if one.name == source)


def init(
    files: Files,
    key: Key = "",
    types: Types = [],  # noqa: B006
) -> None:
    """Print CREATE TABLE for the columns of files; a table has the name of its file."""
    for file in files:
        typer.echo(f"{guarded(_created, file, name_of(file), key, types)};")


def _created(file: Path, table: str, key: str, types: list[str]) -> str:
    """CREATE TABLE for the columns of a file.

    Raises:
        HalfjoinError: an option names no column, or a type has no SQL type.
    """
    try:
        schema = schema_of(file)
    except ValueError as error:
        raise pa.ArrowInvalid(str(error)) from error
    given = dict(_override(one) for one in types)
    return create_like(table, schema, [name.strip() for name in key.split(",") if name.strip()], given)


def _override(text: str) -> tuple[str, str]:
    name, equals, type = text.partition("=")
    if not equals:
        raise HalfjoinError(f"--type {text}", remedy="write --type column=type")
    return name, type


def _id(table: str, file: Path) -> str:
    """The batch id of a file: its table and its content. So the same content is not loaded twice."""
    made = hashlib.sha256()
    for part in sorted(file.rglob("*")) if file.is_dir() else [file]:
        if part.is_file():
            with part.open("rb") as source:
                made.update(hashlib.file_digest(source, "sha256").digest())
    return load_id(table, file.name, made.hexdigest()[:32])


def _count(rows: Any) -> int:
    return rows.num_rows if isinstance(rows, pa.Table) else len(rows)


def _tables(engine: Engine) -> list[str]:
    shown = engine.execute("SHOW TABLES")
    return [] if shown is None else list(shown["name"].to_pylist())


def _batches(stream: Iterable[str]) -> Iterator[list[str]]:
    """Lines in batches: a batch ends with enough rows, or when enough time has passed since its first row.

    Raises:
        OSError, UnicodeDecodeError: as of the stream, after the lines before.
    """
    lines: Queue[str | Exception | None] = Queue(2 * _ROWS)
    Thread(target=_read, args=(stream, lines), daemon=True).start()  # so that a pause keeps no row waiting
    line = lines.get()
    while isinstance(line, str):
        batch, until = [line], time.monotonic() + _SECONDS
        with suppress(Empty):
            while len(batch) < _ROWS and isinstance(line := lines.get(timeout=max(until - time.monotonic(), 0)), str):
                batch.append(line)
        yield batch
        if isinstance(line, str):
            line = lines.get()
    if line is not None:
        raise line


def _read(stream: Iterable[str], lines: Queue[str | Exception | None]) -> None:
    try:
        for line in stream:
            lines.put(line)
    except (OSError, ValueError) as problem:  # such as bytes that are not UTF-8
        lines.put(problem)
    else:
        lines.put(None)
