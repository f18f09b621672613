"""A plan as a Mermaid flowchart, for Markdown."""

from __future__ import annotations

from collections.abc import Iterable

from halfjoin.planner.explain.model import LookupStep, PathModel, explanation
from halfjoin.planner.facts import Facts
from halfjoin.planner.plan import ViewPlan


def mermaid(plan: ViewPlan, facts: Facts, name: str) -> str:
    """The plan of view `name`: each path from the changed input through its half-joins to the view."""
    said = explanation(plan, facts, name)
    lines = ["flowchart LR", f"  view[[{_label([said.name, *said.steps])}]]"]
    lines += _paths(said.joins, "p", "view")
    for number, node in enumerate(said.nodes):
        lines.append(f"  node{number}[({_label([node.name, *node.steps])})]")
        lines += _paths(node.joins, f"n{number}p", f"node{number}")
    return "\n".join(lines)


def _paths(joins: Iterable[Iterable[PathModel]], prefix: str, end: str) -> list[str]:
    paths = (path for paths in joins for path in paths)
    return [line for position, path in enumerate(paths) for line in _path(path, f"{prefix}{position}", end)]


def _path(path: PathModel, prefix: str, end: str) -> list[str]:
    word = "constant" if path.constant else "change of"
    lines = [f"  {prefix}([{_label([f'{word} {path.input}', *path.source])}])"]
    node = prefix
    for number, lookup in enumerate(path.lookups):
        following = f"{prefix}s{number}"
        lines.append(f"  {following}[{_label(_lookup(lookup))}]")
        by = f"|{_label(lookup.by)}| " if lookup.by else " "
        lines.append(f"  {node} -->{by}{following}")
        node = following
    final = f"|{_label(path.final)}| " if path.final else " "
    lines.append(f"  {node} -->{final}{end}")
    return lines


def _lookup(lookup: LookupStep) -> list[str]:
    when = "after the batch" if lookup.after else "before the batch"
    return [f"⋈ {lookup.target}", f"{lookup.arrangement.state}, {when}", *lookup.lines]


def _label(lines: Iterable[str]) -> str:
    """Lines in quotes; Mermaid reads entities that begin with #."""
    escaped = (
        line.replace("#", "#35;").replace('"', "#quot;").replace("<", "#lt;").replace(">", "#gt;") for line in lines
    )
    return '"' + "<br/>".join(escaped) + '"'
