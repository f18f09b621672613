"""The view law: at every readable time, a view equals its SQL evaluated from scratch over the tables' contents."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.oracle.choice import Drawn
from tests.oracle.replay import contents_after, run
from tests.oracle.streams import Advance, Apply, Program, Step, random_program
from tests.support.kernels import both_ways  # noqa: F401


@st.composite
def programs(draw: Callable[[st.SearchStrategy[Any]], Any]) -> Program:
    return random_program(Drawn(draw))


@settings(max_examples=settings().max_examples * 3)
@given(programs())
def test_view_law(program: Program) -> None:
    run(program)


@given(programs(), st.randoms(use_true_random=False))
def test_any_split_and_order_gives_the_same_answer(
    program: Program, random: Any
) -> None:
    updates = program.updates
    end = Advance(max((time for _, (_, time, _) in updates), default=0) + 25)
    whole: dict[str, list[Any]] = {}
    for table, update in updates:
        whole.setdefault(table, []).append(update)
    # The keyed table's updates stay in order, since a key must hold at every step; the others come in any order.
    keyed = [u for u in updates if u[0] == "a"]
    free = [u for u in updates if u[0] != "a"]
    random.shuffle(free)
    steps: list[Step] = []
    while keyed or free:
        batch: dict[str, list[Any]] = {}
        for _ in range(random.randint(1, 5)):
            source = keyed if keyed and (not free or random.random() < 0.4) else free
            if source:
                table, update = source.pop(0)
                batch.setdefault(table, []).append(update)
        steps.append(Apply(batch, close=False))
    at_once: list[Step] = [Apply(whole, close=False)] if whole else []
    assert contents_after(program, [*steps, end]) == contents_after(program, [*at_once, end])
