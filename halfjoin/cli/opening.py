"""Opens the engines of commands with the settings of the process."""

from __future__ import annotations

from typing import Any

from halfjoin.cli.settings import Settings, read_settings
from halfjoin.engine.engine import Engine
from halfjoin.errors import HalfjoinError


def opened(warehouse: str, **given: Any) -> Engine:
    """An engine that writes a warehouse.

    Raises:
        HalfjoinError: as `Engine`; or the settings are not valid.
    """
    return Engine(warehouse, **read_settings(given).settings.engine)


def warehouse_of(settings: Settings) -> str:
    """The warehouse that the settings name.

    Raises:
        HalfjoinError: they name none.
    """
    if settings.warehouse is None:
        raise HalfjoinError("no warehouse is named",
                            remedy="give it as an argument, as HALFJOIN_WAREHOUSE, or in halfjoin.toml")
    return settings.warehouse
