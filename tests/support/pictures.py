"""Flowcharts of the manual as SVG, drawn when the site is built: no page of it loads a script from elsewhere.

It reads the part of Mermaid's language that the manual uses: nodes of four shapes, and arrows with labels. Nodes are in
layers, each behind all that leads to it; within a layer they are near their neighbours. An arrow over several layers
bends around the nodes between. (Sugiyama, Tagawa and Toda, 1981.)
"""

from __future__ import annotations

import html
import re
import textwrap
from dataclasses import dataclass, field
from typing import Any

_CHAR, _LINE, _PAD, _GAP, _WIDE = 6.7, 17.0, 11.0, 20.0, 30  # pixels; the last: characters of a line
_SHAPES = (("([", "])", 16), ("[[", "]]", 2), ("[(", ")]", 9), ("[", "]", 5))  # brackets, and the corners' radius
_NODE = re.compile(r"\s*(\w+)(?:(\(\[|\[\[|\[\(|\[)\"(.*?)\"(?:\]\)|\]\]|\)\]|\]))?")
_ARROW = re.compile(r"\s*(?:-->\|\"(?P<b>.*?)\"\||--\s*\"(?P<c>.*?)\"\s*-->|-\.\s*\"(?P<d>.*?)\"\s*\.->|-->|-\.->)")


@dataclass(slots=True)
class Box:
    """A node, or the place where an arrow passes a layer (`lines` is empty then)."""

    lines: list[str] = field(default_factory=list)
    radius: int = 5
    layer: int = 0
    x: float = 0.0
    y: float = 0.0

    @property
    def width(self) -> float:
        """Its width in pixels."""
        return max(map(len, self.lines), default=0) * _CHAR + 2 * _PAD if self.lines else 8.0

    @property
    def height(self) -> float:
        """Its height in pixels."""
        return len(self.lines) * _LINE + _PAD if self.lines else 8.0


@dataclass(slots=True)
class Arrow:
    """An arrow: the boxes that it goes through, its label, and whether it is dotted."""

    through: list[str]
    label: list[str]
    dotted: bool


def svg(source: str, *_: Any, **__: Any) -> str:
    """A flowchart as SVG, in the colours of the page around it. It has the form that `pymdownx.superfences` calls."""
    boxes, arrows, down = _read(source)
    layers = _layers(boxes, arrows)
    _place(boxes, arrows, layers, down=down)
    width = max(box.x + box.width / 2 for box in boxes.values()) + 2
    height = max(box.y + box.height / 2 for box in boxes.values()) + 2
    drawn = [_arrow([boxes[one] for one in arrow.through], arrow, down=down) for arrow in arrows]
    drawn += [_box(box) for box in boxes.values() if box.lines]
    head = ('<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
            '<path d="M0 0 8 4 0 8z" fill="currentColor"/></marker></defs>')
    return (f'<div style="overflow-x:auto"><svg role="img" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
            f'height="{height:.0f}" style="font:13px system-ui,sans-serif;display:block">'
            f"{head}{''.join(drawn)}</svg></div>")  # fmt: skip


def _read(source: str) -> tuple[dict[str, Box], list[Arrow], bool]:
    head, *lines = [line for line in source.splitlines() if line.strip()]
    boxes: dict[str, Box] = {}
    arrows: list[Arrow] = []
    for line in lines:
        place, before, arrow = 0, "", None
        while found := _NODE.match(line, place):
            name, shape, text = found.groups()
            box = boxes.setdefault(name, Box([name]))
            if text is not None:
                box.lines, box.radius = _wrapped(text, _WIDE), next(r for left, _, r in _SHAPES if left == shape)
            if arrow is not None:
                label = arrow["b"] or arrow["c"] or arrow["d"] or ""
                arrows.append(Arrow([before, name], _wrapped(label, 20), "-." in arrow[0]))
            before, place = name, found.end()
            arrow = _ARROW.match(line, place)
            if arrow is None:
                break
            place = arrow.end()
        if line[place:].strip():
            raise ValueError(f"a picture has {line!r}, which cannot be drawn")
    return boxes, arrows, head.split()[1] in ("TD", "TB")


def _wrapped(text: str, width: int) -> list[str]:
    plain = html.unescape(re.sub(r"#(\w+);", r"&\1;", text))
    return [line for part in plain.split("<br/>") for line in textwrap.wrap(part, width)]


def _layers(boxes: dict[str, Box], arrows: list[Arrow]) -> list[list[str]]:
    """The boxes of each layer, with a place for each arrow that passes one."""
    for _ in boxes:
        for arrow in arrows:
            start, end = arrow.through
            boxes[end].layer = max(boxes[end].layer, boxes[start].layer + 1)
    for number, arrow in enumerate(arrows):
        start, end = arrow.through
        passed = [f"{number} {layer}" for layer in range(boxes[start].layer + 1, boxes[end].layer)]
        boxes.update({name: Box(layer=int(name.split()[1])) for name in passed})
        arrow.through = [start, *passed, end]
    layers: list[list[str]] = [[] for _ in range(max(box.layer for box in boxes.values()) + 1)]
    for name, box in boxes.items():
        layers[box.layer].append(name)
    return layers


