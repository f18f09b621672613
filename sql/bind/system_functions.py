"""Functions over PostgreSQL's catalog, in queries: of the session, of a number, of a name.

What they say is known when the query is bound: it is a constant, or a look-up of a constant list of numbers and texts.
"""

from __future__ import annotations

import logging
import math
import platform
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from halfjoin.errors import UnknownName, UnsupportedSQL
from halfjoin.sql import functions
from halfjoin.sql.bind.modifiers import of_modifier
from halfjoin.sql.expr import Call, Expr, Literal
from halfjoin.sql.functions.parameters import is_inferring
from halfjoin.sql.oids import pg_type
from halfjoin.sql.system import FIXED, NAME, OID, POSTGRES, REG, TEMPORARY, TYPES, VECTORS, System, is_reg
from halfjoin.sql.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INTEGER,
    INTEGERS,
    INTERVAL,
    STRINGS,
    TEXT,
    TIMESTAMPTZ,
    Kind,
    SqlType,
    array,
)
from halfjoin.version import VERSION

if TYPE_CHECKING:
    from halfjoin.sql.bind.context import Context

_log = logging.getLogger("halfjoin.catalog")
NULL = Literal(None, TEXT)
VOID = SqlType(Kind.TEXT, named="void")
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
        return _lock(name, args, system)
    if name in SLEEPS:
        return _sleep(name, args, system)
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


def text_of(value: Expr, type: SqlType, system: System) -> Expr:
    """What a number of a type such as regclass shows as: the name, or else the number; 0 is `-`."""
    bare = functions.cast(value, BIGINT)
    name = _found(bare, system.texts(type.named))
    number = functions.cast(bare, TEXT, explicit=True)
    zero = functions.resolve("=", (bare, Literal(0, BIGINT)))
    return functions.resolve("case", (zero, Literal("-", TEXT), functions.resolve("coalesce", (name, number))))


def number_of(value: Expr, type: str, system: System, strict: bool = True) -> Expr:
    """The number of what a text names, for a type such as regclass. `strict`: a constant must name something."""
    to = REG[type]
    if value.type.kind in INTEGERS:
        return functions.cast(value, to)
    if not isinstance(value, Literal) or str(value.value).startswith("\0"):  # the place of a parameter
        written = _as_written(system.numbers(type), system.asker.database)
        texts = Literal(list(written), array(TEXT))
        made = Call("number of text", (functions.cast(value, TEXT, explicit=True), texts,
                                       Literal(list(written.values()), array(BIGINT))), BIGINT)
        return functions.cast(made, to)
    if value.value is None:
        return Literal(None, to)
    text = str(value.value)
    if text.isdigit() and strict:
        return Literal(int(text), to)
    if text == "-":
        return Literal(0, to)
    known, folded = system.numbers(type), _signature(text, system) if type == "regprocedure" else _folded(text)
    found = known.get(_type_name(text), known.get(folded)) if type == "regtype" else known.get(
        folded, known.get(folded.removeprefix(f"{system.asker.database}.")))
    if found is None and strict:
        kind = {"regclass": "relation", "regtype": "type", "regnamespace": "schema", "regrole": "role"}.get(
            type, "function")  # fmt: skip
        code = {"relation": "42P01", "type": "42704", "schema": "3F000", "role": "42704"}.get(kind, "42883")
        raise UnknownName(kind, text, (), code=code)
    return Literal(found, to)


def cast_system(value: Expr, type: SqlType, system: System) -> Expr | None:
    """A cast to or from a type that shows as a name; None for other casts."""
    if is_reg(type):
        return number_of(value, type.named, system) if not is_reg(value.type) else functions.cast(value, type)
    if type.element is not None and is_reg(type.element) and (value.type.element or value.type).kind not in INTEGERS:
        texts = functions.cast(value, array(TEXT), explicit=True)
        if isinstance(texts, Literal) and isinstance(texts.value, list):  # Drizzle: '{int,int8}'::regtype[]
            found = (number_of(Literal(text, TEXT), type.element.named, system) for text in texts.value)
            return Literal([one.value for one in found if isinstance(one, Literal)], type)
    if is_reg(value.type) and type.kind in STRINGS:
        return functions.cast(text_of(value, value.type, system), type, explicit=True)
    if value.type.named in VECTORS and type.kind in STRINGS:
        parts = functions.cast(value, array(TEXT), explicit=True)
        return functions.cast(functions.resolve("array_to_string", (parts, Literal(" ", TEXT))), type)
    return None


