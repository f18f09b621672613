"""Brokers for the tests of this folder, one pair for all tests of a process."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import pytest

from tests.support.kafka import Brokers, mock_brokers, real_brokers

if not all(map(find_spec, ("confluent_kafka", "fastavro"))):
    collect_ignore_glob = ["test_*.py"]  # without the extra kafka


@pytest.fixture(scope="session")
def mock() -> Iterator[Brokers]:
    with mock_brokers() as found:
        yield found


@pytest.fixture(scope="session")
def real() -> Iterator[Brokers]:
    with real_brokers() as found:
        yield found


@pytest.fixture(params=["mock", "real"])
def brokers(request: pytest.FixtureRequest) -> Brokers:
    """Once the mock brokers, and once the real one if its jars are there."""
    found: Brokers = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A registry in this process, that sources and sinks find."""
    from confluent_kafka.schema_registry import SchemaRegistryClient

    found = SchemaRegistryClient.new_client({"url": "mock://registry"})
    monkeypatch.setattr(SchemaRegistryClient, "new_client", staticmethod(lambda _: found))
    return found
