"""The options of CREATE SINK ... INTO KAFKA."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from halfjoin.engine.feeds.kafka.registry import RegistryOptions

POSITIONS = "halfjoin-positions"


class TopicOptions(RegistryOptions):
    """Where a sink writes, and what.

    `format`: how keys and values are written; `avro` needs `registry`, the URL of the schema registry. `envelope`:
    `upsert` (the key's row from now on, or no value) or `debezium` (the row before and after). `key`: the columns of a
    message's key, which tell the rows apart; for a table its PRIMARY KEY. `positions`: the topic that keeps how far
    sinks are. `partitions`, `replication`: of a topic that the sink makes.
    """

    topic: str
    format: Literal["json", "avro"] = "json"
    envelope: Literal["upsert", "debezium"] = "upsert"
    key: str | tuple[str, ...] = ()
    positions: str = POSITIONS
    partitions: int | None = Field(None, ge=1)
    replication: int | None = Field(None, ge=1)

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns of the key."""
        names = self.key.split(",") if isinstance(self.key, str) else self.key
        return tuple(name.strip() for name in names if name.strip())
