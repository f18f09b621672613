"""What statements that change rows answer: the rows of RETURNING or a count, with PostgreSQL's command tag."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from halfjoin.engine.batch.state import State
from halfjoin.engine.statements.changing import Changed
from halfjoin.engine.statements.open_times import tables_read
from halfjoin.engine.statements.session import Session
from halfjoin.engine.statements.with_changes import followed
from halfjoin.sql.statements import Change, Insert

TAG = "tag"  # metadata key of PostgreSQL's command tag, in the table that INSERT, UPDATE and DELETE return
RETURNED = "returned"  # metadata key of a table that has the rows of RETURNING


def apply(session: Session, state: State, seen: State, statement: Change, made: Changed) -> pa.Table:
    """Apply what INSERT, UPDATE, DELETE or MERGE does, with what foreign keys make of it; `seen`: the state that it has
    read. The answer is as `answer` gives it."""
    session.keep_numbers(state)
    session.change_all(state, followed(seen, {statement.table: [made]}), tables_read(statement))
    return answer(session, statement, made)


def answer(session: Session, statement: Change, made: Changed) -> pa.Table:
    """What a change gives back: the rows of RETURNING, or else the number of changed rows as a table with one `count`.
    PostgreSQL's tag is reported and kept under `TAG`."""
    session.columns = None if made.returned is None else made.columns
    word = "INSERT 0" if isinstance(statement, Insert) else type(statement).__name__.upper()
    found = pa.table({"count": pa.array([made.count], pa.int64())}) if made.returned is None else made.returned
    return tagged(session, found, f"{word} {made.count}", {} if made.returned is None else {RETURNED: "true"})


def tagged(session: Session, rows: pa.Table, tag: str, also: Mapping[str, str] | None = None) -> pa.Table:
    """An answer with its tag, which is reported."""
    session.report(tag)
    return rows.replace_schema_metadata({TAG: tag, **(also or {})})
