"""Functions over PostgreSQL's catalog, in queries: what a number or a name stands for there.

What they say is known when the query is bound: it is a constant, or a look-up of a constant list of numbers and texts.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from halfjoin.errors import UnknownName, UnsupportedSQL
from halfjoin.sql import functions
from halfjoin.sql.bind.modifiers import of_modifier
from halfjoin.sql.bind.reg_types import name_of, number_given, number_of
from halfjoin.sql.bind.session_functions import LOCKS, NULL, SESSION, SLEEPS, lock, set_config, sleep
from halfjoin.sql.expr import Call, Expr, Literal
from halfjoin.sql.oids import pg_type
from halfjoin.sql.system import NAME, OID, TYPES, System
from halfjoin.sql.types import BIGINT, BOOLEAN, DOUBLE, INTEGER, TEXT, TIMESTAMPTZ, Kind, SqlType, array

if TYPE_CHECKING:
    from halfjoin.sql.bind.context import Context

_log = logging.getLogger("halfjoin.catalog")
NOTIFY = "pg_notify"


def not_in_catalog(kind: str, name: str, known: Sequence[str]) -> UnknownName:
    """The error for a table or function that PostgreSQL's catalog may have and ours has not. It is logged, since
    clients often hide it."""
    _log.warning("a client asked for the %s %s, which the catalog does not have", kind, name)
    return UnknownName(f"{kind} of the catalog", name, known, code="42P01" if kind == "table" else "42883")


def is_system(name: str) -> bool:
    """Whether a function tells of a session or of the catalog."""
    return name in SESSION or name in CONSTANT or name in OF_NUMBER or name in LOCKS or name in SLEEPS or name == NOTIFY


def system_call(name: str, args: Sequence[Expr], context: Context) -> Expr | None:
    """The value of a function over the catalog; None if `name` is none."""
    system, catalog = context.system, is_system(name)
    if name == "pg_typeof" and len(args) == 1:
        return _type_of(args[0], system)
    if system is None:
        if catalog:
            raise UnsupportedSQL(f"a view cannot call {name}, which tells of a session or of definitions",
                                 remedy="call it in a query")
        return None
    if name in SESSION and len(args) <= 2:
        return SESSION[name](system, args)
    if name in CONSTANT:
        return CONSTANT[name]
    if name in LOCKS:
        return lock(name, args, system)
    if name in SLEEPS:
        return sleep(name, args, system)
    if name == NOTIFY:
        raise UnsupportedSQL("pg_notify is not supported here", remedy="let it stand alone in the SELECT list of a "
                             "query: WITH new AS (INSERT ... RETURNING id) SELECT pg_notify(...) FROM new")  # fmt: skip
    if name in OF_NUMBER and args:
        return OF_NUMBER[name](name, args, system)
    if (name.startswith("has_") and name.endswith("_privilege")) or name == "pg_has_role":
        return _allowed(args)
    if name.startswith("to_reg") and len(args) == 1:
        return number_of(args[0], name.removeprefix("to_"), system, strict=False)
    return of_modifier(name, args)


def _of_relation(name: str, args: Sequence[Expr], system: System) -> Expr:
    pretty = args[1:] if name == "pg_get_constraintdef" else ()
    return name_of(number_given(args[0], "regclass", system), system.texts(_asked(name, pretty)))


def _asked(name: str, pretty: Sequence[Expr]) -> str:
    """What to ask for: definitions that are to be pretty have fewer parentheses and schemas."""
    return f"{name} pretty" if pretty and functions.cast(pretty[0], BOOLEAN) == Literal(True, BOOLEAN) else name


def _of_index(name: str, args: Sequence[Expr], system: System) -> Expr:
    column = args[1] if len(args) > 1 else Literal(0, INTEGER)
    known = system.texts(_asked(name, args[2:]))
    lists = Literal(list(known), array(BIGINT)), Literal(list(known.values()), array(TEXT))
    relation = number_given(args[0], "regclass", system)
    return Call("text of part", (relation, functions.cast(column, BIGINT), *lists), TEXT)


def _of_type(name: str, args: Sequence[Expr], system: System) -> Expr:
    """format_type: the type's name, with its length or digits."""
    title = name_of(number_given(args[0], "regtype", system), system.texts("regtype"))
    size = args[1] if len(args) > 1 else Literal(None, INTEGER)
    made = Call("type with modifier", (title, functions.cast(size, INTEGER)), TEXT)
    return functions.resolve("case", (functions.resolve("is null", (args[0],)), NULL, made))


