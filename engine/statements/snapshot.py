"""A state that stays as it is, so that a query can read it while a batch changes the engine's.

Runs are never changed, only replaced. A snapshot has its own lists of runs, and its own lists of the indexes on each
run. So neither side sees an index that the other builds or drops. Rows in files are not in it: files may be replaced.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from halfjoin.engine.arrange.collection import Cold, Collection, Loaded
from halfjoin.engine.arrange.coming import Coming
from halfjoin.engine.arrange.memory import Memory
from halfjoin.engine.batch.state import State
from halfjoin.engine.system.counted import Counted
from halfjoin.errors import HalfjoinError


class InFiles(HalfjoinError):
    """A query needs rows that a snapshot does not have."""


@dataclass(frozen=True, slots=True)
class _Files:
    """The place of rows that a snapshot does not have."""

    name: str

    def load(self, *, leave: bool = False, wait: bool = True) -> Loaded:
        raise InFiles(f"{self.name} is in files")

    def bring(self, coming: Coming) -> bool:
        return False


def snapshot(state: State) -> State:
    """The state as it is now. The caller holds the engine's lock.

    The use of a collection in files raises `InFiles`; the query can be asked again while the lock is held.
    """
    maintained = Counted({name: replace(one, contents=_copy(one.contents), errors=_copy(one.errors))
                          for name, one in state.maintained.items()})  # fmt: skip
    return replace(
        state, catalog=state.catalog.copy(), tables=Counted({name: _copy(one) for name, one in state.tables.items()}),
        maintained=maintained, functions=dict(state.functions), subscriptions={}, memory=Memory(state.memory.limit),
    )  # fmt: skip


def _copy(one: Collection) -> Collection:
    runs = tuple([run.apart() for run in one.in_memory])
    if one.cold is None and len(runs) == len(one.held):
        return replace(one, held=runs, arrangements=one.shared(), stored=None, coming=None)
    cold = Cold(len(one), max((part.latest for part in one.held), default=0)) if one.cold is None else one.cold
    return replace(one, held=(), arrangements=one.shared(), stored=_Files(one.name), cold=cold, coming=None)
