"""The replication slot of a source: made, checked, advanced and dropped.

The slot keeps the server's log from the place that the source has stored. Only the source that made it may read it: who
else moved it would have taken changes away, and that is an error instead of a gap.
"""

from __future__ import annotations

from dataclasses import dataclass

from halfjoin.engine.feeds.postgres.server import PLUGIN, Server, lsn, number
from halfjoin.errors import Conflict, HalfjoinError, StorageError

_WAIT = 10_000  # milliseconds for the transactions that are open before a slot; then the source tries again
ANEW = "DROP SOURCE and CREATE SOURCE again take the tables' contents anew: only what differs is applied"


@dataclass(frozen=True, slots=True)
class Slot:
    """A slot that is there. `confirmed`: the place up to which the server may forget. `lost`: why it cannot be read."""

    confirmed: int
    lost: str | None


def slot_of(server: Server) -> Slot | None:
    """The source's slot; None if there is none.

    Raises:
        Conflict: the slot of that name is of another kind.
    """
    name = server.options.slot
    found = server.rows(
        "SELECT plugin, database = current_database(), confirmed_flush_lsn::text, wal_status, temporary "
        "FROM pg_replication_slots WHERE slot_name = %s", [name],
    )  # fmt: skip
    if not found:
        return None
    plugin, here, confirmed, status, temporary = found[0]
    if plugin != PLUGIN or not here or temporary:
        raise Conflict(f"the replication slot {name} is of another database or another use (plugin {plugin})",
                       remedy="give the source another slot", name=name)  # fmt: skip
    lost = "its log is gone: it was longer than max_slot_wal_keep_size" if status == "lost" else None
    return Slot(number(confirmed) if confirmed else 0, lost)


def refuse_taken(server: Server) -> None:
    """Refuse the name of a slot that exists, as another reader may use it.

    Raises:
        Conflict: there is a slot of that name.
    """
    name = server.options.slot
    if server.one("SELECT 1 FROM pg_replication_slots WHERE slot_name = %s", [name]):
        raise Conflict(f"the server has a replication slot {name} already, and another reader may use it",
                       remedy=f"give the source another slot, or run SELECT pg_drop_replication_slot('{name}') if "
                              "nobody reads it", name=name)  # fmt: skip


def made(server: Server) -> int:
    """Make the slot. Returns the place from which it gives changes.

    Raises:
        StorageError: transactions that are open have not ended in time; the slot waits for all of them.
    """
    server.run(f"SET statement_timeout = {_WAIT}")
    try:
        return number(server.one("SELECT lsn::text FROM pg_create_logical_replication_slot(%s, %s)",
                                 [server.options.slot, PLUGIN]))  # fmt: skip
    except StorageError as problem:
        if server.connection.closed:
            raise
        raise StorageError(f"a replication slot waits for all transactions that are open on the server: {problem}",
                           remedy="end those that are idle in a transaction (pg_stat_activity)") from None  # fmt: skip
    finally:
        if not server.connection.closed:
            server.run("SET statement_timeout = 0")


def checked(server: Server, at: int) -> Slot:
    """The slot, which must still give all changes from a place on.

    Raises:
        Conflict: the slot is not there, was moved, or its log is gone.
    """
    found, name = slot_of(server), server.options.slot
    if found is None:
        raise Conflict(f"the replication slot {name} is not there any more, so the changes since {lsn(at)} are lost",
                       remedy=ANEW, name=name)  # fmt: skip
    if found.lost is not None:
        raise Conflict(f"the replication slot {name} cannot be read any more: {found.lost}",
                       remedy=f"{ANEW}; a larger max_slot_wal_keep_size keeps the log for longer pauses",
                       name=name)  # fmt: skip
    if found.confirmed > at:
        raise Conflict(f"the replication slot {name} is at {lsn(found.confirmed)}, but the source has read up to "
                       f"{lsn(at)}: another reader moved it, or it was made anew, or the warehouse is an older copy. "
                       "The changes between are lost", remedy=ANEW, name=name)  # fmt: skip
    return found


def advance(server: Server, to: int) -> None:
    """Let the server forget its log before a place."""
    found = slot_of(server)
    if found is not None and found.lost is None and found.confirmed < to:
        server.run("SELECT pg_replication_slot_advance(%s, %s::pg_lsn)", [server.options.slot, lsn(to)])


def drop(server: Server) -> None:
    """Drop the slot, if it is there.

    Raises:
        HalfjoinError: the slot stays; says how to drop it.
    """
    name = server.options.slot
    if slot_of(server) is not None:
        try:
            server.run("SELECT pg_drop_replication_slot(%s)", [name])
        except HalfjoinError as problem:
            raise kept(name, problem) from None


def kept(name: str, problem: HalfjoinError) -> HalfjoinError:
    """The error of a slot that could not be dropped."""
    return HalfjoinError(f"the replication slot {name} stays on the server, which keeps its log for it: {problem}",
                         remedy=f"run SELECT pg_drop_replication_slot('{name}') there")  # fmt: skip
