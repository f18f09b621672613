"""OpenTelemetry: a span for each batch, node and flush, without rows; nothing where nobody watches."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import halfjoin as hj
from halfjoin.engine.system import telemetry
from tests.support.counting import calls

pytestmark = pytest.mark.skipif(find_spec("opentelemetry") is None, reason="no OpenTelemetry")

SECRET = "Ada Lovelace"
SCHEMA = """
    CREATE TABLE t (a integer PRIMARY KEY, s text NOT NULL);
    CREATE MATERIALIZED VIEW v AS SELECT s, count(*) AS n FROM t GROUP BY s;
    CREATE MATERIALIZED VIEW w AS SELECT v.n FROM v JOIN t ON t.s = v.s
"""


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The exporter of a provider that is there for this test alone."""
    from opentelemetry import trace as api
    from opentelemetry.sdk import trace
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter, provider = InMemorySpanExporter(), trace.TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(api, "get_tracer_provider", lambda: provider)
    sys.modules.pop(telemetry.API, None)
    monkeypatch.setitem(sys.modules, telemetry.API, api)  # afterwards it counts as not imported
    exporter.provider = provider
    yield exporter
    provider.shutdown()


def test_a_batch_is_a_span_with_its_nodes_below(spans: Any) -> None:
    engine = hj.Engine(clock="own")
    engine.execute(SCHEMA)
    spans.clear()
    engine.apply({"t": [{"a": 1, "s": SECRET}, {"a": 2, "s": SECRET}]}, time=7, batch_id="b1")
    *nodes, batch = spans.get_finished_spans()
    assert batch.name == "halfjoin.batch" and batch.status.is_ok is not False
    assert dict(batch.attributes) == {"halfjoin.time": 7, "halfjoin.upper": 8, "halfjoin.runner": "local",
                                      "halfjoin.rows": 2, "halfjoin.tables": ("t",), "halfjoin.batch_id": "b1"}
    assert {node.name for node in nodes} == {"halfjoin.node"}
    rows = {node.attributes["halfjoin.node"]: node.attributes["halfjoin.rows"] for node in nodes}
    assert rows["v"] == 1 and rows["w"] == 1
    for node in nodes:
        assert node.parent.span_id == batch.context.span_id
        assert batch.start_time <= node.start_time <= node.end_time <= batch.end_time


def test_it_is_below_the_span_of_the_caller(spans: Any) -> None:
    engine = hj.Engine(clock="own")
    engine.execute(SCHEMA)
    with spans.provider.get_tracer("mine").start_as_current_span("request") as request:
        engine.apply({"t": [{"a": 1, "s": SECRET}]}, time=1)
    batch = next(span for span in spans.get_finished_spans() if span.name == "halfjoin.batch")
    assert batch.parent.span_id == request.get_span_context().span_id


def test_a_refused_batch_is_an_error_without_its_values(spans: Any) -> None:
    engine = hj.Engine(clock="own")
    engine.execute(SCHEMA)
    engine.apply({"t": [{"a": 1, "s": SECRET}]}, time=1)
    spans.clear()
    with pytest.raises(hj.InvalidRow):
        engine.apply({"t": [{"a": SECRET, "s": SECRET}]}, time=2, batch_id="b2")
    (batch,) = spans.get_finished_spans()
    assert (batch.name, batch.attributes["error.type"], batch.attributes["halfjoin.batch_id"]) == (
        "halfjoin.batch", "InvalidRow", "b2")  # fmt: skip
    assert not batch.status.is_ok and not batch.events and SECRET not in batch.to_json()


def test_statements_and_transactions_with_definitions_are_batches(spans: Any) -> None:
    engine = hj.Engine(clock="own")
    engine.execute("SET TIME = 1; BEGIN; CREATE TABLE u (a integer); INSERT INTO u VALUES (1); COMMIT")
    engine.execute("SET TIME = 2; INSERT INTO u VALUES (2)")
    engine.advance(9)
    found = [span.attributes["halfjoin.rows"] for span in spans.get_finished_spans() if span.name == "halfjoin.batch"]
    assert found == [1, 1, 0]


def test_a_flush_is_a_span(spans: Any, tmp_path: Path) -> None:
    with hj.Engine(tmp_path, clock="own") as engine:
        engine.execute(SCHEMA)
        engine.apply({"t": [{"a": 1, "s": SECRET}]}, time=1)
        engine.flush()
        found = [span for span in spans.get_finished_spans() if span.name == "halfjoin.flush"]
        assert found and found[-1].attributes["halfjoin.collections"] > 0
        assert not any(SECRET in span.to_json() for span in spans.get_finished_spans())


def test_an_exporter_that_fails_harms_no_batch(spans: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from opentelemetry import trace as api

    def broken(*rest: Any) -> Any:
        raise RuntimeError("no exporter")

    engine = hj.Engine(clock="own")
    engine.execute(SCHEMA)
    monkeypatch.setattr(api, "get_tracer", broken)
    assert engine.apply({"t": [{"a": 1, "s": SECRET}]}, time=1).upper == 2


def test_without_it_a_batch_makes_no_further_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    assert calls(telemetry.watched) <= 12  # perhaps the API is imported, but nobody has said where spans go
    monkeypatch.setattr(telemetry, "API", "opentelemetry.nothing")
    assert calls(telemetry.watched) <= 2  # the function itself, and the end of counting
    engine = hj.Engine(clock="own")
    engine.execute(SCHEMA)
    told: list[str] = []
    monkeypatch.setattr("halfjoin.engine.batch.spans.tell", lambda *rest: told.append("a span"))
    engine.apply({"t": [{"a": 1, "s": SECRET}]}, time=1)
    assert told == []


def test_the_engine_does_not_import_it() -> None:
    program = ("import sys, halfjoin as hj; e = hj.Engine(clock='own'); e.execute('CREATE TABLE t (a integer)');"
               "e.apply({'t': [{'a': 1}]}, time=1); print('opentelemetry' in sys.modules)")  # fmt: skip
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout == "False\n"
