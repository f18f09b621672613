"""The demo's page: a chart of latency per batch against recomputation, and the pictures of the plans. No network."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

WIDTH, HEIGHT, LEFT, BOTTOM = 860, 320, 72, 40

STYLE = """
:root { color-scheme: light dark; --ink: #1c2330; --faint: #8a94a6; --ours: #0b7285; --theirs: #c2570c; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e9ef; --faint: #6b7484; --ours: #3bc9db; --theirs: #ffa94d; }
}
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); max-width: 1300px; margin: 2rem auto; padding: 0 1rem; }
svg.chart { width: 100%; height: auto; }
svg.chart text { fill: var(--ink); font-size: 12px; }
svg.chart line { stroke: var(--faint); stroke-width: .5; }
.ours { fill: var(--ours); color: var(--ours); } .theirs { fill: var(--theirs); color: var(--theirs); }
iframe { width: 100%; height: 560px; border: 0; border-top: 1px solid var(--faint); }
"""

Latency = tuple[int, float, float]  # rows of the batch, ms maintained, ms recomputed


def page(scale: str, latencies: Sequence[Latency], plans: dict[str, str]) -> str:
    """The whole page; each plan is a page of its own, shown in a frame."""
    fit = "this.style.height = this.contentDocument.documentElement.scrollHeight + 'px'"
    frames = "\n".join(
        f'<iframe title="the plan of {escape(view)}" onload="{fit}" srcdoc="{escape(plan)}"></iframe>'
        for view, plan in plans.items()
    )
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>TPC-H, maintained</title><style>{STYLE}</style></head><body>
<h1>TPC-H at scale {escape(scale)}, maintained</h1>
<p>Milliseconds per batch for all views (logarithmic): <b class="ours">●</b> maintained,
<b class="theirs">●</b> recomputed in DuckDB on the same contents.</p>
{chart(latencies)}
{frames}
</body></html>
"""


def chart(latencies: Sequence[Latency]) -> str:
    """Two dots for each batch over its number of rows, on a logarithmic scale of milliseconds."""
    values = [value for _, ours, theirs in latencies for value in (ours, theirs)]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    step = (WIDTH - LEFT - 20) / len(latencies)

    def height(value: float) -> float:
        return 10 + (high - math.log10(value)) / max(high - low, 1) * (HEIGHT - BOTTOM - 10)

    parts = []
    for power in range(low, high + 1):
        y = height(10.0**power)
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{10.0**power:g} ms</text>')
    for number, (rows, ours, theirs) in enumerate(latencies):
        x = LEFT + (number + 0.5) * step
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT - 18}" text-anchor="middle">{rows:,}</text>')
        for name, value in (("ours", ours), ("theirs", theirs)):
            title = f"<title>{rows:,} rows: {value:.1f} ms</title>"
            parts.append(f'<circle class="{name}" cx="{x:.1f}" cy="{height(value):.1f}" r="4">{title}</circle>')
    parts.append(f'<text x="{(WIDTH + LEFT) / 2:.0f}" y="{HEIGHT - 2}" text-anchor="middle">rows of the batch</text>')
    label = "Latency of each batch, maintained and recomputed"
    return f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">{"".join(parts)}</svg>'
