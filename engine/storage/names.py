"""Folders of collections, named after them."""

from __future__ import annotations

import hashlib
import re

_LONGEST = 120


def folder_name(name: str) -> str:
    """A name that any file system and any URL takes as it is: `orders` for orders, `-4fr-64ers` for "OrDers".

    Lower case letters, digits and `_` stand for themselves, every other byte is `-` and two hex digits. Long names end
    in a hash.
    """
    written = re.sub(rb"[^a-z0-9_]", lambda match: b"-%02x" % match.group()[0], name.encode()).decode()
    if len(written) <= _LONGEST:
        return written
    return f"{written[:80]}-{hashlib.sha256(name.encode()).hexdigest()[:32]}"
