"""Errors of commands: one line on standard error and exit code 1, without a traceback."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import typer
from rich.console import Console
from rich.markup import escape

from halfjoin.errors import HalfjoinError

T = TypeVar("T")


def guarded(call: Callable[..., T], *arguments: Any) -> T:
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


def text_of(script: Path) -> str:
    """The text of a script; `-` is standard input."""
    if str(script) == "-":
        return sys.stdin.read().removeprefix("\ufeff")  # a mark that editors on Windows write
    text: str = guarded(lambda path: path.read_text("utf-8-sig"), script)
    return text
