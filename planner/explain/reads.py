"""Says how a query begins: with lookups of known keys, or with scans."""

from __future__ import annotations

from collections.abc import Collection
from math import prod

from halfjoin.planner.known import lookups, scans
from halfjoin.planner.names import arrangement_name
from halfjoin.planner.plan import Known, KnownIn, ViewPlan


def reads(plan: ViewPlan) -> tuple[str, ...]:
    """A line for each lookup and each collection scanned: `looks up 2 keys in orders(o_orderkey)`, `scans lineitem`."""
    nodes = {node.output for node in plan.below}
    begun = [f"looks up {_keys(known, nodes)} in {arrangement_name(known.arrangement)}" for known in lookups(plan)]
    return (*dict.fromkeys(begun), *(f"scans {name}" for name in dict.fromkeys(scans(plan))))


def _keys(known: Known | KnownIn, nodes: Collection[str]) -> str:
    if isinstance(known, Known):
        keys = prod(map(len, known.values))
        return f"{keys:,} {'key' if keys == 1 else 'keys'}"
    source = known.source
    stored = source.constant is None and source.collection not in nodes
    return f"the keys of {arrangement_name(source)}" if stored else "the keys of a subquery"
