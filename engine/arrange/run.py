"""A run: an immutable piece of a collection. Its rows are stored once; each arrangement adds an index when needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, NamedTuple

import numpy as np
import pyarrow as pa

from halfjoin.engine.arrange import partial
from halfjoin.engine.arrange.index import (
    Footprint,
    Index,
    KeyColumns,
    RowNumbers,
    build,
    build_from_codes,
    merge,
    wanted_only,
)
from halfjoin.engine.arrange.netting import NET_FROM, Net, net
from halfjoin.engine.arrange.order import Order, OrderKey, Sort, order_of
from halfjoin.engine.arrange.partial import RowFilter
from halfjoin.engine.kernels import joining, native
from halfjoin.engine.scalar.ends import Ends, Sieve
from halfjoin.engine.updates.consolidate import distinct
from halfjoin.engine.updates.updates import (
    MAXIMUM,
    MINIMUM,
    Ints,
    Mask,
    Positions,
    Updates,
    concat,
    constant,
    ends,
    fitting,
    where_true,
)
from halfjoin.planner.plan import ArrangementKey
from halfjoin.planner.wants import ALL, Wants

_AS_IT_IS = Net(MINIMUM)
_SAMPLED, _GOLDEN = 1 << 10, 0.6180339887498949
_UNCOUNTED = -1, 0  # how many indexes were counted, and their bytes
RENET = 8  # a run is netted anew when the updates closed since are this fraction (1/8) of its live rows


class Side(NamedTuple):
    """A run as a half-join's kernel reads it (`joining.side`): one for each index.

    It serves lookups that may add up updates below `closed`, if their changes have no times below `begins`; and the one
    for which it was made. `exact`: equal codes mean equal keys. `types`: of the columns to gather.
    """

    opened: list[object]
    closed: int
    begins: int
    exact: bool
    types: list[pa.DataType]


class Computed(NamedTuple):
    """The values of an expression for all rows of a run, and the ascending rows for which a comparison with them does
    not tell enough. `nbytes`: the memory that the values hold, 0 if they are a column of the run."""

    values: pa.Array
    always: Ints
    nbytes: int


@dataclass(slots=True)
class Run:
    """Updates and indexes on them. The updates never change; an index is added when first needed.

    `future` lists, by time, the rows whose times were open when the run was made. Rows that close later are found
    there, so a row is stored once, however far ahead its time lies. `net` says what the closed updates add up to (None:
    not computed yet); `gone` has the index entries of rows that have cancelled. `orders` are indexes on the live rows,
    too; a run that replaces this one makes its own. `filters` has the rows that the users of arrangements want, for
    indexes that are still to be built. `computed` has what batches compare, by the expressions. `sides` are what
    kernels have opened. They hold the memory of an index, so what replaces or drops one forgets them. `ends` are those
    of the columns that conditions of queries were about.
    """

    in_memory: ClassVar[bool] = True
    decoded: ClassVar[int] = 0
    updates: Updates
    indexes: dict[ArrangementKey, Index] = field(default_factory=dict)
    future: Index | None = None
    net: Net | None = None
    gone: dict[ArrangementKey, Index] = field(default_factory=dict)
    orders: dict[OrderKey, Order] = field(default_factory=dict)
    filters: Mapping[ArrangementKey, RowFilter] | None = None
    _row_bytes: int | None = None
    _index_bytes: tuple[int, int] = _UNCOUNTED
    _times: tuple[int, int] | None = field(default=None, repr=False, compare=False)  # the first and the last
    computed: dict[object, Computed] = field(default_factory=dict, repr=False, compare=False)
    sides: dict[object, Side] = field(default_factory=dict, init=False, repr=False, compare=False)  # by who looks up
    ends: dict[str, Ends | None] = field(default_factory=dict, repr=False, compare=False)
    _values: dict[str, int] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.updates.time)

    def index(
        self, key: ArrangementKey, columns: KeyColumns, wants: Wants = ALL, begins: int = MINIMUM
    ) -> Index:
        """The index of an arrangement, over the live rows that a lookup wants, and perhaps more. It is built now if the
        run does not have it.

        The changes that look rows up have times at or above `begins`.
        """
        found = self.indexes.get(key)
        if found is not None and (found.partial is None or found.partial.serves(wants, begins)):
            return found
        if found is not None:
            self._forget()
            del self.indexes[key]  # an index that takes the place of another one is the newest
        arrays, rows = columns(self.updates)
        found = build(arrays, rows, len(self.updates) if rows is None else len(rows))
        wanted = self.filters.get(key) if self.filters and len(self) >= partial.LARGE else None
        if wanted is not None and wanted.partial(begins).serves(wants, begins):
            found = wanted_only([found], wanted, self.updates, begins)[0]
        if self.net is not None and self.net.there is not None:
            found, self.gone[key] = found.split(self.net.there)
        else:
            self.gone.pop(key, None)
        self.indexes[key] = found
        return found

    def build(
        self, key: ArrangementKey, columns: KeyColumns, wants: Wants = ALL, begins: int = MINIMUM
    ) -> None:
        """Build an arrangement's index now, so that no lookup waits for it."""
        self.index(key, columns, wants, begins)

    def narrow(self, key: ArrangementKey, wanted: RowFilter, upper: int) -> None:
        """Drop the entries of rows that nobody wants any more. An index that lacks wanted rows is dropped as a whole:
        the next lookup builds another one."""
        before = self.indexes[key].partial
        self._forget()
        if before is not None and not before.serves(wanted.wants, upper):
            del self.indexes[key]
            self.gone.pop(key, None)
            return
        if key in self.gone:
            self.gone[key] = wanted_only([self.gone[key]], wanted, self.updates, upper)[0]
        self.indexes[key] = wanted_only([self.indexes[key]], wanted, self.updates, upper)[0]

    def serve(self, filters: Mapping[ArrangementKey, RowFilter]) -> None:
        """Build large indexes from now on for the rows that these filters leave."""
        self.filters = filters

    def lacks(self, key: ArrangementKey) -> bool:
        """False: what serves a query alone is a `QueryRun`."""
        return False

    def grouped_for(self, key: ArrangementKey) -> bool:
        """False: as of `lacks`."""
        return False

    def among(self, key: ArrangementKey, columns: KeyColumns, keys: list[pa.Array]) -> Run:
        """The same run."""
        return self

    def stretches(self, sieve: Sieve) -> Sequence[tuple[int, int, Run]] | None:
        """None: no rows are passed over."""
        return None

    def ends_of(self, column: str) -> Ends | None:
        """None: so few rows have no blocks."""
        return None

    def sifted(self, sieve: Sieve) -> Sequence[Run]:
        """The same run."""
        return (self,)

    def at_once(self) -> Run:
        """The same updates, all at the least time. Both have the indexes that either makes, but for those that leave
        rows out by their times."""
        updates = Updates(self.updates.columns, constant(MINIMUM, len(self)), self.updates.diff)
        owner = self.apart() if self.filters else self
        return Run(updates, owner.indexes, net=self.net, gone=owner.gone, filters=self.filters)

    def apart(self) -> Run:
        """The same run with its own list of indexes: neither sees what the other builds or drops."""
        return replace(self, indexes=dict(self.indexes), gone=dict(self.gone), orders=dict(self.orders),
                       computed=dict(self.computed))  # fmt: skip

    def leave(self) -> None:
        """Forget what serves the lookups of a user that comes no more. The others have it made anew."""
        self.computed.clear()
        self._forget()

    def _forget(self) -> None:
        """Forget what is known of an index that goes."""
        self.sides.clear()
        self._index_bytes = _UNCOUNTED

    def drop(self, key: ArrangementKey) -> None:
        """Drop the index of an arrangement that nobody shares any longer."""
        self._forget()
        self.indexes.pop(key, None)
        self.gone.pop(key, None)
        for order in [one for one in self.orders if one.arrangement == key]:
            del self.orders[order]

    def footprint(self, key: ArrangementKey) -> Footprint:
        """The size of an arrangement's index, without the entries of cancelled rows; zero before the first lookup."""
        index = self.indexes.get(key)
        return Footprint() if index is None else Footprint(len(index), index.nbytes)

    def loaded(self, upper: int) -> Sequence[Run]:
        """This run itself."""
        return (self,)

    def entries(
        self, key: ArrangementKey, columns: KeyColumns, closed: int = MINIMUM, wants: Wants | None = ALL,
        begins: int = MINIMUM,
    ) -> list[Index]:  # fmt: skip
        """The indexes that together have all rows that a lookup wants (as in `index`). Rows that cancel below `closed`
        may be left out. With None for `wants`, an index that is there is taken as it is."""
        index = self.indexes.get(key)
        if index is None or (index.partial is not None and wants is not None):
            index = self.index(key, columns, ALL if wants is None else wants, begins)
        return [index] if not self.gone or self._nets(closed) or key not in self.gone else [index, self.gone[key]]

    def find(
        self, key: ArrangementKey, columns: KeyColumns, probes: Ints, closed: int = MINIMUM, wants: Wants = ALL,
        begins: int = MINIMUM,
    ) -> Iterator[tuple[Ints, RowNumbers, bool]]:  # fmt: skip
        """Pairs (position in `probes`, row) whose codes are equal, in pieces as `Index.find` makes them, and whether
        equal codes mean equal keys. The rest is as in `entries`."""
        for index in self.entries(key, columns, closed, wants, begins):
            for positions, rows in index.find(probes):
                yield positions, rows, index.exact

    def ranges(self, key: ArrangementKey, columns: KeyColumns, probes: Ints) -> tuple[Ints, Ints, bool]:
        """For the code of each group, where its live entries begin and end; and whether equal codes mean equal keys."""
        if not key.keys:
            live = len(self) if self.net is None or self.net.there is None else int(np.count_nonzero(self.net.there))
            return np.zeros(len(probes), np.int64), np.full(len(probes), live), True
        index = self.index(key, columns)
        return index.codes.searchsorted(probes), index.codes.searchsorted(probes, "right"), index.exact

    def live(self, key: ArrangementKey, columns: KeyColumns) -> tuple[Ints, RowNumbers]:
        """The codes of the groups of the live rows, and these rows, group after group in any order."""
        if key.keys:
            index = self.index(key, columns)
            return index.codes, index.rows
        there = None if self.net is None else self.net.there
        rows = (np.arange(len(self)) if there is None else where_true(there)).astype(np.uint32)
        return constant(0, len(rows)), rows

    def order(self, key: OrderKey, columns: KeyColumns, sort: Sort) -> Order:
        """The order index, over the live rows; it is built now if the run does not have it."""
        found = self.orders.get(key)
        if found is None:
            groups, live = self.live(key.arrangement, columns)
            exact = not key.arrangement.keys or self.index(key.arrangement, columns).exact
            diffs = self.updates.diff[live] if self.net is None else self.net.diffs_of(self.updates, live)
            found = self.orders[key] = order_of(key, self.updates, groups, live, diffs, sort, exact=exact)
        return found

    def values(self, column: str) -> int:
        """About how many different values a column has, from a sample. It is counted once."""
        found = self._values.get(column)
        if found is None:
            rows, array = len(self), self.updates.columns[column]
            if rows > _SAMPLED:  # steps that no regular order of the rows meets
                places = (np.arange(_SAMPLED) * _GOLDEN % 1.0 * rows).astype(np.int64)
                array = array.take(pa.array(places))
            seen = distinct([array], len(array))
            # If most are different, so are most of those that were not seen.
            found = len(seen) if 2 * len(seen) <= len(array) else max(1, round(len(seen) / len(array) * rows))
            self._values[column] = found
        return found

    def orders_below(self, closed: int) -> bool:
        """Whether the live rows are all that matters, if updates below `closed` may be added up."""
        return self.net is None or self._nets(closed)

    def diffs(self, rows: Positions, closed: int) -> Ints:
        """The diffs of rows that `entries` found."""
        if self.net is None or not self._nets(closed):
            return self.updates.diff[rows]
        return self.net.diffs_of(self.updates, rows)

    def weights(self, closed: int) -> native.Weights:
        """The times and diffs, and what `diffs` gives instead of some of them."""
        updates, net = self.updates, self.net
        if net is None or not len(net.rows) or not self._nets(closed):
            return updates.time, updates.diff, None, None
        return updates.time, updates.diff, net.rows, net.diffs

    def side(
        self, key: ArrangementKey, columns: KeyColumns, names: tuple[Sequence[str], Sequence[str], Sequence[str]],
        closed: int, wants: Wants, begins: int, wanted: Mask | None = None,
    ) -> Side | None:  # fmt: skip
        """The run, opened for a half-join's kernel. `names`: the columns with the keys to compare, those that
        conditions read, and those to gather; `wanted`: marks the rows that other conditions leave; the rest is as in
        `entries`. None: there is no kernel for some type."""
        own, opened, exact, bounded = self.updates.columns.__getitem__, list[object](), True, MINIMUM
        keys, tested, fetched = [*map(own, names[0])], [*map(own, names[1])], [*map(own, names[2])]
        weights, mask = self.weights(closed), self.mask(closed)
        mask = mask if wanted is None else wanted if mask is None else wanted & mask
        for index in self.entries(key, columns, closed, wants, begins):
            made = joining.side(index.sorted_codes, index.exact, keys, tested, fetched, weights, mask)
            if made is None:
                return None
            opened.append(made)
            exact, bounded = exact and index.exact, bounded if index.partial is None else begins
        # If nothing is netted, or what is netted adds up to nothing else, it serves all lookups.
        net = None if self.net is None or not (self.gone or len(self.net.rows)) else self.net
        return Side(opened, MINIMUM if net is None else net.closed, bounded, exact, [one.type for one in fetched])

    def mask(self, closed: int) -> Mask | None:
        """Marks the rows that remain, if updates below `closed` may be added up and `entries` have others; None: they
        have not."""
        return None

    def _nets(self, closed: int) -> bool:
        """Whether the run is netted, and all netted updates have times below `closed`."""
        return self.net is not None and self.net.closed <= closed

    def present(
        self, closed: int, names: Iterable[str] | None = None, choose: Callable[[Run], Ints] | None = None
    ) -> Iterator[Updates]:
        """The updates; the netted ones are added up if all their times are below `closed`."""
        updates = self.updates if names is None else self.updates.select(names)
        net = self.net if self._nets(closed) else None
        there = None if net is None else net.there
        if choose is not None:
            rows = choose(self)
            rows = rows if there is None else rows[there[rows]]
        elif there is not None:
            rows = where_true(there)
        else:
            yield updates
            return
        found = updates.take(rows)
        yield found if net is None else Updates(found.columns, found.time, net.diffs_of(updates, rows))

    def left(self, closed: int) -> Ints | None:
        """The rows that are left if updates below `closed` are added up; None: all of them."""
        net = self.net if self._nets(closed) else None
        return None if net is None or net.there is None else where_true(net.there)

    def alone(self) -> Run:
        """This run itself."""
        return self

    @property
    def hidden(self) -> int:
        """How many updates have cancelled each other."""
        return 0 if self.net is None or self.net.there is None else len(self) - int(np.count_nonzero(self.net.there))

    def pieces(
        self, low: int = MINIMUM, high: int = MAXIMUM, names: Iterable[str] | None = None
    ) -> Iterator[Updates]:
        """The updates with times in `[low, high)`, all at once."""
        if low == MINIMUM and high == MAXIMUM:
            yield self.updates
            return
        if self.updates.within(low, high):
            found = self.updates
        else:
            found = self.updates.filter((low <= self.updates.time) & (self.updates.time < high))
        if len(found):
            yield found

    def narrowed(
        self, key: ArrangementKey, columns: KeyColumns, keys: Sequence[pa.Array], names: Iterable[str]
    ) -> Iterable[Run]:
        """This run: its index finds the keys."""
        return (self,)

    def closing(self, low: int, high: int) -> Updates:
        """The updates with times in `[low, high)`; `low` is at or above `upper` as it was when the run was made."""
        if self.future is None:
            return self.updates.slice(0, 0)
        rows = self.future.between(low, high)
        return self.updates if len(rows) == len(self.updates) else self.updates.take(np.sort(rows))

    def closes(self, low: int, high: int) -> bool:
        """Whether `closing` gives updates."""
        return self.future is not None and len(self.future.between(low, high)) > 0

    def closed(self, upper: int) -> Run:
        """This run after times below `upper` have closed: netted anew if many updates have closed since it was netted.
        Once all times are closed, `future` is dropped."""
        if self.net is not None and self.future is None:  # most often
            return self
        future = None if self.future is None or int(self.future.codes[-1]) < upper else self.future
        if self.net is None:
            time = self.updates.time
            due = len(time) >= NET_FROM and time.strides != (0,) and len({*ends(time)}) > 1
        else:
            assert self.future is not None  # otherwise it returned
            there = len(self) if self.net.there is None else int(np.count_nonzero(self.net.there))
            due = future is None or len(self.future.between(self.net.closed, upper)) * RENET >= max(there, NET_FROM)
            if not due:
                return self
        fresh = self.netted(upper) if due else self
        known = Net(upper) if fresh.net is None else fresh.net
        made = Run(fresh.updates, fresh.indexes, future, known, fresh.gone, fresh.orders, fresh.filters,
                   fresh._row_bytes, ends=fresh.ends)  # fmt: skip
        made.sides, made.computed = fresh.sides, fresh.computed  # it has the same rows, indexes and diffs
        return made

    def netted(self, upper: int) -> Run:
        """This run with the updates below `upper` netted."""
        found = net(self.updates, upper, self.net)
        if found.there is None:
            return replace(self, net=found, _index_bytes=_UNCOUNTED)
        indexes, gone = {}, {}
        for key, index in self.indexes.items():
            before = self.gone.get(key)
            whole = index if before is None else merge([(index, 0), (before, 0)], None, index.partial)
            indexes[key], gone[key] = whole.split(found.there)
        return replace(self, net=found, indexes=indexes, gone=gone, orders={}, _index_bytes=_UNCOUNTED)

    @property
    def earliest(self) -> int:
        """The first of the times; `MINIMUM` if there are no updates."""
        return self._first_and_last()[0]

    @property
    def latest(self) -> int:
        """The last of the times; `MINIMUM` if there are no updates."""
        return self._first_and_last()[1]

    def _first_and_last(self) -> tuple[int, int]:
        if self._times is None:  # kept, because each round of a loop asks for it
            self._times = ends(self.updates.time) if len(self) else (MINIMUM, MINIMUM)
        return self._times

    @property
    def stored(self) -> tuple[int, int]:
        """No files: the rows are in memory."""
        return 0, 0

    @property
    def index_bytes(self) -> int:
        """Memory held by the indexes, in bytes."""
        count = len(self.indexes) + len(self.gone) + len(self.orders) + len(self.computed)
        if self._index_bytes[0] != count:  # cached, because every batch asks for it
            held = (*self.indexes.values(), *self.gone.values(), *self.orders.values(), *self.computed.values(),
                    self.future, self.net)  # fmt: skip
            self._index_bytes = count, sum([one.nbytes for one in held if one is not None])
        return self._index_bytes[1]

    @property
    def loaded_bytes(self) -> int:
        """The bytes of the rows."""
        return self.row_bytes

    @property
    def row_bytes(self) -> int:
        """Memory held by the rows, times and diffs, in bytes; a broadcast view holds none."""
        if self._row_bytes is None:  # cached, because every batch asks for it
            self._row_bytes = self.updates.nbytes
        return self._row_bytes


def make_run(updates: Updates, upper: int, indexes: dict[ArrangementKey, Index] | None = None) -> Run:
    """A run of updates, with the indexes that exist already. Times below `upper` are closed."""
    time = updates.time
    if time.strides == (0,) and len(time) and time.item(0) < upper:
        # Only a row that comes and goes in the same batch could cancel.
        return Run(updates, indexes or {}, None, _AS_IT_IS)
    rows = (time >= upper).nonzero()[0]
    return Run(updates, indexes or {}, build_from_codes(time[rows], rows, True) if len(rows) else None)


def loaded_runs(pieces: Iterable[Updates], upper: int) -> list[Run]:
    """As few runs as possible, of stored updates with any times. The updates below `upper` are netted, since there may
    be many."""
    return [make_run(concat(group), upper).netted(upper) for group in fitting(pieces)]
