"""Says how a query begins: with lookups of known keys, or with scans."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from math import prod

from halfjoin.planner.known import lookups, scans
from halfjoin.planner.names import arrangement_name
from halfjoin.planner.plan import KnownAny, KnownIn, KnownKeys, ViewPlan


def reads(plan: ViewPlan) -> tuple[str, ...]:
    """A line for each lookup and each collection scanned: `looks up 2 keys in orders(o_orderkey)`, `scans lineitem`."""
    nodes = {node.output for node in plan.below}
    begun = [line for found in lookups(plan) for line in _lines(found, nodes)]
    return (*dict.fromkeys(begun), *(f"scans {name}" for name in dict.fromkeys(scans(plan))))


def _lines(known: KnownKeys, nodes: Collection[str]) -> Iterator[str]:
    """What is looked up in each arrangement."""
    if isinstance(known, KnownIn):
        source = known.source
        stored = source.constant is None and source.collection not in nodes
        keys = f"the keys of {arrangement_name(source)}" if stored else "the keys of a subquery"
        yield f"looks up {keys} in {arrangement_name(known.arrangement)}"
        return
    counts = dict[str, int]()
    for way in known.ways if isinstance(known, KnownAny) else [known]:
        name = arrangement_name(way.arrangement)
        counts[name] = counts.get(name, 0) + prod(map(len, way.values))
    for name, count in counts.items():
        yield f"looks up {count:,} {'key' if count == 1 else 'keys'} in {name}"
