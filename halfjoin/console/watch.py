"""Looks at an engine once a second, for all who watch it: rates, latencies, memory, what waits."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from halfjoin.console.bottleneck import bottleneck, counted
from halfjoin.engine.batch.activity import Activity, BatchWork
from halfjoin.engine.engine import Engine
from halfjoin.engine.statements.stats import Stats
from halfjoin.errors import HalfjoinError

_PERIOD = 1.0  # seconds between two looks
_POINTS = 300  # looks that the page's lines show
_RECENT = 60.0  # seconds of batches that latencies are of
_RATES = 10  # looks that rates are of; batches may come more seldom than looks


@dataclass(frozen=True, slots=True)
class Look:
    """What one look at an engine found."""

    at: float
    stats: Stats
    activity: Activity


@dataclass(slots=True)
class Watch:
    """The looks at one engine. `points`: of the last five minutes, for the page's lines."""

    engine: Engine
    points: list[dict[str, float]] = field(default_factory=list)
    last: Look | None = None
    problem: str | None = None
    _changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def run(self) -> None:
        """Look once a second, until cancelled. An engine that fails is looked at again."""
        while True:
            began = time.monotonic()
            try:
                look = await asyncio.to_thread(self.look)
                self.problem = None
                self._note(look)
            except HalfjoinError as error:
                self.problem = str(error)
            async with self._changed:
                self._changed.notify_all()
            await asyncio.sleep(max(0.0, _PERIOD - (time.monotonic() - began)))

    def look(self) -> Look:
        """Look now. It waits while a batch is carried out."""
        return Look(time.time(), self.engine.stats(), self.engine.activity())

    async def each(self) -> AsyncIterator[dict[str, Any]]:
        """The overview after each look, at most one a second; a slow reader misses some."""
        while True:
            if self.last is not None or self.problem is not None:
                yield self.overview()
            async with self._changed:
                with suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(self._changed.wait(), 15)  # a sign of life for proxies

    def overview(self) -> dict[str, Any]:
        """What the first page shows."""
        if self.last is None:
            return {"problem": self.problem, "points": []}
        look = self.last
        stats, recent = look.stats, within(look.activity.recent, look.at - _RECENT)
        return {
            "problem": self.problem, "upper": stats.upper, "clock": stats.clock, "memory": stats.memory,
            "budget": stats.budget, "batches": look.activity.batches, "rows": look.activity.rows,
            "latency": latency(recent), "points": self.points[-_POINTS:], "bottleneck": bottleneck(stats, recent),
            "tables": sum(one.kind == "table" for one in stats.collections),
            "views": sum(one.kind == "materialized view" for one in stats.collections),
            "rate": {key: sum(one[key] for one in self.points[-_RATES:]) / len(self.points[-_RATES:])
                     for key in ("batches", "rows")},
            "failing": [one.name for one in stats.collections if one.errors], "behind": behind(stats),
            "recent": [shown(one) for one in [*look.activity.recent][-12:][::-1]],
        }  # fmt: skip

    def _note(self, look: Look) -> None:
        before = self.last
        self.last = look
        seconds = _PERIOD if before is None else max(look.at - before.at, 1e-3)
        recent = within(look.activity.recent, look.at - _PERIOD * 1.5)
        batches = 0 if before is None else look.activity.batches - before.activity.batches
        rows = 0 if before is None else look.activity.rows - before.activity.rows
        self.points.append({"at": look.at, "batches": batches / seconds, "rows": rows / seconds,
                            "memory": look.stats.memory, **latency(recent)})  # fmt: skip
        del self.points[:-_POINTS]


def behind(stats: Stats) -> list[dict[str, str]]:
    """What has not got all: sinks, sources and views that fail; with how far it is behind, and why."""
    found = [(f"view {', '.join(one.users) if one.kind == 'node' else one.name}", "",
              f"an expression fails for {counted(one.errors, 'row')}") for one in stats.collections if one.errors]
    found += [(f"source {one.name}", f"{one.lag:,} {one.unit}" if one.lag else "", one.error or "")
              for one in stats.sources if one.lag or one.error]  # fmt: skip
    found += [(f"sink {one.name}", counted(one.waiting, "batch", "batches"), one.error or "")
              for one in stats.sinks if one.waiting or one.error]  # fmt: skip
    return [dict(zip(("what", "far", "why"), one, strict=True)) for one in found]


def within(batches: Sequence[BatchWork], since: float) -> list[BatchWork]:
    """The batches that ended at or after a moment."""
    return [one for one in batches if one.at >= since]


def latency(batches: Sequence[BatchWork]) -> dict[str, float]:
    """Milliseconds that half of the batches, and 99 in 100 of them, took at most; 0 if there are none."""
    if not batches:
        return {"p50": 0.0, "p99": 0.0}
    p50, p99 = np.percentile([one.seconds * 1000 for one in batches], [50, 99])
    return {"p50": round(float(p50), 3), "p99": round(float(p99), 3)}


def shown(one: BatchWork) -> dict[str, Any]:
    """A batch as the page shows it."""
    return {"at": one.at, "upper": one.upper, "runner": one.runner, "ms": round(one.seconds * 1000, 3),
            "tables": dict(one.tables),
            "changed": {name: work.rows for name, work in one.nodes.items() if work.rows}}  # fmt: skip
