"""The numbers behind `Engine.stats()`: what the engine holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pydantic import BaseModel

from halfjoin.engine.arrange.collection import Collection
from halfjoin.engine.batch.clock import Clock, shown
from halfjoin.engine.batch.progress import Progress
from halfjoin.engine.batch.state import State
from halfjoin.engine.batch.unreadable import failing
from halfjoin.engine.display.html import folded, note, piece, table
from halfjoin.engine.feeds.kinds import kind_named
from halfjoin.engine.feeds.options import displayed
from halfjoin.engine.feeds.sources import Sources
from halfjoin.engine.sinks.sinks import Sinks, Status
from halfjoin.nesting import headroom
from halfjoin.planner.explain.wanted import in_words
from halfjoin.planner.names import arrangement_name
from halfjoin.planner.plan import ArrangementKey

_SHOWN = 50  # collections, or arrangements, of a notebook's table


class RunStats(BaseModel):
    """One run: its number of updates, and the bytes in memory of its rows and of all its indexes.

    `files` and `file_bytes` count its files if it stays on disk, those of arrangements included.
    """

    updates: int
    row_bytes: int
    index_bytes: int
    files: int = 0
    file_bytes: int = 0


class ArrangementStats(BaseModel):
    """One arrangement: index entries and bytes in memory, files and their bytes on disk, and who shares it. `only`: the
    condition that rows meet which large indexes have; empty if they have all rows."""

    name: str
    collection: str
    rows: int
    bytes: int
    users: list[str]
    files: int = 0
    file_bytes: int = 0
    only: str = ""


class CollectionStats(BaseModel):
    """One table, materialized view or node: its updates, its bytes in memory, its frontiers `[since, upper)`, its runs.

    `files` and `file_bytes` count the files in which its runs stay and are looked up. A collection on disk that has not
    been needed yet has no runs. `errors`: how many of its rows fail now, so that it cannot be read. `users`: the
    materialized views that read a table or view, or share a node. `binding`: the name of the recursive query whose rows
    a node has; `rounds`: how many updates the last batch made of it in each round. `foreign`: what somebody else has
    done to its Delta table, and how to undo that. `planned`: `upper` when a materialized view's plan was made.
    """

    name: str
    kind: str
    updates: int
    row_bytes: int
    index_bytes: int
    errors: int
    since: int
    upper: int
    runs: list[RunStats]
    files: int = 0
    file_bytes: int = 0
    foreign: str | None = None
    users: list[str] = []
    binding: str | None = None
    rounds: list[int] = []
    planned: int | None = None


class SinkStats(BaseModel):
    """One sink. Its table shows `collection` as of `upper - 1` (None: not known). `waiting`: how many batches are not
    written yet; `error`: why."""

    name: str
    collection: str
    target: str
    upper: int | None
    waiting: int
    error: str | None


class SourceStats(BaseModel):
    """One source: what it is (`options` as JSON text, without secrets), how far it has been read (`position`, as its
    kind writes it; `rows`, `bad` records and `batches` so far; `at`: when the last came, in ms since 1970), its `state`
    (`running`, `failing`, `paused`, or `stopped`: this engine does not read it), how far it is behind in `unit`s
    (None: nobody knows), and why it does not get on."""

    name: str
    kind: str
    into: list[str]
    options: str
    state: str
    position: str | None
    rows: int
    bad: int
    batches: int
    at: int | None
    lag: int | None
    unit: str | None
    error: str | None


class Stats(BaseModel):
    """Everything held: `Engine.stats()`. `memory`: bytes of rows and indexes; `budget`: the most allowed (None: no
    limit). `clock`: `wall` or `own`, None before the first batch."""

    upper: int
    clock: Clock | None
    memory: int
    budget: int | None
    collections: list[CollectionStats]
    arrangements: list[ArrangementStats]
    sinks: list[SinkStats]
    sources: list[SourceStats] = []

    def _repr_html_(self) -> str:
        """What notebooks show: the collections, and the arrangements when unfolded."""
        budget = "no limit" if self.budget is None else size_text(self.budget)
        held = f"{size_text(self.memory)} in memory of {budget}; {readable(self)}"
        return piece("halfjoin.Stats", note(held), collections_html(self), folded(
            f"{len(self.arrangements):,} arrangements", table(
                ("arrangement", "rows", "in memory", "used by", "once large only rows where"),
                [(one.name, f"{one.rows:,}", size_text(one.bytes), ", ".join(one.users), one.only)
                 for one in self.arrangements[:_SHOWN]],
                (False, True, True, False, False)), note(_more(len(self.arrangements))),
        ))  # fmt: skip


def collections_html(found: Stats) -> str:
    """The tables, views and nodes as a table of HTML."""
    if not found.collections:
        return note("no tables yet")
    lines = [(one.name, one.kind, f"{one.updates:,}", size_text(one.row_bytes + one.index_bytes), f"{one.since}",
              f"{one.errors:,}" if one.errors else "") for one in found.collections[:_SHOWN]]  # fmt: skip
    head = ("name", "kind", "updates", "in memory", "readable from", "errors")
    return table(head, lines, (False, False, True, True, True, True)) + note(_more(len(found.collections)))


def readable(found: Stats) -> str:
    """Up to which time all can be read, in words."""
    return f"readable up to time {shown(found.upper - 1, found.clock)}" if found.upper else "nothing is closed yet"


def size_text(size: int) -> str:
    """Bytes for people."""
    units = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"))
    return next((f"{size / unit:.1f} {name}" for unit, name in units if size >= unit), f"{size} B")


def _more(count: int) -> str:
    return f"{count - _SHOWN:,} more" if count > _SHOWN else ""


@headroom()  # for the names of arrangements, which may have long keys
def stats(
    state: State, sinks: Sinks | None, foreign: Mapping[tuple[str, str], str], sources: list[SourceStats]
) -> Stats:
    """Count what the engine holds. An index that no lookup has needed yet has no entries."""
    collections = [
        _collection(state, table, "table", 0, foreign.get(("tables", name))) for name, table in state.tables.items()
    ]
    for name, view in state.maintained.items():
        folder, kind = ("nodes", "node") if view.plan is None else ("views", "materialized view")
        strange = foreign.get((folder, name)) or foreign.get(("errors", name))
        found = _collection(state, view.contents, kind, failing(state, name), strange)
        node = view.dataflow.plan
        if node.named:
            found = found.model_copy(update={"binding": node.named[0], "rounds": list(view.rounds)})
        made = None if view.plan is None else state.catalog.views[name].planned
        collections.append(found.model_copy(update={"planned": None if made is None else made.upper}))
    arrangements = [
        _arrangement(collection, key, list(map(str, arrangement.users)), in_words(arrangement.wants))
        for collection in state.collections()
        for key, arrangement in collection.arrangements.items()
    ]
    written = []
    for sink in state.catalog.sinks.values():
        known = Status(None, 0, None) if sinks is None else sinks.status(sink.name)  # None: this engine only reads
        written.append(SinkStats(name=sink.name, collection=sink.collection, target=sink.target, upper=known.upper,
                                 waiting=known.waiting, error=known.error))  # fmt: skip
    return Stats(
        upper=state.upper, clock=state.clock, memory=state.memory.used(), budget=state.memory.limit,
        collections=collections, arrangements=arrangements, sinks=written, sources=sources,
    )  # fmt: skip


def source_stats(state: State, sources: Sources, progress: Callable[[str], Progress]) -> list[SourceStats]:
    """The sources of the catalog. `progress`: how far the source with an id has been read."""
    found = []
    for source in state.catalog.sources.values():
        known, now = progress(source.id), sources.status(source)
        found.append(SourceStats(
            name=source.name, kind=source.kind, into=list(source.into),
            options=displayed(kind_named(source.kind), source.options), state=now.state, position=known.position,
            rows=known.rows, bad=known.bad, batches=known.batches, at=known.at,
            lag=None if now.lag is None else now.lag.amount, unit=None if now.lag is None else now.lag.unit,
            error=now.error,
        ))  # fmt: skip
    return found


def _arrangement(collection: Collection, key: ArrangementKey, users: list[str], only: str) -> ArrangementStats:
    held = [run.footprint(key) for run in collection.held]
    return ArrangementStats(
        name=arrangement_name(key),
        collection=collection.name,
        rows=sum(one.entries for one in held),
        bytes=sum(one.memory for one in held),
        users=users,
        files=sum(one.files for one in held),
        file_bytes=sum(one.disk for one in held),
        only=only,
    )


def _collection(state: State, collection: Collection, kind: str, errors: int, foreign: str | None) -> CollectionStats:
    runs = [
        RunStats(updates=len(run), row_bytes=run.row_bytes, index_bytes=run.index_bytes, files=run.stored[0],
                 file_bytes=run.stored[1])
        for run in collection.held
    ]  # fmt: skip
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
        files=sum(run.files for run in runs),
        file_bytes=sum(run.file_bytes for run in runs),
        foreign=foreign,
        users=_users(state, collection.name),
    )


def _users(state: State, name: str) -> list[str]:
    """The materialized views that read a table or view, or share a node, in the order of their dependency."""
    sharing = set(state.node_users(name))
    return [one for one in state.views if one in sharing or (one != name and name in state.catalog.views[one].reads)]
