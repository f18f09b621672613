"""A server by PostgreSQL's protocol as the shell's target: `halfjoin postgres://...` (extra `postgres`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg
from psycopg import sql
from psycopg.pq import TransactionStatus

from halfjoin.errors import HalfjoinError
from halfjoin.shell.targets import Answer, ShellError

# PostgreSQL's numbers of the types whose values stand at the right.
_NUMBERS = frozenset({20, 21, 23, 26, 700, 701, 1700})
_BOOLEAN = 16


class Remote:
    """A connection to a server. Values come as texts, as the server prints them."""

    def __init__(self, url: str, notice: Callable[[str], None]) -> None:
        try:
            self._connection = psycopg.connect(url, autocommit=True)
        except psycopg.OperationalError as error:
            raise HalfjoinError(f"cannot connect: {error}") from None
        self._connection.add_notice_handler(lambda one: notice(f"{one.severity}: {one.message_primary}"))
        self.name = self._connection.info.dbname

    def run(self, statement: str) -> Answer:
        """Run one statement."""
        with _refusals(statement), self._connection.cursor() as cursor:
            cursor.execute(statement.encode())
            result = cursor.pgresult
            if result is None or not cursor.description:
                return Answer(tag=cursor.statusmessage or "")
            types = [result.ftype(place) for place in range(result.nfields)]
            kinds = tuple("number" if one in _NUMBERS else "boolean" if one == _BOOLEAN else "text" for one in types)
            rows = [tuple(_text(result.get_value(row, place)) for place in range(result.nfields))
                    for row in range(result.ntuples)]  # fmt: skip
            return Answer(tuple(column.name for column in cursor.description), kinds, rows, cursor.statusmessage or "")

    def subscribe(self, view: str) -> Iterator[Answer]:
        """The contents of a view, then its changes as they come, without end."""
        columns = self.run(f"SELECT * FROM {view} LIMIT 0")
        names = ("__time", "__diff")
        query = sql.SQL("COPY (SUBSCRIBE {}) TO STDOUT").format(sql.SQL(view))
        with _refusals(view), self._connection.cursor() as cursor, cursor.copy(query) as rows:
            for row in rows.rows():
                yield Answer((*(columns.names or ()), *names), (*columns.kinds, "number", "number"), [row])

    def copy_in(self, statement: str, data: bytes) -> str:
        """Run COPY ... FROM STDIN."""
        with _refusals(statement), self._connection.cursor() as cursor:
            with cursor.copy(statement.encode()) as target:
                target.write(data)
            return cursor.statusmessage or ""

    def copy_out(self, statement: str) -> bytes:
        """Run COPY ... TO STDOUT."""
        with _refusals(statement), self._connection.cursor() as cursor, cursor.copy(statement.encode()) as source:
            return b"".join(map(bytes, source))

    def in_transaction(self) -> str:
        """The mark of an open transaction."""
        status = self._connection.info.transaction_status
        return {TransactionStatus.INTRANS: "*", TransactionStatus.INERROR: "!"}.get(status, "")

    def close(self) -> None:
        """End the session."""
        self._connection.close()


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode()


@contextmanager
def _refusals(statement: str) -> Iterator[None]:
    try:
        yield
    except psycopg.Error as error:
        told = error.diag
        text = f"{told.severity or 'ERROR'}: {told.message_primary or error}"
        if told.statement_position:
            before = statement[: int(told.statement_position) - 1]
            line, column = before.count("\n"), len(before) - before.rfind("\n") - 1
            text += f"\n  {statement.splitlines()[line]}\n  {' ' * column}^"
        raise ShellError("\n".join(part for part in (text, told.message_detail, told.message_hint) if part)) from error
