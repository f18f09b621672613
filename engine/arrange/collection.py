"""A collection: the whole history of updates of a table or view, as a few runs with shared arrangements."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from math import inf
from operator import is_
from typing import Literal, NamedTuple, Protocol, cast

import numpy as np
import pyarrow as pa

from halfjoin.engine.arrange import partial
from halfjoin.engine.arrange.changes import StoredChanges
from halfjoin.engine.arrange.coming import Coming
from halfjoin.engine.arrange.current import NOTHING, Current
from halfjoin.engine.arrange.index import KeyColumns
from halfjoin.engine.arrange.keys import key_columns
from halfjoin.engine.arrange.memory import INDEXED, Memory
from halfjoin.engine.arrange.merging import merge_runs
from halfjoin.engine.arrange.part import Part
from halfjoin.engine.arrange.partial import RowFilter, row_filter
from halfjoin.engine.arrange.run import Run
from halfjoin.engine.kernels import native
from halfjoin.engine.linear.tables import Registry
from halfjoin.engine.system.identity import by_identity
from halfjoin.engine.updates import limits
from halfjoin.engine.updates.consolidate import cancel, consolidate
from halfjoin.engine.updates.updates import (
    MAXIMUM,
    MINIMUM,
    Updates,
    concat,
    empty,
    fits,
    fitting,
    is_fixed,
    some_below_zero,
)
from halfjoin.errors import DataError
from halfjoin.planner.plan import ArrangementKey
from halfjoin.planner.wants import ALL, Wants, together

# A run is merged into the one before it unless that one is this many times larger. So lookups search few runs, and each
# row is copied a logarithmic number of times.
GROWTH = 3
WAITING = 8  # runs to merge at a time, if no batch looks them up, or small: a kernel searches one more for less
MANY = 1 << 14  # updates; what fewer add up to is found anew by each read
SMALL = 4096  # rows; so many are merged at once
LOOKUP_ROWS = 1 << 11  # about the rows that the lookup of a key reads from files
WORN = 8  # files are loaded once lookups have read this fraction (1/8) of their rows. They go on, so it is early
BEHIND = 1 << 20  # rows; to load so many takes so long that no batch waits for it
EARLY = 32  # and as none waits, it begins when lookups have read 1/32


class User(NamedTuple):
    """Who uses an arrangement: a view, a view under construction, a node, an index, a primary key, a running query."""

    kind: Literal["view", "new view", "node", "index", "primary key of", "unique key of", "foreign key of", "query"]
    name: str

    def __str__(self) -> str:
        return self.name if self.kind in ("view", "new view", "node", "query") else f"{self.kind} {self.name}"


@dataclass(slots=True)
class Arrangement:
    """How an arrangement's keys are computed, and who shares it: each user with the rows that it wants."""

    columns: KeyColumns
    users: dict[User, Wants] = field(default_factory=dict)  # in order of arrival
    filter: RowFilter | None = None  # the rows that some user wants; None: all

    @property
    def wants(self) -> Wants:
        """The rows that some user wants."""
        return ALL if self.filter is None else self.filter.wants

    def refilter(self) -> None:
        """Note which rows the users want now."""
        wants = together(chain.from_iterable(self.users.values()))
        if wants != self.wants:
            self.filter = row_filter(wants)


class Loaded(NamedTuple):
    """All updates of a stored collection. `left`: whether some are left in files although they would fit into memory.
    """

    parts: Sequence[Part]
    left: bool


class Stored(Protocol):
    """The place of a collection's updates on disk."""

    def load(self, *, leave: bool = False, wait: bool = True) -> Loaded:
        """All present updates: in memory, or in files if they do not fit there, or if they may be left there for a few
        lookups (`leave`). Files that do not serve an arrangement get files that do: now, or later if the lookups need
        not `wait` for them."""

    def bring(self, coming: Coming) -> bool:
        """Have a thread load parts behind the batches. False: it cannot, or they no longer fit into memory."""


@dataclass(slots=True)
class Cold:
    """Facts about a collection that holds nothing in memory."""

    rows: int
    latest: int  # the last of their times

    def after(self, rows: int, latest: int) -> Cold:
        """The same with so many more rows."""
        return Cold(self.rows + rows, max(self.latest, latest))


