"""Nexmark's queries are maintained right: on few events, against DuckDB."""

from __future__ import annotations

import pytest

from tests.benchmarks.nexmark.__main__ import batches, check, loaded, maintained, recomputed
from tests.benchmarks.nexmark.queries import QUERIES


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_of_nexmark_is_duckdbs_answer(name: str) -> None:
    given = batches(3_000, 700)
    engine, *_ = maintained(QUERIES[name], given)
    with engine:
        check(name, engine, recomputed(loaded(given), QUERIES[name])[0])
