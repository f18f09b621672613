"""Which nodes a change reaches. It follows from the definitions, and is found once for them, so that a batch costs
nothing for views that it does not touch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import is_
from typing import Protocol

from halfjoin.engine.arrange.collection import Collection
from halfjoin.engine.batch.flows import Flow, Inner


class Node(Protocol):
    """A view, or a node below one."""

    @property
    def dataflow(self) -> Flow | Inner: ...  # noqa: D102
    @property
    def contents(self) -> Collection: ...  # noqa: D102
    @property
    def errors(self) -> Collection: ...  # noqa: D102
    @property
    def limits(self) -> Mapping[str, int]: ...  # noqa: D102


class Wiring:
    """How tables, views and nodes are connected.

    `collections`: those of tables, then the contents and the errors of each node. `asked`: the collections in which a
    node asks whether keys are there, or whose groups it reduces. `limited`: by collection, the views that are planned
    anew when it has grown.
    """

    def __init__(self, tables: Mapping[str, Collection], nodes: Mapping[str, Node]) -> None:
        self._made_from = [*tables.values(), *nodes.values()]
        self.collections = [*tables.values(), *(part for one in nodes.values() for part in (one.contents, one.errors))]
        self._names = list(nodes)
        self._places = {name: place for place, name in enumerate(nodes)}
        self._readers: dict[str, list[int]] = {}
        self.asked: dict[str, None] = {}
        self.limited: dict[str, list[str]] = {}
        loops: dict[str, list[int]] = {}
        for place, (name, one) in enumerate(nodes.items()):
            for collection in one.dataflow.reads:
                self._readers.setdefault(collection, []).append(place)
            self.asked.update(dict.fromkeys(one.dataflow.asked))
            for collection in one.limits:
                self.limited.setdefault(collection, []).append(name)
            if one.dataflow.loop:
                loops.setdefault(one.dataflow.loop, []).append(place)
        self._beside = {place: together for together in loops.values() for place in together}  # a loop is one node

    def holds(self, tables: Mapping[str, Collection], nodes: Mapping[str, Node]) -> bool:
        """Whether these are the tables and nodes that it was made from. They are compared, not counted, so no statement
        can change a definition and leave the wiring behind."""
        now = [*tables.values(), *nodes.values()]
        return len(now) == len(self._made_from) and all(map(is_, now, self._made_from))

    def above(self, changed: Iterable[str]) -> list[str]:
        """The nodes over changed collections, and those over them, in order of dependency. A node that has changed
        itself is one of them."""
        waiting, reached = list[int](), set[int]()
        for name in changed:
            waiting += self._readers.get(name, ())
            if name in self._places:
                waiting.append(self._places[name])
        while waiting:
            place = waiting.pop()
            if place not in reached:
                reached.add(place)
                waiting += self._readers.get(self._names[place], ())
                waiting += self._beside.get(place, ())
        return [self._names[place] for place in sorted(reached)]
