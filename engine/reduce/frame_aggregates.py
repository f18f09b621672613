"""Aggregates over the frame of each row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfjoin.engine.linear.tables import Registry, group_function
from halfjoin.engine.reduce import user
from halfjoin.engine.reduce.added import over_spans
from halfjoin.engine.reduce.arguments import Arguments
from halfjoin.engine.reduce.collect import array_agg, string_agg
from halfjoin.engine.reduce.groups import Groups
from halfjoin.engine.reduce.partitions import Partitions
from halfjoin.engine.reduce.spans import Spans, taken
from halfjoin.engine.reduce.words import differ, look, of_word, only_word, ordered_words, places
from halfjoin.engine.scalar.arrow_types import arrow_type
from halfjoin.engine.scalar.failures import Failed
from halfjoin.engine.scalar.values import mask_of, valid
from halfjoin.engine.updates.radix import of_integers
from halfjoin.engine.updates.updates import Ints, where_true
from halfjoin.sql.expr import Column
from halfjoin.sql.functions.aggregates import AGGREGATES, decompose
from halfjoin.sql.relation import AggregateCall, WindowCall

_COLLECT = {"array_agg": array_agg, "string_agg": string_agg}
_AT_ONCE = 1 << 20  # values that are copied to frames at a time


def aggregate(call: WindowCall, rows: Partitions, frame: Spans, registry: Registry) -> pa.Array:
    """The aggregate's value over each row's frame. `registry` has the user's aggregates.

    Raises:
        Failed: there is no value for some rows; the mask marks them.
    """
    seen, of_user = rows.reading(*call.args), call.function not in AGGREGATES
    kept = np.ones(len(rows), np.bool_)
    if call.condition is not None:
        kept = mask_of(rows.values(call.condition))
    if call.function != "array_agg":
        for arg in call.args if of_user else call.args[:1]:
            kept = kept & valid(seen.values(arg))
    seen, frame = seen.where(kept), frame.among(kept)
    if of_user:
        return _of_user(call, seen, rows.numbers, frame, where_true(kept), registry)
    if call.function == "any_value":
        return taken(seen.values(call.args[0]), frame.nth(np.zeros(len(rows), np.int64)))
    if call.function in ("min", "max"):
        return _extreme(seen.values(call.args[0]), frame, greatest=call.function == "max")
    if call.function in _COLLECT:
        kind = arrow_type(call.type)
        args = [seen.values(arg) for arg in call.args]
        return _copied(lambda copied: _COLLECT[call.function](copied, kind), kind, args, frame, len(rows))
    sums = decompose(AggregateCall(call.function, call.args, call.type))
    assert sums is not None, f"no such aggregate: {call.function}"
    return over_spans(sums, seen, rows.numbers, frame)


def _of_user(
    call: WindowCall, seen: Groups, numbers: Ints, frame: Spans, places: Ints, registry: Registry
) -> pa.Array:  # fmt: skip
    """The user's aggregate: from sums, or for each row from the rows of its frame. `places`: of the rows that are seen,
    among all rows."""
    if not user.adds_up(call.function, registry):
        function = group_function(call.function, registry)
        args = [seen.values(arg) for arg in call.args]

        def evaluated(copied: Arguments) -> pa.Array:
            names = [Column(str(number), arg.type) for number, arg in enumerate(call.args)]
            columns = {name.name: values for name, values in zip(names, copied.args, strict=True)}
            return user.of_groups(function, names, Groups(columns, copied.count, copied.starts))

        return _copied(evaluated, arrow_type(call.type), args, frame, len(numbers))
    try:
        lifted, sums = user.lifted(call.function, call.args, seen, registry)
    except Failed as failed:
        raise Failed.of(failed.failures(len(places)).at(places), len(numbers)) from None
    return user.result(call.function, [over_spans(one, lifted, numbers, frame) for one in sums], registry)


def _extreme(values: pa.Array, frame: Spans, *, greatest: bool) -> pa.Array:
    """min or max: the least place, of all values in their order, of those in the frame.

    A span of length n is covered by two spans of the same power of 2 (Bender and Farach-Colton 2000). The least places
    of all spans of one power are computed from those of the power before.
    """
    running = _running_extreme(values, frame, greatest=greatest)
    if running is not None:
        return running
    own = places([*ordered_words(values, descending=greatest), *look(values)], len(values))
    where = np.full(len(values) + 1, -1)  # the position of the first value with each place
    where[own[::-1]] = np.arange(len(values))[::-1]
    found = np.full(len(frame.sizes), len(values))
    for start, end in frame.pieces:
        longest = int((end - start).max(initial=0))
        least, width = own, 1
        while width <= longest:
            rows = where_true((end - start >= width) & (end - start < 2 * width))
            both = np.minimum(least[start[rows]], least[end[rows] - width])
            found[rows] = np.minimum(found[rows], both)
            least, width = np.minimum(least[:-width], least[width:]), 2 * width
    return taken(values, where[found])


def _running_extreme(values: pa.Array, frame: Spans, *, greatest: bool) -> pa.Array | None:
    """min or max, where frames begin or end where their partition does, from running extremes. None: frames do not, or
    values are no plain numbers."""
    word = only_word(values) if len(values) and len(frame.pieces) == 1 else None
    if word is None:
        return None
    word, (start, end) = ~word if greatest else word, frame.pieces[0]
    least = _running_minima(word, start, end)
    if least is None:  # backwards
        least = _running_minima(word[::-1], (len(word) - end)[::-1], (len(word) - start)[::-1])
        if least is None:
            return None
        least = least[::-1]
    made, empty = of_word(least, values.type, descending=greatest), end <= start
    return pc.if_else(pa.array(~empty), made, pa.scalar(None, made.type)) if empty.any() else made


def _running_minima(words: Ints, start: Ints, end: Ints) -> Ints | None:
    """The least word from `start` to `end`, any for an empty span. None: a span reaches the beginning of a later one,
    or there are too many bits."""
    new = differ([start], len(start))
    begins, found = start[new], of_integers(words)
    after = np.append(begins[1:], len(words))
    if bool((after < begins).any()) or bool((end > after[new.cumsum() - 1]).any()):
        return None
    if found.bits + len(begins).bit_length() > 63:
        return None
    part = np.bincount(begins, minlength=len(words) + 1)[: len(words)].cumsum()
    later = (len(begins) - part) << found.bits  # a later part has lower numbers, so running minima begin anew
    least = np.minimum.accumulate(later | found.numbers.view(np.int64)) & ((1 << found.bits) - 1)
    minima: Ints = least[np.maximum(end, 1) - 1] + words.min()
    return minima


def _copied(
    function: Callable[[Arguments], pa.Array], kind: pa.DataType, args: Sequence[pa.Array], frame: Spans, length: int
) -> pa.Array:  # fmt: skip
    """A function of all values of a frame: the values of the frames are copied, some rows at a time."""
    pieces = [pa.nulls(0, kind)]
    for first, last in _lots(frame.sizes):
        starts = np.concatenate([[0], np.cumsum(frame.sizes[first:last])])
        at = pa.array(frame.positions(first, last))
        copied = Arguments(tuple(arg.take(at) for arg in args), np.ones(len(at), np.int64), starts)
        try:
            pieces.append(function(copied))
        except Failed as failed:
            raise Failed.of(failed.failures(last - first).at(np.arange(first, last)), length) from None
    return pa.concat_arrays(pieces)


def _lots(sizes: Ints) -> Iterator[tuple[int, int]]:
    """Values whose frames together have about `_AT_ONCE` values."""
    ends = np.cumsum(sizes)
    first = 0
    while first < len(sizes):
        so_far = int(ends[first - 1]) if first else 0
        last = max(int(np.searchsorted(ends, so_far + _AT_ONCE, "right")), first + 1)
        yield first, last
        first = last
