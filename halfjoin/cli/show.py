"""`show`: print rows of reads and queries, or the changes of a batch, as tables."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from halfjoin.engine.batch.applied import Applied
from halfjoin.engine.scalar.cells import cells
from halfjoin.engine.statements.outcomes import RETURNED, TAG
from halfjoin.errors import HalfjoinError
from halfjoin.sql.functions.render import plain
from halfjoin.sql.types import INTERVAL

MOST_SHOWN = 40


def only_tag(rows: pa.Table) -> str | None:
    """PostgreSQL's command tag, for the answer of a statement that has no rows to show."""
    known = rows.schema.metadata or {}
    return known[TAG.encode()].decode() if TAG.encode() in known and RETURNED.encode() not in known else None


def show(rows: Any, most: int = MOST_SHOWN) -> None:
    """Print rows as a table.

    Args:
        rows: what `read`, `query` or `execute` returned (None prints nothing), any object with an Arrow stream
            (`__arrow_c_stream__`), or an `Applied`, whose changes are printed view by view.
        most: the most rows to print; a last line counts the others.

    Raises:
        HalfjoinError: `rows` is none of these.
    """
    if isinstance(rows, Applied):
        for view, changes in rows.diffs.items():
            _print(changes, most, f"{view}: {changes.num_rows:,} changes")
        return
    if rows is None:
        return
    if isinstance(rows, pa.Table) and (tag := only_tag(rows)) is not None:
        Console().print(tag)
        return
    if not isinstance(rows, pa.Table):
        if not hasattr(rows, "__arrow_c_stream__"):
            raise HalfjoinError(f"{type(rows).__name__} is not a table",
                                remedy="show takes what read, query and apply return")
        rows = pa.table(rows)
    _print(rows, most, None)


def _print(rows: pa.Table, most: int, title: str | None) -> None:
    shown = Table(title=title, title_justify="left")
    for name, kind in zip(rows.column_names, rows.schema.types, strict=True):
        number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
        shown.add_column(escape(name), justify="right" if number else "left")
    for row in zip(*(cells(column.slice(0, most)) for column in rows.columns), strict=True):
        shown.add_row(*("" if value is None else escape(_text(value)) for value in row))
    console = Console()
    console.print(shown)
    if rows.num_rows > most:
        console.print(f"{rows.num_rows - most:,} more rows")


def _text(value: Any) -> str:
    """A value for people; an interval as PostgreSQL prints it."""
    if isinstance(value, pa.MonthDayNano):
        return str(plain((value.months, value.days, value.nanoseconds // 1000), INTERVAL))
    return str(value)
