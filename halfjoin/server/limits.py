"""How much one client, and all together, may take."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Times are in seconds, sizes in bytes.

    `startup`: the time to log in. `idle`: how long a connection may send nothing; `idle_in_transaction`: inside a
    transaction. `statement`: how long a statement may run. `write`: how long a client may not read. `stop`: how long
    running statements go on after the server was told to stop. `message`: of one message; `first`: of one before the
    client is known. `copied`: of the rows of one COPY FROM. `held`: prepared statements and portals of a connection.
    `told`: of the notifications that wait for a connection, or that one transaction makes.
    """

    connections: int = 100
    startup: float = 60
    idle: float = 8 * 3600
    idle_in_transaction: float = 3600
    statement: float = 3600
    write: float = 300
    stop: float = 5
    message: int = 64 << 20
    first: int = 10_000
    copied: int = 1 << 30
    held: int = 10_000
    told: int = 64 << 20
