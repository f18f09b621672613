"""Spans for OpenTelemetry, made when the work is done: what nobody watches costs one look-up in a dict.

Only a program that has imported OpenTelemetry's API can have said where spans go, so nothing is imported here. A span
has the times at which the work began and ended, and the span of the caller as its parent. Errors of exporters are
logged, since the work is done.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterable, Mapping
from time import perf_counter
from typing import Any, NamedTuple

from halfjoin.version import VERSION

_log = logging.getLogger("halfjoin")
API = "opentelemetry.trace"


class Done(NamedTuple):
    """A piece of work: its name, when it began and how long it took (seconds of `perf_counter`), its attributes.

    `error`: the name of the exception that ended it. Its text stays here, since it may tell values of rows.
    """

    name: str
    began: float
    seconds: float
    attributes: Mapping[str, Any]
    error: str | None = None


def watched() -> bool:
    """Whether somebody in this process wants spans: it has imported the API, and has said where they go."""
    if API not in sys.modules:
        return False
    trace = sys.modules[API]
    return not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)


def tell(work: Done, parts: Iterable[Done] = ()) -> None:
    """Make a span of work that has ended, and spans below it of its parts. Ask first whether it is `watched`."""
    trace = sys.modules[API]
    try:
        tracer, shift = trace.get_tracer("halfjoin", VERSION), time.time_ns() - int(perf_counter() * 1e9)
        span = _begun(tracer, work, shift, None)
        if span.is_recording():
            context = trace.set_span_in_context(span)
            for part in parts:
                _end(trace, _begun(tracer, part, shift, context), part, shift)
        _end(trace, span, work, shift)
    except Exception as problem:
        _log.warning("a span could not be given to OpenTelemetry: %s", problem)


def _begun(tracer: Any, work: Done, shift: int, context: Any) -> Any:
    """The span of a piece of work. `shift`: nanoseconds from `perf_counter` to the wall clock."""
    return tracer.start_span(work.name, context, attributes=work.attributes, start_time=shift + int(work.began * 1e9))


def _end(trace: Any, span: Any, work: Done, shift: int) -> None:
    if work.error is not None:
        span.set_attribute("error.type", work.error)
        span.set_status(trace.StatusCode.ERROR)
    span.end(shift + int((work.began + work.seconds) * 1e9))
