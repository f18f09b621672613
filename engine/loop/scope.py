"""The loops inside a loop, and the nodes in them, in order of their places."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass
class Scope:
    """A loop: its nodes, and the loops among them. `names`: of all nodes, in those loops too."""

    members: list[str | Scope] = field(default_factory=list)
    names: list[str] = field(default_factory=list)


def scope_of(nodes: Mapping[str, tuple[str, ...]]) -> Scope:
    """The outermost loop of nodes, given for each the loops that it is in, the outermost first.

    >>> scope_of({"a": ("l",), "b": ("l", "m"), "c": ("l", "m"), "d": ("l",)}).members
    ['a', Scope(members=['b', 'c'], names=['b', 'c']), 'd']
    """
    scopes: dict[tuple[str, ...], Scope] = {}

    def within(loops: tuple[str, ...]) -> Scope:
        if loops not in scopes:
            scopes[loops] = Scope()
            if loops[:-1]:
                within(loops[:-1]).members.append(scopes[loops])
        return scopes[loops]

    for name, loops in nodes.items():
        within(loops).members.append(name)
        for depth in range(1, len(loops) + 1):
            within(loops[:depth]).names.append(name)
    return within(next(iter(nodes.values()))[:1])
