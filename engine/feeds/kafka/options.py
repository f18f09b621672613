"""The options of CREATE SOURCE ... FROM KAFKA, and what they refuse."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from halfjoin.catalog.models import Table
from halfjoin.engine.feeds.encodings import check_encodings, of_plain, pairs
from halfjoin.engine.feeds.kafka.registry import RegistryOptions
from halfjoin.engine.feeds.source import POLL_BYTES, POLL_ROWS, Opening
from halfjoin.errors import HalfjoinError, UnknownName
from halfjoin.sql.types import INTEGERS, Kind

INCLUDED = ("key", "partition", "offset", "timestamp")
RECORD = "record"  # the time of a row is that of its record
_TIMES = (*INTEGERS, Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ)


class KafkaOptions(RegistryOptions):
    """What a source reads, and how.

    `key`: how keys of messages are written; a message without a value deletes the row of its key. `start`: where a new
    source begins. `time`: the times of the rows, `record` or a column. `include`: columns that get a message's key,
    partition, offset or timestamp, such as `offset at_offset`. `encodings`: how columns are written, such as `at
    MicroTimestamp`. `rows` and `bytes`: the most of one batch.
    """

    topic: str
    format: Literal["json", "avro", "debezium", "debezium_avro"] = "json"
    key: Literal["json", "text", "avro"] | None = None
    start: Literal["earliest", "latest"] = "earliest"
    time: str | None = None
    include: str | tuple[str, ...] = ()
    encodings: str | tuple[str, ...] = ()
    rows: int = Field(POLL_ROWS, ge=1, le=1_000_000)
    bytes: int = Field(POLL_BYTES, ge=1, le=1 << 30)

    @property
    def debezium(self) -> bool:
        """Whether the messages are Debezium's envelopes."""
        return self.format.startswith("debezium")

    def included(self) -> Mapping[str, str]:
        """The part of a message that each of some columns gets."""
        return {column: part for part, column in pairs("include", self.include)}

    def encoded(self, table: Table) -> Mapping[str, str]:
        """How columns are written, by the user, and by what a plain message is."""
        given = dict(pairs("encodings", self.encodings))
        times = {column: "Timestamp" for column, part in self.included().items() if part == "timestamp"}
        if self.format != "json":
            return {**times, **given}
        return {**of_plain(table), **times, **given}


def check(opening: Opening) -> None:
    """Refuse options that contradict each other, or the table.

    Raises:
        HalfjoinError, UnknownName: says which.
    """
    options: KafkaOptions = opening.options
    if len(opening.tables) != 1:
        raise HalfjoinError("a topic goes into one table", remedy="create a source for each table")
    table = opening.tables[0]
    names = [column.name for column in table.columns]
    for column, part in options.included().items():
        if part not in INCLUDED:
            raise HalfjoinError(f"a message has no {part!r} to include", remedy=f"include {', '.join(INCLUDED)}")
        _known(table, column, names)
    check_encodings(table, options.encoded(table))
    if options.time not in (None, RECORD):
        assert options.time is not None
        _known(table, options.time, names)
        kind = next(column.type for column in table.columns if column.name == options.time)
        if kind.kind not in _TIMES:
            raise HalfjoinError(f"the column {options.time} is {kind}, which is no time",
                                remedy="take a column that is bigint, date, timestamp or timestamptz, or time record")
    avro = options.format in ("avro", "debezium_avro") or options.key == "avro"
    if avro and options.registry is None:
        raise HalfjoinError("messages in Avro need their schemas", remedy="give the option registry, the URL of the "
                            "schema registry")  # fmt: skip
    if options.debezium and (options.key or options.included()):
        raise HalfjoinError("Debezium's messages have their keys and their places inside",
                            remedy="leave out the options key and include")
    if options.key is not None and not table.primary_key:
        raise HalfjoinError(f"{table.name} has no PRIMARY KEY, so a message's key finds no row",
                            remedy="declare a PRIMARY KEY, or leave out the option key")


def _known(table: Table, column: str, names: list[str]) -> None:
    if column not in names:
        raise UnknownName(f"column of {table.name}", column, names)

