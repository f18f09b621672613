"""Tracks which members of the equivalence classes a path knows to be equal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy

from halfjoin.planner.block import Known
from halfjoin.sql.expr import Expr, Literal
from halfjoin.sql.functions import resolve
from halfjoin.sql.kept import kept_if_small


class Links:
    """The members of each class, in groups that are known to be equal. At the end of a path each class is one group."""

    def __init__(self, classes: Sequence[Sequence[Known]]) -> None:
        self._classes = classes
        self._groups = [list(range(len(members))) for members in classes]  # the number of each member's group
        self._bound = frozenset[str]()
        # The classes to look at: the inputs of several members are bound, and they are not one group yet.
        self._open = {position for position in range(len(classes)) if self._several(position)}
        self._of: dict[str, list[int]] = {}  # the classes of each input
        for position, members in enumerate(classes):
            for alias in frozenset[str]().union(*(member.inputs for member in members)):
                self._of.setdefault(alias, []).append(position)

    def copy(self) -> Links:
        """The same links, that change by themselves."""
        other = copy(self)
        other._groups, other._open = [list(groups) for groups in self._groups], set(self._open)
        return other

    @property
    def equal(self) -> list[list[int]]:
        """For each member of each class the first one that it is known to be equal to."""
        return [[groups.index(group) for group in groups] for groups in self._groups]

    def arrive(self, alias: str) -> None:
        """Note that an input is bound."""
        self._bound |= {alias}
        for position in self._of.get(alias, ()):
            if self._several(position) and len(set(self._groups[position])) > 1:
                self._open.add(position)

    def _several(self, position: int) -> bool:
        return sum(member.inputs <= self._bound for member in self._classes[position]) > 1

    def join(self, position: int, left: Expr, right: Expr) -> None:
        """Note that two members of a class are equal from now on."""
        members = [known.expr for known in self._classes[position]]
        self._unite(position, members.index(left), members.index(right))

    def missing(self, available: Callable[[Known], bool]) -> list[tuple[int, Expr, Expr]]:
        """Pairs (class, member, member) that make the available members of each class equal from now on."""
        pairs = []
        for position in sorted(self._open):
            members, groups = self._classes[position], self._groups[position]
            here = [number for number, member in enumerate(members) if available(member)]
            for number in here[1:]:
                if groups[number] != groups[here[0]]:
                    pairs.append((position, members[here[0]].expr, members[number].expr))
                    self._unite(position, here[0], number)
        return pairs

    def _unite(self, position: int, left: int, right: int) -> None:
        groups = self._groups[position]
        into, gone = groups[left], groups[right]
        groups[:] = [into if group == gone else group for group in groups]
        if len(set(groups)) == 1:
            self._open.discard(position)


@kept_if_small(1024)  # every path of a join asks for the same ones
def equality(left: Expr, right: Expr, null_safe: bool) -> Expr:
    """The predicate that two members of a class are equal; a constant stands on the right."""
    if isinstance(left, Literal):
        left, right = right, left
    return resolve("is not distinct from" if null_safe else "=", (left, right))
