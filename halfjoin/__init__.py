"""Incremental view maintenance in SQL: delta joins over shared arrangements.

>>> import halfjoin as hj
>>> engine = hj.Engine()
"""

from halfjoin.engine.applied import Applied
from halfjoin.engine.engine import Engine
from halfjoin.engine.feeds.debezium import debezium
from halfjoin.engine.rows import deletes, inserts, upserts
from halfjoin.engine.stats import Stats
from halfjoin.engine.subscription import Subscription
from halfjoin.sql.errors import (
    Conflict,
    DataError,
    HalfjoinError,
    InvalidRow,
    InvalidTime,
    StorageError,
    UnknownName,
    UnsupportedSQL,
)

__version__ = "0.1.0"

__all__ = [
    "Applied",
    "Conflict",
    "DataError",
    "Engine",
    "HalfjoinError",
    "InvalidRow",
    "InvalidTime",
    "Stats",
    "StorageError",
    "Subscription",
    "UnknownName",
    "UnsupportedSQL",
    "debezium",
    "deletes",
    "inserts",
    "upserts",
]
