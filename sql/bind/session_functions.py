"""Functions that tell of a session, or act for it: who asks, settings, advisory locks, sleep."""

from __future__ import annotations

import math
import platform
from collections.abc import Callable, Mapping, Sequence

from halfjoin.errors import UnknownName, UnsupportedSQL
from halfjoin.sql import functions
from halfjoin.sql.expr import Expr, Literal
from halfjoin.sql.functions.parameters import is_inferring
from halfjoin.sql.system import FIXED, NAME, OID, POSTGRES, TEMPORARY, System
from halfjoin.sql.types import BIGINT, BOOLEAN, DOUBLE, INTEGER, INTERVAL, TEXT, Kind, SqlType, array
from halfjoin.version import VERSION

NULL = Literal(None, TEXT)
VOID = SqlType(Kind.TEXT, named="void")


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


def lock(name: str, args: Sequence[Expr], system: System) -> Expr:
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


def sleep(name: str, args: Sequence[Expr], system: System) -> Expr:
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
