"""Conditions on partners alone: pairs whose partner does not meet them are dropped before rows are joined."""

from __future__ import annotations

from dataclasses import dataclass

from halfjoin.engine.join.at_once import Fetch, Partners
from halfjoin.engine.scalar import Scalar
from halfjoin.engine.scalar.threshold import Threshold


@dataclass(frozen=True, slots=True)
class Condition:
    """A compiled predicate that cannot fail, and the collection's columns that it reads.

    `threshold`: the same as a comparison with a constant, for which no value is gathered; None: it is something else.
    """

    scalar: Scalar
    fetch: Fetch
    threshold: Threshold | None

    def met(self, partners: Partners) -> Partners | None:
        """The pairs that meet it, through kernels. None: there is no kernel for some type."""
        if not len(partners):
            return partners
        columns = partners.columns(self.fetch)
        if columns is None:
            return None
        return partners.passing(self.scalar.evaluate(columns, len(partners)).values)
