"""The collections as a query sees them: as they are at its time, without what happened to their rows before."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from halfjoin.engine.arrange.current import for_query
from halfjoin.engine.arrange.part import Part
from halfjoin.engine.arrange.run import Run
from halfjoin.engine.batch.flows import Flow, Inner
from halfjoin.engine.batch.state import State
from halfjoin.engine.reduce.flow import ReduceFlow
from halfjoin.engine.updates.updates import MINIMUM, Updates, constant
from halfjoin.planner.plan import Join, Version, ViewPlan


def scanned(plan: ViewPlan, flows: Mapping[str, Flow | Inner]) -> dict[str, frozenset[str]]:
    """The columns that a query reads of the collections that it scans, and never looks up. `flows`: its nodes."""
    found, others = dict[str, frozenset[str]](), set[str]()

    def add(collection: str, names: Iterable[str]) -> None:
        found[collection] = found.get(collection, frozenset()).union(names)

    for node in plan.nodes:
        flow = flows[node.output]
        if isinstance(flow, ReduceFlow):
            add(flow.plan.input, flow.columns)
        elif isinstance(node, Join):
            for path in (path for branch in node.branches for path in branch.paths):
                add(path.collection, (column for column, _ in path.fetch))
                others.update([path.collection] if path.known is not None else [])
            others.update(key.collection for key in node.arrangements)
        else:
            others.add(node.input)
    return {name: names for name, names in found.items() if name not in others}


@dataclass(frozen=True, slots=True)
class Moment:
    """The collections as they are at a time; what happened to their rows before does not matter.

    For a time before the last closed one the indexes cannot tell which rows were live. So the contents at that time are
    computed and looked up. For a collection in files that does not fit into memory, lookups read its whole history, and
    so do those of a query that scans nothing (`by_key`): the history of few keys is less than the contents.
    """

    state: State
    time: int
    scanned: Callable[[], Mapping[str, frozenset[str]]] = dict[str, frozenset[str]]  # asked for the past alone
    by_key: bool = False
    found: dict[str, Sequence[Part]] = field(default_factory=dict)

    @property
    def closed(self) -> int:
        """Updates with times below it may be added up; open times are not read."""
        return self.time + 1 if self.time + 1 == self.state.upper else MINIMUM

    def __call__(self, name: str, version: Version) -> Sequence[Part]:
        """The runs to look up."""
        if name not in self.found:
            collection = self.state.collection(name)
            runs = self.state.before_and_after({})(name, version)
            if self.closed == MINIMUM and not collection.in_files and not self.by_key:
                rows = collection.as_of(self.time, distinct=False, names=self.scanned().get(name))
                runs = (Run(Updates(rows.columns, constant(self.time, len(rows)), rows.diff)),)
            elif self.closed > MINIMUM and not self.by_key:
                runs = collection.current(runs, self.closed)
            self.found[name] = tuple([for_query(one) for one in runs])
        return self.found[name]
