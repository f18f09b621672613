"""Opens the engines of commands with the settings of the process."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from halfjoin.cli.settings import Settings, read_settings
from halfjoin.engine.engine import Engine
from halfjoin.errors import HalfjoinError, StorageError

_URL = re.compile("[a-z][a-z0-9+.-]*:", re.IGNORECASE)


def opened(warehouse: str, **given: Any) -> Engine:
    """An engine that writes a warehouse.

    Raises:
        HalfjoinError: as `Engine`; or the settings are not valid.
    """
    return Engine(warehouse, **read_settings(given).settings.engine)


def there(warehouse: str) -> str:
    """The same name, of a warehouse that a command needs: a wrong name shall not leave an empty one behind. At a URL
    nobody looks.

    Raises:
        StorageError: there is none.
    """
    folder = Path(warehouse).expanduser()
    if not _URL.match(warehouse) and not (folder.is_dir() and any(folder.iterdir())):
        raise StorageError(f"there is no warehouse in {folder.absolute()}", path=str(folder),
                           remedy="check the name; halfjoin run, load and the shell make one")  # fmt: skip
    return warehouse


def warehouse_of(settings: Settings) -> str:
    """The warehouse that the settings name.

    Raises:
        HalfjoinError: they name none.
    """
    if settings.warehouse is None:
        raise HalfjoinError("no warehouse is named",
                            remedy="give it as an argument, as HALFJOIN_WAREHOUSE, or in halfjoin.toml")
    return settings.warehouse
