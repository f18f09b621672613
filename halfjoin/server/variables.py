"""The settings of a connection: those that the engine knows, and those that only say what holds of a server.

SET LOCAL ends with its transaction, and ROLLBACK takes back what was set in it.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping
from types import MappingProxyType

from halfjoin.engine.statements.connection import Connection
from halfjoin.engine.statements.isolation import COMMITTED
from halfjoin.engine.statements.settings import SETTINGS
from halfjoin.errors import HalfjoinError, UnknownName, UnsupportedSQL
from halfjoin.server.interval_styles import ISO, POSTGRES
from halfjoin.sql.transactions import LEVELS

VERSION = "15.0"  # of PostgreSQL, whose protocol, catalog and meaning clients find
_SWITCH = ("on", "off", "true", "false", "yes", "no", "1", "0")

# Each setting with its default, and the values that it can have (None: any).
_FIXED: Mapping[str, tuple[str, tuple[str, ...] | None]] = {
    "server_version": (VERSION, ()), "server_version_num": ("150000", ()), "integer_datetimes": ("on", ()),
    "is_superuser": ("off", ()), "max_identifier_length": ("63", ()), "lc_collate": ("C", ()), "lc_ctype": ("C", ()),
    "transaction_isolation": (COMMITTED, LEVELS),
    "default_transaction_isolation": (COMMITTED, LEVELS),
    "transaction_read_only": ("off", _SWITCH), "default_transaction_read_only": ("off", _SWITCH),
    "transaction_deferrable": ("off", _SWITCH), "default_transaction_deferrable": ("off", _SWITCH),
    "in_hot_standby": ("off", ()), "max_connections": ("100", ()), "ssl": ("off", ()),
    "session_authorization": ("", None), "role": ("none", None),
    "statement_timeout": ("0", None), "lock_timeout": ("0", None), "idle_session_timeout": ("0", None),
    "idle_in_transaction_session_timeout": ("0", None), "transaction_timeout": ("0", None),
    "synchronous_commit": ("on", None), "row_security": ("on", _SWITCH), "jit": ("off", _SWITCH),
    "bytea_output": ("hex", ("hex",)), "xmloption": ("content", None), "check_function_bodies": ("on", _SWITCH),
    "default_tablespace": ("", ("",)), "default_table_access_method": ("heap", ("heap",)),
    "lc_messages": ("C", None), "lc_monetary": ("C", None), "lc_numeric": ("C", None), "lc_time": ("C", None),
    "work_mem": ("4MB", None), "maintenance_work_mem": ("64MB", None), "enable_seqscan": ("on", _SWITCH),
    "plan_cache_mode": ("auto", None), "intervalstyle": (POSTGRES, (POSTGRES, ISO)),
}  # fmt: skip
_OF_ENGINE = {name: setting for name, setting in SETTINGS.items() if name not in _FIXED}
# Outside a transaction each statement is one, with the modes that SET SESSION CHARACTERISTICS has given.
OF_TRANSACTIONS = ("transaction_isolation", "transaction_read_only", "transaction_deferrable")
_OF_USERS = ("role", "session_authorization")
_OF_DUMPS = "synchronize_seqscans"  # nothing but pg_dump sets it, before it asks anything
_NAMES = {"timezone": "TimeZone", "datestyle": "DateStyle", "intervalstyle": "IntervalStyle"}
REPORTED = ("server_version", "server_encoding", "client_encoding", "application_name", "is_superuser",
            "session_authorization", "datestyle", "intervalstyle", "timezone", "integer_datetimes",
            "standard_conforming_strings", "default_transaction_read_only", "in_hot_standby")  # fmt: skip
_SHOWN = {"datestyle": "ISO, MDY"}  # in PostgreSQL's words
_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1, "min": 60, "h": 3600, "d": 86400}


def shown_name(name: str) -> str:
    """A setting's name as clients know it."""
    return _NAMES.get(name, name)


class _Known(ChainMap[str, str]):
    """What is set, before the defaults."""

    def __getitem__(self, name: str) -> str:
        follows = name in OF_TRANSACTIONS and name not in self.maps[0]
        return super().__getitem__(f"default_{name}" if follows else name)


