"""An executable delta path: how a change of one input becomes changes of the join's output."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from halfjoin.engine.join.chain import GROWTH, Entrance, Walked, entrance_of, names_after
from halfjoin.engine.join.choosing import Stages, compiled, orders
from halfjoin.engine.join.closing import Closing, RunsOf
from halfjoin.engine.join.half_join import HalfJoinOperator
from halfjoin.engine.join.known import FoundByKeys, compile_known
from halfjoin.engine.join.made import Made
from halfjoin.engine.join.presence import AppearingKeys, PresenceOperator, compile_appearing
from halfjoin.engine.join.too_large import TooLarge
from halfjoin.engine.kernels import native
from halfjoin.engine.linear.operators import LinearOperator, compile_linear
from halfjoin.engine.linear.tables import Registry
from halfjoin.engine.updates import limits
from halfjoin.engine.updates.consolidate import consolidate
from halfjoin.engine.updates.updates import MINIMUM, Updates, both_ways, is_wide
from halfjoin.planner.linear import Extend, Filter, Keep
from halfjoin.planner.plan import InputKind, Path, Version

_FEW = 16  # rows; so few are never cut into morsels, however long their texts


@dataclass(frozen=True, slots=True)
class CompiledPath:
    """An executable delta path."""

    spec: Path
    reads: tuple[str, ...]  # the input's columns that the path reads
    source: LinearOperator
    stages: Stages
    final: LinearOperator
    appearing: AppearingKeys | None = None  # None: the path's input is plain
    then: LinearOperator | None = None  # the operator that the rows of an input that is not plain pass next
    known: FoundByKeys | None = None  # of a query: finds the rows of the input with which to fill
    entrance: Entrance | None = None  # into the chain with which the stages begin

    @property
    def reports(self) -> bool:
        """Whether an operator of it may report errors."""
        operators = (self.source, *(stage.then for stage in self.stages), self.final)
        return any(one.reports is not None for one in operators)

    @property
    def maps(self) -> bool:
        """Whether a row of the input gives one row of the view or none, and needs no lookup."""
        steps = (*self.spec.source.steps, *self.spec.final.steps)
        alone = not self.stages and self.then is None and not self.spec.constant
        return alone and all(isinstance(step, (Filter, Extend, Keep)) for step in steps)

    def mapped(self, rows: Updates, errors: list[Updates]) -> Updates:
        """What a path that `maps` makes of some rows. If there is nothing, columns may be missing."""
        entered = self._entering(rows, errors)
        return self.final(entered, errors) if len(entered.time) else entered

    def run(self, change: Updates, lookup: RunsOf, made: Made, closing: Closing) -> Iterator[None]:
        """Add the view's changes for a change of this path's input to `made`, and pause after each piece.

        Rows of a present or an absent input add only errors, where they fail.

        Raises:
            TooLarge: the changes are more than a view may have.
        """
        for morsel in morsels(change):
            if not self.stages:  # a view of one collection
                if self._ended(self._entering(morsel, made.errors), made):
                    yield
                continue
            if len(morsel.time) < len(change.time):
                closing = closing._replace(share=len(morsel.time) / len(change.time))
            try:
                direct = self.entrance if native.on else None
                walked = None if direct is None else direct.walk(morsel, lookup, closing)
                if walked is None:
                    stream = self._entering(morsel, made.errors)
                    yield from self._onward(stream, self.stages, lookup, made, closing, len(stream))
                    continue
                for rows, done in _walked(walked, closing):
                    stream = self.stages[done - 1].then(rows, made.errors)
                    yield from self._onward(stream, self.stages[done:], lookup, made, closing, walked.entered)
            except TooLarge as problem:
                first = self.stages[0].lookup if self.stages and not self.stages[0].otherwise else None
                if isinstance(first, HalfJoinOperator):  # another morsel may have the key that finds most
                    runs = lookup(first.spec.arrangement.collection, first.spec.version)
                    for each in morsels(change):
                        problem.consider(first, self._entering(each, []), runs)
                raise

    def appear(self, lookup: RunsOf, made: Made, closing: Closing) -> Iterator[None]:
        """As `run`, for the keys that appear or disappear at times that close, if the input is not plain."""
        name = self.spec.collection
        updates = closing.updates(name) if self.appearing is not None else None
        if self.appearing is None or self.then is None or updates is None or not len(updates):
            return
        change = self.appearing(updates, lookup(name, Version.AFTER), closing.before, closing.after)
        for morsel in morsels(change):
            stream = self.then(morsel, made.errors)
            yield from self._onward(stream, self.stages, lookup, made, closing, len(stream))

    def _entering(self, morsel: Updates, errors: list[Updates]) -> Updates:
        """Rows of the input, up to the step from which appearing keys follow the same way."""
        stream = self.source(morsel.renamed(self.spec.fetch), errors)
        if self.then is None:
            return stream
        return self.then(stream, errors) if self.spec.kind is InputKind.PADDED else stream.slice(0, 0)

    def _onward(
        self, stream: Updates, stages: Stages, lookup: RunsOf, made: Made, closing: Closing, size: int
    ) -> Iterator[None]:
        """Run the stream through the stages that are left. Each piece that a lookup finds goes to the end before the
        lookup continues.

        A key that has had n rows, one after the other, gives 2n - 1 pairs, of which all but few cancel: what was there
        before goes, and comes. So k lookups would make up to n^k rows of history, and 3^k of one changed row. Therefore
        the stream is added up when it has grown from the `size` that it had when it was last added up, or entered.
        """
        if not stages:
            if self._ended(stream, made):
                yield
            return
        if not len(stream):  # an operator with an empty result has not made all its columns
            return
        if len(stream) >= GROWTH * size and not is_wide(stream.diff) and both_ways(stream.diff):
            stream = consolidate(stream)
            size = len(stream)
            if not size:
                return
        if not stages[0].otherwise:
            yield from self._past(stream, stages, lookup, made, closing, size)
            return
        parts_of = lambda spec: lookup(spec.arrangement.collection, spec.version)  # noqa: E731
        for rows, order in orders(stream, stages, parts_of, closing.netted, closing.begins):
            share = -(-size * len(rows) // len(stream))  # each order's rows grow from their share of the size
            yield from self._past(rows, order, lookup, made, closing, share)

    def _ended(self, stream: Updates, made: Made) -> bool:
        """Take a stream past its last stage to the view. Whether anything is left of it."""
        result = self.final(stream, made.errors) if len(stream.time) else stream
        if not len(result.time):
            return False
        made.take(result)
        return True

    def _past(
        self, stream: Updates, stages: Stages, lookup: RunsOf, made: Made, closing: Closing, size: int
    ) -> Iterator[None]:
        """Run the stream through the first of the stages, and what it finds through the others."""
        half_join = stages[0].lookup
        collection, version = half_join.spec.arrangement.collection, half_join.spec.version
        if isinstance(half_join, PresenceOperator):
            upper = closing.after if version is Version.AFTER else closing.before
            runs = lookup(collection, version)
            for found in half_join(stream, runs, closing.netted, upper, closing.begins, closing.share):
                closing.found.rows += len(found)
                yield from self._onward(stages[0].then(found, made.errors), stages[1:], lookup, made, closing, size)
            return
        try:
            for found, done in self._joined(stream, stages, half_join, lookup, closing, size):
                left = stages[done - 1].then(found, made.errors)
                yield from self._onward(left, stages[done:], lookup, made, closing, size)
        except TooLarge as problem:
            if len(stages) < len(self.stages) or stages[0] is not self.stages[0] or stages[0].otherwise:
                problem.consider(half_join, stream, lookup(collection, version))
            raise

    def _joined(
        self, stream: Updates, stages: Stages, half_join: HalfJoinOperator, lookup: RunsOf, closing: Closing, size: int
    ) -> Iterator[tuple[Updates, int]]:
        """The stream joined by the first stage, in pieces, or by several at once; and how many stages that are."""
        if closing.begins > MINIMUM or len(stream) == 1:  # a batch of rows that find so many is rare
            yield from self._share_joined(stream, stages, half_join, lookup, closing, size)
            return
        runs = lookup(half_join.spec.arrangement.collection, half_join.spec.version)
        for part in half_join.shares(stream, runs, closing.netted):
            own = size if len(part) == len(stream) else -(-size * len(part) // len(stream))
            yield from self._share_joined(part, stages, half_join, lookup, closing, own)

    def _share_joined(
        self, stream: Updates, stages: Stages, half_join: HalfJoinOperator, lookup: RunsOf, closing: Closing, size: int
    ) -> Iterator[tuple[Updates, int]]:
        """As `_joined`, of a share of the rows."""
        chain = stages[0].chain
        if chain is not None and native.on and (not chain.asks or closing.begins == MINIMUM):
            columns = [stream.columns[name] for name in chain.names]
            walked = chain.walk(columns, stream.time, stream.diff, lookup, closing, size)
            if walked is not None:
                yield from _walked(walked, closing)
                return
        runs = lookup(half_join.spec.arrangement.collection, half_join.spec.version)
        for found in half_join(stream, runs, closing.netted, closing.begins):
            closing.found.rows += len(found)
            yield found, 1


def _walked(walked: Walked, closing: Closing) -> Iterator[tuple[Updates, int]]:
    closing.found.rows += walked.found
    if len(walked.rows):
        yield walked.rows, walked.done


def morsels(change: Updates) -> Iterator[Updates]:
    """A change in parts whose rows can go through a path at once."""
    length = len(change.time)
    if length <= _FEW:
        if length:
            yield change
        return
    size = change.nbytes
    if length <= limits.MORSEL_ROWS and size <= limits.PIECE_BYTES:
        yield change
        return
    rows = max(1, min(limits.MORSEL_ROWS, limits.PIECE_BYTES // max(1, size // length)))
    for start in range(0, length, rows):
        yield change.slice(start, min(start + rows, length))


def compile_path(path: Path, registry: Registry, like: CompiledPath | None = None) -> CompiledPath:
    """Make a delta path executable. `like`: one that differs in constants; what has none is the same object there, and
    is taken from it."""
    if like is not None and like.spec is path:
        return like
    appearing = path.appearing
    source = like.source if like is not None and like.source.spec is path.source else compile_linear(
        path.source, registry)  # fmt: skip
    if like is not None and like.spec.stages is path.stages and (like.spec.final is path.final or not _compares(like)):
        stages = like.stages
    else:
        entering = names_after([name for _, name in path.fetch], path.source.steps)
        entering = entering if appearing is None else names_after(entering, appearing.then.steps)
        stages = compiled(path.stages, registry, entering, path.final)
    return CompiledPath(
        path,
        tuple(column for column, _ in path.fetch),
        source,
        stages,
        like.final if like is not None and like.final.spec is path.final else compile_linear(path.final, registry),
        None if appearing is None else compile_appearing(appearing, path.kind, registry),
        None if appearing is None else compile_linear(appearing.then, registry),
        None if path.known is None else compile_known(path.known, registry),
        entrance_of(path, stages[0].chain) if stages and not stages[0].otherwise else None,
    )


def _compares(path: CompiledPath) -> bool:
    """Whether a half-join knows comparisons, which may be those of the path's last operator."""
    lookups = (stage.lookup for stage in path.stages)
    return any(isinstance(one, HalfJoinOperator) and one.compared != () for one in lookups)
