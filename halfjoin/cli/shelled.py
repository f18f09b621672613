"""The command that starts the shell, at a terminal or for a script."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from halfjoin.cli.guard import guarded
from halfjoin.cli.settings import read_settings
from halfjoin.errors import HalfjoinError
from halfjoin.shell.commands import COMMANDS
from halfjoin.shell.local import Local
from halfjoin.shell.output import Form, Output
from halfjoin.shell.script import Step
from halfjoin.shell.shell import Quit, Shell, read
from halfjoin.shell.targets import ShellError, Target


def shell(
    warehouse: Annotated[str, typer.Argument(help=(
        "the folder or URL of a warehouse, or postgres://... of a server; default: HALFJOIN_WAREHOUSE, or in memory"
    ))] = "",
    commands: Annotated[list[str], typer.Option("-c", "--command", help="run these statements, and leave")] = [],  # noqa: B006
    files: Annotated[list[str], typer.Option("-f", "--file", help="run a script, and leave; - is standard input")] = [],  # noqa: B006
    json: Annotated[bool, typer.Option("--json", help="print rows as JSON, one object a line")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="print rows as CSV")] = False,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="write answers to this file")] = None,
) -> None:
    """Type SQL, and see the answers; this is the default command. It exits with 1 if a statement failed."""
    form: Form = "json" if json else "csv" if csv else "table"
    where = guarded(_target, warehouse)
    made = Output(form=form)
    if output is not None:
        guarded(made.to, str(output))
    one = Shell(where, made, COMMANDS)
    try:
        if commands or files or not sys.stdin.isatty():
            went_well = _run(one, commands, files)
        else:
            from halfjoin.shell.terminal import interact

            interact(one)
            went_well = True
    finally:
        where.close()
    if not went_well:
        raise typer.Exit(1)


def _target(name: str) -> Target:
    """The target of a name: a server's URL, a warehouse, or nothing for an engine in memory.

    Raises:
        HalfjoinError, OSError: it cannot be reached.
    """
    if not name.startswith(("postgres://", "postgresql://")):
        told = read_settings({"warehouse": name}).settings
        return Local(told.warehouse, _notice, told.engine)
    try:
        from halfjoin.shell.remote import Remote
    except ImportError:
        raise HalfjoinError("a server needs psycopg", remedy="pip install 'halfjoin[postgres]'") from None
    return Remote(name, _notice)


def _notice(text: str) -> None:
    typer.echo(text, err=True)


def _run(shell: Shell, commands: list[str], files: list[str]) -> bool:
    """Run what the command line names, or else standard input, up to the first error."""
    try:
        if not all(_command(shell, text) for text in commands):
            return False
        names = files or ([] if commands else ["-"])
        return all(shell.script(read(name)) for name in names)
    except ShellError as error:
        return shell.fail(str(error))
    except Quit:
        return True


def _command(shell: Shell, text: str) -> bool:
    return shell.step(Step(text)) if text.startswith("\\") else shell.script(text)
