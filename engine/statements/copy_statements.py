"""Carries out COPY: from a stream of text or of rows, and to one."""

from __future__ import annotations

import pyarrow as pa

from halfjoin.engine.batch.state import State
from halfjoin.engine.statements.copying import columns_of, copied_in, copied_out, rows_out
from halfjoin.engine.statements.execute import failing
from halfjoin.engine.statements.session import Session
from halfjoin.errors import UnsupportedSQL
from halfjoin.nesting import bounded
from halfjoin.sql.bind.search_path import placed
from halfjoin.sql.expr import Column
from halfjoin.sql.parse.locate import PUBLIC
from halfjoin.sql.parse.parse import statement_of, trees_of
from halfjoin.sql.statements import Copy


@bounded()
def copy_from(session: Session, state: State, sql: str, data: bytes | pa.Table) -> int:
    """COPY FROM STDIN: insert the rows of a text, or rows. Returns their number."""
    with failing(session):
        statement = _copy(session, state, sql, incoming=True)
        session.check_alive(statement)
        made = copied_in(session.seen(state), statement, data, sql)
        session.change(state, statement.table, made.updates)
    session.report(f"COPY {made.count}")
    return made.count


@bounded()
def copy_lines(session: Session, state: State, sql: str) -> pa.Array:
    """COPY TO STDOUT: the rows as lines of text, without their ends."""
    with failing(session):
        statement = _copy(session, state, sql, incoming=False)
        session.check_alive(statement)
        return copied_out(session.seen(state), statement, sql)


@bounded()
def copy_rows(session: Session, state: State, sql: str) -> pa.Table:
    """COPY TO STDOUT: the rows, for a format that is not text. `session.columns` has their columns."""
    with failing(session):
        statement = _copy(session, state, sql, incoming=False)
        session.check_alive(statement)
        found, session.columns = rows_out(session.seen(state), statement, sql)
        return found


@bounded()
def copied_columns(session: Session, state: State, sql: str) -> tuple[Column, ...]:
    """The columns of the rows that COPY takes or gives."""
    return columns_of(session.seen(state), _copy(session, state, sql), sql)


def _copy(session: Session, state: State, sql: str, *, incoming: bool | None = None) -> Copy:
    trees = trees_of(sql)
    if len(trees) == 1 and session.path != (PUBLIC,):
        trees = [placed(trees[0], session.known(state).catalog, session.path)]
    statement = statement_of(trees[0], sql) if len(trees) == 1 else None
    if not isinstance(statement, Copy) or incoming not in (None, statement.incoming):
        raise UnsupportedSQL(f"expected one COPY {'... FROM STDIN' if incoming else '... TO STDOUT'}")
    return statement
