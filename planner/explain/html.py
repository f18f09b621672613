"""One page of HTML about plans that needs no other file: pictures drawn as SVG, readable in light and in dark mode."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from halfjoin.planner.explain.model import Explanation, NodeModel, explanation
from halfjoin.planner.explain.picture import picture
from halfjoin.planner.explain.text import text
from halfjoin.planner.facts import Facts
from halfjoin.planner.plan import ViewPlan

_STYLE = """
:root { color-scheme: light dark; --ink: #1b2430; --faint: #66717f; --ground: #ffffff; --line: #9aa5b1;
  --input: #e7f0fb; --lookup: #eef6ee; --new: #fdf3e0; --cross: #fbe5e3; --final: #f3f0fa; --view: #dfe9f7; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e8ee; --faint: #9aa5b3; --ground: #12161c; --line: #5a6675;
    --input: #1c2c40; --lookup: #1d3125; --new: #3a2f18; --cross: #43221f; --final: #2a2540; --view: #223652; }
}
body { background: var(--ground); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto;
  max-width: 96rem; overflow-wrap: anywhere; padding: 0 1rem; }
h2 { font-size: 1.15rem; margin: 0 0 .5rem; }
section { margin-bottom: 2.5rem; }
.scroll { overflow-x: auto; }
.scroll::-webkit-scrollbar, pre::-webkit-scrollbar { height: 10px; }
.scroll::-webkit-scrollbar-track, pre::-webkit-scrollbar-track { background: var(--final); border-radius: 5px; }
.scroll::-webkit-scrollbar-thumb, pre::-webkit-scrollbar-thumb { background: var(--line); border-radius: 5px; }
.plan { display: block; width: 100%; height: auto; }
.plan text { fill: var(--ink); font: 12px ui-monospace, monospace; }
.plan text.title { font-weight: 600; }
.plan text.arrow { fill: var(--faint); font-size: 11px; text-anchor: middle; }
.plan rect { stroke: var(--line); fill: var(--final); }
.plan .input rect { fill: var(--input); rx: 18; }
.plan .lookup rect { fill: var(--lookup); }
.plan .new rect { fill: var(--new); }
.plan .cross rect { fill: var(--cross); }
.plan .view rect { fill: var(--view); stroke-width: 2; }
.plan .edge { fill: none; stroke: var(--line); stroke-width: 1.5; }
.plan .head { fill: var(--line); }
.key { color: var(--faint); font-size: .85rem; }
.key b { border: 1px solid var(--line); border-radius: 4px; color: var(--ink); font-weight: 400; padding: 0 .4em; }
pre { background: var(--final); border-radius: 8px; overflow-x: auto; padding: .8rem; font-size: 12.5px; }
summary { cursor: pointer; color: var(--faint); }
.warning { border-left: 4px solid #c4721a; padding-left: .7rem; }
"""

_KEY = (
    '<p class="key">Each row is the path of one input: Δ stands for its changed rows, ⋈ for a half-join, which looks '
    "them up in an arrangement. <b style=\"background:var(--lookup)\">existing arrangement</b> "
    '<b style="background:var(--new)">new arrangement</b> <b style="background:var(--cross)">cross product</b>. '
    "On the arrows: rows found per lookup, and whether the arrangement is read before or after the batch's own changes."
    "</p>"
)


def html(plan: ViewPlan, facts: Facts, name: str) -> str:
    """The plan of view `name` as a page."""
    return html_page([section(plan, facts, name)], title=name)


def html_page(sections: Iterable[str], title: str = "plans") -> str:
    """One page of several plans, each made by `section`."""
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head>\n'
        f"<body>{_KEY}\n{''.join(sections)}</body></html>\n"
    )


def section(plan: ViewPlan, facts: Facts, name: str) -> str:
    """The plan of one view: its picture, its warnings, and its text to unfold."""
    said = explanation(plan, facts, name)
    warnings = "".join(f'<p class="warning">{escape(warning)}</p>' for warning in said.warnings)
    made: list[Explanation | NodeModel] = [said, *said.nodes]
    pictures = "".join(f'<div class="scroll">{picture(one)}</div>\n' for one in made)
    return (
        f'<section><h2>{escape(name)}</h2>\n{pictures}{warnings}'
        f"<details><summary>as text</summary><pre>{escape(text(plan, facts, name))}</pre></details></section>\n"
    )