def _of_types(name: str, args: Sequence[Expr], system: System) -> Expr:
    """oidvectortypes: the names of the types of a function's arguments."""
    known = system.texts("regtype")
    lists = Literal(list(known), array(BIGINT)), Literal(list(known.values()), array(TEXT))
    return Call("texts of numbers", (functions.cast(args[0], array(BIGINT), explicit=True), *lists), TEXT)


def _type_of(value: Expr, system: System | None) -> Expr:
    """pg_typeof: the type, without its length or digits. In a view it is the name, since a view keeps no regtype."""
    if value.type.kind is Kind.RECORD:  # its types are in no catalog
        return Literal(value.type.named or "record", TEXT)
    if value.type.kind is Kind.UNKNOWN:
        name = "unknown"
    else:
        name = value.type.named if value.type.named in TYPES else pg_type(value.type).sql
    return Literal(name, TEXT) if system is None else number_of(Literal(name, TEXT), "regtype", system)


def _visible(name: str, args: Sequence[Expr], system: System) -> Expr:
    return functions.cast(name_of(functions.cast(args[0], BIGINT), system.texts(name)), BOOLEAN, explicit=True)


def _user(name: str, args: Sequence[Expr], system: System) -> Expr:
    number = functions.cast(args[0], BIGINT)
    unknown = functions.resolve("concat", (Literal("unknown (OID=", TEXT), number, Literal(")", TEXT)))
    return functions.cast(functions.resolve("coalesce", (name_of(number, system.texts(name)), unknown)), NAME)


def _expression(name: str, args: Sequence[Expr], system: System) -> Expr:
    """pg_get_expr: the catalog keeps expressions as their texts."""
    return functions.cast(args[0], TEXT, explicit=True)


def _number_beside(name: str, args: Sequence[Expr], system: System) -> Expr:
    """The bytes that a relation takes in memory and in its files, or the last number of a sequence; NULL if that is not
    known."""
    return functions.cast(name_of(number_given(args[0], "regclass", system), system.texts(name)), BIGINT, explicit=True)


def _size_of_all(name: str, args: Sequence[Expr], system: System) -> Expr:
    """The bytes of the one database, and of its one place."""
    (total,) = system.texts("pg_database_size").values()
    null = functions.resolve("is null", (args[0],))
    return functions.resolve("case", (null, Literal(None, BIGINT), Literal(int(total), BIGINT)))


def _pretty(name: str, args: Sequence[Expr], system: System) -> Expr:
    """pg_size_pretty: a unit of which there are at least 10, rounded to half up."""
    size, made = functions.cast(args[0], BIGINT, explicit=True), list[Expr]()

    def part(op: str, left: Expr, right: int) -> Expr:
        return functions.resolve(op, (left, Literal(right, BIGINT)))

    for power, unit in enumerate(("bytes", "kB", "MB", "GB", "TB", "PB")):
        halves = size if power == 0 else part("/", size, 1 << (10 * power - 1))
        sign = functions.resolve("case", (part("<", halves, 0), Literal(-1, BIGINT), Literal(1, BIGINT)))
        whole = size if power == 0 else part("/", functions.resolve("+", (halves, sign)), 2)
        text = functions.cast(whole, TEXT, explicit=True)
        most = 10 * 1024 if power == 0 else 20 * 1024 - 1
        if unit != "PB":
            made.append(part("<", functions.resolve("abs", (halves,)), most))
        made.append(functions.resolve("||", (text, Literal(f" {unit}", TEXT))))
    return functions.resolve("case", tuple(made))


def _encoding(name: str, args: Sequence[Expr], system: System) -> Expr:
    if name == "pg_char_to_encoding":
        return Literal(6, INTEGER)
    six = functions.resolve("=", (functions.cast(args[0], INTEGER), Literal(6, INTEGER)))
    return functions.cast(functions.resolve("case", (six, Literal("UTF8", TEXT), Literal("", TEXT))), NAME)


def _serial(name: str, args: Sequence[Expr], system: System) -> Expr:
    """pg_get_serial_sequence(table, column)."""
    if len(args) != 2:
        raise UnsupportedSQL(f"{name} takes the names of a table and a column", wrong=True)
    known = system.serials()
    lists = Literal(list(known), array(TEXT)), Literal(list(known.values()), array(TEXT))
    table, column = number_given(args[0], "regclass", system), functions.cast(args[1], TEXT)
    return Call("text of named part", (table, column, *lists), TEXT)


