"""Says how a query begins: with lookups of known keys, or with scans."""

from __future__ import annotations

from collections import Counter
from math import prod

from halfjoin.planner.known import lookups, scans
from halfjoin.planner.names import arrangement_name
from halfjoin.planner.plan import ViewPlan


def reads(plan: ViewPlan) -> tuple[str, ...]:
    """A line for each lookup and each collection scanned: `looks up 2 keys in orders(o_orderkey)`, `scans lineitem`."""
    found = Counter((arrangement_name(known.arrangement), prod(map(len, known.values))) for known in lookups(plan))
    begun = (f"looks up {keys:,} {'key' if keys == 1 else 'keys'} in {name}" for name, keys in found)
    return (*begun, *(f"scans {name}" for name in dict.fromkeys(scans(plan))))
