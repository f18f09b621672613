"""The law of partial indexes: one may lack the entry of a row that no user of its arrangement wants; never another.

Here an index of a single row counts as large, so every one is partial that may be.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfjoin.engine.arrange import partial
from tests.oracle.choice import Drawn
from tests.oracle.replay import run
from tests.oracle.streams import Program, random_program
from tests.support.kernels import both_ways  # noqa: F401


@pytest.fixture(autouse=True)
def no_index_is_too_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partial, "LARGE", 0)


@st.composite
def programs(draw: Callable[[st.SearchStrategy[Any]], Any]) -> Program:
    return random_program(Drawn(draw), most=12)


@given(programs())
def test_view_law_with_partial_indexes(program: Program) -> None:
    run(program)
