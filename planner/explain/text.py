"""Lays a plan out as a tree of text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from halfjoin.planner.explain.model import Explanation, LookupStep, PathModel, explanation
from halfjoin.planner.facts import Facts
from halfjoin.planner.plan import ViewPlan


@dataclass(frozen=True)
class _Node:
    text: str
    below: tuple[_Node, ...] = ()


def text(plan: ViewPlan, facts: Facts, name: str) -> str:
    """The plan of view `name` as a tree: paths, lookups with key and arrangement, operators, costs, warnings."""
    said = explanation(plan, facts, name)
    return "\n".join(line for tree in _trees(said) for line in _lines(tree))


def number(value: float) -> str:
    """An estimate in few digits: 0.04, 2.5, 40, 1,200.

    >>> number(2.54), number(1234.5)
    ('2.5', '1,234')
    """
    if value >= 10:
        return f"{value:,.0f}"
    return f"{value:.1f}".removesuffix(".0") if value >= 1 else f"{value:.2g}"


def times(value: float, one: str) -> str:
    """`1 lookup`, `2.5 lookups`."""
    shown = number(value)
    return f"{shown} {one}" if shown == "1" else f"{shown} {one}s"


def _trees(said: Explanation) -> Iterator[_Node]:
    yield _made(said.name, said.columns, said.joins, said.steps)
    for node in said.nodes:
        tree = _made(f"node {node.name}", node.columns, node.joins, node.steps)
        shared = f", shared with {', '.join(node.shared_with)}" if node.shared_with else ""
        yield _Node(tree.text + shared, tree.below)
    if said.arrangements:
        found = (_Node(f"{item.name}: {item.text}") for item in said.arrangements)
        yield _Node("arrangements", tuple(found))
    if said.warnings:
        yield _Node("warnings", tuple(_Node(warning) for warning in said.warnings))


def _made(
    name: str, columns: Sequence[tuple[str, str]], joins: Sequence[tuple[PathModel, ...]], steps: Sequence[str]
) -> _Node:
    """A collection, and the steps and paths that make it."""
    shown = ", ".join(f"{column} {type}" for column, type in columns)
    below = [*map(_Node, steps), *map(_join, joins)]
    return _Node(f"{name} ({shown})", tuple(below) or (_Node("no rows, ever"),))


def _join(paths: tuple[PathModel, ...]) -> _Node:
    if len(paths) == 1 and not paths[0].lookups:
        return _path(paths[0])
    inputs = {path.input: path.input if path.input == path.collection else f"{path.collection} AS {path.input}"
              for path in paths}  # fmt: skip
    for lookup in (lookup for path in paths for lookup in path.lookups if lookup.arrangement.state != "constant"):
        inputs.setdefault(lookup.input, lookup.input)  # one whose own changes take another path
    return _Node(f"join of {', '.join(inputs.values())}", tuple(map(_path, paths)))


def _path(path: PathModel) -> _Node:
    if path.constant:
        head = f"constant {path.collection}, once"
    else:
        head = f"change of {path.input}"
        if path.lookups:
            head += f": {times(path.expected_lookups, 'lookup')}, {times(path.expected_found, 'row')} found per row"
    if path.fills and path.lookups:
        head += "; fills the view"
    if path.chooses:
        head += "; each row takes the order with the fewest partners, on Spark the first"
    below = [_Node(step) for step in path.source]
    below += [_lookup(lookup) for lookup in path.lookups]
    below += [_Node(step) for step in path.final]
    return _Node(head, tuple(below))


def _lookup(lookup: LookupStep) -> _Node:
    when = "after" if lookup.after else "before"
    head = f"look up {lookup.target}"
    named = lookup.arrangement.name.partition("(")[0]
    if lookup.input != named:
        head += f" AS {lookup.input}"
    head += f" by {', '.join(lookup.by)}" if lookup.by else ": every row (cross product)"
    if lookup.candidates:
        head += ", candidates"
    each = lookup.found / lookup.lookups if lookup.lookups else 0.0
    return _Node(f"{head} [{lookup.arrangement.state}, {when}, {times(each, 'row')} each]",
                 tuple(map(_Node, lookup.lines)))  # fmt: skip


def _lines(node: _Node, first: str = "", rest: str = "") -> Iterator[str]:
    yield first + node.text
    for child in node.below:
        last = child is node.below[-1]
        yield from _lines(child, rest + ("└─ " if last else "├─ "), rest + ("   " if last else "│  "))
