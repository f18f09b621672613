"""Read the catalog that a warehouse keeps, and refuse what this version of halfjoin would lose or misunderstand.

Wrong: to leave out what is unknown. The next definition would write the catalog without it, and constraints would be
gone. A view that a newer version evaluates otherwise would get changes that do not fit its rows.
"""

from __future__ import annotations

import json
from typing import Any

from halfjoin.catalog.models import Document
from halfjoin.errors import StorageError
from halfjoin.version import MEANING


def read_catalog(text: str) -> Document:
    """The definitions in the text of a catalog; none in an empty one.

    Raises:
        StorageError: a newer version of halfjoin wrote it.
        ValueError: it is damaged.
    """
    if not text:
        return Document()
    found = json.loads(text)
    if found.get("meaning", 1) > MEANING:
        raise _newer("evaluates some expressions of views otherwise")
    document = Document.model_validate_json(text)
    if found.get("meaning") == MEANING:  # an older one may have what is no longer needed
        unknown = _unknown(found, json.loads(document.text()))
        if unknown is not None:
            raise _newer(f"gives definitions {unknown}, which this version does not know")
    return document


def _newer(does: str) -> StorageError:
    return StorageError(f"the version of halfjoin that wrote the warehouse {does}",
                        remedy="open the warehouse with that version or a newer one")


def _unknown(found: Any, known: Any) -> str | None:
    """The name of something in the first JSON value that the second has not; None if there is nothing."""
    if isinstance(found, dict) and isinstance(known, dict):
        pairs = [(value, known[key]) for key, value in found.items() if key in known]
        more = [f"{key!r}" for key in found if key not in known]
    elif isinstance(found, list) and isinstance(known, list):
        pairs, more = list(zip(found, known, strict=False)), []
    else:
        return None
    return next(iter(more), None) or next((name for pair in pairs if (name := _unknown(*pair))), None)
