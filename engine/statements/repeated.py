"""Answers queries and carries out changes that are remembered, and remembers those that may be asked again."""

from __future__ import annotations

from functools import partial

import pyarrow as pa

from halfjoin.engine.batch.state import State
from halfjoin.engine.intake.times import time_of
from halfjoin.engine.statements import changing, querying
from halfjoin.engine.statements.asked import Asked
from halfjoin.engine.statements.changing import ReadyChange
from halfjoin.engine.statements.describing import told
from halfjoin.engine.statements.outcomes import apply
from halfjoin.engine.statements.querying import Ready
from halfjoin.engine.statements.session import Session
from halfjoin.engine.statements.shapes import Shape
from halfjoin.nesting import bounded
from halfjoin.sql.bind.search_path import check_dots, placed
from halfjoin.sql.expr import Column, Expr
from halfjoin.sql.parse.locate import PUBLIC
from halfjoin.sql.parse.parameters import Params
from halfjoin.sql.parse.parse import statement_of
from halfjoin.sql.statements import Delete, Insert, Merge, Select, Statement, Update


def known(session: Session, state: State, asked: Asked | None) -> pa.Table | None:
    """What a query or a change answers that is remembered; None if it is not. As for other statements, a failure ends
    what is open."""
    is_query, is_change = session.remembered.knows(asked), session.changes.knows(asked)
    if asked is None or not (is_query or is_change) or (session.transaction is not None and session.transaction.failed):
        return None
    try:
        return _query(session, state, asked) if is_query else _change(session, state, asked)
    except BaseException:
        session.fail(keep=session.transaction is not None)
        raise


def _query(session: Session, state: State, asked: Asked) -> pa.Table | None:
    seen = session.seen(state)
    found = known_query(session, seen, asked)
    if found is None:
        return None
    answers = querying.answered(seen, found[0], time_of(found[1]))
    if answers is None:
        return None
    rows, session.columns = answers
    return rows


@bounded()
def _change(session: Session, state: State, asked: Asked) -> pa.Table | None:
    session.known(state).catalog.speak_for(session.last)
    seen = session.seen(state)
    found = session.changes.find(asked, seen, partial(_shaped_change, session, seen))
    if found is None:
        return None
    statement, session.columns = found[0].parts.statement, None
    session.isolation.check_change(statement)
    if session.close_due(state, statement):
        return None  # it is no longer what was computed for, and may close more rows: once is enough
    changed = changing.carried_out(seen, found[0], asked.sql)
    return None if changed is None else apply(session, state, seen, statement, changed)


def known_query(session: Session, seen: State, asked: Asked | None) -> tuple[Ready, Expr | None] | None:
    """A query that is remembered, with the time that it names; None if it is not. `seen`: the state that it reads."""
    return session.remembered.find(asked, seen, partial(_shaped, session, seen))


def columns_known(session: Session, state: State, asked: Asked | None) -> tuple[Column, ...] | None:
    """The columns of a query that is remembered; None if it is not."""
    seen = session.seen(state)
    found = known_query(session, seen, asked)
    return None if found is None else told(found[0].bound.relation, found[0].bound.names, seen.catalog)


def keeping(session: Session, seen: State, asked: Asked | None, statement: Select) -> querying.Keep | None:
    """What remembers a query once it is ready."""
    return None if asked is None else lambda made: session.remembered.keep(asked, statement.as_of, seen, made)


def keeping_change(session: Session, seen: State, asked: Asked | None) -> changing.Keep | None:
    """What remembers a change once it is ready."""
    return None if asked is None else lambda made: session.changes.keep(asked, None, seen, made)


def _shaped(session: Session, state: State, shape: Shape, given: Params) -> tuple[Ready, Expr | None] | None:
    """The query of a shape with these parameters, with the time that its text names; None if it cannot be remembered.
    """
    statement = _statement(session, state, shape, given)
    assert isinstance(statement, Select)
    time_of(statement.as_of)  # a parameter in it is looked at
    made = querying.ready(state, statement.query, shape.text)
    return None if made is None else (made, statement.as_of)


def _shaped_change(session: Session, state: State, shape: Shape, given: Params) -> tuple[ReadyChange, None] | None:
    """As `_shaped`, of a change."""
    statement = _statement(session, state, shape, given)
    assert isinstance(statement, Insert | Update | Delete | Merge)
    made = changing.ready_change(state, statement, shape.text)
    return None if made is None else (made, None)


def _statement(session: Session, state: State, shape: Shape, given: Params) -> Statement:
    (tree,) = shape.trees(given)
    check_dots(tree, shape.text, state.catalog.schemas)
    if session.path != (PUBLIC,):
        tree = placed(tree, state.catalog, session.path)
    return statement_of(tree, shape.text)