class Variables:
    """The settings of one connection. `server`: what holds of the server, in place of a default."""

    def __init__(self, connection: Connection, user: str, server: Mapping[str, str] = MappingProxyType({})) -> None:
        self._connection, self._own = connection, {"session_authorization": user}
        self._fixed = {name: (server.get(name, default), allowed) for name, (default, allowed) in _FIXED.items()}
        self._known = _Known(self._own, {name: default for name, (default, _) in self._fixed.items()})
        self._before: tuple[dict[str, str], dict[str, str]] | None = None  # at BEGIN: the own ones, and the engine's
        self._local: set[str] = set()

    def set(self, name: str, value: str | None, *, local: bool = False) -> None:
        """SET; None is the default. A value that says what holds anyway is taken.

        Raises:
            UnknownName, UnsupportedSQL: there is none of that name, or it cannot have that value.
        """
        name = _folded(name)
        if name in _OF_USERS:
            self._become(name, value)
        elif name in _OF_ENGINE:
            if name == "client_encoding" and value is not None and value.strip("'\"").lower() == "sql_ascii":
                value = "UTF8"  # bytes as they are: they are UTF-8
            if value is not None and name != "search_path":
                value = value.strip("'\"")
            self._connection.set(name, value)
        elif name in _FIXED:
            default, allowed = self._fixed[name]
            if value is None or (value.lower() == default.lower() and name not in OF_TRANSACTIONS):
                self._own.pop(name, None)
            elif allowed is None or value.lower() in allowed:
                if name.endswith("_timeout"):
                    value = time_text(seconds(value))
                self._own[name] = _switch(value) if allowed is _SWITCH else value.lower() if allowed else value
            elif not allowed:
                raise UnsupportedSQL(f'parameter "{name}" cannot be changed', code="55P02")
            else:
                raise UnsupportedSQL(f'invalid value for parameter "{name}": "{value}"', code="22023",
                                     remedy=f"it is {' or '.join(allowed) if len(allowed) < 3 else default}")
        elif "." in name:
            self._own[name] = value or ""
        elif name == _OF_DUMPS:
            raise UnsupportedSQL("pg_dump is not supported: it reads more of PostgreSQL's catalog than there is here",
                                 remedy="SHOW CREATE TABLE and COPY ... TO STDOUT tell what a table is and has; a "
                                 "backup is a copy of the warehouse's folder")  # fmt: skip
        else:
            raise UnknownName("setting", name, (*_OF_ENGINE, *self._fixed))
        if local and self._before is not None:
            self._local.add(name)

    def _become(self, name: str, value: str | None) -> None:
        """SET ROLE and SET SESSION AUTHORIZATION, to the user who has connected or back to it. Flyway sends them."""
        user, role = self._own["session_authorization"], (value or "none").strip("'\"")
        if role.lower() not in ("none", "default", user.lower()):
            raise UnsupportedSQL(f'role "{role}" does not exist', code="22023",
                                 remedy="each user may do everything: leave the statement out")
        if name == "role":
            self._own[name] = user if role.lower() == user.lower() else "none"

    def fixed(self) -> Mapping[str, str]:
        """Those that the engine does not know; it follows their changes."""
        return self._known

    def start(self, name: str, value: str) -> str | None:
        """Set what a client asks for when it connects. Where it cannot be, the answer says why, and all goes on."""
        try:
            self.set(name, value)
        except HalfjoinError as problem:
            return problem.reason
        return None

    def get(self, name: str) -> str:
        """The value of a setting.

        Raises:
            UnknownName: there is none of that name.
        """
        name = _folded(name)
        if name in _OF_ENGINE:
            value = self._connection.settings.get(name, _OF_ENGINE[name][0])
            return _SHOWN.get(name, value)
        if name not in self._known:
            raise UnknownName("setting", name, (*_OF_ENGINE, *self._fixed))
        return self._known[name]

    def knows(self, name: str) -> bool:
        """Whether there is such a setting."""
        return _folded(name) in (*_OF_ENGINE, *self._fixed, *self._own)

    def all(self) -> dict[str, str]:
        """All settings by name."""
        return {shown_name(name): self.get(name) for name in sorted((*_OF_ENGINE, *self._fixed))}

    def reported(self) -> dict[str, str]:
        """Those whose changes a client is told of, under the names that it knows."""
        return {shown_name(name): self.get(name) for name in REPORTED}

    def timeout(self, name: str) -> float | None:
        """A time in seconds; None for no limit."""
        return seconds(self._own.get(name, "0")) or None

    def reset(self) -> None:
        """Forget what was set, as RESET ALL does."""
        for name in [name for name in self._own if name != "session_authorization"]:
            del self._own[name]
        for name in list(self._connection.settings):
            self._connection.set(name, None)

    def begin(self) -> None:
        """A transaction begins."""
        self._before, self._local = (dict(self._own), dict(self._connection.settings)), set()

    def end(self, *, keep: bool) -> None:
        """The transaction ends: what it has set stays (`keep`) unless it was LOCAL, or all of it goes."""
        if self._before is None:
            return
        own, engine = self._before
        for name in self._local if keep else {*self._own, *own}:
            if name not in _OF_ENGINE:
                self._own.pop(name, None)
                self._own |= {name: own[name]} if name in own else {}
        for name in [n for n in self._local if n in _OF_ENGINE] if keep else {*engine, *self._connection.settings}:
            self._connection.set(name, engine.get(name))
        self._before = None


def seconds(value: str) -> float:
    """A time such as `500` (milliseconds), `2s` or `1min`.

    Raises:
        UnsupportedSQL: it is none.
    """
    text = value.strip().lower()
    number = text.rstrip("abcdefghijklmnopqrstuvwxyz ")
    unit = text[len(number) :].strip() or "ms"
    try:
        return max(0.0, float(number) * _UNITS[unit])
    except (ValueError, KeyError):
        raise UnsupportedSQL(f"{value!r} is not a time", remedy="write milliseconds, or 30s", code="22023") from None


def time_text(seconds: float) -> str:
    """A time as PostgreSQL shows it: in its largest unit that gives a whole number."""
    if not seconds:
        return "0"
    for unit in ("d", "h", "min", "s", "ms"):
        if seconds >= _UNITS[unit] and (seconds / _UNITS[unit]).is_integer():
            return f"{seconds / _UNITS[unit]:.0f}{unit}"
    return f"{seconds * 1000:.0f}ms"


def _switch(value: str) -> str:
    return "on" if value.lower() in ("on", "true", "yes", "1") else "off"


def _folded(name: str) -> str:
    name = name.lower()
    return {"time zone": "timezone", "transaction isolation level": "transaction_isolation", "names": "client_encoding",
            "session authorization": "session_authorization",
            "session characteristics": "transaction_isolation"}.get(name, name)  # fmt: skip
