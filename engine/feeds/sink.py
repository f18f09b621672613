"""Structured Streaming into a table: a function for `foreachBatch` that changes nothing when an epoch is replayed.

A query commits an epoch after the function has returned, so one that ended in between gives the epoch again, with the
same rows. The engine then finds the batch id that was made from the sink's name and the epoch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NoReturn, TypeAlias

from halfjoin.engine.batch.applied import Applied
from halfjoin.engine.batch.ids import sink_id
from halfjoin.engine.feeds.debezium import debezium
from halfjoin.engine.intake.rows import deletes, upserts
from halfjoin.engine.intake.times import Time
from halfjoin.engine.updates.updates import TIME
from halfjoin.errors import HalfjoinError, UnknownName

Format: TypeAlias = Literal["rows", "deletes", "upserts", "debezium"] | Callable[[Any], Any]

_FORMATS: dict[str, Callable[[Any], Any]] = {
    "rows": lambda rows: rows, "deletes": deletes, "upserts": upserts, "debezium": debezium,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Sink:
    """Applies each epoch of one streaming query to a table, exactly once. Made by `Engine.sink`."""

    apply: Callable[..., Applied]
    table: str
    name: str
    format: Format
    time: str | Callable[[int], Time] | None
    close: bool
    columns: tuple[str, ...]

    def __post_init__(self) -> None:
        if not callable(self.format) and self.format not in _FORMATS:
            raise HalfjoinError(f"unknown format {self.format!r}",
                                remedy=f"formats: {', '.join(_FORMATS)}, or a function")
        if self.format == "debezium" and isinstance(self.time, str):
            raise HalfjoinError("what messages say holds from one time on, so a sink of them takes no column of times",
                                remedy="give a function from the epoch to its time")  # fmt: skip

    def __call__(self, dataframe: Any, epoch_id: int) -> None:
        """Apply an epoch, unless it has been applied before.

        Raises:
            Conflict: the epoch came with other rows before.
            UnknownName: there is no column for the times. All else as `Engine.apply`.
        """
        if isinstance(self.time, str):
            dataframe = self._timed(dataframe, self.time)
        at = self.time(epoch_id) if callable(self.time) else None
        meant = self.format if callable(self.format) else _FORMATS[self.format]
        batch_id = sink_id(self.table, self.name, epoch_id)
        self.apply({self.table: meant(dataframe)}, at, batch_id, close=self.close)

    def _timed(self, dataframe: Any, time: str) -> Any:
        """With a column's values as the rows' times; by position, as Spark reads names in ways of its own."""
        names = dataframe.columns
        if time not in names:
            raise UnknownName(f"column of the rows for {self.table}", time, names)
        plain = dataframe.toDF(*(f"c{i}" for i in range(len(names))))
        kept = [i for i, name in enumerate(names) if name != time or name in self.columns]
        columns = [plain[f"c{i}"] for i in (*kept, names.index(time))]
        return plain.select(*columns).toDF(*(names[i] for i in kept), TIME)

    def __reduce__(self) -> NoReturn:
        """Refuse to be sent: the engine is in this process.

        Raises:
            HalfjoinError: always. Spark Connect runs the function in a process of the server.
        """
        raise HalfjoinError(
            "a sink works in the process of its engine, and Spark Connect runs foreachBatch in a process of the "
            "server", remedy="start the query from a classic session"
        )
