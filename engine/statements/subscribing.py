"""Subscribes to a view: its contents as of a time, then its changes as they close."""

from __future__ import annotations

from weakref import WeakSet

from halfjoin.engine.batch.state import State
from halfjoin.engine.batch.subscription import Subscription
from halfjoin.engine.statements.reading import history
from halfjoin.engine.statements.session import Session
from halfjoin.errors import UnknownName, UnsupportedSQL


def subscribe(
    session: Session, state: State, name: str, as_of: int | None, up_to: int | None, *, snapshot: bool = True
) -> Subscription:
    """A subscription to a materialized view. In an engine that only reads it ends after the changes closed so far.

    Raises:
        UnknownName, UnsupportedSQL: the name is not a materialized view. And the errors of `reading.history`.
    """
    if name not in state.views:
        if name in state.catalog.names():
            kind = "table" if name in state.catalog.tables else "plain view"
            raise UnsupportedSQL(f"{name} is a {kind}, which reports no changes",
                                 remedy=f"CREATE MATERIALIZED VIEW ... AS SELECT * FROM {name}")
        raise UnknownName("materialized view", name, state.views)
    first, failure = history(state, name, as_of, up_to, snapshot)
    others = state.subscriptions.setdefault(name, WeakSet())
    subscription = Subscription(first, state.upper, up_to, session.changed, others, failure)
    if session.writer is None or (up_to is not None and state.upper >= up_to):
        subscription.close()
    return subscription
