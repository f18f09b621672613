"""Prepared statements as data: PREPARE, EXECUTE, DEALLOCATE."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlglot import exp


@dataclass(frozen=True)
class Prepare:
    """PREPARE name [(type, ...)] AS statement. `text` is that of the whole PREPARE."""

    name: str
    types: tuple[exp.Expr, ...]
    statement: exp.Expr
    text: str


@dataclass(frozen=True)
class Execute:
    """EXECUTE name [(value, ...)]."""

    name: str
    values: tuple[exp.Expr, ...]


@dataclass(frozen=True)
class Deallocate:
    """DEALLOCATE name, or ALL (None)."""

    name: str | None
