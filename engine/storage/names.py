"""Names on disk: the folders of collections, and the column names that a Delta table can have."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from functools import lru_cache

from halfjoin.engine.storage.place import LOG
from halfjoin.errors import UnsupportedSQL

_LONGEST = 120


@lru_cache(1 << 12)  # each definition asks for those of all collections
def folder_name(name: str) -> str:
    """A name that every file system and URL takes unchanged: `orders` for orders, `-4fr-44ers` for "OrDers".

    Lower case letters, digits and `_` stay as they are. Every other byte becomes `-` and two hex digits. Long names end
    in a hash. No folder is called `_delta_log`, which a library would take for the log of a table around it.

    >>> folder_name("orders"), folder_name("OrDers"), folder_name("_delta_log")
    ('orders', '-4fr-44ers', '-5fdelta_log')
    """
    if name == LOG:
        return f"-5f{name[1:]}"
    written = re.sub(rb"[^a-z0-9_]", lambda match: b"-%02x" % match.group()[0], name.encode()).decode()
    if len(written) <= _LONGEST:
        return written
    return f"{written[:80]}-{hashlib.sha256(name.encode()).hexdigest()[:32]}"


def check_columns(name: str, columns: Iterable[str]) -> None:
    """Refuse columns that Delta tables cannot hold.

    Raises:
            UnsupportedSQL: two names differ only in case.
    """
    seen: dict[str, str] = {}
    for column in columns:
        other = seen.setdefault(column.lower(), column)
        if other != column:
            raise UnsupportedSQL(
                f"{name}: the columns {other} and {column} differ only in case, which a Delta table cannot hold",
                remedy="rename one of them",
            )
