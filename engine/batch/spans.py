"""The spans of a batch: one for the batch, and below it one for each view and node that was due. They hold no rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from time import perf_counter

from halfjoin.engine.batch.activity import Work
from halfjoin.engine.batch.applied import Applied
from halfjoin.engine.system.telemetry import Done, tell

BATCH, NODE = "halfjoin.batch", "halfjoin.node"


def tell_batch(
    applied: Applied, started: float, tables: Mapping[str, int], nodes: Mapping[str, Work], batch_id: str | None
) -> None:
    """Tell of a batch that is done. `tables`: how many updates each table got."""
    attributes = {"halfjoin.time": applied.time, "halfjoin.upper": applied.upper, "halfjoin.runner": applied.runner,
                  "halfjoin.rows": sum(tables.values()), "halfjoin.tables": sorted(tables)}  # fmt: skip
    attributes |= {} if batch_id is None else {"halfjoin.batch_id": batch_id}
    tell(Done(BATCH, started, applied.seconds, attributes), _parts(nodes))


def tell_refused(started: float, error: BaseException, batch_id: str | None) -> None:
    """Tell of a batch that was refused or interrupted."""
    attributes = {} if batch_id is None else {"halfjoin.batch_id": batch_id}
    tell(Done(BATCH, started, perf_counter() - started, attributes, type(error).__name__))


def _parts(nodes: Mapping[str, Work]) -> Iterator[Done]:
    for name, work in nodes.items():
        yield Done(NODE, work.began, work.seconds, {"halfjoin.node": name, "halfjoin.rows": work.rows})
