"""Half-joins of small streams: each task looks up the whole stream in its share of an arrangement's files.

Nothing is shuffled, and tasks read only the row groups that may have a key of the stream. So the cost follows the
change. Between half-joins a stream rests in files, which every task can read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from halfjoin.engine.join.stages import compile_stage
from halfjoin.engine.linear.operators import compile_linear
from halfjoin.engine.linear.tables import Registry
from halfjoin.engine.spark.layout import Frame, Layout, may_report
from halfjoin.engine.spark.pruning import Range, range_of
from halfjoin.engine.spark.session import quiet
from halfjoin.engine.spark.task_errors import call
from halfjoin.engine.spark.tasks import Batches, failing, outgoing
from halfjoin.engine.spark.types import encoded
from halfjoin.engine.spark.writing import Write
from halfjoin.engine.storage.parquet import file_type
from halfjoin.engine.storage.stored_run import StoredRun
from halfjoin.engine.updates.updates import Updates, concat
from halfjoin.planner.linear import Extend, Filter, Keep, Linear
from halfjoin.planner.plan import Stage

STREAM_ROWS = 1_000_000  # the most rows of a stream that every task loads
STREAM_BYTES = 1 << 26  # about the most bytes that they take in memory
SHARE_ROWS = 1 << 20  # rows of an arrangement for one task


@dataclass(frozen=True, slots=True)
class Resting:
    """Rows on their way along a path, in files.

    `fetch` names the columns to read (a column of the files, its name in the stream). `due` is the next operator. After
    it come the stages and the final operator. `whole`: about how many rows the stream would have here, if its input's
    rows were all changed.
    """

    runs: tuple[StoredRun, ...]
    schema: Mapping[str, pa.DataType]
    fetch: tuple[tuple[str, str], ...]
    due: Linear
    stages: tuple[Stage, ...]
    final: Linear
    whole: int

    def __len__(self) -> int:
        return sum(map(len, self.runs))

    @property
    def source(self) -> Layout:
        """The layout of the rows as read."""
        return Layout(()).joined(self.schema, self.fetch)

    @property
    def layout(self) -> Layout:
        """The layout after the next operator."""
        return self.source.through([self.due])

    def ranges(self, name: str) -> list[Range | None]:
        """The range of a column's values in each of the runs; None for each that is unknown."""
        origin = {new: column for column, new in self.fetch}.get(name)
        return [None if origin is None else range_of(run, origin, self.schema[origin]) for run in self.runs]

    def load(self, names: Sequence[str], registry: Registry) -> Updates | None:
        """Load the rows after the next operator, with these columns. None if there are no rows."""
        due = compile_linear(self.due, registry)
        pieces = (piece for run in self.runs for piece in run.pieces(names=[name for name, _ in self.fetch]))
        found = [due(piece.renamed(self.fetch), []) for piece in pieces]
        kept = [part.select(names) for part in found if len(part)]
        return concat(kept) if kept else None


