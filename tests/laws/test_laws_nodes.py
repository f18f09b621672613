"""The view law for views with nodes, also over reopened engines and with little memory."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import halfjoin as hj
from halfjoin.planner import regions
from tests.oracle.choice import Drawn
from tests.oracle.replay import Replay, run
from tests.oracle.streams import Program, random_program
from tests.oracle.unions import union_view
from tests.storage.test_storage_law import DurableReplay
from tests.support.seeds import some


@pytest.fixture(autouse=True, scope="module")
def _small() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(regions, "MOST_JOINS", 1)  # two unions that are joined are enough for a node
        yield


@st.composite
def programs(draw: Callable[[st.SearchStrategy[Any]], Any]) -> Program:
    return random_program(Drawn(draw), view=union_view)


@given(programs())
def test_view_law_of_views_with_nodes(program: Program) -> None:
    run(program)


@settings(max_examples=max(some(10), settings().max_examples // 2))
@given(programs())
def test_view_law_of_reopened_nodes(program: Program) -> None:
    with tempfile.TemporaryDirectory() as folder:
        replay = DurableReplay(program.retain, Path(folder) / "w", seed=len(program.steps))
        _run_durable(replay, program, Path(folder) / "w", None)


@settings(max_examples=max(some(5), settings().max_examples // 4))
@given(programs())
def test_view_law_of_nodes_in_files(program: Program) -> None:
    with tempfile.TemporaryDirectory() as folder:
        replay = Replay(program.retain, Path(folder) / "w")
        replay.engine.close()
        replay.engine = hj.Engine(Path(folder) / "w", memory=1)
        _run_durable(replay, program, Path(folder) / "w", 1)


def _run_durable(replay: Replay, program: Program, folder: Path, memory: int | None) -> None:
    for step in program.steps:
        replay.step(step)
        replay.check_now()
    replay.engine.close()
    replay.engine = hj.Engine(folder, memory=memory)
    replay.check_now()
    replay.check_all()
    replay.engine.close()


def test_random_views_have_nodes() -> None:
    found = set[int]()

    @settings(database=None)
    @given(programs())
    def count(program: Program) -> None:
        with_nodes = Replay(program.retain)
        for step in program.steps:
            with_nodes.step(step)
        found.add(sum(one.kind == "node" for one in with_nodes.engine.stats().collections))

    count()
    assert max(found) > 2
