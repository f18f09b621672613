"""The rows of pg_type, pg_proc, pg_namespace, pg_database, pg_roles and other tables of what every server has."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from halfjoin.catalog.models import Table, View
from halfjoin.catalog.system import operators
from halfjoin.catalog.system.classes import CLASSES
from halfjoin.catalog.system.columns import system_tables
from halfjoin.catalog.system.known import ROLE, Known
from halfjoin.catalog.system.procedures import function_number, procedures
from halfjoin.catalog.system.relations import Rows
from halfjoin.catalog.system.types import FUNCTIONS
from halfjoin.sql.functions.coercion import assignable, castable, implicit
from halfjoin.sql.oids import BUILT_IN, modifier, own_oid
from halfjoin.sql.system import FIXED
from halfjoin.sql.types import SqlType

POSTGRES_OID, TABLESPACE, UTF8 = 5, 1663, 6
_COLUMNS = {"modin": "typmodin", "modout": "typmodout", "subscript": "typsubscript"}


def pg_type(known: Known) -> Rows:
    """Types."""
    for one in known.types:
        row = {"oid": one.oid, "typname": one.name, "typnamespace": known.schemas[one.schema], "typowner": ROLE,
               "typlen": one.length, "typbyval": one.by_value, "typtype": one.kind, "typcategory": one.category,
               "typispreferred": one.preferred, "typisdefined": True, "typdelim": ",", "typelem": one.element,
               "typarray": one.array, "typalign": one.align, "typstorage": one.storage, "typtypmod": -1,
               "typcollation": one.collation, "typbasetype": one.base, "typrelid": one.relation}  # fmt: skip
        for part, name in zip(FUNCTIONS, one.functions, strict=True):
            row[_COLUMNS.get(part, f"typ{part}")] = function_number(name)
        if one.domain is not None:
            row |= {"typnotnull": one.domain.not_null, "typdefault": one.domain.default,
                    "typdefaultbin": one.domain.default, "typtypmod": modifier(one.domain.type)}
        yield row


def pg_enum(known: Known) -> Rows:
    """The labels of enums."""
    for name, type in known.catalog.enums.items():
        for number, label in enumerate(type.labels, 1):
            yield {"oid": own_oid(f"label {name}.{label}"), "enumtypid": own_oid(name), "enumsortorder": float(number),
                   "enumlabel": label}


def pg_namespace(known: Known) -> Rows:
    """Schemas."""
    return ({"oid": oid, "nspname": name, "nspowner": ROLE} for name, oid in known.schemas.items())


def pg_proc(known: Known) -> Rows:
    """Functions."""
    for one in procedures(known):
        yield {"oid": one.oid, "proname": one.name, "pronamespace": known.schemas[one.schema], "proowner": ROLE,
               "prolang": 12, "procost": 1.0, "prorows": 1000.0 if one.set else 0.0, "prokind": one.kind,
               "proisstrict": True, "proretset": one.set, "provolatile": one.volatile, "proparallel": "s",
               "pronargs": len(one.takes), "prorettype": one.returns, "proargtypes": list(one.takes),
               "prosrc": one.name}


def pg_operator(known: Known) -> Rows:
    """Operators."""
    return ({"oprnamespace": known.schemas["pg_catalog"], "oprowner": ROLE} | row for row in operators.rows())


def pg_cast(known: Known) -> Rows:
    """Casts between types."""
    types = [(one.oid, SqlType(one.kind)) for one in BUILT_IN if one.kind is not None]
    for source, of in types:
        for target, to in types:
            if source != target and castable(of, to):
                context = "i" if implicit(of, to) else "a" if assignable(of, to) else "e"
                yield {"oid": own_oid(f"cast {source} {target}"), "castsource": source, "casttarget": target,
                       "castcontext": context, "castmethod": "i"}


def database_oid(known: Known) -> int:
    """The number of the one database. pgAdmin hides those below 16384, except that of `postgres`."""
    return POSTGRES_OID if known.asker.database == "postgres" else own_oid(f"database {known.asker.database}")


def pg_database(known: Known) -> Rows:
    """The one database."""
    yield {"oid": database_oid(known), "datname": known.asker.database, "datdba": ROLE, "encoding": UTF8,
           "datlocprovider": "c",
           "datallowconn": True, "datconnlimit": -1, "dattablespace": TABLESPACE, "datcollate": "C", "datctype": "C"}


def pg_authid(known: Known) -> Rows:
    """The one role."""
    yield {"oid": ROLE, "rolname": known.asker.user, "rolsuper": True, "rolinherit": True, "rolcreaterole": True,
           "rolcreatedb": True, "rolcanlogin": True, "rolreplication": False, "rolbypassrls": True, "rolconnlimit": -1}


def pg_user(known: Known) -> Rows:
    """The one role, as a user."""
    yield {"usename": known.asker.user, "usesysid": ROLE, "usecreatedb": True, "usesuper": True, "userepl": False,
           "usebypassrls": True, "passwd": "********"}


def pg_description(known: Known) -> Rows:
    """Comments."""
    for one in known.relations:
        if one.comment:
            yield {"objoid": one.oid, "classoid": 1259, "objsubid": 0, "description": one.comment}
        for number, column in enumerate(one.columns, 1):
            if column.comment:
                yield {"objoid": one.oid, "classoid": 1259, "objsubid": number, "description": column.comment}
    for constraint in known.constraints:
        if constraint.comment:
            yield {"objoid": constraint.oid, "classoid": 2606, "objsubid": 0, "description": constraint.comment}
    for class_, described in ((1255, procedures(known)), (2617, operators.operators())):
        for made in described:
            if made.doc:
                yield {"objoid": made.oid, "classoid": class_, "objsubid": 0, "description": made.doc}
    for key, text in known.catalog.comments.items():
        kind, _, name = key.partition(" ")
        if kind == "schema" and name in known.schemas:
            yield {"objoid": known.schemas[name], "classoid": 2615, "objsubid": 0, "description": text}
        elif kind in ("type", "domain"):
            yield {"objoid": own_oid(name), "classoid": 1247, "objsubid": 0, "description": text}


def pg_settings(known: Known) -> Rows:
    """The settings of the session."""
    for name, value in (FIXED | dict(known.asker.settings)).items():
        yield {"name": name, "setting": value, "category": "Session", "short_desc": "", "context": "user",
               "vartype": "string", "source": "default", "boot_val": value, "reset_val": value,
               "pending_restart": False}


def pg_tables(known: Known) -> Rows:
    """Tables, also those of the catalog."""
    for one in system_tables().values():
        if one.kind == "r":
            schema, _, name = one.name.partition(".")
            yield {"schemaname": schema, "tablename": name, "tableowner": known.asker.user}
    for table in known.relations:
        if isinstance(table.item, Table):
            yield {"schemaname": table.schema, "tablename": table.name, "tableowner": known.asker.user,
                   "hasindexes": bool(table.item.keys), "hastriggers": bool(table.item.foreign_keys)}


def pg_views(known: Known) -> Rows:
    """Plain views, also those of the catalog."""
    for one in system_tables().values():
        if one.kind == "v":
            schema, _, name = one.name.partition(".")
            yield {"schemaname": schema, "viewname": name, "viewowner": known.asker.user}
    for view in known.relations:
        if isinstance(view.item, View) and not view.item.materialized:
            yield {"schemaname": view.schema, "viewname": view.name, "viewowner": known.asker.user,
                   "definition": view.item.text}


def pg_matviews(known: Known) -> Rows:
    """Materialized views."""
    for view in known.relations:
        if isinstance(view.item, View) and view.item.materialized:
            yield {"schemaname": view.schema, "matviewname": view.name, "matviewowner": known.asker.user,
                   "hasindexes": False, "ispopulated": True, "definition": view.item.text}


def pg_stat_activity(known: Known) -> Rows:
    """The session that asks."""
    yield {"datid": database_oid(known), "datname": known.asker.database, "pid": known.asker.process, "usesysid": ROLE,
           "usename": known.asker.user, "state": "active", "backend_type": "client backend",
           "application_name": known.asker.settings.get("application_name", "")}


def pg_timezone_names(known: Known) -> Rows:
    """The one time zone of the engine."""
    yield {"name": "UTC", "abbrev": "UTC", "utc_offset": (0, 0, 0), "is_dst": False}


def _fixed(*rows: dict[str, object]) -> Callable[[Known], Rows]:
    return lambda known: iter(rows)


CLUSTER: Mapping[str, Callable[[Known], Rows]] = {
    "pg_roles": pg_authid,
    "pg_shadow": pg_user,
    "pg_am": _fixed({"oid": 2, "amname": "heap", "amtype": "t"}, {"oid": 403, "amname": "btree", "amtype": "i"}),
    "pg_language": _fixed(
        {"oid": 12, "lanname": "internal", "lanowner": ROLE}, {"oid": 13, "lanname": "c", "lanowner": ROLE},
        {"oid": 14, "lanname": "sql", "lanowner": ROLE, "lanpltrusted": True}),
    "pg_tablespace": _fixed({"oid": TABLESPACE, "spcname": "pg_default", "spcowner": ROLE}),
    "pg_collation": _fixed(
        {"oid": 100, "collname": "default", "collnamespace": 11, "collowner": ROLE, "collprovider": "d",
         "collisdeterministic": True, "collencoding": -1},
        {"oid": 950, "collname": "C", "collnamespace": 11, "collowner": ROLE, "collprovider": "c",
         "collisdeterministic": True, "collencoding": -1, "collcollate": "C", "collctype": "C"}),
    "pg_opclass": _fixed(*(
        {"oid": oid, "opcmethod": 403, "opcname": name, "opcnamespace": 11, "opcowner": ROLE, "opcintype": of,
         "opcdefault": True, "opcfamily": 0} for of, (oid, name) in CLASSES.items())),
    **{one.__name__: one for one in (
        pg_type, pg_enum, pg_namespace, pg_proc, pg_operator, pg_cast, pg_database, pg_authid, pg_user, pg_description,
        pg_settings, pg_tables, pg_views, pg_matviews, pg_stat_activity, pg_timezone_names)},
}  # fmt: skip