@dataclass(frozen=True, slots=True)
class Probe:
    """The task that takes streams with equal remaining stages through their next half-join. It gets the numbers of its
    shares of the arrangement. `operators` come after the half-join."""

    streams: tuple[Resting, ...]
    shares: tuple[tuple[StoredRun, ...], ...]
    operators: tuple[Linear, ...]
    outputs: Layout
    registry: Registry

    def rows(self, session: Any) -> Frame:
        """The rows that the tasks find, by one task for each share."""
        count = len(self.shares)
        with quiet():
            return session.range(0, count, 1, count).mapInArrow(partial(call, self), self.outputs.struct)

    @property
    def sizes(self) -> list[int]:
        """The rows that the lookup of each share has to do with."""
        return [sum(map(len, share)) + sum(map(len, self.streams)) for share in self.shares]

    @property
    def stored(self) -> Mapping[str, pa.DataType]:
        """The columns of files with the results. By position, because Spark may not tell the plan's names apart."""
        return {f"c{i}": kind for i, (_, kind) in enumerate(self.outputs.columns)}

    @property
    def whole(self) -> int:
        """That of its streams."""
        return min(stream.whole for stream in self.streams)

    def onward(self, run: StoredRun, whole: int) -> Resting:
        """The results, as a stream with the remaining stages."""
        fetch = tuple(zip(self.stored, self.outputs.names, strict=True))
        return replace(self.streams[0], runs=(run,), schema=self.stored, fetch=fetch, due=Linear(),
                       stages=self.streams[0].stages[1:], whole=whole)  # fmt: skip

    def __call__(self, batches: Batches) -> Batches:
        """The function for `mapInArrow`."""
        (first, *_) = self.streams
        stage = replace(first.stages[0], then=self.operators[0])
        half_join, then = compile_stage(stage, self.registry)
        operators = [then, *(compile_linear(operator, self.registry) for operator in self.operators[1:])]
        loaded = [stream.load(first.layout.names, self.registry) for stream in self.streams]
        rows = [part for part in loaded if part is not None]
        if not rows:
            return
        stream = concat(rows)
        for number in (number for batch in batches for number in batch.column(0).to_pylist()):
            for found in half_join(stream, self.shares[number]):
                errors, made = list[Updates](), found
                for operator in operators:
                    made = operator(made, errors)
                if len(made):
                    yield from outgoing(made, [], self.outputs)
                for failed in errors:
                    yield from failing(failed, self.outputs)


@dataclass(frozen=True, slots=True)
class Store:
    """The task of a probe that writes its results to files, with the columns of a layout."""

    probe: Probe
    layout: Layout
    folder: Path

    def __call__(self, batches: Batches) -> Batches:
        """The function for `mapInArrow`."""
        yield from Write(self.layout, self.folder)(self.probe(batches))


def is_simple(stream: Resting) -> bool:
    """Whether several tasks may load the same stream: files can hold it, and its next operator reports no error."""
    simple = all(isinstance(step, Filter | Keep | Extend) for step in stream.due.steps) and not may_report(stream.due)
    return simple and storable(kind for _, kind in (*stream.source.columns, *stream.layout.columns))


def is_small(rows: float, width: float) -> bool:
    """Whether every task may load so many rows, of so many bytes each."""
    return rows <= STREAM_ROWS and rows * width <= STREAM_BYTES


def width_of(runs: Sequence[StoredRun]) -> float:
    """About the bytes of a row in memory."""
    return sum(run.loaded_bytes for run in runs) / max(1, sum(map(len, runs)))


def storable(kinds: Iterable[pa.DataType]) -> bool:
    """Whether files hold values of these types unchanged."""
    return all(encoded(kind) == file_type(kind) for kind in kinds)


def shares(runs: Iterable[StoredRun]) -> tuple[tuple[StoredRun, ...], ...]:
    """Divide the files of an arrangement into shares of about equally many rows."""
    found: list[list[StoredRun]] = []
    rows = SHARE_ROWS
    for run in runs:
        for file in run.files:
            if rows + file.rows > SHARE_ROWS:
                found.append([])
                rows = 0
            rows += file.rows
            known = replace(file, stats="")  # tasks do not need the statistics, which are long
            if found[-1] and found[-1][-1].place == run.place:
                found[-1][-1] = replace(found[-1][-1], files=(*found[-1][-1].files, known))
            else:
                found[-1].append(replace(run, files=(known,)))
    return tuple(map(tuple, found))


def alike(streams: Sequence[Resting]) -> list[tuple[Resting, ...]]:
    """Group streams with equal remaining stages: a half-join that they share reads its arrangement once."""
    groups: dict[object, list[Resting]] = {}
    for stream in streams:
        same = repr((stream.stages, stream.final)), frozenset(stream.layout.columns)
        groups.setdefault(same, []).append(stream)
    return [tuple(group) for group in groups.values()]
