"""The rows of pg_catalog's views over indexes, sequences, rules and statistics."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from halfjoin.catalog.models import Sequence
from halfjoin.catalog.system.known import Key, Known
from halfjoin.catalog.system.relations import TYPES, Rows, bounds
from halfjoin.catalog.system.texts import index_text


def pg_indexes(known: Known) -> Rows:
    """Indexes with their definitions."""
    for one in known.relations:
        if isinstance(one.item, Key):
            yield {"schemaname": one.schema, "tablename": known.split(one.item.table)[1], "indexname": one.name,
                   "indexdef": index_text(known, one)}


def pg_sequences(known: Known) -> Rows:
    """Sequences, with the last number that was given out."""
    for one in known.relations:
        if isinstance(one.item, Sequence):
            limits = bounds(one.item)
            yield {"schemaname": one.schema, "sequencename": one.name, "sequenceowner": known.asker.user,
                   "data_type": TYPES[one.item.type], "start_value": limits["seqstart"], "min_value": limits["seqmin"],
                   "max_value": limits["seqmax"], "increment_by": limits["seqincrement"], "cycle": one.item.cycle,
                   "cache_size": 1, "last_value": known.last_value(one.item)}


def pg_stat_user_tables(known: Known) -> Rows:
    """The user's tables; the engine keeps other statistics, which SHOW and the face tell."""
    for one in known.relations:
        if one.kind in ("r", "m"):
            yield {"relid": one.oid, "schemaname": one.schema, "relname": one.name}


def pg_stat_user_indexes(known: Known) -> Rows:
    """The user's indexes."""
    for one in known.relations:
        if isinstance(one.item, Key) and (of := known.by_name.get(one.item.table)) is not None:
            yield {"relid": of.oid, "indexrelid": one.oid, "schemaname": one.schema, "relname": of.name,
                   "indexrelname": one.name}


VIEWS: Mapping[str, Callable[[Known], Rows]] = {
    "pg_indexes": pg_indexes, "pg_sequences": pg_sequences,
    **dict.fromkeys(("pg_stat_user_tables", "pg_stat_all_tables", "pg_statio_user_tables", "pg_statio_all_tables"),
                    pg_stat_user_tables),
    **dict.fromkeys(("pg_stat_user_indexes", "pg_stat_all_indexes", "pg_statio_user_indexes"), pg_stat_user_indexes),
}  # fmt: skip
