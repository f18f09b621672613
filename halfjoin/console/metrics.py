"""`/metrics`: what an engine holds and does, for Prometheus."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from halfjoin.console.watch import Look
from halfjoin.engine.batch.activity import BOUNDS


def metrics(look: Look) -> bytes:
    """A look at an engine in Prometheus' text format."""
    registry = CollectorRegistry()
    registry.register(_Collected(look))
    return bytes(generate_latest(registry))


class _Collected:
    """The metrics of one look, as prometheus-client collects them."""

    def __init__(self, look: Look) -> None:
        self._look = look

    def collect(self) -> Iterator[Metric]:
        stats, activity = self._look.stats, self._look.activity
        yield CounterMetricFamily("halfjoin_batches", "Batches since the engine was opened", value=activity.batches)
        yield CounterMetricFamily("halfjoin_rows", "Changed rows of tables since the engine was opened",
                                  value=activity.rows)  # fmt: skip
        yield GaugeMetricFamily("halfjoin_upper", "The least open time", value=stats.upper)
        yield GaugeMetricFamily("halfjoin_memory_bytes", "Bytes of rows and indexes in memory", value=stats.memory)
        if stats.budget is not None:
            yield GaugeMetricFamily("halfjoin_budget_bytes", "The most that memory may hold", value=stats.budget)
        yield self._seconds()
        yield self._gauge("halfjoin_collection_updates", "Updates of a table, view or node", ("name", "kind"),
                          [((one.name, one.kind), one.updates) for one in stats.collections])  # fmt: skip
        yield self._gauge("halfjoin_collection_bytes", "Bytes in memory of a table, view or node", ("name", "kind"),
                          [((one.name, one.kind), one.row_bytes + one.index_bytes)
                           for one in stats.collections])  # fmt: skip
        yield self._gauge("halfjoin_view_errors", "Rows for which a view's expression fails", ("name",),
                          [((one.name,), one.errors) for one in stats.collections if one.kind != "table"])  # fmt: skip
        yield self._gauge("halfjoin_sink_waiting_batches", "Batches that a sink has not written yet", ("name",),
                          [((one.name,), one.waiting) for one in stats.sinks])  # fmt: skip
        yield self._gauge("halfjoin_source_rows", "Rows that a source has given", ("name", "kind"),
                          [((one.name, one.kind), one.rows) for one in stats.sources])  # fmt: skip
        yield self._gauge("halfjoin_source_bad_records", "Records of a source that could not be read", ("name", "kind"),
                          [((one.name, one.kind), one.bad) for one in stats.sources])  # fmt: skip
        yield self._gauge("halfjoin_source_lag", "How far a source is behind, in units of its kind",
                          ("name", "kind", "unit"), [((one.name, one.kind, one.unit or ""), one.lag)
                                                     for one in stats.sources if one.lag is not None])  # fmt: skip
        yield self._gauge("halfjoin_source_failing", "1 for a source that cannot be read now", ("name", "kind"),
                          [((one.name, one.kind), one.state == "failing") for one in stats.sources])  # fmt: skip

    def _seconds(self) -> HistogramMetricFamily:
        """How long batches took. The counts only grow, as Prometheus' rates need it."""
        activity = self._look.activity
        counts = zip([*map(str, BOUNDS), "+Inf"], accumulate(activity.within), strict=True)
        return HistogramMetricFamily("halfjoin_batch_seconds", "Seconds of a batch", [*counts],
                                     sum_value=activity.seconds)  # fmt: skip

    def _gauge(
        self, name: str, words: str, labels: tuple[str, ...], values: list[tuple[tuple[str, ...], float]]
    ) -> GaugeMetricFamily:
        made = GaugeMetricFamily(name, words, labels=labels)
        for of, value in values:
            made.add_metric(of, value)
        return made
