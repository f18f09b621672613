"""A filter copies the columns that the steps after it read, and no others; numbers that stand for all rows stay one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from halfjoin.engine.kernels import joining, native
from halfjoin.engine.linear.needed import needed_after
from halfjoin.engine.linear.operators import compile_linear
from halfjoin.engine.updates.updates import Updates, constant
from halfjoin.planner.linear import Extend, Filter, Keep, Linear, Reports
from halfjoin.sql.expr import Call, Column, Literal
from halfjoin.sql.types import BIGINT, BOOLEAN

A, B, C, D = (Column(name, BIGINT) for name in "abcd")
BELOW = Filter((Call("<", (A, Literal(5, BIGINT)), BOOLEAN),))
NULLS = Filter((Call("is null", (A,), BOOLEAN),))
COMPUTED = Extend(((D, Call("coalesce", (B, Literal(0, BIGINT)), BIGINT)),))


def test_what_later_steps_read_is_needed() -> None:
    steps = (BELOW, COMPUTED, Keep(("d",)))
    assert needed_after(steps, None) == [{"b"}, {"d"}, None]
    assert needed_after(steps, Reports(0, ("c",))) == [{"b", "c"}, {"c", "d"}, None]
    assert needed_after(steps, Reports(0, ("=groups.k",))) == [None] * 3  # an error shows the keys of its group
    assert needed_after((BELOW, NULLS, Keep(("c",))), None) == [{"a", "c"}, {"c"}, None]
    assert needed_after((BELOW, COMPUTED), None) == [None, None]


@pytest.mark.parametrize("filter", [BELOW, NULLS, Filter((*BELOW.predicates, *NULLS.predicates))])
def test_only_needed_columns_are_copied(filter: Filter, monkeypatch: pytest.MonkeyPatch) -> None:
    operator = compile_linear(Linear((filter, COMPUTED, Keep(("d",)))), {})
    rows = Updates({name: pa.array([*range(9), None]) for name in "abc"}, constant(3, 10), np.arange(10))
    with native.used(False):
        slow = operator(rows, []).table(changes=True)
    if native.BUILT:
        copied, kernel = list[int](), joining.filtered

        def counted(columns: list[pa.Array], *args: Any) -> Any:
            copied.append(len(columns))
            return kernel(columns, *args)

        monkeypatch.setattr(joining, "filtered", counted)
        with native.used(True):
            fast = operator(rows, [])
        assert fast.table(changes=True).equals(slow)
        assert copied[-1] == 1 and fast.time.strides == (0,)
