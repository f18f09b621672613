"""How large tables, views and indexes are: what functions such as pg_table_size say, and pg_class."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from halfjoin.catalog.system.known import Key, Known, Relation
from halfjoin.sql.system import Size

_NONE = Size(0, 0, 0)
DATABASE = 0  # stands for the number of the one database
_PARTS: Mapping[str, tuple[bool, bool]] = {  # whether a function counts rows, and indexes
    "pg_relation_size": (True, False), "pg_table_size": (True, False), "pg_indexes_size": (False, True),
    "pg_total_relation_size": (True, True),
}  # fmt: skip
SIZES = tuple(_PARTS)


def held(known: Known) -> Iterator[tuple[Relation, Size]]:
    """What is held of each table, view and index. Of an index that no lookup has needed yet, that is nothing."""
    sizes = known.asker.sizes()
    for one in known.relations:
        match one.item:
            case Key(table=table, keys=keys):
                found = sizes.get(f"{table}({', '.join(keys)})", _NONE)
                yield one, Size(found.rows, found.indexes, 0)
            case item:
                yield one, sizes.get(item.name, _NONE)


def bytes_of(known: Known, function: str) -> Iterator[tuple[int, str]]:
    """The bytes of each relation, as text, as a function counts them; none where nobody knows them."""
    rows, indexes = _PARTS[function]
    for one, size in held(known):
        if size.bytes is not None:
            yield one.oid, str(size.bytes * rows + size.indexes * indexes)


def bytes_of_all(known: Known) -> Iterator[tuple[int, str]]:
    """The bytes of the database, as text: those known of its tables, views and their indexes."""
    relations = [size for one, size in held(known) if one.kind != "i"]
    yield DATABASE, str(sum((size.bytes or 0) + size.indexes for size in relations))
