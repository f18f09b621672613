"""Incremental view maintenance in SQL: delta joins over shared arrangements.

>>> import halfjoin as hj
>>> engine = hj.Engine()
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from halfjoin.engine.applied import Applied
    from halfjoin.engine.engine import Engine
    from halfjoin.engine.feeds.debezium import debezium
    from halfjoin.engine.rows import deletes, inserts, upserts
    from halfjoin.engine.show import show
    from halfjoin.engine.stats import Stats
    from halfjoin.engine.subscription import Subscription
    from halfjoin.errors import (
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
    "show",
    "upserts",
]

_HOMES = {
    "Applied": "engine.applied", "Engine": "engine.engine", "Stats": "engine.stats",
    "Subscription": "engine.subscription", "debezium": "engine.feeds.debezium", "deletes": "engine.rows",
    "inserts": "engine.rows", "show": "engine.show", "upserts": "engine.rows",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: Spark's workers import the package, and need none of them."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"halfjoin.{_HOMES.get(name, 'errors')}"), name)
    return found


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
