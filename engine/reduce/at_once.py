"""What many updates at one time add to sums, in a few passes over whole columns: for counts and sums of integers.

Sums are linear in the diffs. So a piece of a collection needs no consolidation before it is added up: each row adds its
value, as often as it is there. That is exact in 64 bits if the greatest value, as often as the greatest diff, in every
row, would still fit; where it might not, or the values are others, rows are lifted one by one (`lifted.lift`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from halfjoin.engine.reduce.totals import Totals
from halfjoin.engine.scalar.values import valid
from halfjoin.engine.scalar.wide import Wide, most
from halfjoin.engine.updates.updates import Ints, Updates, constant
from halfjoin.planner.group_functions import Sums

FROM = 1 << 12  # updates; fewer are lifted as fast
_LIMIT = 1 << 63


def at_once(parts: Sequence[Sums], keys: Sequence[str], updates: Updates) -> tuple[Updates, tuple[Totals, ...]] | None:
    """The groups that the updates touch, and what they add to each of the sums; None if that takes row by row."""
    if len(updates) < FROM or not is_one(updates.time):
        return None
    arrays = [updates.columns[name] for name in keys]
    if not all(tells_apart(array.type) for array in arrays):
        return None
    added = list[Ints | int]()
    for part in parts:
        one = _added(part, updates)
        if one is None:
            return None
        added.append(one)
    by_group, sums = _grouped(keys, arrays, added, len(updates))
    time = constant(int(updates.time[0]), len(sums[0]))
    totals = tuple(Totals(part.kind, Wide.of(each)) for part, each in zip(parts, sums, strict=True))
    return Updates(by_group, time, constant(1, len(time))), totals


def _added(part: Sums, updates: Updates) -> Ints | int | None:
    """What each update adds to a sum; a number if all add the same; None if that is not an int64 for sure."""
    if part.kind not in ("count", "integers") or len(part.args) > 1:
        return None
    diff: Ints | int = int(updates.diff[0]) if is_one(updates.diff) else updates.diff
    values: Ints | int = 1
    for arg in part.args:
        array = updates.columns[arg.name]
        if part.kind == "count":
            values = valid(array).astype(np.int64) if array.null_count else 1
        else:
            whole = _whole(array)
            if whole is None:
                return None
            values = whole
    if _greatest(values) * _greatest(diff) * len(updates) >= _LIMIT:
        return None
    return values if isinstance(diff, int) and diff == 1 else values * diff


def _whole(array: pa.Array) -> Ints | None:
    """The values as int64, numerics without their point, 0 for NULL; None if they are wider."""
    if pt.is_decimal128(array.type):
        words = np.frombuffer(array.buffers()[1], "<i8").reshape(-1, 2)[array.offset : array.offset + len(array)]
        low: Ints = words[:, 0]
        if array.null_count:
            there = valid(array)
            low, high = np.where(there, low, 0), np.where(there, words[:, 1], 0)
        else:
            high = words[:, 1]
        return low if bool((high == low >> 63).all()) else None
    if not pt.is_signed_integer(array.type):
        return None
    filled = pc.fill_null(array, 0) if array.null_count else array
    numbers: Ints = filled.to_numpy().astype(np.int64, copy=False)
    return numbers


def _grouped(
    keys: Sequence[str], arrays: Sequence[pa.Array], added: Sequence[Ints | int], length: int
) -> tuple[dict[str, pa.Array], list[Ints]]:
    """The keys of the groups, and for each of `added` its sum in every group."""
    if not keys:
        alone = [one * length if isinstance(one, int) else int(one.sum()) for one in added]
        return {}, [np.array([one], np.int64) for one in alone]
    names = [f"key {number}" for number in range(len(keys))]
    columns = dict(zip(names, arrays, strict=True))
    columns |= {f"sum {number}": pa.array(np.ascontiguousarray(one))
                for number, one in enumerate(added) if not isinstance(one, int)}  # fmt: skip
    asked = [(name, "sum") for name in columns if name not in names]
    found = pa.table(columns).group_by(names, use_threads=False).aggregate([*asked, ([], "count_all")])
    found = found.combine_chunks()

    def of(name: str) -> pa.Array:
        return pa.concat_arrays(found.column(name).chunks)

    counts = of("count_all").to_numpy()
    sums = [counts * one if isinstance(one, int) else of(f"sum {number}_sum").to_numpy()
            for number, one in enumerate(added)]  # fmt: skip
    return {key: of(name) for key, name in zip(keys, names, strict=True)}, sums


def tells_apart(kind: pa.DataType) -> bool:
    """Whether Arrow finds two keys equal exactly if they are."""
    return bool(pt.is_integer(kind) or pt.is_date32(kind) or pt.is_boolean(kind) or pt.is_string(kind)
                or pt.is_timestamp(kind) or pt.is_decimal128(kind))  # fmt: skip


def is_one(numbers: Ints) -> bool:
    """Whether all the numbers are the same."""
    return numbers.strides == (0,) or int(numbers.min()) == int(numbers.max())


def _greatest(numbers: Ints | int) -> int:
    return abs(numbers) if isinstance(numbers, int) else most(numbers)
