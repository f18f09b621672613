"""The extension for IPython: `%load_ext halfjoin` shows Arrow tables as tables, with their first rows."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from halfjoin.cli.show import only_tag
from halfjoin.engine.display.html import note
from halfjoin.engine.display.rows import rows_html


def load(ipython: Any) -> None:
    """Give the answers of queries a face."""
    ipython.display_formatter.formatters["text/html"].for_type(pa.Table, result_html)


def unload(ipython: Any) -> None:
    """Take it away."""
    ipython.display_formatter.formatters["text/html"].pop(pa.Table, None)


def result_html(rows: pa.Table) -> str:
    """An answer: its rows, or the tag of a statement that has none."""
    tag = only_tag(rows)
    if tag is not None:
        return note(tag)
    return rows_html(rows) + note(f"{rows.num_rows:,} row{'' if rows.num_rows == 1 else 's'}")
