"""Half-joins without a key: a stream beside all rows of the other side, or beside those that a comparison needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from halfjoin.engine.arrange.part import Part, as_runs, present
from halfjoin.engine.arrange.run import Run
from halfjoin.engine.join.beside import admitted
from halfjoin.engine.join.compared import choices
from halfjoin.engine.join.lookup import Lookup
from halfjoin.engine.join.pieces import Pairs
from halfjoin.engine.updates import limits
from halfjoin.engine.updates.updates import MINIMUM, Updates, constant, product, repeated

_SHORT = 1 << 8  # bytes of a text that is repeated for each row of a stream


def lonely(join: Lookup, runs: Sequence[Part]) -> Run | None:
    """The only row that there is to look up, as a run; None if there are more, or it has long values."""
    parts = [part for part in runs if len(part)]
    if len(parts) != 1 or len(parts[0]) != 1:
        return None
    for run in as_runs(parts) or ():
        if not run.hidden and all(_is_short(run.updates.columns[column]) for column in join.reads):
            return run
    return None


def with_one(join: Lookup, stream: Updates, run: Run, closed: int) -> Iterator[Updates]:
    """The stream's rows with the only row of a run, as a scalar subquery's: nothing of the stream is copied."""
    _, _, rows = admitted(join, [], np.zeros(1, np.int64), run, np.zeros(1, np.int64), True)
    if not len(rows) or not len(stream):
        return
    wanted = [name for name in stream.columns if join.wanted is None or name in join.wanted]
    columns = {name: stream.columns[name] for name in wanted}
    columns |= {name: repeated(run.updates.columns[column], len(stream)) for column, name in join.made}
    time, diff = run.updates.time.item(0), int(run.diffs(rows, closed)[0])
    yield Updates(columns, np.maximum(stream.time, time),
                  stream.diff if diff == 1 else product(stream.diff, constant(diff, len(stream))))  # fmt: skip


def pairs(
    join: Lookup, stream: Updates, runs: Sequence[Part], closed: int, begins: int
) -> Iterator[tuple[Updates, Pairs]]:
    """A cross product in pieces: some rows of the stream, and their pairs with some rows of the runs.

    A batch leaves out pairs that the comparisons drop. A query or a fill looks up once, so it pays to compare all.
    """
    names, chosen = [column for column, _ in join.spec.fetch], None
    if join.compared and begins > MINIMUM:
        chosen = choices(join.compared, stream, runs)
    if chosen is None:
        for updates in present(runs, closed, names):
            yield from _product(stream, updates)
        return
    for some, choose in chosen:
        for updates in present(runs, closed, names, choose):
            yield from _product(some, updates)


def _product(stream: Updates, updates: Updates) -> Iterator[tuple[Updates, Pairs]]:
    """All pairs of their rows, in pieces."""
    most = limits.PIECE_ROWS
    for low in range(0, len(updates), most):
        run = Run(updates.slice(low, min(low + most, len(updates))))
        rows, step = np.arange(len(run)), max(1, most // len(run))
        for start in range(0, len(stream), step):
            some = stream.slice(start, min(start + step, len(stream)))
            positions = np.arange(len(some)).repeat(len(rows))
            yield some, Pairs(positions, run, np.tile(rows, len(some)), True)


def _is_short(column: pa.Array) -> bool:
    """Whether a value may be repeated for each row of a stream."""
    kind = column.type
    return not (pt.is_nested(kind) or pt.is_interval(kind)) and (
        column.nbytes <= _SHORT or not (pt.is_string(kind) or pt.is_binary(kind)))  # fmt: skip
