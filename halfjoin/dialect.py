"""SQLAlchemy's dialect for `halfjoin serve`: `create_engine("halfjoin://127.0.0.1")`.

It is PostgreSQL's dialect with psycopg, under PostgreSQL's name, so what is written for that works. What differs: the
port, user and database that a URL leaves out; materialized views count as views; transactions
in two phases are refused before they begin.
"""

from __future__ import annotations

from typing import Any, NoReturn

from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.engine import reflection
from sqlalchemy.engine.interfaces import ConnectArgsType
from sqlalchemy.engine.url import URL
from sqlalchemy.exc import NotSupportedError

HOST, PORT, USER, DATABASE = "127.0.0.1", 6875, "halfjoin", "halfjoin"


class HalfjoinDialect(PGDialect_psycopg):  # type: ignore[misc]
    """The dialect of the URL `halfjoin://[user[:password]@][host[:port]][/database]`."""

    supports_statement_cache = True

    def create_connect_args(self, url: URL) -> ConnectArgsType:
        """What psycopg connects with."""
        given = url.set(host=url.host or HOST, port=url.port or PORT, username=url.username or USER,
                        database=url.database or DATABASE)  # fmt: skip
        return super().create_connect_args(given)

    @reflection.cache  # type: ignore[untyped-decorator]
    def get_schema_names(self, connection: Any, **kw: Any) -> list[str]:
        """The schemas, without PostgreSQL's own."""
        asked = "SELECT nspname FROM pg_catalog.pg_namespace WHERE nspname NOT LIKE 'pg\\_%' ORDER BY nspname"
        return [str(name) for name in connection.exec_driver_sql(asked.replace("%", "%%")).scalars()]

    def get_view_names(self, connection: Any, schema: str | None = None, **kw: Any) -> list[str]:
        """The views, plain and materialized."""
        plain = super().get_view_names(connection, schema, **kw)
        return [*plain, *self.get_materialized_view_names(connection, schema, **kw)]

    def do_begin_twophase(self, connection: Any, xid: Any) -> NoReturn:
        """Refuse it: there is no PREPARE TRANSACTION.

        Raises:
            NotSupportedError: always.
        """
        problem = NotImplementedError("halfjoin has no transactions in two phases; use begin()")
        raise NotSupportedError("PREPARE TRANSACTION", None, problem)
