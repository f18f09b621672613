"""A session: what statements run in, one after the other. The engine has one of its own; a server has one a connection.

It has their settings, the transaction that is open, and whom they report to.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Condition
from typing import Any

import pyarrow as pa

from halfjoin.engine.batch.stage import closed_at
from halfjoin.engine.batch.state import State
from halfjoin.engine.batch.writer import Writer, writing
from halfjoin.engine.sinks.sinks import Sinks
from halfjoin.engine.spark.runners import Runners
from halfjoin.engine.statements.definitions import Means
from halfjoin.engine.statements.transaction import Transaction

_log = logging.getLogger("halfjoin")
_LATER = ("each statement closes its time: write SET TIME with a later one before the next, or make the statements of "
          "one time one batch: BEGIN; ...; COMMIT")


def tell(tag: str) -> None:
    """Report what a statement has done in PostgreSQL's words, as `INSERT 0 3`: in the log."""
    _log.info("%s", tag)


@dataclass(slots=True)
class Session:
    """What statements ask of the engine, and what they have set.

    `writer` is None in an engine that only reads. `changed` is the engine's lock, with the condition that subscriptions
    wait for.
    `time`: of what the next statements change; None is as `Engine.apply` has it. `transaction`: since BEGIN.
    """

    runners: Runners
    sinks: Sinks
    writer: Writer | None
    changed: tuple[Any, Condition]
    report: Callable[[str], None] = tell
    time: int | None = None
    transaction: Transaction | None = None

    @property
    def means(self) -> Means:
        """What definitions need besides the state."""
        return Means(self.runners, self.sinks)

    @property
    def delivering(self) -> Sinks | None:
        """The sinks where they are written, which alone knows how far they are: not in an engine that only reads."""
        return None if self.writer is None else self.sinks

    def define(self, change: Callable[[], None]) -> None:
        """Carry a change of what is defined out, and keep it; or do neither."""
        writing(self.writer).define(change)

    def apply(self, state: State, batch: Mapping[str, pa.Table]) -> None:
        """Submit what statements change, at the session's time.

        Raises:
            HalfjoinError: the engine only reads.
            InvalidTime: SET TIME gave one that is closed.
        """
        writer = writing(self.writer)
        if self.time is not None and self.time < state.upper:
            raise closed_at(state, f"time {self.time}", self.time, _LATER)
        writer.apply(batch, self.time)

    def commit(self, state: State) -> None:
        """Submit what the open transaction has changed, as one batch."""
        transaction, self.transaction = self.transaction, None
        if transaction is not None and (batch := transaction.batch()):
            self.apply(state, batch)