def from_one(vector: Expr, index: Expr) -> Expr:
    """An index into a vector, which begins at 0, as one into an array, which begins at 1."""
    if vector.type.named not in VECTORS:
        return index
    match index:
        case Call("-", (place, Literal(value=1))):  # v[n - 1]: no step that could fail, as clients join by it
            return functions.cast(place, INTEGER, explicit=True)
    return functions.resolve("+", (functions.cast(index, INTEGER, explicit=True), Literal(1, INTEGER)))


def shown(value: Expr, system: System) -> Expr:
    """An output of a query as clients see it: a regclass as a name, a vector as its elements with blanks."""
    if is_reg(value.type):
        return text_of(value, value.type, system)
    if value.type.named in VECTORS:
        return cast_system(value, SqlType(Kind.TEXT, named=value.type.named), system) or value
    return value


def named(args: Sequence[Expr], context: Context) -> tuple[Expr, ...]:
    """The arguments of a function that makes a text: a regclass as the name that it shows."""
    system = context.system
    if system is None or not any(is_reg(arg.type) for arg in args):
        return tuple(args)
    return tuple(text_of(arg, arg.type, system) if is_reg(arg.type) else arg for arg in args)


_PART = re.compile(r'"(?:[^"]|"")*"|[^".\s]+')  # of a name
_NAME = re.compile(rf"\s*(?:{_PART.pattern})\s*(?:\.\s*(?:{_PART.pattern})\s*)*")


def _folded(text: str) -> str:
    """A name as SQL text, without quotes and in lower case where it had none. Blanks may surround its parts."""
    if not _NAME.fullmatch(text):
        return ""  # which names nothing
    return ".".join(part[1:-1].replace('""', '"') if part.startswith('"') else part.lower()
                    for part in _PART.findall(text))


def _signature(text: str, system: System) -> str:
    """A function's name as SQL text, with the numbers of its arguments' types: `lower(25)` for `lower(text)`."""
    name, given, arguments = text.partition("(")
    if not given:
        return _folded(name)
    types = system.numbers("regtype")
    takes = [types.get(_type_name(part)) for part in arguments.strip().removesuffix(")").split(",") if part.strip()]
    return f"{_folded(name)}({','.join(map(str, takes))})"


def _as_written(known: Mapping[str, int], database: str) -> dict[str, int]:
    """Names with a schema, also with quotes around their parts and with the database, as programs put them together."""
    made = dict(known)
    for name, number in known.items():
        schema, dot, rest = name.partition(".")
        if dot and '"' not in name:
            for written in (f'"{schema}"."{rest}"', f'{schema}."{rest}"', f'"{schema}".{rest}'):
                made[written] = made[f"{database}.{written}"] = made[f'"{database}".{written}'] = number
            made[f"{database}.{name}"] = number
    return made


def _type_name(text: str) -> str:
    bare = text.partition("(")[0].strip() if "(" in text and not text.endswith("]") else text.strip()
    return bare if '"' in bare else bare.lower().removeprefix("pg_catalog.") or bare


def _found(value: Expr, known: Mapping[int, str]) -> Expr:
    keys, texts = Literal(list(known), array(BIGINT)), Literal(list(known.values()), array(TEXT))
    return Call("text of number", (value, keys, texts), TEXT)


def _number(value: Expr, type: str, system: System) -> Expr:
    """An argument that is a number, or the name of what has it."""
    if value.type.kind in (*STRINGS, Kind.UNKNOWN):
        return functions.cast(number_of(value, type, system), BIGINT)
    return functions.cast(value, BIGINT)


