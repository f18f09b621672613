"""What the engine holds, in numbers."""

from __future__ import annotations

from pydantic import BaseModel

from halfjoin.engine.collection import Collection
from halfjoin.engine.state import State


class RunStats(BaseModel):
    """One run: its updates, and the bytes of its rows and of all its indexes."""

    updates: int
    row_bytes: int
    index_bytes: int


class ArrangementStats(BaseModel):
    """One arrangement: index entries, bytes of the index, and who shares it."""

    name: str
    collection: str
    rows: int
    bytes: int
    users: list[str]


class CollectionStats(BaseModel):
    """One table or materialized view: the updates it holds, its bytes, its frontiers `[since, upper)`, its runs."""

    name: str
    kind: str
    updates: int
    row_bytes: int
    index_bytes: int
    errors: int
    since: int
    upper: int
    runs: list[RunStats]


class SinkStats(BaseModel):
    """One sink: its table shows `collection` as of below `upper` (None: not known); how many batches wait; why."""

    name: str
    collection: str
    target: str
    upper: int | None
    waiting: int
    error: str | None


class Stats(BaseModel):
    """Everything held: `Engine.stats()`."""

    upper: int
    collections: list[CollectionStats]
    arrangements: list[ArrangementStats]
    sinks: list[SinkStats]


def stats(state: State) -> Stats:
    """Count what is held; an index that no lookup has needed yet has no entries."""
    collections = [_collection(state, table, "table", 0) for table in state.tables.values()]
    collections += [
        _collection(state, view.contents, "materialized view", len(view.errors)) for view in state.views.values()
    ]
    arrangements = [
        ArrangementStats(
            name=str(key),
            collection=collection.name,
            rows=sum(len(run.indexes[key]) for run in collection.in_memory if key in run.indexes),
            bytes=sum(run.indexes[key].nbytes for run in collection.in_memory if key in run.indexes),
            users=list(map(str, arrangement.users)),
        )
        for collection in state.collections()
        for key, arrangement in collection.arrangements.items()
    ]
    sinks = [
        SinkStats(name=sink.name, collection=sink.collection, target=sink.target,
                  upper=status.upper, waiting=status.waiting, error=status.error)
        for sink in state.catalog.sinks.values()
        if state.sinks is not None and (status := state.sinks.status(sink.name))
    ]  # fmt: skip
    return Stats(upper=state.upper, collections=collections, arrangements=arrangements, sinks=sinks)


def _collection(state: State, collection: Collection, kind: str, errors: int) -> CollectionStats:
    runs = [
        RunStats(updates=len(run), row_bytes=run.row_bytes, index_bytes=run.index_bytes) for run in collection.held
    ]
    return CollectionStats(
        name=collection.name,
        kind=kind,
        updates=len(collection),
        row_bytes=sum(run.row_bytes for run in runs),
        index_bytes=sum(run.index_bytes for run in runs),
        errors=errors,
        since=collection.since,
        upper=state.upper,
        runs=runs,
    )
