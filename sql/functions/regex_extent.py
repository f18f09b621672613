"""Decides whether RE2's first match is always PostgreSQL's longest match, so that both agree on its extent."""

from __future__ import annotations

from collections.abc import Iterator

from halfjoin.sql.functions.regex_nodes import (
    Alternatives,
    Anchor,
    Back,
    Chars,
    Group,
    Look,
    Node,
    Ranges,
    Repeat,
    Sequence,
    overlap,
)  # fmt: skip


def ambiguity(tree: Node) -> str | None:
    """Why the first and the longest match may differ; None if they cannot.

    They agree if the next character decides each choice: alternatives begin differently or are equally long, and a
    repeated or optional part of several characters begins with no character that may follow it, or that an earlier
    repeat could match. Repeats of single characters backtrack for later parts, so they are always allowed.
    """
    repeats = [node for node in walk(tree) if isinstance(node, Repeat) and node.low != node.high]
    if len({node.lazy for node in repeats}) > 1:
        return "it mixes greedy and lazy repeats"
    if any(node.lazy for node in repeats) and any(isinstance(node, Alternatives) for node in walk(tree)):
        return "it has alternatives beside lazy repeats"
    return _check(tree, (), [])


def has_optional_group(tree: Node) -> bool:
    """Whether a capturing group is inside an alternative, or inside a repeat that may match zero times."""
    return any(
        isinstance(inner, Group) and inner.number is not None
        for node in walk(tree)
        if isinstance(node, Alternatives) or (isinstance(node, Repeat) and node.low == 0)
        for inner in walk(node)
    )


def is_plain(tree: Node) -> bool:
    """Whether RE2 has all that the expression has."""
    return not any(isinstance(node, (Look, Back)) or (isinstance(node, Anchor) and node.spelled[-1] in "mMyY")
                   for node in walk(tree))  # fmt: skip


def refers_to_repeated(tree: Node) -> bool:
    """Whether a back reference is to a group that is inside a repeat."""
    backs = {node.number for node in walk(tree) if isinstance(node, Back)}
    return any(isinstance(inner, Group) and inner.number in backs
               for repeat in walk(tree) if isinstance(repeat, Repeat) for inner in walk(repeat.item))  # fmt: skip


def walk(node: Node) -> Iterator[Node]:
    """The node and all inside it."""
    yield node
    match node:
        case Sequence(items=parts) | Alternatives(branches=parts):
            for part in parts:
                yield from walk(part)
        case Group(item=item) | Repeat(item=item) | Look(item=item):
            yield from walk(item)


def _check(node: Node, after: Ranges, taken: list[Ranges]) -> str | None:
    """`ambiguity` of a part. `after`: characters that may follow; `taken`: those of earlier repeats, extended here."""
    match node:
        case Sequence(items=items):
            for i, item in enumerate(items):
                rest = Sequence(items[i + 1 :])
                following = rest.first() + (after if rest.width()[0] == 0 else ())
                reason = _check(item, following, taken)
                if reason:
                    return reason
        case Alternatives(branches=branches):
            return _alternatives(branches, after, taken)
        case Group(item=item):
            return _check(item, after, taken)
        case Repeat(item=item, low=low, high=high):
            if low != high and not isinstance(_bare(item), Chars):
                first = item.first()
                if item.width()[0] == 0 or overlap(first, after) or any(overlap(first, earlier) for earlier in taken):
                    return "a repeated part of several characters can end in more than one way"
            reason = _check(item, item.first() + after, taken)
            if low != high:
                taken.append(item.first())
            return reason
    return None


def _alternatives(branches: tuple[Node, ...], after: Ranges, taken: list[Ranges]) -> str | None:
    widths = {branch.width() for branch in branches}
    same_length = len(widths) == 1 and all(low == high for low, high in widths)
    firsts = [branch.first() for branch in branches]
    apart = all(branch.width()[0] > 0 for branch in branches) and not any(
        overlap(a, b) for i, a in enumerate(firsts) for b in firsts[i + 1 :])
    if not (same_length or apart):
        return "two alternatives can begin with the same character"
    for branch in branches:
        reason = _check(branch, after, taken)
        if reason:
            return reason
    return None


def _bare(node: Node) -> Node:
    """The node without parentheses around a single item."""
    while isinstance(node, Group) or (isinstance(node, Sequence) and len(node.items) == 1):
        node = node.item if isinstance(node, Group) else node.items[0]
    return node
