"""Finds the inputs of a join that equalities connect in cycles: triangles, four-cycles, cliques.

Only in a cycle can an order of lookups make far more rows than it ends with: the rows that a hub finds go when the
cycle closes. An input with only one link to the rest (an ear) closes no cycle. What is left when ears are cut off again
and again is the cyclic part; of a join without cycles nothing is left (Graham 1979; Yu and Özsoyoğlu 1979).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from halfjoin.planner.block import Block, Input
from halfjoin.planner.estimates import Estimates
from halfjoin.sql.expr import Column, Literal

Links = frozenset[int]  # positions of the equalities that have a member of an input


def cyclic(block: Block, is_plain: Callable[[Input], bool], estimates: Estimates) -> Mapping[str, Links]:
    """The links of each input in the cyclic part, by alias.

    A class with a constant is no link, because its value is known. Neither is one that may fail, because its failures
    belong to a fixed place. An input is no part of a cycle if some of its links, but not all, are a unique key: then a
    lookup by these finds one row, and with it the values of the others.
    """
    links = {item.alias: _links(block, item) for item in block.inputs if is_plain(item) and item.rows is None}
    for item in block.inputs:
        if item.alias in links and _is_fixed(block, item, links[item.alias], estimates):
            del links[item.alias]
    return without_ears(links)


def without_ears(links: Mapping[str, Links]) -> Mapping[str, Links]:
    """What is left when links of one input alone, and inputs whose links another one has, are taken away by turns.

    >>> triangle = {"r": frozenset({1, 2}), "s": frozenset({2, 3}), "t": frozenset({1, 3})}
    >>> sorted(without_ears(triangle | {"tail": frozenset({3, 4}), "end": frozenset({4})}))
    ['r', 's', 't']
    >>> without_ears({"r": frozenset({1, 2}), "s": frozenset({2, 3}), "t": frozenset({3, 4})})
    {}
    """
    left = dict(links)
    while True:
        count = Counter(link for own in left.values() for link in own)
        shared = {alias: frozenset(link for link in own if count[link] > 1) for alias, own in left.items()}
        ear = next((alias for alias, own in shared.items()
                    if any(own <= shared[other] for other in shared if other != alias) or not own), None)  # fmt: skip
        if ear is None:
            return {alias: own for alias, own in shared.items() if len(shared) > 2}
        del left[ear]


def _links(block: Block, item: Input) -> Links:
    own = {column.name for column in item.columns}
    return frozenset(
        position for position, members in enumerate(block.classes)
        if not any(isinstance(member.expr, Literal) or member.fallible for member in members)
        and any(member.inputs == {item.alias} and member.columns <= own for member in members)
    )  # fmt: skip


def _is_fixed(block: Block, item: Input, links: Links, estimates: Estimates) -> bool:
    """Whether some of an input's links are a unique key of it, but not all of them."""
    names = {position: {item.bare(member.expr.name) for member in block.classes[position]
                        if isinstance(member.expr, Column) and member.inputs == {item.alias}}
             for position in links}  # fmt: skip
    for unique in estimates.unique_keys(item.collection):
        used = {position for position, own in names.items() if own & unique}
        if used < links and all(any(name in names[position] for position in used) for name in unique):
            return True
    return False
