"""The rows of pg_class, pg_attribute and the tables beside them: columns, defaults, indexes, sequences, rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from halfjoin.catalog.models import ColumnModel, Sequence, Table, View
from halfjoin.catalog.system.classes import class_of
from halfjoin.catalog.system.columns import system_tables
from halfjoin.catalog.system.known import ROLE, Key, Known, Relation, numbers_of
from halfjoin.catalog.system.sizes import held
from halfjoin.catalog.system.texts import view_text
from halfjoin.catalog.system.types import built_in, rows_of
from halfjoin.sql.oids import modifier, own_oid
from halfjoin.sql.oids import pg_type as entry_of
from halfjoin.sql.system import TEMPORARY, catalog_type

Row: TypeAlias = dict[str, Any]
Rows: TypeAlias = Iterator[Row]
HEAP, BTREE = 2, 403
_TEXT = 25


def pg_class(known: Known) -> Rows:
    """Tables, views, indexes and sequences."""
    schemas = known.schemas
    for one in system_tables().values():
        schema, _, name = one.name.partition(".")
        yield _class(one.oid, name, schemas[schema], one.kind, len(one.columns)) | {"relhasrules": one.kind == "v"}
    sizes = {one.oid: size.rows for one, size in held(known)}
    indexed = {one.item.table for one in known.relations if isinstance(one.item, Key)}
    for relation in known.relations:
        item = relation.item
        row = _class(relation.oid, relation.name, schemas[relation.schema], relation.kind, len(_columns(relation)))
        if isinstance(item, Table):
            row |= {"relchecks": len(item.checks), "relhastriggers": bool(item.foreign_keys or item.referenced)}
        if relation.schema == TEMPORARY:
            row["relpersistence"] = "t"
        if isinstance(item, Table | View):
            row["reltype"] = rows_of(relation.oid)
        if sizes[relation.oid]:
            row["reltuples"] = float(sizes[relation.oid])
        yield row | {"relhasindex": getattr(item, "name", None) in indexed, "relhasrules": isinstance(item, View)}
    for own in known.types:
        if own.fields is not None:
            made = _class(own.relation, own.name, schemas[own.schema], "c", len(own.fields.fields))
            yield made | {"reltype": own.oid}


def _class(oid: int, name: str, schema: int, kind: str, columns: int) -> Row:
    stored = kind in ("r", "m", "i")
    return {"oid": oid, "relname": name, "relnamespace": schema, "relowner": ROLE, "relkind": kind, "relnatts": columns,
            "relam": BTREE if kind == "i" else HEAP if stored else 0, "relfilenode": oid if stored else 0,
            "reltuples": -1.0, "relpersistence": "p", "relispopulated": True,
            "relreplident": "d" if kind in ("r", "m") else "n"}  # fmt: skip


def _columns(one: Relation) -> tuple[Any, ...]:
    return one.item.keys if isinstance(one.item, Key) else _SEQUENCE if isinstance(one.item, Sequence) else one.columns


TYPES = {"smallint": 21, "integer": 23, "bigint": 20}  # those of sequences, with their numbers
_SEQUENCE = (("last_value", 20), ("log_cnt", 20), ("is_called", 16))


def pg_attribute(known: Known) -> Rows:
    """The columns of tables, views and indexes."""
    by_name = {one.name: one for one in built_in()}
    for table in system_tables().values():
        for number, (column, type) in enumerate(zip(table.columns, table.types, strict=True), 1):
            array = type.endswith("[]")
            found = by_name.get(f"_{type[:-2]}" if array else type) or by_name[_nearest(type)]
            yield _attribute(known, table.oid, number, column.name, found.oid) | {
                "attnotnull": table.kind == "r" and column.name == "oid"}
    for relation in known.relations:
        match relation.item:
            case Sequence():
                for number, (name, oid) in enumerate(_SEQUENCE, 1):
                    yield _attribute(known, relation.oid, number, name, oid) | {"attnotnull": True}
            case Key() as key:
                yield from _of_index(known, relation, key)
            case _:
                for number, one in enumerate(relation.columns, 1):
                    yield _of_column(known, relation, number, one)
    for own in known.types:
        for number, (name, field) in enumerate(own.fields.fields if own.fields is not None else (), 1):
            yield _attribute(known, own.relation, number, name, entry_of(field).oid, modifier(field))


def _of_column(known: Known, relation: Relation, number: int, one: ColumnModel) -> Row:
    table = relation.kind == "r"
    by_domain = one.domain is not None and one.domain.not_null  # the domain says it
    return _attribute(known, relation.oid, number, one.name, known.type_of(one), _size(one)) | {
        "attnotnull": one.not_null and table and not by_domain,
        "atthasdef": table and (known.default(one) is not None or one.generated is not None),
        "attidentity": "" if not one.sequence or one.serial else "a" if one.always else "d",
        "attgenerated": "" if one.generated is None else "s"}


def _of_index(known: Known, relation: Relation, key: Key) -> Rows:
    """The columns of an index; one over an expression has no name of its own."""
    of = known.by_name.get(key.table)
    columns = {} if of is None else {column.name: column for column in of.columns}
    for number, name in enumerate(key.keys, 1):
        found = columns.get(name)
        if found is None:
            yield _attribute(known, relation.oid, number, "expr", _TEXT)
        else:
            yield _attribute(known, relation.oid, number, name, known.type_of(found), _size(found))


def _size(column: ColumnModel) -> int:
    """The modifier of a column's type; that of a domain is the domain's."""
    return -1 if column.domain is not None else modifier(column.type)


def _nearest(type: str) -> str:
    """The type in which a column of a system table shows."""
    return "_text" if type.endswith("[]") else {"oid": "oid"}.get(entry_of(catalog_type(type)).name, "text")


def _attribute(known: Known, relation: int, number: int, name: str, type: int, size: int = -1) -> Row:
    found = known.type_by_oid[type]
    return {"attrelid": relation, "attname": name, "atttypid": type, "attlen": found.length, "attnum": number,
            "attndims": int(found.category == "A"), "attcacheoff": -1, "atttypmod": size, "attbyval": found.by_value,
            "attalign": found.align, "attstorage": found.storage, "attislocal": True, "attstattarget": -1,
            "attcollation": found.collation}  # fmt: skip


def pg_attrdef(known: Known) -> Rows:
    """DEFAULT and GENERATED."""
    for relation in known.relations:
        for number, column in enumerate(relation.columns, 1):
            default = known.default(column)
            text = column.generated if default is None else default
            if text is not None and relation.kind == "r":
                yield {"oid": _default_oid(relation, column.name), "adrelid": relation.oid,
                       "adnum": number, "adbin": text}


def _default_oid(relation: Relation, column: str) -> int:
    return own_oid(f"default {relation.oid}.{column}")


def pg_index(known: Known) -> Rows:
    """Indexes."""
    for one in known.relations:
        if isinstance(one.item, Key) and (of := known.by_name.get(one.item.table)) is not None:
            count, numbers = len(one.item.keys), numbers_of(one.item.keys, of)
            types = [known.type_by_oid[known.type_of(of.columns[n - 1])] if n else known.type_by_oid[_TEXT]
                     for n in numbers]
            expressions = [key for key, n in zip(one.item.keys, numbers, strict=True) if not n]
            yield {"indexrelid": one.oid, "indrelid": of.oid, "indnatts": count, "indnkeyatts": count,
                   "indisunique": one.item.unique, "indisprimary": one.item.primary, "indimmediate": True,
                   "indisvalid": True, "indisready": True, "indislive": True, "indkey": numbers,
                   "indcollation": [type.collation for type in types], "indoption": [0] * count,
                   "indclass": [class_of(type) for type in types],
                   "indexprs": ", ".join(expressions) or None}


ACTIONS = {"": "a", "cascade": "c", "set null": "n", "set default": "d"}  # of foreign keys


def pg_constraint(known: Known) -> Rows:
    """PRIMARY KEY, UNIQUE, FOREIGN KEY and CHECK."""
    for one in known.constraints:
        index = known.index_of(one)
        valid = all(part is None or part.valid for part in (one.check, one.key))
        row: Row = {"oid": one.oid, "conname": one.name, "contype": one.kind, "convalidated": valid, "conislocal": True,
                    "connoinherit": one.kind != "c", "conindid": 0 if index is None else index.oid}
        if one.domain is not None:
            yield row | {"connamespace": known.schemas[one.domain.schema], "contypid": one.domain.oid,
                         "conbin": one.check.text if one.check else None}
        elif one.table is not None:
            row |= {"connamespace": known.schemas[one.table.schema], "conrelid": one.table.oid}
            row["conkey"] = numbers_of(one.columns, one.table) or None
            if one.check is not None:
                row |= {"conbin": one.check.text,
                        "conkey": [n for n, c in enumerate(one.table.columns, 1) if c.name in one.check.text] or None}
            if one.key is not None:
                of = known.by_name[one.key.table]
                row |= {"confrelid": of.oid, "confkey": numbers_of(one.key.references, of), "confmatchtype": "s",
                        "confupdtype": ACTIONS[one.key.on_update], "confdeltype": ACTIONS[one.key.on_delete],
                        "condeferrable": one.key.deferred, "condeferred": one.key.deferred,
                        "conpfeqop": [96] * len(one.columns), "conppeqop": [96] * len(one.columns),
                        "conffeqop": [96] * len(one.columns)}
            else:
                row |= {"confupdtype": " ", "confdeltype": " ", "confmatchtype": " "}
            yield row


def pg_sequence(known: Known) -> Rows:
    """What sequences count by."""
    for one in known.relations:
        if isinstance(one.item, Sequence):
            yield {"seqrelid": one.oid, "seqtypid": TYPES[one.item.type], **bounds(one.item)}


def bounds(one: Sequence) -> Row:
    """Where a sequence starts and ends."""
    return {"seqstart": one.start, "seqincrement": one.step, "seqmax": one.most, "seqmin": one.least, "seqcache": 1,
            "seqcycle": one.cycle}


def pg_rewrite(known: Known) -> Rows:
    """The rule of each view."""
    for one in known.relations:
        if isinstance(one.item, View):
            yield {"oid": own_oid(f"rule {one.oid}"), "rulename": "_RETURN", "ev_class": one.oid, "ev_type": "1",
                   "ev_enabled": "O", "is_instead": True, "ev_action": view_text(one.item)}


def pg_depend(known: Known) -> Rows:
    """What views read, which sequence numbers which column, and which index a constraint has or needs."""
    sequences = {one.item.name: one for one in known.relations if isinstance(one.item, Sequence)}
    for one in known.relations:
        if isinstance(one.item, View):
            for name in one.item.reads:
                if (read := known.by_name.get(name)) is not None:
                    yield {"classid": 2618, "objid": own_oid(f"rule {one.oid}"), "refclassid": 1259,
                           "refobjid": read.oid, "deptype": "n"}
            yield {"classid": 2618, "objid": own_oid(f"rule {one.oid}"), "refclassid": 1259, "refobjid": one.oid,
                   "deptype": "i"}
        for number, column in enumerate(one.columns, 1):
            if column.sequence and (sequence := sequences.get(column.sequence)) is not None:
                yield {"classid": 1259, "objid": sequence.oid, "refclassid": 1259, "refobjid": one.oid,
                       "refobjsubid": number, "deptype": "a" if column.serial else "i"}
                if column.serial:
                    yield {"classid": 2604, "objid": _default_oid(one, column.name), "refclassid": 1259,
                           "refobjid": sequence.oid, "deptype": "n"}
    for constraint in known.constraints:
        if (index := known.index_of(constraint)) is not None and constraint.key is not None:
            yield {"classid": 2606, "objid": constraint.oid, "refclassid": 1259, "refobjid": index.oid, "deptype": "n"}
        elif index is not None:
            yield {"classid": 1259, "objid": index.oid, "refclassid": 2606, "refobjid": constraint.oid, "deptype": "i"}


RELATIONS: Mapping[str, Callable[[Known], Rows]] = {
    one.__name__: one for one in (pg_class, pg_attribute, pg_attrdef, pg_index, pg_constraint, pg_sequence, pg_rewrite,
                                  pg_depend)}  # fmt: skip
