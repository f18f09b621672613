"""Stream into a table: a function for `foreachBatch` that changes nothing when Spark replays an epoch.

A query commits an epoch after the function has returned. A query that ends before its commit gives the epoch again,
with the same rows. The engine then recognises the batch id, which it makes from the sink's name and the epoch.
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
    """Applies each epoch of one streaming query to a table, exactly once. `Engine.sink` makes it."""

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
        if not (self.time is None or isinstance(self.time, str) or callable(self.time)):
            raise HalfjoinError(f"{self.time!r} says no times", remedy="give the name of a column, a function from an "
                                "epoch's number to its time, or None for now")  # fmt: skip
        if self.format == "debezium" and isinstance(self.time, str):
            raise HalfjoinError("a sink of messages takes no column of times, as an epoch's messages have one time",
                                remedy="give a function from the epoch to its time")  # fmt: skip

    def __call__(self, dataframe: Any, epoch_id: int) -> None:
        """Apply an epoch, unless the engine has applied it before.

        Raises:
            Conflict: the engine has applied the epoch with other rows.
            UnknownName: the DataFrame does not have the column of times.
            All other errors of `Engine.apply`.
        """
        if isinstance(self.time, str):
            dataframe = self._timed(dataframe, self.time)
        at = self.time(epoch_id) if callable(self.time) else None
        meant = self.format if callable(self.format) else _FORMATS[self.format]
        batch_id = sink_id(self.table, self.name, epoch_id)
        self.apply({self.table: meant(dataframe)}, at, batch_id, close=self.close)

    def _timed(self, dataframe: Any, time: str) -> Any:
        """Take a column's values as the rows' times. Columns go by position: Spark reads names in its own ways."""
        names = dataframe.columns
        if time not in names:
            raise UnknownName(f"column of the rows for {self.table}", time, names)
        plain = dataframe.toDF(*(f"c{i}" for i in range(len(names))))
        kept = [i for i, name in enumerate(names) if name != time or name in self.columns]
        columns = [plain[f"c{i}"] for i in (*kept, names.index(time))]
        return plain.select(*columns).toDF(*(names[i] for i in kept), TIME)

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled: the engine is in this process.

        Raises:
            HalfjoinError: always. Spark Connect runs the function in a process of the server.
        """
        raise HalfjoinError(
            "a sink works in the process of its engine, and Spark Connect runs foreachBatch in a process of the "
            "server", remedy="start the query from a classic session"
        )