def _place(boxes: dict[str, Box], arrows: list[Arrow], layers: list[list[str]], *, down: bool) -> None:
    """Give the boxes their places: the layers one behind the other, then each box near its neighbours."""
    near: dict[str, list[str]] = {name: [] for name in boxes}
    room = [0.0] * (len(layers) + 1)  # what labels need before each layer
    for arrow in arrows:
        for one, other in zip(arrow.through, arrow.through[1:], strict=False):
            near[one].append(other)
            near[other].append(one)
        label = len(arrow.label) * _LINE if down else max(map(len, arrow.label), default=0) * _CHAR
        layer = boxes[arrow.through[0]].layer + 1
        room[layer] = max(room[layer], label)
    across = {name: box.width if down else box.height for name, box in boxes.items()}
    at: dict[str, float] = {}
    for layer in layers:
        where = 0.0
        for name in layer:
            at[name], where = where + across[name] / 2, where + across[name] + _GAP
    for turn in range(40):
        for layer in layers if turn % 2 else layers[::-1]:
            side = -1 if turn % 2 else 1
            wanted = {name: _mean([at[one] for one in near[name] if (boxes[one].layer - boxes[name].layer) * side > 0]
                                  or [at[name]]) for name in layer}  # fmt: skip
            layer.sort(key=lambda name: wanted[name])
            _spread(layer, wanted, across, at)
    least, depth = min(at[name] - across[name] / 2 for name in boxes), 2.0
    for number, layer in enumerate(layers):
        deep = max(boxes[name].height if down else boxes[name].width for name in layer)
        depth += (room[number] + 2 * _GAP) if number else 0
        for name in layer:
            beside, along = at[name] - least + 2, depth + deep / 2
            boxes[name].x, boxes[name].y = (beside, along) if down else (along, beside)
        depth += deep


def _spread(layer: list[str], wanted: dict[str, float], across: dict[str, float], at: dict[str, float]) -> None:
    """Put a layer's boxes where they want to be, without overlaps: groups that touch move as one."""
    groups: list[tuple[list[str], float]] = []  # the names, and the place of the first one's start
    for name in layer:
        group, start = [name], wanted[name] - across[name] / 2
        while groups and groups[-1][1] + _length(groups[-1][0], across) + _GAP > start:
            earlier, begun = groups.pop()
            both = [*earlier, *group]
            start = (len(earlier) * begun + len(group) * (start - _length(earlier, across) - _GAP)) / len(both)
            group = both
        groups.append((group, start))
    for group, start in groups:
        for name in group:
            at[name], start = start + across[name] / 2, start + across[name] + _GAP


def _length(names: list[str], across: dict[str, float]) -> float:
    return sum(across[name] for name in names) + _GAP * (len(names) - 1)


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def _box(box: Box) -> str:
    first = box.y - (len(box.lines) - 1) * _LINE / 2 + 4.5
    texts = [f'<text x="{box.x:.0f}" y="{first + _LINE * row:.0f}" text-anchor="middle" fill="currentColor">'
             f"{html.escape(line)}</text>" for row, line in enumerate(box.lines)]  # fmt: skip
    return (f'<rect x="{box.x - box.width / 2:.0f}" y="{box.y - box.height / 2:.0f}" width="{box.width:.0f}" '
            f'height="{box.height:.0f}" rx="{box.radius}" fill="var(--md-code-bg-color,#f5f5f5)" stroke="currentColor" '
            f'stroke-opacity=".5"/>{"".join(texts)}')  # fmt: skip


def _arrow(boxes: list[Box], arrow: Arrow, *, down: bool) -> str:
    """A curve from box to box. It goes straight through its label, which is at its start."""
    start, end = boxes[0], boxes[-1]
    x, y = (start.x, start.y + start.height / 2) if down else (start.x + start.width / 2, start.y)
    size = len(arrow.label) * _LINE if down else max(map(len, arrow.label), default=0) * _CHAR
    middle = (x, y + _GAP / 2 + size / 2) if down else (x + _GAP / 2 + size / 2, y)
    path = f"M{x:.0f} {y:.0f}"
    if arrow.label:
        x, y = (x, y + size + _GAP) if down else (x + size + _GAP, y)
        path += f"L{x:.0f} {y:.0f}"
    points = [(box.x, box.y) for box in boxes[1:-1]]
    points += [(end.x, end.y - end.height / 2 - 1) if down else (end.x - end.width / 2 - 1, end.y)]
    for x2, y2 in points:
        half = f"{x:.0f} {(y + y2) / 2:.0f} {x2:.0f} {(y + y2) / 2:.0f}" if down else (
            f"{(x + x2) / 2:.0f} {y:.0f} {(x + x2) / 2:.0f} {y2:.0f}")  # fmt: skip
        path += f"C{half} {x2:.0f} {y2:.0f}"
        x, y = x2, y2
    dashes = ' stroke-dasharray="4 4"' if arrow.dotted else ""
    first = middle[1] - (len(arrow.label) - 1) * _LINE / 2 + 4
    label = [f'<text x="{middle[0]:.0f}" y="{first + row * _LINE:.0f}" text-anchor="middle" fill="currentColor" '
             f'stroke="var(--md-default-bg-color,#fff)" stroke-width="5" paint-order="stroke">'
             f"{html.escape(line)}</text>" for row, line in enumerate(arrow.label)]  # fmt: skip
    return (f'<path d="{path}" fill="none" stroke="currentColor" stroke-opacity=".6"{dashes} marker-end="url(#tip)"/>'
            f"{''.join(label)}")  # fmt: skip
