"""Incremental view maintenance in SQL: delta joins over shared arrangements.

>>> import halfjoin as hj
>>> engine = hj.Engine()
"""

import gc
from importlib import import_module
from typing import TYPE_CHECKING, Any

from halfjoin.uncompiled import load_sources
from halfjoin.version import VERSION

if TYPE_CHECKING:
    from halfjoin.cli.show import show
    from halfjoin.collections.collection import Collection, collection
    from halfjoin.collections.iterate import iterate
    from halfjoin.collections.text import lit
    from halfjoin.engine.batch.applied import Applied
    from halfjoin.engine.batch.subscription import Subscription
    from halfjoin.engine.engine import Engine
    from halfjoin.engine.feeds.debezium import debezium
    from halfjoin.engine.intake.rows import deletes, inserts, upserts
    from halfjoin.engine.statements.stats import Stats
    from halfjoin.engine.storage.backup import Backup, backup
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

load_sources()  # before any module imports sqlglot
__version__ = VERSION

__all__ = [
    "Applied",
    "Backup",
    "Collection",
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
    "backup",
    "collection",
    "debezium",
    "deletes",
    "inserts",
    "iterate",
    "lit",
    "show",
    "upserts",
]

_HOMES = {
    "Applied": "engine.batch.applied", "Backup": "engine.storage.backup", "Collection": "collections.collection",
    "Engine": "engine.engine", "backup": "engine.storage.backup",
    "Stats": "engine.statements.stats", "Subscription": "engine.batch.subscription",
    "collection": "collections.collection", "debezium": "engine.feeds.debezium", "deletes": "engine.intake.rows",
    "inserts": "engine.intake.rows", "iterate": "collections.iterate", "lit": "collections.text", "show": "cli.show",
    "upserts": "engine.intake.rows",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: Spark's workers import the package and use none of these names."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    collects = gc.isenabled()
    gc.disable()  # modules stay; a collector that looks at them again and again takes a seventh of the time
    try:
        found = globals()[name] = getattr(import_module(f"halfjoin.{_HOMES.get(name, 'errors')}"), name)
    finally:
        if collects:
            gc.enable()
    return found


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


def load_ipython_extension(ipython: Any) -> None:
    """`%load_ext halfjoin` in a notebook: answers of queries are shown as tables."""
    from halfjoin.notebook.extension import load

    load(ipython)


def unload_ipython_extension(ipython: Any) -> None:
    """`%unload_ext halfjoin`."""
    from halfjoin.notebook.extension import unload

    unload(ipython)
