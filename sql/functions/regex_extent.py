"""Whether the first match that backtracking finds is also the longest, so that both engines agree on its extent."""

from __future__ import annotations

from collections.abc import Iterator

from halfjoin.sql.functions.regex_nodes import Alternatives, Chars, Group, Node, Ranges, Repeat, Sequence, overlap


def ambiguity(tree: Node) -> str | None:
    """Why the two may differ; None if they cannot.

    They agree if at each choice the next character decides: alternatives begin differently or are equally long, and a
    repeated or optional part of several characters begins with none that may follow it or that an earlier repeat could
    have taken. Repeats of single characters give back what later parts need, so they are free.
    """
    repeats = [node for node in _walk(tree) if isinstance(node, Repeat) and node.low != node.high]
    if len({node.lazy for node in repeats}) > 1:
        return "it mixes greedy and lazy repeats"
    if any(node.lazy for node in repeats) and any(isinstance(node, Alternatives) for node in _walk(tree)):
        return "it has alternatives beside lazy repeats"
    return _check(tree, (), [])


def has_optional_group(tree: Node) -> bool:
    """Whether a capturing group stands in an alternative or in a repeat of possibly no times."""
    return any(
        isinstance(inner, Group) and inner.number is not None
        for node in _walk(tree)
        if isinstance(node, Alternatives) or (isinstance(node, Repeat) and node.low == 0)
        for inner in _walk(node)
    )


def _walk(node: Node) -> Iterator[Node]:
    yield node
    match node:
        case Sequence(items=parts) | Alternatives(branches=parts):
            for part in parts:
                yield from _walk(part)
        case Group(item=item) | Repeat(item=item):
            yield from _walk(item)


def _check(node: Node, after: Ranges, taken: list[Ranges]) -> str | None:
    """`after`: characters that may follow; `taken`: those of the repeats so far, which is added to."""
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
    """Without parentheses around a single item."""
    while isinstance(node, Group) or (isinstance(node, Sequence) and len(node.items) == 1):
        node = node.item if isinstance(node, Group) else node.items[0]
    return node
