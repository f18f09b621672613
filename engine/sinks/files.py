"""The files of a sink's table: which may hold a row, what remains of one without some rows, and which to merge.

The files of one commit are a group; each has its own range of the sorting columns. The sink merges groups so that there
are few. Then few files may hold a row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfjoin.engine.updates.consolidate import cancelled
from halfjoin.engine.updates.updates import Ints, Mask, Positions, Updates, concat


@dataclass(frozen=True, slots=True)
class Group:
    """The files of one commit, as positions in the table's list of files."""

    files: list[int] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)

    @property
    def rows(self) -> int:
        """The number of rows in all its files."""
        return sum(self.counts)


def groups(files: pa.Table) -> list[Group]:
    """The groups. Files whose names have the same text before the last random part belong together."""
    found: dict[str, Group] = {}
    for number, rows in enumerate(files["num_records"].to_pylist()):
        group = found.setdefault(group_of(files["path"][number].as_py()), Group())
        group.files.append(number)
        group.counts.append(rows)
    return list(found.values())


def group_of(name: str) -> str:
    """The beginning of a file's name, which is the same for its whole group."""
    return name[: -len("-01234567-89ab-cdef-0123-456789abcdef.parquet")]


def holders(files: pa.Table, rows: Updates) -> Iterator[tuple[int, Positions]]:
    """The files that may hold some of the rows, by the bounds of their columns, and the positions of those rows."""
    bounds = [
        _Bounds.of(column, *(files[f"{part}.{name}"].combine_chunks() for part in ("min", "max", "null_count")))
        for name, column in rows.columns.items()
        if f"min.{name}" in files.column_names and files[f"min.{name}"].null_count < len(files)
    ]
    for number in range(len(files)):
        mask = np.ones(len(rows), np.bool_)
        for bound in bounds:
            mask &= bound.may_hold(number)
            if not mask.any():
                break
        else:
            yield number, np.flatnonzero(mask)


@dataclass(frozen=True, slots=True)
class _Bounds:
    """One column: wanted values and files' bounds, as numbers in the same order. Unknown bounds admit all values."""

    values: Ints
    absent: Mask  # NULLs among the values
    low: Ints
    high: Ints
    nulls: Mask  # files that may hold NULLs

    @classmethod
    def of(cls, values: pa.Array, low: pa.Array, high: pa.Array, nulls: pa.Array) -> _Bounds:
        kind, count, files = values.type, len(values), len(low)
        ranks = pc.rank(pa.concat_arrays([values, low.cast(kind), high.cast(kind)]), tiebreaker="dense")
        numbers = ranks.to_numpy().astype(np.int64)
        least = np.where(_mask(low.is_null()), -1, numbers[count : count + files])
        greatest = np.where(_mask(high.is_null()), np.iinfo(np.int64).max, numbers[count + files :])
        return cls(numbers[:count], _mask(values.is_null()), least, greatest, _mask(pc.fill_null(nulls, 1)) > 0)

    def may_hold(self, file: int) -> Mask:
        """For each value, whether the file may hold it."""
        inside = (self.low[file] <= self.values) & (self.values <= self.high[file])
        held: Mask = np.where(self.absent, self.nulls[file], inside)
        return held


def _mask(array: pa.Array) -> Mask:
    values: Mask = array.to_numpy(zero_copy_only=False)
    return values


def without(content: Updates, gone: Updates) -> tuple[Updates, Ints]:
    """A file's rows after some deletions, and how many copies of each deleted row were missing (as negative numbers).

    `gone` has distinct rows with negative diffs. One deletion removes one copy. The remaining rows keep their order,
    but equal rows may move together.
    """
    both = concat([gone, content])  # the first of equal rows stands for all, so a missing row shows up among `gone`
    positions, diffs = cancelled(both, by_time=False)
    missing = np.zeros(len(gone), np.int64)
    short = diffs < 0
    missing[positions[short]] = diffs[short]
    left = both.take(np.repeat(positions[~short], diffs[~short]))
    return left, missing
