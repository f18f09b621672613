"""A copy of the state for the definitions of an open transaction, which nobody else sees before COMMIT."""

from __future__ import annotations

from dataclasses import dataclass, replace

from halfjoin.engine.arrange.collection import Collection
from halfjoin.engine.batch.clock import Closing
from halfjoin.engine.batch.state import Home, State
from halfjoin.engine.system.counted import Counted


def forked(state: State) -> State:
    """A copy of the state. It shares the rows; definitions in one do not reach the other, nor do the indexes that they
    build, drop or leave rows out of. What it fills stays in memory."""
    maintained = Counted({name: replace(one, contents=_copy(one.contents), errors=_copy(one.errors))
                          for name, one in state.maintained.items()})  # fmt: skip
    home = state.home if isinstance(state.home, _Apart) else _Apart(state.home)
    return replace(state, home=home, catalog=state.catalog.copy(), maintained=maintained, subscriptions={},
                   tables=Counted({name: _copy(one) for name, one in state.tables.items()}))


def _copy(collection: Collection) -> Collection:
    held = tuple([part.apart() for part in collection.held])
    return replace(collection, held=held, arrangements=collection.shared())


@dataclass(frozen=True, slots=True)
class _Apart:
    """The home of a copy: it writes nothing."""

    home: Home
    spill: None = None

    def as_files(self, collection: Collection) -> None:
        """None: the store does not know the copy."""

    def closed_by(self, time: int) -> Closing | None:
        """Who closed a time."""
        return self.home.closed_by(time)
