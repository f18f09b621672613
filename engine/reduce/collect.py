"""Aggregates that put all values of a group into one: array_agg and string_agg."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfjoin.engine.reduce.arguments import Arguments
from halfjoin.engine.reduce.groups import sums
from halfjoin.engine.scalar.bounds import check, sizes
from halfjoin.engine.updates.updates import Ints, gather, indices_of
from halfjoin.sql.types import VALUE_BYTES


def array_agg(rows: Arguments, type: pa.DataType) -> pa.Array:
    """All values of each group, NULLs as well, as an array; NULL for no values.

    Raises:
        Failed: an array would be too long; the mask marks the groups.
    """
    _check(rows, sizes(rows.args[0]))
    values = gather(rows.args[0], indices_of(np.repeat(np.arange(len(rows.count)), rows.count)))
    return pa.ListArray.from_arrays(
        pa.array(rows.before.astype(np.int32)), values.cast(type.value_type), mask=_empty(rows)
    ).cast(type)


def string_agg(rows: Arguments, type: pa.DataType) -> pa.Array:
    """The texts (or byte strings) of each group, each but the first after its delimiter; NULL for no texts.

    `args`: the texts, without NULLs, and the delimiters; a NULL delimiter is empty.

    Raises:
        Failed: a result would be too long; the mask marks the groups.
    """
    texts, delimiters = rows.args
    nothing = pa.scalar(b"" if pa.types.is_binary(texts.type) else "", texts.type)
    delimiters = pc.fill_null(delimiters, nothing)
    _check(rows, sizes(texts) + sizes(delimiters))
    copies = indices_of(np.repeat(np.arange(len(rows.count)), rows.count))
    pieces, between = gather(texts, copies), nothing
    if len(delimiters) and delimiters.slice(1).equals(delimiters.slice(0, len(delimiters) - 1)):
        between = delimiters[0]
    else:
        first = np.zeros(len(copies), np.bool_)
        first[rows.before[:-1][np.diff(rows.before) > 0]] = True
        before = pc.if_else(pa.array(first), nothing, gather(delimiters, copies))
        pieces = pc.binary_join_element_wise(before, pieces, nothing)
    lists = pa.ListArray.from_arrays(pa.array(rows.before.astype(np.int32)), pieces, mask=_empty(rows))
    return pc.binary_join(lists, between).cast(type)


def _check(rows: Arguments, size: Ints) -> None:
    """Refuse groups whose values together are too long; a longer sum than an int64 holds is too long as well."""
    each = np.minimum(size, VALUE_BYTES + 1) * np.minimum(rows.count, VALUE_BYTES + 1)
    check(sums(np.minimum(each, VALUE_BYTES + 1), rows.starts), len(rows))


def _empty(rows: Arguments) -> pa.Array | None:
    """The mask of the groups without values; None if all have some."""
    empty = np.diff(rows.starts) == 0
    return pa.array(empty) if empty.any() else None
