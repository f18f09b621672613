"""HTML for notebooks: a head line, tables, folded parts. Everything is escaped, nothing is loaded from elsewhere.

Colours are those of the page (`currentColor`), so a piece reads well in a light and in a dark notebook.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

LONGEST = 200  # characters of a cell; a longer text ends with an ellipsis
_FAINT = "opacity:.65"
_LINE = "border-bottom:1px solid color-mix(in srgb,currentColor 20%,transparent)"


def piece(title: str, *parts: str) -> str:
    """A titled piece. `parts` are HTML already."""
    return f'<div class="halfjoin" style="font-size:13px"><div><b>{escape(title)}</b></div>{"".join(parts)}</div>'


def note(text: str) -> str:
    """A line of less weight."""
    return f'<div style="{_FAINT}">{escape(text)}</div>' if text else ""


def warning(text: str) -> str:
    """A line that says what is wrong."""
    return f'<div style="border-left:4px solid #c4721a;padding-left:.6em">{escape(text)}</div>'


def code(text: str) -> str:
    """Text as it is, in lines; long lines scroll."""
    return f'<pre style="overflow-x:auto;font-size:12px;margin:.4em 0">{escape(text)}</pre>'


def folded(title: str, *parts: str) -> str:
    """Parts that a click opens."""
    return f'<details><summary style="cursor:pointer;{_FAINT}">{escape(title)}</summary>{"".join(parts)}</details>'


def table(head: Sequence[str], rows: Iterable[Sequence[str | None]], right: Sequence[bool]) -> str:
    """A table of texts; None is NULL. `right`: which columns are aligned to the right."""
    sides = ["right" if one else "left" for one in right]
    names = "".join(f'<th style="text-align:{side}">{escape(name)}</th>'
                    for name, side in zip(head, sides, strict=True))  # fmt: skip
    body = "".join(f'<tr style="{_LINE}">{"".join(map(_cell, row, sides))}</tr>' for row in rows)
    return (
        '<div style="overflow-x:auto"><table cellpadding="4" style="border-collapse:collapse;margin:.3em 0">'
        f'<thead><tr style="{_LINE}">{names}</tr></thead>'
        f'<tbody style="white-space:pre-wrap">{body}</tbody></table></div>'
    )


def _cell(value: str | None, side: str) -> str:
    if value is None:
        shown = f'<i style="{_FAINT}">NULL</i>'
    else:
        shown = escape(value if len(value) <= LONGEST else value[: LONGEST - 1] + "…")
    return f'<td style="text-align:{side}">{shown}</td>'
