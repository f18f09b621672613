"""A session: what statements run in, one after the other. The engine has one of its own; a server has one a connection.

It has their settings, the transaction that is open, and whom they report to.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from halfjoin.engine.batch.applied import Applied
from halfjoin.engine.batch.stage import closed_at
from halfjoin.engine.batch.state import State
from halfjoin.engine.batch.subscription import Subscription
from halfjoin.engine.sinks.sinks import Sinks
from halfjoin.engine.spark.runners import Runners
from halfjoin.engine.statements.definitions import Means
from halfjoin.engine.statements.transaction import Transaction

_log = logging.getLogger("halfjoin")
_LATER = ("each statement closes its time: write SET TIME with a later one before the next, or make the statements of "
          "one time one batch: BEGIN; ...; COMMIT")


class Host(Protocol):
    """What statements ask of the engine that they run in."""

    def apply(self, batches: Mapping[str, pa.Table], time: int | None) -> Applied:
        """Submit changed rows as one batch."""

    def subscribe(self, name: str, as_of: int | None, up_to: int | None) -> Subscription:
        """The changes of a view."""

    def define(self, change: Callable[[], None]) -> None:
        """Carry a change of what is defined out, and keep it; or do neither."""

    @property
    def runners(self) -> Runners:
        """Who carries out first fills."""

    @property
    def sinks(self) -> Sinks:
        """The sinks; an engine that only reads writes none of them."""

    @property
    def writes(self) -> bool:
        """Whether it is the engine that writes."""


def tell(tag: str) -> None:
    """Report what a statement has done in PostgreSQL's words, as `INSERT 0 3`: in the log."""
    _log.info("%s", tag)


@dataclass(slots=True)
class Session:
    """`time`: of what the next statements change; None is as `Engine.apply` has it. `transaction`: since BEGIN."""

    host: Host
    report: Callable[[str], None] = tell
    time: int | None = None
    transaction: Transaction | None = None

    @property
    def means(self) -> Means:
        """What definitions need besides the state."""
        return Means(self.host.runners, self.host.sinks)

    def apply(self, state: State, batch: Mapping[str, pa.Table]) -> None:
        """Submit what statements change, at the session's time.

        Raises:
            InvalidTime: SET TIME gave one that is closed.
        """
        if self.time is not None and self.time < state.upper:
            raise closed_at(state, f"time {self.time}", self.time, _LATER)
        self.host.apply(batch, self.time)

    def commit(self, state: State) -> None:
        """Submit what the open transaction has changed, as one batch."""
        transaction, self.transaction = self.transaction, None
        if transaction is not None and (batch := transaction.batch()):
            self.apply(state, batch)
