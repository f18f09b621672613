"""Which nodes a change reaches. It follows from the definitions, and is found once for them, so that a batch costs
nothing for views that it does not touch.

Views over one table often differ in a constant, as each tenant's do. Their gates are found by the values that a batch
changes, so a batch costs nothing for those of other values either.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from typing import Any, NamedTuple

from halfjoin.engine.arrange.collection import Collection
from halfjoin.engine.batch.flows import Flow, Inner
from halfjoin.engine.join.dataflow import Dataflow
from halfjoin.engine.join.gates import Changed, Gate
from halfjoin.engine.system.counted import Counted

_MOST = 64  # values of a gate that is found by them


class _Readers(NamedTuple):
    """The nodes that read a collection: those whose gates are found by the codes of a column, and the others."""

    open: list[int]
    by_column: dict[str, dict[int, list[int]]]


class Wiring:
    """How tables, views and nodes are connected.

    `collections`: those of tables, then the contents and the errors of each node. `asked`: the collections in which a
    node asks whether keys are there, or whose groups it reduces. `limited`: by collection, the views that are planned
    anew when it has grown; `room`: how many more rows it may have until then, as far as that is known. `tables`,
    `nodes`, `changes`: what it was made from, and how often these had changed.
    """

    def __init__(self, tables: Counted[str, Collection], nodes: Counted[str, Any]) -> None:
        self.tables, self.nodes, self.changes = tables, nodes, tables.changes + nodes.changes
        self.collections = [*tables.values(), *(part for one in nodes.values() for part in (one.contents, one.errors))]
        self._names, self._flows = list(nodes), [one.dataflow for one in nodes.values()]
        self._places = {name: place for place, name in enumerate(nodes)}
        self._readers: dict[str, list[int]] = {}
        self._gated: dict[str, _Readers] = {}
        self.asked: dict[str, None] = {}
        self.limited: dict[str, list[str]] = {}
        self.room: dict[str, int] = {}
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

    def above(self, changed: Iterable[str]) -> list[str]:
        """The nodes over changed collections, and those over them, in order of dependency. A node that has changed
        itself is one of them."""
        return self._reached([place for name in changed for place in self._from(name)])

    def due(self, changed: Set[str], closed: Set[str], values: Changed) -> list[str]:
        """The nodes that a batch may concern, in order of dependency: those over changed collections whose gates let a
        change pass, those over collections of which updates have `closed`, and all over these."""
        found = [place for name in closed for place in self._from(name)]
        for name in changed:
            if name in self._places or name in closed:
                found += self._from(name)
                continue
            readers = self._readers_of(name)
            found += readers.open
            for column, places in readers.by_column.items():
                span = values.span(name, column)
                each = places if span is None or span.each is None else set(span.each.tolist())
                found += [place for code in each for place in places.get(code, ())]
        return self._reached(found)

    def _from(self, name: str) -> list[int]:
        own = self._places.get(name)
        return [*self._readers.get(name, ()), *(() if own is None else (own,))]

    def _readers_of(self, collection: str) -> _Readers:
        found = self._gated.get(collection)
        if found is None:
            found = _Readers([], {})
            for place in self._readers.get(collection, ()):
                gate = _gate_of(self._flows[place], collection)
                if gate is None or gate.codes is None:
                    found.open.append(place)
                    continue
                for code in gate.codes:
                    found.by_column.setdefault(gate.column, {}).setdefault(code, []).append(place)
            self._gated[collection] = found  # last: an interrupt must not leave a part of them
        return found

    def _reached(self, waiting: list[int]) -> list[str]:
        reached = set[int]()
        while waiting:
            place = waiting.pop()
            if place not in reached:
                reached.add(place)
                waiting += self._readers.get(self._names[place], ())
                waiting += self._beside.get(place, ())
        return [self._names[place] for place in sorted(reached)]


def _gate_of(flow: Flow | Inner, collection: str) -> Gate | None:
    """The gate with few values through which all changes of a collection must pass; None: there is none."""
    if not isinstance(flow, Dataflow) or flow.loop:
        return None
    paths = flow.gates.paths.get(collection, ())
    if len(paths) != 1:
        return None
    return next((gate for gate in paths[0] if gate.codes is not None and len(gate.codes) <= _MOST), None)
