"""The group of commands: what is no command is the shell's, as in `halfjoin WAREHOUSE` or `halfjoin -c "SELECT 1"`."""

from __future__ import annotations

import os
from typing import Any

from typer.core import TyperGroup

SHELL = "shell"
_OWN = ("--help", "--version")


class Commands(TyperGroup):
    """Commands, of which the shell's name may be left out."""

    def main(self, *args: Any, **named: Any) -> Any:
        """Carry out a command."""
        _open_standard_files()
        return super().main(*args, **named)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Add the shell's name where no command is named."""
        if not args or (args[0] not in self.commands and args[0] not in _OWN):
            args = [SHELL, *args]
        left: list[str] = super().parse_args(ctx, args)
        return left


def _open_standard_files() -> None:
    """Open what is closed of standard input, output and error. A program may start this one without them, and then a
    file of the warehouse would be number 2, to which libraries write what goes wrong."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # becomes the lowest number that is free
