"""The group of commands: what is no command is the shell's, as in `halfjoin WAREHOUSE` or `halfjoin -c "SELECT 1"`."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup

SHELL = "shell"
_OWN = ("--help", "--version")


class Commands(TyperGroup):
    """Commands, of which the shell's name may be left out."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Add the shell's name where no command is named."""
        if not args or (args[0] not in self.commands and args[0] not in _OWN):
            args = [SHELL, *args]
        left: list[str] = super().parse_args(ctx, args)
        return left