@dataclass(slots=True)
class Collection:
    """Rows stored once, in runs from oldest to newest. An arrangement adds an index to each run, but no rows.

    Runs are replaced, never changed, so whoever holds one sees a consistent state. A `stored` collection may be `cold`:
    it holds nothing, and the next use of `runs` opens it with the updates of that moment. This is how memory is
    released, and how newer files replace older ones and the runs that they contain. Files that would fit into memory
    may be `left` where they are while only a few lookups need them.
    """

    name: str
    schema: Mapping[str, pa.DataType]
    retain: int  # time units of history kept
    since: int = 0
    held: tuple[Part, ...] = ()
    arrangements: dict[ArrangementKey, Arrangement] = field(default_factory=dict)
    stored: Stored | None = None
    cold: Cold | None = None
    left: bool = False  # whether files that would fit into memory stay where they are
    coming: Coming | None = field(default=None, repr=False)  # those that a thread is loading
    order: tuple[str, ...] = ()  # the columns to sort files by: the primary key's
    _has_texts: bool = field(init=False, repr=False)  # only columns of variable width are too long for one array
    settled: tuple[Part, ...] = field(default=(), repr=False)  # held parts that are tidy and whose times are closed
    _current: Current = field(default=NOTHING, repr=False)  # what the last query has seen
    _tidied: tuple[Part, ...] | None = field(default=None, repr=False)  # held parts that were looked at to be merged
    _waits: tuple[int, float] = field(default=(0, 0), repr=False)  # runs and rows until another look can find more
    _filters: dict[ArrangementKey, RowFilter] = field(init=False, repr=False)  # of arrangements that need not all rows
    loose: bool = field(init=False, repr=False)  # whether an index may have entries that nobody wants

    def __post_init__(self) -> None:
        self._has_texts = not all(map(is_fixed, self.schema.values()))
        self._filters = {key: one.filter for key, one in self.arrangements.items() if one.filter is not None}
        self.loose = bool(self._filters)

    @property
    def runs(self) -> tuple[Part, ...]:
        """All runs; a cold collection is opened now, and files that were left are loaded."""
        if self.left:
            self.unload()
        if self.cold is not None and self.stored is not None:
            self._open(self.stored.load())
        return self.held

    def _open(self, loaded: Loaded) -> None:
        self.held, self.cold, self.left = self._filtering(loaded.parts), None, loaded.left

    def looked_up(self, keys: int) -> tuple[Part, ...]:
        """All runs, to look about so many keys up.

        Rent or buy: so few keys are looked up in the files of a cold collection, which takes less than to load it. The
        files are loaded when such lookups have read an eighth of their rows; large ones by a thread, and lookups go on
        in the files until it is done.
        """
        if self.cold is None and not self.left:
            return self.held
        once, many = keys <= limits.MORSEL_ROWS, keys * LOOKUP_ROWS * WORN > len(self)
        if self.left:
            share = WORN if len(self) < BEHIND else EARLY
            worn = many or sum(run.decoded for run in self.held) * share > len(self)
            return self.runs if worn and not (once and self._comes()) else self.held
        if self.stored is not None:
            leave = not many or (once and len(self) >= BEHIND)
            self._open(self.stored.load(leave=leave, wait=not once))
        return self.held

    def _comes(self) -> bool:
        """Whether what is left in files has come into memory, or is coming: a thread loads what is large."""
        if self.coming is None and len(self) >= BEHIND and self.stored is not None:
            keys = {key: (one.columns, one.wants) for key, one in self.arrangements.items()}
            parts = tuple(part for part in self.held if not part.in_memory)
            coming = Coming(parts, keys, dict(self._filters))
            self.coming = coming if self.stored.bring(coming) else None
        if self.coming is None or self.coming.failed:
            return False
        if self.coming.done:
            self.held, self.left, self.coming = self._filtering(self.coming.instead(self.held)), False, None
        return True

    @property
    def in_files(self) -> bool:
        """Whether any held part is in files."""
        return bool([run for run in self.held if not run.in_memory])

    def bring_in(self, memory: Memory, upper: int) -> None:
        """Load the parts in files into memory, if the budget recommends all of them."""
        stored = [part for part in self.held if not part.in_memory]
        indexes = INDEXED * len(self.arrangements) * sum(map(len, stored))
        # The size of the rows is read from the files, so only if the indexes are not too large already.
        if memory.recommends(indexes) and memory.recommends(indexes + sum(part.loaded_bytes for part in stored)):
            self.held = self._filtering(run for part in self.held for run in part.loaded(upper))

    def unload(self) -> None:
        """Release all runs if the collection is on disk; the next use opens it again."""
        if self.stored is not None and self.cold is None:
            self.cold = Cold(len(self), max((run.latest for run in self.held), default=MINIMUM))
            self.held, self.left = (), False
            self.settled, self._tidied, self._current = (), None, NOTHING  # they would keep the runs
            if self.coming is not None:
                self.coming.dropped, self.coming = True, None

    @property
    def in_memory(self) -> tuple[Run, ...]:
        """The newest runs, after the last part in files."""
        first = len(self.held)
        while first and self.held[first - 1].in_memory:
            first -= 1
        return cast("tuple[Run, ...]", self.held[first:])

    def __len__(self) -> int:
        """The number of updates, in memory or not."""
        return sum(map(len, self.held)) if self.cold is None else self.cold.rows

    def share(self, key: ArrangementKey, user: User, registry: Registry, wants: Wants = ALL) -> None:
        """Use an arrangement; it is created if it does not exist. An index is built at the first lookup that wants rows
        which it lacks."""
        if key not in self.arrangements:
            self.arrangements[key] = Arrangement(key_columns(key, registry))
        self.arrangements[key].users[user] = wants
        self._refilter(key)

    def rearrange(self, arrangements: dict[ArrangementKey, Arrangement]) -> None:
        """Have other arrangements than before. Their indexes are built as `share` says."""
        self.arrangements = arrangements
        for key in {*self._filters, *arrangements}:
            self._refilter(key)

    def _refilter(self, key: ArrangementKey) -> None:
        """Note which rows the users of an arrangement want now."""
        shared = self.arrangements.get(key)
        if shared is not None:
            shared.refilter()
        if shared is None or shared.filter is None:
            self._filters.pop(key, None)
        elif shared.filter is not self._filters.get(key):
            self._filters[key], self.loose = shared.filter, True
            self._filtering(self.held)

    def _filtering(self, parts: Iterable[Part]) -> tuple[Part, ...]:
        """Have runs in memory build their indexes for the rows that are wanted."""
        found = tuple(parts)
        for part in found if self._filters else ():
            part.serve(self._filters)
        return found

    def narrow(self, upper: int) -> None:
        """Drop the entries of large indexes that nobody wants any more: a user has left, or no longer reads history."""
        self.loose = False
        for run in self.in_memory if self._filters else ():
            for key, wanted in self._filters.items():
                index = run.indexes.get(key) if len(run) >= partial.LARGE else None
                if index is not None and (index.partial is None or index.partial.wants != wanted.wants):
                    run.narrow(key, wanted, upper)

    def shared(self) -> dict[ArrangementKey, Arrangement]:
        """A copy of the arrangements, for another collection with the same columns."""
        return {key: Arrangement(one.columns, dict(one.users), one.filter) for key, one in self.arrangements.items()}

    def lacks(self, key: ArrangementKey) -> bool:
        """Whether an arrangement may lack rows."""
        return key in self._filters and len(self) >= partial.LARGE

    def build(self, key: ArrangementKey, wants: Wants = ALL, begins: int = MINIMUM) -> None:
        """Build a shared arrangement's indexes now, for lookups that want some rows (as `Run.index`)."""
        if self.in_files:
            self.unload()  # when it is opened again, it has files for this arrangement too
        for run in self.runs:
            run.build(key, self.arrangements[key].columns, wants, begins)

    def release(self, user: User) -> None:
        """Remove a user from all arrangements; one without users is dropped with its indexes."""
        for key, arrangement in list(self.arrangements.items()):
            if user not in arrangement.users:
                continue
            del arrangement.users[user]
            for run in self.in_memory:  # its lookups come no more
                run.leave()
            if not arrangement.users:
                del self.arrangements[key]
                for part in self.held:
                    part.drop(key)
            self._refilter(key)

    def forget(self) -> None:
        """Drop the indexes of arrangements that nobody shares: a definition built them, and failed."""
        for run in self.in_memory:
            for key in run.indexes.keys() - self.arrangements.keys():
                run.drop(key)

    def publish(self, run: Part) -> None:
        """Add a batch's run: the step from "before" to "after"."""
        self.held, self.cold = self.after(run)

    def after(self, run: Part) -> tuple[tuple[Part, ...], Cold | None]:
        """`held` and `cold` as they are after a batch's run is added."""
        if self.cold is not None:  # the run is on disk by then
            return self.held, self.cold.after(len(run), run.latest)
        size = len(run)
        if self._filters and size >= partial.LARGE:
            run.serve(self._filters)
        return ((*self.held, run) if size else self.held), None

    def advance(self, upper: int) -> None:
        """Raise `since` to give up history older than `retain`; the next merge of runs removes it."""
        since = upper - (self.retain or 1)
        if since > self.since:
            self.since = since

    def tidy(self, upper: int) -> None:
        """Net closed updates, and merge the newest runs until each is much larger than the next, or a run would be too
        large. Small runs wait until they are several.

        This runs after the commit point, so no row may make it fail.
        """
        if not self.held or self.held is self.settled:
            if self.loose:
                self.narrow(upper)
            return
        known = self.settled  # most often, one run has come since
        count = len(known)
        if count and (count > len(self.held) or not all(map(is_, known, self.held))):
            known, count = (), 0
        new = self.held[count:]
        closed = [run.closed(upper) for run in new]
        if [one for one, run in zip(closed, new, strict=True) if one is not run]:
            self.held = (*known, *closed)
        held = self.held
        if held is not self._tidied:
            if not self._may_wait():
                self._merge_newest(upper)
            self._tidied = self.held
            count = count if self.held is held else 0
        for run in self.held[count:]:
            if run.closes(upper, MAXIMUM):
                return
        self.settled = self.held

    def _may_wait(self) -> bool:
        """Whether one small run has come since the last look at the newest runs, and leaves them too few to merge."""
        held, known, (runs, rows) = self.held, self._tidied, self._waits
        if runs < 2 or not native.on or known is None or len(held) != len(known) + 1 or self.loose:
            return False
        rows -= GROWTH * len(held[-1])
        self._waits = runs - 1, rows
        return rows > 0 and not (known and known[-1].in_memory and cast("Run", known[-1]).orders)

    def _merge_newest(self, upper: int) -> None:
        """Merge the newest runs as `tidy` says."""
        newest, size, room = list[Run](), 0, inf
        for run in reversed(cast("tuple[Run, ...]", self.held)):
            if not run.in_memory:
                break
            length = len(run.updates.time)
            if newest and length >= GROWTH * size:
                room = length - GROWTH * size
                break
            newest.append(run)
            size += length
        # A large batch has indexes of all its rows, where it was looked up in.
        if self.loose or (self._filters and size >= partial.LARGE):
            self.narrow(upper)
        # Without kernels, and where they have an order, runs are searched one after the other.
        at_once = native.on and size < SMALL and not [run for run in newest if run.orders]
        enough = WAITING if at_once else 2
        self._waits = enough - len(newest), min(room, SMALL - size)
        if len(newest) < (enough if self.arrangements else WAITING):
            return
        runs = newest[::-1]
        while self._has_texts and not fits([run.updates for run in runs], sum(run.row_bytes for run in runs)):
            del runs[0]
        if len(runs) > 1:
            self._merge([runs], upper, final=False)

    def compact(self, upper: int) -> None:
        """Merge all runs in memory into as few as possible."""
        groups, runs = list[Sequence[Run]](), self.in_memory
        for group in fitting(run.updates for run in runs):
            groups.append(runs[: len(group)])
            runs = runs[len(group) :]
        # These rows may cancel rows in files, so a sum below zero is allowed.
        self._merge(groups, upper, final=True)

    def _merge(self, groups: Sequence[Sequence[Run]], upper: int, *, final: bool) -> None:
        """Merge each group into one run. Together the groups are the last runs."""
        live = {key: arrangement.columns for key, arrangement in self.arrangements.items()}
        merged = [merge_runs(runs, self.since, upper, live, final=final, made=not self.order, filters=self._filters)
                  for runs in groups]  # fmt: skip
        self._current = NOTHING  # it would keep the runs
        older = self.held[: -sum(map(len, groups)) or None]
        self.held = (*older, *[run for run in merged if len(run)])

    def current(self, parts: Sequence[Part], closed: int) -> Sequence[Part]:
        """All parts, as a query reads them if many rows of it: what their updates below `closed` add up to is found
        once. Those in files are as they are."""
        if len(parts) < 2 or not all(part.in_memory for part in parts):
            return parts
        runs = cast("Sequence[Run]", parts)
        self._current = known = self._current.after(
            runs, closed, lambda: {key: one.columns for key, one in self.arrangements.items()})  # fmt: skip
        return known.seen() if known.runs else parts

    def as_of(self, time: int, *, distinct: bool, names: Iterable[str] | None = None) -> Updates:
        """The contents: what the updates at or before `time` add up to. With `distinct`, one row per distinct row.
        `names`: the columns wanted (None: all).

        The result's times have no meaning.

        Raises:
            DataError: the weight of a row does not fit an int64.
        """
        return self._contents(self.up_to(time, names), time, distinct=distinct)

    def _contents(self, found: Updates, time: int, *, distinct: bool) -> Updates:
        """What the updates at or before a time add up to."""
        try:
            return consolidate(found, by_time=False) if distinct else cancel(found, by_time=False)
        except DataError as problem:
            raise problem.with_(view=self.name, time=time) from None

    def as_of_in_parts(self, time: int, upper: int) -> Sequence[Updates]:
        """As `as_of`, in at least one part. Rows of different parts do not cancel. Times below `upper` are closed."""
        last = time + 1 == upper and len(self) >= MANY  # so that the next read finds what this one adds up
        runs = self.current(self.runs, upper) if last else self.runs
        parts = self._until(time, None, runs) or [empty(self.schema)]
        if not any(some_below_zero(part.diff) for part in parts):
            return parts
        return [self._contents(concat(parts), time, distinct=False)]

    def up_to(self, time: int, names: Iterable[str] | None = None) -> Updates:
        """Updates at or before a time that add up to the contents then, with some columns (None: all)."""
        parts = self._until(time, names, self.runs)
        return concat(parts) if parts else empty({name: self.schema[name] for name in names or self.schema})

    def _until(self, time: int, names: Iterable[str] | None, runs: Iterable[Part]) -> list[Updates]:
        wanted = None if names is None else list(names)
        found = (piece for run in runs for piece in run.present(time + 1, wanted))
        pieces = ((piece if wanted is None else piece.select(wanted)).before(time + 1) for piece in found)
        return [piece for piece in pieces if len(piece)]

    def closing(self, low: int, high: int, staged: Part | None = None) -> Updates:
        """The consolidated updates that close when `upper` goes from `low` to `high`, including a staged run's."""
        runs = self.held if self.cold is None or self.cold.latest < low else self.runs
        parts = [part for run in runs if run.closes(low, high) and len(part := run.closing(low, high))]
        new = list(staged.pieces(high=high)) if staged is not None else []
        if not parts and not new:
            return _nothing(self.schema)
        found = concat([*parts, *new])
        return consolidate(found) if parts else found  # a staged run is consolidated

    def closes(self, low: int, high: int) -> bool:
        """Whether updates close when `upper` goes from `low` to `high`. They may cancel each other."""
        if self.held is self.settled and self.cold is None:
            return False
        runs = self.held if self.cold is None or self.cold.latest < low else self.runs
        return bool([run for run in runs if run.closes(low, high)])

    def closing_in_files(self, low: int, high: int, staged: Part) -> StoredChanges:
        """As `closing`, for a staged run in files."""
        now = self.closing(low, high)
        parts = (Run(now), staged) if len(now) else (staged,)
        return StoredChanges(self.schema, parts, low, high, consolidated=len(parts) == 1)

    def changes(self, low: int, high: int) -> Updates:
        """The consolidated updates with times in `[low, high)`, by time. `low` must be at or above `since`."""
        parts = [piece for run in self.runs for piece in run.pieces(low, high)]
        if not parts:
            return empty(self.schema)
        found = consolidate(concat(parts))
        return found.take(np.argsort(found.time, kind="stable"))


_nothing = by_identity(empty)