def _of_relation(name: str, args: Sequence[Expr], system: System) -> Expr:
    pretty = args[1:] if name == "pg_get_constraintdef" else ()
    return _found(_number(args[0], "regclass", system), system.texts(_asked(name, pretty)))


def _asked(name: str, pretty: Sequence[Expr]) -> str:
    """What to ask for: definitions that are to be pretty have fewer parentheses and schemas."""
    return f"{name} pretty" if pretty and functions.cast(pretty[0], BOOLEAN) == Literal(True, BOOLEAN) else name


def _of_index(name: str, args: Sequence[Expr], system: System) -> Expr:
    column = args[1] if len(args) > 1 else Literal(0, INTEGER)
    known = system.texts(_asked(name, args[2:]))
    lists = Literal(list(known), array(BIGINT)), Literal(list(known.values()), array(TEXT))
    return Call("text of part", (_number(args[0], "regclass", system), functions.cast(column, BIGINT), *lists), TEXT)


def _of_type(name: str, args: Sequence[Expr], system: System) -> Expr:
    """format_type: the type's name, with its length or digits."""
    title = _found(_number(args[0], "regtype", system), system.texts("regtype"))
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
    return functions.cast(_found(functions.cast(args[0], BIGINT), system.texts(name)), BOOLEAN, explicit=True)


def _user(name: str, args: Sequence[Expr], system: System) -> Expr:
    number = functions.cast(args[0], BIGINT)
    unknown = functions.resolve("concat", (Literal("unknown (OID=", TEXT), number, Literal(")", TEXT)))
    return functions.cast(functions.resolve("coalesce", (_found(number, system.texts(name)), unknown)), NAME)


def _expression(name: str, args: Sequence[Expr], system: System) -> Expr:
    """pg_get_expr: the catalog keeps expressions as their texts."""
    return functions.cast(args[0], TEXT, explicit=True)


def _number_beside(name: str, args: Sequence[Expr], system: System) -> Expr:
    """The bytes that a relation takes in memory and in its files, or the last number of a sequence; NULL if that is not
    known."""
    return functions.cast(_found(_number(args[0], "regclass", system), system.texts(name)), BIGINT, explicit=True)


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
    table, column = _number(args[0], "regclass", system), functions.cast(args[1], TEXT)
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


def _setting(system: System, args: Sequence[Expr]) -> Expr:
    """current_setting(name [, missing_ok])."""
    known = {**FIXED, "session_authorization": system.asker.user, **system.asker.settings}
    if args and not isinstance(args[0], Literal):
        tests = [(functions.resolve("=", (args[0], Literal(name, TEXT))), Literal(value, TEXT))
                 for name, value in known.items()]
        return functions.resolve("case", (*(part for test in tests for part in test), NULL))
    if args and args[0] == Literal(None, args[0].type):
        return NULL
    name = _constant(args[0] if args else None, "current_setting")
    found = known.get(name.lower())
    if found is None and len(args) < 2:
        raise UnknownName("setting", name, system.asker.settings, code="42704")
    return Literal(found, TEXT)


def set_config(system: System, args: Sequence[Expr]) -> Expr:
    """set_config(name, value, is_local): SET, as a function."""
    name, value = _constant(args[0], "set_config"), _constant(args[1], "set_config")
    if system.asker.set is None:
        raise UnsupportedSQL("set_config changes a session", remedy="call it in engine.execute")
    if FIXED.get(name.lower()) != value:
        system.asker.set(name, value)
    return Literal(value, TEXT)


def _constant(value: Expr | None, function: str) -> str:
    if not isinstance(value, Literal) or value.value is None:
        raise UnsupportedSQL(f"{function} takes a constant", remedy="write the name of a setting in quotes")
    return str(value.value)


