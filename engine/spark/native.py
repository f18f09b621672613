"""Let Spark's own expressions carry out those steps of an operator that mean exactly the same there.

These steps choose columns, rename them, or make the comparisons of `prefilter`. The first other step ends them, so that
order and errors stay the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import and_

from pyspark.sql import functions as F

from halfjoin.engine.spark.layout import ERROR, Frame, Layout
from halfjoin.engine.spark.prefilter import condition_of
from halfjoin.planner.linear import Extend, Filter, Keep, Linear
from halfjoin.sql.expr import Column


def natively(frame: Frame, layout: Layout, operators: Sequence[Linear]) -> tuple[Frame, Layout, list[Linear]]:
    """Apply the leading steps that Spark can take to a stream without keys. Returns the remaining operators as well."""
    steps = [(step, operator.reports) for operator in operators for step in operator.steps]
    places = {name: f"c{i}" for i, name in enumerate(layout.names)}
    kinds, taken = dict(layout.columns), 0
    for step, _ in steps:
        match step:
            case Keep(names):
                places = {name: places[name] for name in names}
            case Extend(items) if all(isinstance(expr, Column) and expr.type == made.type for made, expr in items):
                found = {made.name: expr.name for made, expr in items if isinstance(expr, Column)}
                kinds |= {new: kinds[name] for new, name in found.items()}
                places |= {new: places[name] for new, name in found.items()}
            case Filter(predicates):
                conditions = [condition_of(expr, places) for expr in predicates]
                if any(condition is None for condition in conditions):
                    break
                passes = reduce(and_, conditions)
                frame = frame.where(F.col(ERROR).isNotNull() | passes if layout.errors else passes)
            case _:
                break
        taken += 1
    columns = [f"{place} AS c{i}" for i, place in enumerate(places.values())]
    after = Layout(tuple((name, kinds[name]) for name in places), (), layout.errors)
    left = [Linear((step,), reports) for step, reports in steps[taken:]]
    return (frame.selectExpr(*columns, *layout.tail) if taken else frame), after, left
