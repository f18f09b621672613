"""Hypothesis profiles: everyday runs try the same examples; `HALFJOIN_FUZZ=n` tries n new examples per test."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

_SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]

settings.register_profile("everyday", max_examples=30, derandomize=True, deadline=None, database=None,
                          suppress_health_check=_SLOW)  # fmt: skip
settings.register_profile("fuzz", max_examples=int(os.environ.get("HALFJOIN_FUZZ", "1000")), deadline=None,
                          print_blob=True, suppress_health_check=_SLOW)  # fmt: skip
settings.load_profile("fuzz" if "HALFJOIN_FUZZ" in os.environ else "everyday")

# Spark's JVMs, here and in the processes that tests start, live for a few jobs: the second compiler and parallel
# collectors cost more than they bring.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """One quiet session for all Spark tests: small data, so few partitions."""
    from halfjoin.engine.spark import runners
    from halfjoin.engine.spark.session import start_session

    runners.NEAR = 0  # frames go to Spark, however few their rows are

    session = start_session()
    session.conf.set("spark.sql.shuffle.partitions", "1")
    session.conf.set("spark.sql.codegen.wholeStage", "false")  # compiling a stage takes longer than its few rows
    yield session
    session.stop()
