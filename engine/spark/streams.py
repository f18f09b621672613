"""Streams of rows on their way along delta paths, as Spark DataFrames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from halfjoin.engine.spark.frames import arranged, union
from halfjoin.engine.spark.layout import Frame, Layout
from halfjoin.engine.spark.probing import is_small
from halfjoin.engine.spark.pruning import Range
from halfjoin.planner.linear import Linear
from halfjoin.planner.plan import Stage

Spans: TypeAlias = Mapping[str, Range]  # the ranges of columns of a collection that a half-join looks up


@dataclass(frozen=True, slots=True)
class Stream:
    """Rows on their way along a path: the next operator, then the remaining stages and the final operator.

    `size`: the expected rows, None if unknown. `sure`: whether there cannot be more. `width`: about the bytes of a row
    in memory. `whole`: as in `Resting`. `spans`: the ranges of keys that the next half-join looks up.
    """

    frame: Frame
    layout: Layout
    due: Linear
    stages: tuple[Stage, ...]
    final: Linear
    size: float | None
    sure: bool
    width: float | None
    whole: int
    spans: Spans

    @property
    def is_small(self) -> bool:
        """Whether every task may load so many rows."""
        return self.size is not None and self.width is not None and is_small(self.size, self.width)


def merged(streams: Sequence[Stream]) -> list[Stream]:
    """Unite streams with equal remaining stages: a half-join that they share reads its arrangement once."""
    groups: dict[object, list[Stream]] = {}
    for stream in streams:
        same = (repr((stream.stages, stream.final)), frozenset(stream.layout.columns), stream.layout.keys)
        groups.setdefault(same, []).append(stream)
    return [_as_one(group) if len(group) > 1 else group[0] for group in groups.values()]


def _as_one(streams: Sequence[Stream]) -> Stream:
    first = streams[0]
    layout = replace(first.layout, errors=any(stream.layout.errors for stream in streams))
    frames = [arranged(stream.frame, stream.layout, layout) for stream in streams]
    sizes = [stream.size for stream in streams]
    size = None if None in sizes else sum(size for size in sizes if size is not None)
    whole, width = min(stream.whole for stream in streams), max(stream.width or 0 for stream in streams)
    return replace(first, frame=union(frames), layout=layout, size=size, sure=all(stream.sure for stream in streams),
                   width=width, whole=whole, spans={})  # fmt: skip
