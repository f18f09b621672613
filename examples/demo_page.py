"""The demo's page: the verdict, latencies of maintaining and recomputing, each view's SQL and plan. No network."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from html import escape
from itertools import groupby

WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 860, 340, 72, 34, 40

STYLE = """
:root { --ours: #0b7285; --theirs: #c2570c; }
@media (prefers-color-scheme: dark) { :root { --ours: #3bc9db; --theirs: #ffa94d; } }
svg.chart { display: block; min-width: 640px; max-width: 1100px; width: 100%; height: auto; }
svg.chart text { fill: var(--ink); font: 12px system-ui, sans-serif; }
svg.chart text.ratio { font-weight: 600; }
svg.chart line { stroke: var(--line); stroke-width: .5; }
svg.chart line.ours { stroke: var(--ours); stroke-width: 2.5; }
svg.chart line.theirs { stroke: var(--theirs); stroke-width: 2.5; }
.ours { fill: var(--ours); color: var(--ours); stroke: var(--ours); }
.theirs { fill: var(--theirs); color: var(--theirs); stroke: var(--theirs); }
svg.chart text.ours, svg.chart text.theirs { stroke: none; }
svg.chart text.ours { fill: var(--ours); } svg.chart text.theirs { fill: var(--theirs); }
.verdict { border-left: 4px solid var(--ours); font-size: 1.1rem; padding-left: .7rem; }
"""

Latency = tuple[int, float, float]  # rows of the batch, ms to maintain, ms to recompute


def page(title: str, verdict: str, latencies: Sequence[Latency], views: Mapping[str, tuple[str, str]]) -> str:
    """The whole page. `views` has for each view its SQL and the page that explains its plan."""
    plans = list(views.values())
    style, legend = _between(plans[0][1], "<style>", "</style>"), _between(plans[0][1], "<body>", "<section>")
    sections = "".join(
        f'{_between(plan, "<section>", "</section>", "<section>")}'
        f"<details open><summary>as SQL</summary><pre>{escape(sql.strip())}</pre></details></section>\n"
        for sql, plan in plans
    )
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>
<meta name="viewport" content="width=device-width"><style>{style}{STYLE}</style></head><body>
<h1>{escape(title)}</h1>
<p class="verdict">{escape(verdict)}</p>
<h2>Milliseconds per batch for all views</h2>
<p>On a logarithmic scale: <b class="ours">●</b> maintained, <b class="theirs">●</b> recomputed in DuckDB on the same
contents. The bars are medians, the ratio is theirs.</p>
<div class="scroll">{chart(latencies)}</div>
<h2>Plans</h2>
{legend}
{sections}</body></html>
"""


def _between(text: str, start: str, end: str, before: str = "") -> str:
    return before + text.partition(start)[2].partition(end)[0]


def chart(latencies: Sequence[Latency]) -> str:
    """Two dots for each batch. Batches with about equally many rows form a group, which shows its medians."""
    values = [value for _, ours, theirs in latencies for value in (ours, theirs)]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))

    def height(value: float) -> float:
        return TOP + (high - math.log10(value)) / max(high - low, 1) * (HEIGHT - BOTTOM - TOP)

    parts = []
    for power in range(low, high + 1):
        y = height(10.0**power)
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{10.0**power:g} ms</text>')
    groups = [list(group) for _, group in groupby(sorted(latencies), key=lambda one: round(math.log10(one[0])))]
    step = (WIDTH - LEFT) / len(groups)
    for number, group in enumerate(groups):
        left = LEFT + (number + 0.5) * step
        rows = sorted({one[0] for one in group})
        said = f"{rows[0]:,}" if len(rows) == 1 else f"{rows[0]:,} to {rows[-1]:,}"
        parts.append(f'<text x="{left:.1f}" y="{HEIGHT - 18}" text-anchor="middle">{said}</text>')
        medians = []
        for name, position, side in (("ours", 1, -1), ("theirs", 2, 1)):
            median = statistics.median(one[position] for one in group)
            medians.append(median)
            for place, one in enumerate(group):
                x, y = left + side * step * (0.06 + 0.2 * (place + 0.5) / len(group)), height(one[position])
                title = f"<title>{one[0]:,} rows: {one[position]:.1f} ms</title>"
                parts.append(f'<circle class="{name}" cx="{x:.1f}" cy="{y:.1f}" r="3">{title}</circle>')
            y, ends = height(median), sorted((left + side * step * 0.05, left + side * step * 0.27))
            parts.append(f'<line class="{name}" x1="{ends[0]:.1f}" x2="{ends[1]:.1f}" y1="{y:.1f}" y2="{y:.1f}"/>')
            x, anchor = (ends[0] - 5, "end") if side < 0 else (ends[1] + 5, "start")
            parts.append(f'<text class="{name}" x="{x:.1f}" y="{y + 4:.1f}" text-anchor="{anchor}">{median:.3g}</text>')
        ratio = f"{medians[1] / medians[0]:.1f} x"
        parts.append(f'<text class="ratio" x="{left:.1f}" y="{TOP - 14}" text-anchor="middle">{ratio}</text>')
    parts.append(f'<text x="{(WIDTH + LEFT) / 2:.0f}" y="{HEIGHT - 2}" text-anchor="middle">rows of the batch</text>')
    label = "Latency of each batch, maintained and recomputed"
    return f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">{"".join(parts)}</svg>'
