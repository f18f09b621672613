"""The one row of a sequence, as `SELECT last_value FROM q` reads it."""

from __future__ import annotations

from halfjoin.catalog.system.known import Known
from halfjoin.catalog.system.relations import Row
from halfjoin.sql.expr import Column
from halfjoin.sql.types import BIGINT, BOOLEAN

SEQUENCE_COLUMNS = (Column("last_value", BIGINT), Column("log_cnt", BIGINT), Column("is_called", BOOLEAN))


def sequence_row(known: Known, name: str) -> Row:
    """What a sequence gave out last, or else would give out first, and whether it gave out any number."""
    one = known.catalog.sequences[name]
    oid = next(relation.oid for relation in known.relations if relation.item is one)
    last = known.last_value(one)
    return {"last_value": one.start if last is None else last, "log_cnt": 0, "is_called": last is not None,
            "tableoid": oid, "xmin": 1}
