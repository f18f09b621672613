"""How much each collection and each arrangement takes, for PostgreSQL's catalog."""

from __future__ import annotations

from halfjoin.engine.batch.state import State
from halfjoin.sql.system import Size


def sizes(state: State) -> dict[str, Size]:
    """By the names of collections and of arrangements: updates or entries, bytes of rows, bytes of indexes. Bytes are
    those in memory and in files."""
    made: dict[str, Size] = {}
    for one in state.collections():
        indexes = 0
        for key in one.arrangements:
            held = [run.footprint(key) for run in one.held]
            size = sum(part.memory + part.disk for part in held)
            made[str(key)] = Size(sum(part.entries for part in held), 0, size)
            indexes += size
        known = one.cold is None or not one.cold.rows
        rows = sum(run.row_bytes + run.stored[1] for run in one.held)
        made[one.name] = Size(len(one), rows if known else None, indexes)
    return made
