"""Which tables PostgreSQL's catalog has, and their columns: read from `columns.txt`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from halfjoin.sql.expr import Column
from halfjoin.sql.system import catalog_type


@dataclass(frozen=True, slots=True)
class SystemTable:
    """A table (`kind` r) or view (v) of PostgreSQL's catalog, with its number. `types`: as pg_type names them."""

    name: str
    oid: int
    kind: str
    columns: tuple[Column, ...]
    types: tuple[str, ...]


@cache
def system_tables() -> Mapping[str, SystemTable]:
    """All tables and views, by their names with the schema."""
    lines = (Path(__file__).parent / "columns.txt").read_text(encoding="utf-8").splitlines()
    found: dict[str, SystemTable] = {}
    head, body = "", ""
    for line in [*lines, ""]:
        if line.startswith("  "):
            body += " " + line.strip()
            continue
        if body:
            name, oid, kind = head.split()
            pairs = [part.split() for part in body.split(",")]
            columns = tuple(Column(column, catalog_type(type)) for column, type in pairs)
            found[name] = SystemTable(name, int(oid), kind, columns, tuple(type for _, type in pairs))
        head, body = line, ""
    return found
