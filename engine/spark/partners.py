"""The rows that half-joins look up in the files of arrangements, as Spark DataFrames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.types as pt
from pyspark.sql import functions as F

from halfjoin.engine.batch.runner import Held
from halfjoin.engine.linear.tables import Registry
from halfjoin.engine.scalar.arrow_types import arrow_type
from halfjoin.engine.spark.asking import Asked, asked
from halfjoin.engine.spark.frames import mapped, read
from halfjoin.engine.spark.layout import ERROR, Frame, Layout
from halfjoin.engine.spark.prefilter import prefilter
from halfjoin.engine.spark.probing import Resting
from halfjoin.engine.spark.pruning import Range
from halfjoin.engine.spark.streams import Spans
from halfjoin.engine.spark.task_errors import TooHeavy, packed
from halfjoin.engine.spark.tasks import Arrange
from halfjoin.engine.storage.stored_run import StoredRun
from halfjoin.engine.updates.updates import DIFF, TIME, TOO_HEAVY
from halfjoin.planner.plan import HalfJoin, Stage
from halfjoin.sql.expr import Column, columns_of

_TIME2, _DIFF2 = "__time2", "__diff2"  # the time and diff of rows that a half-join finds
_TOO_HEAVY = f"{TOO_HEAVY} {packed(TooHeavy(TOO_HEAVY))}"


@dataclass(frozen=True, slots=True)
class Partners:
    """Looks up the rows of arrangements in a session."""

    session: Any
    held: Held
    registry: Registry

    def joined(
        self, frame: Frame, layout: Layout, stage: Stage, runs: Sequence[StoredRun], spans: Spans, how: str | None
    ) -> tuple[Frame, Layout]:
        """Join the stream's rows with their partners. Failing rows pass unjoined. `how` is a hint for Spark."""
        spec, collection = stage.half_join, stage.half_join.arrangement.collection
        found, kinds = self._arranged(spec, runs, spans)
        found = filtered(found, prefilter(stage.then, {new: f"f{i}" for i, (_, new) in enumerate(spec.fetch)}))
        found = found if how is None else found.hint(how)
        conditions = [
            _equal(f"k{i}", left, f"j{i}", right, null_safe)
            for i, (left, right, null_safe) in enumerate(zip(layout.keys, kinds, spec.null_safe, strict=True))
        ]
        diff = f"coalesce(try_multiply({DIFF}, {_DIFF2}), raise_error('{_TOO_HEAVY}'))"
        if layout.errors:
            failed = f"{ERROR} IS NOT NULL"
            condition = " AND ".join([f"NOT ({failed})", *conditions])
            frame = frame.join(found, F.expr(condition), "left").where(f"{failed} OR {_TIME2} IS NOT NULL")
            diff = f"CASE WHEN {failed} THEN {DIFF} ELSE {diff} END"
        elif conditions:
            frame = frame.join(found, F.expr(" AND ".join(conditions)), "inner")
        else:
            frame = frame.crossJoin(found)
        joined = layout.joined(self.held.schema(collection), spec.fetch)
        held = len(layout.columns)
        columns = [*(f"c{i}" for i in range(held)), *(f"f{i} AS c{held + i}" for i in range(len(spec.fetch)))]
        columns += [*joined.tail[:-2], f"greatest({TIME}, {_TIME2}) AS {TIME}", f"{diff} AS {DIFF}"]
        return frame.selectExpr(*columns), joined

    def asked(self, spec: HalfJoin, runs: Sequence[StoredRun], spans: Spans) -> Asked:
        """The rows of a collection of which a half-join asks whether its keys are present."""
        frame, kinds = self._arranged(spec, runs, spans)
        schema = self.held.schema(spec.arrangement.collection)
        return asked(frame, spec, [schema[name] for name, _ in spec.fetch], kinds, sum(map(len, runs)))

    def _arranged(
        self, spec: HalfJoin, runs: Sequence[StoredRun], spans: Spans
    ) -> tuple[Frame, tuple[pa.DataType, ...]]:
        """The rows to look up: fetched columns as `f0`, ..., the key as `j0`, ..., and the key's types.

        May leave out rows outside the `spans` of columns.
        """
        key, schema = spec.arrangement, self.held.schema(spec.arrangement.collection)
        fetch = [name for name, _ in spec.fetch]
        if key.through is None and all(isinstance(expr, Column) for expr in key.keys):
            names = [expr.name for expr in key.keys if isinstance(expr, Column)]
            frame = read(self.session, runs, schema, [*fetch, *names])
            for name, span in spans.items():
                if any(span.skips(run, name) for run in runs):
                    frame = frame.where(span.condition(F.col(f"c{len(fetch) + names.index(name)}")))
            kinds = tuple(schema[name] for name in names)
        else:
            needed = list(schema) if key.through is not None else sorted(
                {*fetch, *(name for expr in key.keys for name in columns_of(expr))})  # fmt: skip
            layout = Layout(tuple((name, schema[name]) for name in needed))
            kinds = tuple(arrow_type(expr.type) for expr in key.keys)
            keyed = Layout(tuple((name, schema[name]) for name in fetch), kinds)
            frame = mapped(read(self.session, runs, schema, needed), Arrange(layout, keyed, key, self.registry))
        fetched, keys = (f"f{i}" for i in range(len(fetch))), (f"j{i}" for i in range(len(kinds)))
        return frame.toDF(*fetched, *keys, _TIME2, _DIFF2), kinds


def spans_of(streams: Sequence[Resting]) -> Spans:
    """The ranges of the keys that the streams' next half-join looks up, for keys that are columns of its files."""
    found: dict[str, Range] = {}
    join = streams[0].stages[0].half_join if streams[0].stages else None
    if join is None or join.arrangement.through is not None:
        return found
    for probe, key, null_safe in zip(join.probe, join.arrangement.keys, join.null_safe, strict=True):
        if isinstance(probe, Column) and isinstance(key, Column) and not null_safe:
            spans = [span for stream in streams for span in stream.ranges(probe.name)]
            known = [span for span in spans if span is not None]
            if known and len(known) == len(spans):
                found[key.name] = reduce(Range.union, known)
    return found


def _equal(left: str, left_kind: pa.DataType, right: str, right_kind: pa.DataType, null_safe: bool) -> str:
    if left_kind != right_kind and pt.is_integer(left_kind):
        left, right = f"CAST({left} AS bigint)", f"CAST({right} AS bigint)"
    return f"{left} {'<=>' if null_safe else '='} {right}"


def filtered(frame: Frame, condition: Any) -> Frame:
    """The rows for which a condition holds; all of them for None."""
    return frame if condition is None else frame.where(condition)
