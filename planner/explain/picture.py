"""Draws a plan as SVG: each path is a row of boxes from the changed input to the view."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import zip_longest

from halfjoin.planner.explain.model import Explanation, LookupStep, NodeModel, PathModel
from halfjoin.planner.explain.text import number, times

CHARACTERS = 34  # at most, in a line of a box
FEWER = 26  # at most, in the boxes of long paths, so that they fit side by side
LONG = 4  # boxes; a path of this many or more is long
LINE, PAD, GAP, MARGIN = 17, 10, 46, 16
ADVANCE = 7.4  # width in px of a 12 px character, in the widest of the usual fonts
SMALLEST = 0.6  # share of its size to which a picture shrinks before it scrolls


@dataclass(frozen=True)
class _Box:
    """A box: its kind (a CSS class), its heading, the small lines below it, and the label of the arrow to it."""

    kind: str
    title: str
    lines: tuple[str, ...]
    arrow: str = ""

    @property
    def height(self) -> int:
        return 2 * PAD + LINE * (1 + len(self.lines))

    @property
    def width(self) -> int:
        return 2 * PAD + math.ceil(ADVANCE * max(map(len, (self.title, *self.lines))))


def picture(said: Explanation | NodeModel) -> str:
    """One SVG element for the node whose output is the view, or for a node below it."""
    paths = [path for paths in said.joins for path in paths]
    most = FEWER if any(len(path.lookups) >= LONG - 1 for path in paths) else CHARACTERS
    rows = [_boxes(path, most) for path in paths]
    widths = [max(box.width for box in column if box) for column in zip_longest(*rows)]
    starts = [MARGIN + sum(widths[:position]) + GAP * position for position in range(len(widths) + 1)]
    view_x = starts[-1]
    parts: list[str] = []
    y: float = MARGIN
    middles = []
    for row in rows:
        height = max(box.height for box in row)
        middles.append((y + height / 2, starts[len(row)] - GAP))
        for position, box in enumerate(row):
            x, top = starts[position], y + (height - box.height) / 2
            parts.append(_drawn(box, x, top, widths[position]))
            if position:
                parts.append(_arrow(x - GAP, y + height / 2, x, y + height / 2, box.arrow))
        y += height + 2 * MARGIN
    bottom = max(y - MARGIN, 120)
    listed = _wrapped([column for column, _ in said.columns], 20)[:8]
    view = _Box("view", said.name, (*(line for step in said.steps for line in _wrapped([step], most)), *listed))
    centre = bottom / 2
    for middle, x in middles:
        parts.append(_curve(x, middle, view_x, centre))
    parts.append(_drawn(view, view_x, centre - view.height / 2, view.width))
    bottom = max(bottom, centre + view.height / 2 + MARGIN)
    width = view_x + view.width + MARGIN
    return (
        f'<svg class="plan" viewBox="0 0 {width} {bottom:.0f}" style="min-width:{width * SMALLEST:.0f}px;'
        f'max-width:{width}px" role="img" '
        f'aria-label="Delta paths of {escape(said.name, quote=True)}">{_MARKER}{"".join(parts)}</svg>'
    )


def _boxes(path: PathModel, most: int) -> list[_Box]:
    """The boxes of one path. Their lines have at most `most` characters."""
    word = "constant" if path.constant else "Δ"
    named = path.input if path.input == path.collection else f"{path.input} ({path.collection})"
    last = path.lookups[-1].steps if path.lookups else path.source
    cost = f"{times(path.expected_lookups, 'lookup')}, {times(path.expected_found, 'row')} found"
    lines = [*path.source] if path.lookups else []
    first = _box("input", f"{word} {named}", [*lines, cost] if path.lookups else lines, most)
    middle = [_lookup(lookup, most) for lookup in path.lookups]
    steps = [*path.final] if path.lookups else [*last, *path.final]
    return [first, *middle, *([_box("final", "then", steps, most)] if steps else [])]


def _lookup(lookup: LookupStep, most: int) -> _Box:
    when = "after" if lookup.after else "before"
    arrangement = lookup.arrangement
    each = number(lookup.found / lookup.lookups) if lookup.lookups else "0"
    by = f"by {', '.join(lookup.by)}" if lookup.by else "every row: a cross product"
    kind = "cross" if not lookup.by and arrangement.state != "constant" else arrangement.state
    return _box(f"lookup {kind}", f"⋈ {lookup.target}", [by, arrangement.text, *lookup.lines], most,
                f"{each}x {when}")


def _box(kind: str, title: str, lines: Sequence[str], most: int, arrow: str = "") -> _Box:
    heading, *more = _wrapped([title], most)
    return _Box(kind, heading, (*more, *(part for line in lines for part in _wrapped([line], most))), arrow)


def _wrapped(texts: Sequence[str], width: int, joined: str = ", ") -> list[str]:
    return textwrap.wrap(joined.join(texts), width, subsequent_indent="  ") or [""]


def _drawn(box: _Box, x: float, y: float, width: float) -> str:
    lines = "".join(
        f'<text x="{x + PAD}" y="{y + PAD + LINE * (i + 1.8):.1f}" xml:space="preserve">{escape(line)}</text>'
        for i, line in enumerate(box.lines)
    )
    return (
        f'<g class="box {box.kind}"><rect x="{x}" y="{y:.1f}" width="{width}" height="{box.height}" rx="8"/>'
        f'<text class="title" x="{x + PAD}" y="{y + PAD + 12:.1f}">{escape(box.title)}</text>{lines}</g>'
    )


_MARKER = (
    '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    '<path class="head" d="M0 0L8 4L0 8z"/></marker></defs>'
)


def _arrow(x1: float, y1: float, x2: float, y2: float, label: str) -> str:
    words = label.split(" ")
    texts = "".join(
        f'<text class="arrow" x="{(x1 + x2) / 2:.1f}" y="{y1 + offset:.1f}">{escape(word)}</text>'
        for word, offset in zip(words, (-6, 15), strict=False)
    )
    return f'<path class="edge" d="M{x1} {y1:.1f}H{x2 - 1}" marker-end="url(#head)"/>{texts}'


def _curve(x1: float, y1: float, x2: float, y2: float) -> str:
    bend = x2 - GAP
    return (
        f'<path class="edge" d="M{x1} {y1:.1f}H{bend}C{x2 - 12} {y1:.1f} {bend + 6} {y2:.1f} {x2 - 1} {y2:.1f}" '
        'marker-end="url(#head)"/>'
    )
