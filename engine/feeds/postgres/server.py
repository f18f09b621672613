"""The connection to the server that a source follows, and what it needs there: a publication and a replication slot.

Everything goes through an ordinary connection. It does not use the replication protocol, so a pooler of sessions and a
role with REPLICATION are enough.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from pydantic import SecretStr

from halfjoin.engine.feeds.source import Options, needed, revealed
from halfjoin.errors import Conflict, HalfjoinError, StorageError

PLUGIN = "pgoutput"
# How the server writes values: in the forms that the engine reads, whatever the role or database sets.
_SETTINGS = {
    "datestyle": "ISO, MDY", "intervalstyle": "postgres", "timezone": "UTC", "extra_float_digits": "1",
    "bytea_output": "hex", "client_encoding": "UTF8", "search_path": "pg_catalog", "statement_timeout": "0",
    "idle_in_transaction_session_timeout": "0", "row_security": "off",
}  # fmt: skip
_MANAGED = ("; managed services have a parameter instead: rds.logical_replication = 1 (Amazon), "
            "cloudsql.logical_decoding = on (Google), wal_level = logical (Azure)")  # fmt: skip
_ROLE = "run ALTER ROLE {role} REPLICATION as a superuser (Amazon RDS: GRANT rds_replication TO {role})"


class PostgresOptions(Options):
    """The options of a source FROM POSTGRES."""

    dsn: SecretStr
    publication: str
    slot: str
    tables: str | tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The tables to follow, as the user wrote them; none: all of the publication."""
        parts = self.tables.split(",") if isinstance(self.tables, str) else self.tables
        return tuple(part.strip() for part in parts if part.strip())


class Server:
    """A connection in autocommit to the server's database.

    Raises:
        StorageError: the server cannot be reached.
        HalfjoinError: psycopg is not installed.
    """

    def __init__(self, options: PostgresOptions) -> None:
        self.psycopg = needed("psycopg", "POSTGRES", "postgres")
        self.options = options
        self._dsn = revealed(options.dsn) or ""
        try:
            self.connection = self.psycopg.connect(self._dsn, autocommit=True, connect_timeout=10,
                                                   fallback_application_name="halfjoin")  # fmt: skip
        except self.psycopg.ProgrammingError as problem:
            raise HalfjoinError(f"the dsn is not one that libpq reads: {self._plain(problem)}",
                                remedy="write dsn 'host=... dbname=... user=...'") from None  # fmt: skip
        except self.psycopg.Error as problem:
            raise StorageError(f"the PostgreSQL server cannot be reached: {self._plain(problem)}") from None
        with self.speaking():
            for name, value in _SETTINGS.items():
                self.connection.execute("SELECT set_config(%s, %s, false)", [name, value])

    def close(self) -> None:
        """Close the connection."""
        with suppress(Exception):
            self.connection.close()

    def _plain(self, problem: Any) -> str:
        """The error's text without the dsn's password."""
        text = str(problem).strip()
        with suppress(Exception):
            password = self.psycopg.conninfo.conninfo_to_dict(self._dsn).get("password")
            text = text.replace(password, "***") if password else text
        return " ".join(text.split())

    @contextmanager
    def speaking(self) -> Iterator[None]:
        """Turn errors of the server into the engine's: those that go away into StorageError, others into Conflict."""
        try:
            yield
        except self.psycopg.Error as problem:
            text, state = self._plain(problem), problem.sqlstate or ""
            if state == "42501":
                raise HalfjoinError(f"the server refuses: {text}",
                                    remedy=f"{_ROLE.format(role=self.connection.info.user)}, and GRANT SELECT on the "
                                           "tables that the source reads") from None  # fmt: skip
            if state == "53400":
                raise Conflict(f"the server has no replication slot left: {text}",
                               remedy="raise max_replication_slots, or drop slots that nobody reads (see the view "
                                      "pg_replication_slots)", name=self.options.slot) from None  # fmt: skip
            passing = state[:2] in ("", "08", "53", "57", "40", "58") or state in ("55006", "55P03", "XX000")
            if passing or self.connection.closed:
                raise StorageError(f"the PostgreSQL server failed: {text}") from None
            raise Conflict(f"the PostgreSQL server refuses: {text}", name=self.options.slot) from None

    def rows(self, query: str, params: Sequence[Any] = ()) -> list[Any]:
        """The rows of a query. Raises as `speaking`."""
        with self.speaking():
            found: list[Any] = self.connection.execute(query, params).fetchall()
            return found

    def one(self, query: str, params: Sequence[Any] = ()) -> Any:
        """The only value of the first row; None if there is no row."""
        found = self.rows(query, params)
        return found[0][0] if found else None

    def run(self, statement: str, params: Sequence[Any] = ()) -> None:
        """Carry out a statement."""
        with self.speaking():
            self.connection.execute(statement, params)

    def check(self) -> None:
        """Refuse a server that cannot decode its log for this source.

        Raises:
            Conflict: names the setting or the publication, and what to do.
        """
        if self.one("SELECT pg_is_in_recovery()"):
            raise Conflict("the server is a standby: a source needs the primary, which makes the slot",
                           remedy="connect to the primary")  # fmt: skip
        level = self.one("SHOW wal_level")
        if level != "logical":
            raise Conflict(f"the server has wal_level = {level}, and its log lacks what a source reads",
                           remedy=f"run ALTER SYSTEM SET wal_level = logical and restart the server{_MANAGED}")
        role, may = self.rows("SELECT rolname, rolsuper OR rolreplication FROM pg_roles "
                              "WHERE rolname = current_user")[0]  # fmt: skip
        if not may and not self.one("SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = 'rds_replication' "
                                    "AND pg_has_role(oid, 'MEMBER'))"):  # fmt: skip
            raise HalfjoinError(f"the role {role} may not read replication slots", remedy=_ROLE.format(role=role))
        self.check_publication()

    def check_publication(self) -> None:
        """Refuse a publication that is not there or leaves out changes.

        Raises:
            Conflict: names the statement to run.
        """
        name = self.options.publication
        found = self.rows("SELECT pubinsert, pubupdate, pubdelete, pubtruncate FROM pg_publication WHERE pubname = %s",
                          [name])  # fmt: skip
        if not found:
            tables = ", ".join(self.options.names) or "..."
            raise Conflict(f"there is no publication {name} in the server's database",
                           remedy=f"run CREATE PUBLICATION {name} FOR TABLE {tables} there, before the source is made",
                           name=name)  # fmt: skip
        if not all(found[0]):
            raise Conflict(f"the publication {name} leaves out some kinds of changes, so the tables would differ",
                           remedy=f"run ALTER PUBLICATION {name} SET (publish = 'insert, update, delete, truncate')",
                           name=name)  # fmt: skip

    def lag(self) -> int | None:
        """Bytes of the log that the slot has not passed."""
        found = self.one("SELECT pg_wal_lsn_diff(pg_current_wal_flush_lsn(), confirmed_flush_lsn) "
                         "FROM pg_replication_slots WHERE slot_name = %s", [self.options.slot])  # fmt: skip
        return None if found is None else max(int(found), 0)


def number(lsn: str) -> int:
    """A place in the server's log, from PostgreSQL's text `16/B374D848`."""
    high, low = lsn.split("/")
    return (int(high, 16) << 32) | int(low, 16)


def lsn(number: int) -> str:
    """A place in the log as text.

    >>> lsn(number("16/B374D848"))
    '16/B374D848'
    """
    return f"{number >> 32:X}/{number & 0xFFFFFFFF:X}"
