"""The kinds of sources, by the names that SQL has for them."""

from __future__ import annotations

from halfjoin.engine.feeds.files.reader import FILES
from halfjoin.engine.feeds.kafka.reader import KAFKA
from halfjoin.engine.feeds.postgres.reader import POSTGRES
from halfjoin.engine.feeds.source import Kind
from halfjoin.errors import UnknownName

KINDS: dict[str, Kind] = {kind.name: kind for kind in (FILES, KAFKA, POSTGRES)}


def kind_named(name: str) -> Kind:
    """The kind of source of that name, in any case.

    Raises:
        UnknownName: there is none.
    """
    found = KINDS.get(name.upper())
    if found is None:
        raise UnknownName("kind of source", name, KINDS)
    return found
