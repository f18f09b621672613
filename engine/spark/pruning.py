"""Skip files and row groups that a change cannot meet, by the range of its keys."""

from __future__ import annotations

from dataclasses import dataclass, replace
from operator import ge, le
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt
from pyspark.sql import functions as F

from halfjoin.engine.arrange.part import Part
from halfjoin.engine.spark.prefilter import with_date
from halfjoin.engine.storage.parquet_reader import opened
from halfjoin.engine.storage.stored_run import StoredRun, stored


@dataclass(frozen=True, slots=True)
class Range:
    """The range of an integer or date column's values, from `low` to `high`, as codes."""

    kind: pa.DataType
    low: int
    high: int

    def files(self, part: Part, name: str) -> Part:
        """The part without the files in which the column `name` has no value of the range."""
        run = stored(part)
        if run is None:
            return part
        return replace(run, files=tuple(file for file in run.files if self._meets(_of_file(run, file.name, name))))

    def skips(self, run: StoredRun, name: str) -> bool:
        """Whether some row group of the files has no value of the range, so that a condition saves reading it.

        A condition that saves nothing does harm: Spark compiles new code for each new constant.
        """
        found = [opened(run.place, file.name).bounds(name, run.schema[name]) for file in run.files]
        return any(bool(((low > self.high) | (high < self.low)).any()) for low, high, _ in filter(None, found))

    def condition(self, column: Any) -> Any:
        """A condition on a Spark column for values of the range. Spark skips row groups by it."""
        if pt.is_date32(self.kind):
            return with_date(ge, column, self.low) & with_date(le, column, self.high)
        return (column >= F.lit(self.low)) & (column <= F.lit(self.high))

    def union(self, other: Range) -> Range:
        """The range from the least to the greatest value of both."""
        return Range(self.kind, min(self.low, other.low), max(self.high, other.high))

    def _meets(self, other: tuple[int, int] | None) -> bool:
        return other is None or (other[0] <= self.high and self.low <= other[1])


def range_of(run: StoredRun, name: str, kind: pa.DataType) -> Range | None:
    """The range of a column without its NULLs. None if it is empty, or unknown without reading rows."""
    if not (pt.is_integer(kind) or pt.is_date32(kind)):
        return None
    found = [_of_file(run, file.name, name) for file in run.files]
    known = [one for one in found if one is not None]
    if not known or len(known) < len(found):
        return None
    return Range(kind, min(low for low, _ in known), max(high for _, high in known))


def _of_file(run: StoredRun, file: str, name: str) -> tuple[int, int] | None:
    bounds = opened(run.place, file).bounds(name, run.schema[name])
    return None if bounds is None or not len(bounds[0]) else (int(np.min(bounds[0])), int(np.max(bounds[1])))
