"""The position of a source FROM POSTGRES: how far it has come, as the JSON text that is stored with its rows."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from halfjoin.engine.feeds.postgres.shapes import Origin
from halfjoin.engine.feeds.postgres.snapshot import Seen


class Place(BaseModel):
    """How far a source has come.

    `new`: it makes its slot, and no other reader has a slot of that name. `snapshot`: the slot is there, and the rows
    of the tables are on their way; they begin again if the connection ends. `changes`: all transactions are in whose
    commits begin before the place `at` of the log.

    Attributes:
        seen: what the snapshot contains; None once the log is past it.
        inside: the place of the commit of a transaction of which the first `done` changes are in, as pieces.
        types: the types of the columns on the server, by table.
        origins: what the tables are, by their names on the server.
    """

    model_config = ConfigDict(frozen=True)

    phase: Literal["new", "snapshot", "changes"]
    at: int = 0
    seen: Seen | None = None
    inside: int = 0
    done: int = 0
    types: dict[str, dict[str, tuple[int, int]]] = {}
    origins: dict[str, Origin] = {}

    def text(self) -> str:
        """The position as a source stores it."""
        return self.model_dump_json(exclude_defaults=True)