def _lock(name: str, args: Sequence[Expr], system: System) -> Expr:
    """A function of advisory locks. It is called now, unless the statement is only described."""
    type = VOID if "_try_" not in name and not name.endswith(("_unlock", "_unlock_shared")) else BOOLEAN
    if len(args) not in ((0,) if name.endswith("_all") else (1, 2)):
        raise UnsupportedSQL(f"no function {name} of {len(args)} arguments", code="42883",
                             remedy="it takes a bigint, or two integers")  # fmt: skip
    keys = [functions.cast(arg, BIGINT if len(args) == 1 else INTEGER) for arg in args]
    if is_inferring():
        return Literal(None, type)
    values = [key.value for key in keys if isinstance(key, Literal)]
    if len(values) < len(keys):
        raise UnsupportedSQL(f"{name} takes constants", remedy="ask for the number first, and send it")
    if any(value is None for value in values):
        return Literal(None, type)
    if system.asker.lock is None and not name.endswith("_all"):
        raise UnsupportedSQL(f"{name} locks among the clients of a server", remedy="call it through halfjoin serve")
    locked = system.asker.lock is None or system.asker.lock(name, [int(str(value)) for value in values])
    return Literal(locked if type == BOOLEAN else "", type)


def _sleep(name: str, args: Sequence[Expr], system: System) -> Expr:
    """pg_sleep(seconds) and pg_sleep_for(interval). The answer of the statement waits, unless it is only described."""
    if len(args) != 1:
        raise UnsupportedSQL(f"no function {name} of {len(args)} arguments", code="42883")
    time = functions.cast(args[0], SLEEPS[name])
    if is_inferring():
        return Literal(None, VOID)
    if not isinstance(time, Literal):
        raise UnsupportedSQL(f"{name} takes a constant", remedy="send the number of seconds")
    if time.value is None:
        return Literal(None, VOID)
    if system.asker.sleep is None:
        raise UnsupportedSQL(f"{name} is for the clients of a server", remedy="write time.sleep(seconds) in Python")
    match time.value:
        case (int(months), int(days), int(micros)):
            seconds = (months * 30 + days) * 86400 + micros / 1e6
        case given:
            seconds = float(str(given))
    system.asker.sleep(0.0 if math.isnan(seconds) else seconds)
    return Literal("", VOID)


def _schemas(system: System, args: Sequence[Expr]) -> Expr:
    every = bool(isinstance(args[0], Literal) and args[0].value) if args else False
    return Literal(["pg_catalog", *system.asker.path] if every else _lasting(system), array(NAME))


def _lasting(system: System) -> list[str]:
    """The search path without the schema of what is temporary, which is there without being named."""
    return [schema for schema in system.asker.path if schema != TEMPORARY]


SESSION: Mapping[str, Callable[[System, Sequence[Expr]], Expr]] = {
    **dict.fromkeys(("current_user", "session_user", "user", "current_role"),
                    lambda system, args: Literal(system.asker.user, NAME)),
    **dict.fromkeys(("current_database", "current_catalog"), lambda system, args: Literal(system.asker.database, NAME)),
    "current_schema": lambda system, args: Literal(next(iter(_lasting(system)), None), NAME),
    "current_schemas": _schemas,
    "pg_my_temp_schema": lambda system, args: Literal(system.numbers("regnamespace").get(TEMPORARY, 0), OID),
    "current_setting": _setting,
    "pg_backend_pid": lambda system, args: Literal(system.asker.process, INTEGER),
    "version": lambda system, args: Literal(
        f"PostgreSQL {POSTGRES} (halfjoin {VERSION}, Python {platform.python_version()})", TEXT),
}
SLEEPS: Mapping[str, SqlType] = {"pg_sleep": DOUBLE, "pg_sleep_for": INTERVAL}
LOCKS = frozenset((
    "pg_advisory_unlock", "pg_advisory_unlock_shared", "pg_advisory_unlock_all",
    *(f"pg_{tried}advisory_{until}lock{shared}"
      for tried in ("", "try_") for until in ("", "xact_") for shared in ("", "_shared"))))  # fmt: skip
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