def _with_number(name: str, args: Sequence[Expr], system: System) -> Expr:
    """nameconcatoid: a name and a number, as information_schema names functions."""
    if len(args) != 2:
        raise UnsupportedSQL(f"{name} takes a name and a number", wrong=True)
    parts = (args[0], Literal("_", TEXT), functions.cast(args[1], BIGINT))
    return functions.cast(functions.resolve("concat", parts), NAME)


def _of_key(name: str, args: Sequence[Expr], system: System) -> Expr:
    """pg_index_column_has_property: all keys of indexes ascend, with NULL last."""
    if len(args) != 3:
        raise UnsupportedSQL(f"{name} takes an index, a number and a property", wrong=True)
    asked = functions.cast(args[2], TEXT, explicit=True)
    held = (functions.resolve("=", (asked, Literal(one, TEXT))) for one in ("asc", "nulls_last", "orderable"))
    return functions.resolve("or", tuple(held))


def _allowed(args: Sequence[Expr]) -> Expr:
    """Who asks may do everything that can be done; NULL for a NULL."""
    known = [functions.resolve("is not null", (arg,)) for arg in args]
    held = functions.resolve("and", tuple(known)) if len(known) > 1 else known[0] if known else Literal(True, BOOLEAN)
    return functions.resolve("case", (held, Literal(True, BOOLEAN), Literal(None, BOOLEAN)))


CONSTANT: Mapping[str, Literal] = {
    **dict.fromkeys(("pg_is_in_recovery", "pg_is_other_temp_schema", "pg_is_wal_replay_paused",
                     "pg_relation_is_publishable"), Literal(False, BOOLEAN)),
    **dict.fromkeys((f"pg_{kind}_is_visible" for kind in (
        "opclass", "opfamily", "operator", "collation", "conversion", "ts_config", "ts_dict", "ts_parser",
        "ts_template", "statistics_obj")), Literal(True, BOOLEAN)),
    "pg_tablespace_location": Literal("", TEXT),
    "pg_notification_queue_usage": Literal(0.0, DOUBLE),
    **dict.fromkeys((
        "shobj_description", "pg_get_partkeydef", "pg_get_partition_constraintdef", "pg_get_triggerdef",
        "pg_get_ruledef", "pg_get_statisticsobjdef_columns", "pg_get_function_sqlbody", "pg_get_functiondef",
        "pg_describe_object", "pg_get_function_arg_default", "inet_server_addr",
        "inet_client_addr", "pg_last_wal_replay_lsn", "pg_current_wal_lsn", "pg_get_statisticsobjdef"), NULL),
    "pg_get_replica_identity_index": Literal(0, OID),
    **dict.fromkeys(("pg_stat_get_numscans", "pg_stat_get_live_tuples", "txid_current", "pg_relation_filenode",
                     "pg_stat_get_dead_tuples"), Literal(0, BIGINT)),
    "getdatabaseencoding": Literal("UTF8", NAME),
    "pg_client_encoding": Literal("UTF8", NAME),
    "pg_blocking_pids": Literal([], array(INTEGER)),
    "pg_conf_load_time": Literal(None, TIMESTAMPTZ),
    "pg_postmaster_start_time": Literal(None, TIMESTAMPTZ),
    "acldefault": Literal(None, array(SqlType(Kind.TEXT, named="aclitem"))),
}
OF_NUMBER: Mapping[str, Callable[[str, Sequence[Expr], System], Expr]] = {
    "format_type": _of_type, "oidvectortypes": _of_types,
    "pg_get_viewdef": _of_relation, "pg_get_constraintdef": _of_relation,
    "obj_description": _of_relation,
    "pg_get_indexdef": _of_index, "col_description": _of_index,
    "pg_get_expr": _expression,
    "pg_get_userbyid": _user,
    **dict.fromkeys(("pg_table_is_visible", "pg_type_is_visible", "pg_function_is_visible"), _visible),
    **dict.fromkeys(("pg_get_function_arguments", "pg_get_function_identity_arguments", "pg_get_function_result"),
                    _of_relation),
    **dict.fromkeys(("pg_relation_size", "pg_total_relation_size", "pg_table_size", "pg_indexes_size",
                     "pg_sequence_last_value"), _number_beside),
    **dict.fromkeys(("pg_database_size", "pg_tablespace_size"), _size_of_all),
    "pg_size_pretty": _pretty,
    "pg_encoding_to_char": _encoding, "pg_char_to_encoding": _encoding,
    "pg_get_serial_sequence": _serial,
    "nameconcatoid": _with_number, "pg_index_column_has_property": _of_key,
    "set_config": lambda name, args, system: set_config(system, args),
}
