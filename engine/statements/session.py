"""A session runs statements one after the other. The engine has a session; a server has one for each connection.

It holds their settings, the open transaction, and the function that they report to.
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
_LATER = ("each statement closes its time: write SET TIME with a later one before the next, or put the statements of "
          "one time into one batch: BEGIN; ...; COMMIT")


def tell(tag: str) -> None:
    """Log what a statement has done as PostgreSQL's command tag, such as `INSERT 0 3`."""
    _log.info("%s", tag)


@dataclass(slots=True)
class Session:
    """What statements need from the engine, and their settings.

    `writer` is None in an engine that only reads. `changed` is the engine's lock, with the condition that subscriptions
    wait for. `time`: the time of the changes of the next statements; None: the default of `Engine.apply`.
    `transaction`: the statements since BEGIN; None: no transaction is open.
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
        """The sinks; None in an engine that only reads, which does not know how far they are."""
        return None if self.writer is None else self.sinks

    def define(self, change: Callable[[], None]) -> None:
        """Carry out a change of definitions and keep it, or do neither."""
        writing(self.writer).define(change)

    def apply(self, state: State, batch: Mapping[str, pa.Table]) -> None:
        """Submit the changes of statements as one batch, at the session's time.

        Raises:
            HalfjoinError: the engine only reads.
            InvalidTime: the time of SET TIME is closed.
        """
        writer = writing(self.writer)
        if self.time is not None and self.time < state.upper:
            raise closed_at(state, f"time {self.time}", self.time, _LATER)
        writer.apply(batch, self.time)

    def commit(self, state: State) -> None:
        """Submit the changes of the open transaction as one batch."""
        transaction, self.transaction = self.transaction, None
        if transaction is not None and (batch := transaction.batch()):
            self.apply(state, batch)
