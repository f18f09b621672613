"""Joins the stream's rows with partners that were found: by kernels, or by Arrow, in pieces of bounded size."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from halfjoin.engine.arrange.netting import together
from halfjoin.engine.arrange.run import Run
from halfjoin.engine.join.at_once import Partners
from halfjoin.engine.join.lookup import Lookup
from halfjoin.engine.join.pieces import FEW, Pairs, RowNumbers, fit, may_be_long, pieces
from halfjoin.engine.kernels import joining
from halfjoin.engine.scalar import mask_of
from halfjoin.engine.updates.updates import MINIMUM, Ints, Updates, gather, gathered, indices_of, product

_PROBE = "#probe"  # no SQL column has such a name
NET_FROM = 256  # partners; adding fewer up costs more than carrying on those that cancel
_MANY = 8  # so does adding up where fewer than one partner in so many goes
Note: TypeAlias = Callable[[tuple[Ints, Ints, Ints]], None]  # takes positions in the stream; partners' times and diffs


def at_once(
    join: Lookup, stream: Updates, keys: list[pa.Array], partners: Partners, closed: int, note: Note | None
) -> Iterator[Updates]:
    """Stream rows joined with partners that a kernel has found: by kernels, too, if they know all types."""
    count, found = len(partners), list[Pairs]()
    if count > FEW and may_be_long(stream, partners.runs[0], join.reads):
        found = [Pairs(positions, run, rows, True) for positions, run, rows in partners.apart()]
    if not found or fit(stream, found, join.reads):
        result = _through_kernels(join, stream, partners, closed, note)
        if result is not None:
            if len(result):
                yield result
            return
    found = found or [Pairs(positions, run, rows, True) for positions, run, rows in partners.apart()]
    yield from joined(join, stream, keys, found, count, closed, note)


def _through_kernels(
    join: Lookup, stream: Updates, partners: Partners, closed: int, note: Note | None
) -> Updates | None:
    """As `_gather`; None if a kernel is missing."""
    for condition in join.rest:
        met = condition.met(partners)
        if met is None:
            return None
        partners = met
    if not len(partners):
        return stream.slice(0, 0)
    names = [name for name in stream.columns if join.wanted is None or name in join.wanted]
    positions, fetched, weights = partners.positions, partners.columns(join.made), partners.weights(closed)
    if fetched is None or weights is None:
        return None
    time, diff = weights
    if closed > MINIMUM and len(positions) >= NET_FROM and _cancels(join, diff):
        found = Updates(fetched, time, diff)
        positions, found = _netted(positions, found, closed)
        fetched, time, diff = found.columns, found.time, found.diff
    made = joining.gather([[stream.columns[name] for name in names]], positions, [len(positions)])
    both = joining.products(positions, stream.time, stream.diff, time, diff)
    if made is None or both is None:
        return None
    if note is not None:
        note((partners.positions, *weights))
    return Updates({**dict(zip(names, made, strict=True)), **fetched}, *both)


def joined(
    join: Lookup, stream: Updates, keys: list[pa.Array], found: list[Pairs], count: int, closed: int, note: Note | None
) -> Iterator[Updates]:
    """Stream rows joined with the rows of `count` pairs: at once, or in several pieces if the texts are long."""
    for pairs in [found] if count <= FEW or fit(stream, found, join.reads) else pieces(stream, found, join.reads):
        result = _gather(join, stream, keys, pairs, closed, note)
        if result is not None:
            yield result


def _gather(
    join: Lookup, stream: Updates, keys: list[pa.Array], pairs: Iterable[Pairs], closed: int, note: Note | None
) -> Updates | None:
    """Stream rows joined with the partners that pass all conditions; None if there are none."""
    found = [part for part in [admitted(join, keys, *part) for part in pairs] if len(part[0])]
    if not found:
        return None
    left, wanted = stream, join.wanted
    if wanted is not None:
        left = stream.select([name for name in stream.columns if name in wanted])
    if len(found) == 1:
        positions, run, rows = found[0]
        source, indices = run.updates.columns, indices_of(rows)
        fetched = gathered({name: source[column] for column, name in join.made}, indices)
        time, diff = run.updates.time[rows], run.diffs(rows, closed)
    else:
        positions = np.concatenate([positions for positions, _, _ in found])
        sources = [(run.updates.columns, indices_of(rows)) for _, run, rows in found]
        fetched = {name: pa.concat_arrays([gather(source[column], indices) for source, indices in sources])
                   for column, name in join.made}  # fmt: skip
        time = np.concatenate([run.updates.time[rows] for _, run, rows in found])
        diff = np.concatenate([run.diffs(rows, closed) for _, run, rows in found])
    if note is not None:
        note((positions, time, diff))
    partners = Updates(fetched, time, diff)
    if closed > MINIMUM and len(positions) >= NET_FROM and _cancels(join, diff):
        positions, partners = _netted(positions, partners, closed)
        if not len(positions):
            return None
    if len(positions) != len(stream) or (positions != np.arange(len(stream))).any():
        left = left.take(positions)
    columns = {**left.columns, **partners.columns}
    return Updates(columns, np.maximum(left.time, partners.time), product(left.diff, partners.diff))


def _cancels(join: Lookup, diff: Ints) -> bool:
    """Whether so many partners go that adding up those that cancel costs less than carrying them on."""
    return join.adds_up and int(np.count_nonzero(diff < 0)) * _MANY >= len(diff)


def admitted(
    join: Lookup, keys: list[pa.Array], positions: Ints, run: Run, rows: RowNumbers, certain: bool
) -> tuple[Ints, Run, RowNumbers]:
    """The pairs with equal keys whose partner meets every condition."""
    if not certain:
        positions, rows = join.verified(keys, positions, run, rows)
    for condition in join.asked:
        indices = indices_of(rows)
        columns = {name: gather(run.updates.columns[column], indices) for column, name in condition.fetch}
        mask = mask_of(condition.scalar.evaluate(columns, len(rows)).values)
        if not mask.all():
            positions, rows = positions[mask], rows[mask]
    return positions, run, rows


def _netted(positions: Ints, partners: Updates, closed: int) -> tuple[Ints, Updates]:
    """Partners of the rows at these positions, with equal closed ones added up."""
    pairs = partners.with_columns({_PROBE: pa.array(positions)})
    found = together(pairs, closed)
    if found is None:
        return positions, partners
    rows, diffs = found
    kept = partners.take(rows)
    return positions[rows], Updates(kept.columns, kept.time, diffs)
