"""Which members of the equivalence classes are known to be equal, as a path goes on."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from halfjoin.planner.block import Equality
from halfjoin.sql.expr import Expr, Literal
from halfjoin.sql.functions import resolve


class Links:
    """For each class its members in groups that are equal already; at the end of a path each class is one group."""

    def __init__(self, equalities: Sequence[Equality]) -> None:
        self.equalities = tuple(equalities)
        self._groups = [[{member} for member in equality.members] for equality in equalities]

    def join(self, position: int, left: Expr, right: Expr) -> None:
        """Two members of a class are equal from now on."""
        groups = self._groups[position]
        together = [group for group in groups if left in group or right in group]
        self._groups[position] = [group for group in groups if group not in together] + [set().union(*together)]

    def missing(self, available: Callable[[Expr], bool]) -> list[tuple[int, Expr, Expr]]:
        """Pairs (class, member, member) that make the available members of each class equal; they count so then."""
        pairs = []
        for position, equality in enumerate(self.equalities):
            here = [member for member in equality.members if available(member)]
            for member in here[1:]:
                if not any(here[0] in group and member in group for group in self._groups[position]):
                    pairs.append((position, here[0], member))
                    self.join(position, here[0], member)
        return pairs


def equality(left: Expr, right: Expr, null_safe: bool) -> Expr:
    """The predicate that two members of a class are equal; a constant stands on the right."""
    if isinstance(left, Literal):
        left, right = right, left
    return resolve("is not distinct from" if null_safe else "=", (left, right))
