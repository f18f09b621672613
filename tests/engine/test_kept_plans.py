"""A new plan that the journal has kept is followed before the next batch, also where there was no memory to do so."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

import halfjoin as hj
from halfjoin.engine.batch.commit import Entry
from halfjoin.engine.storage.store import Nowhere


def test_what_a_batch_could_not_finish_after_it_is_finished_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    followed = list[bool]()

    def follow() -> None:
        followed.append(True)
        if len(followed) == 1:
            raise MemoryError

    def reconsider(_: Any, keep: Callable[[Callable[[], None]], None]) -> None:
        with suppress(MemoryError):
            keep(lambda: None)

    with hj.Engine() as engine:
        engine.execute("CREATE TABLE t (k bigint)")
        assert engine._writer is not None
        monkeypatch.setattr(engine, "_writer", replace(engine._writer, reconsider=reconsider))
        with monkeypatch.context() as patch:
            patch.setattr(Nowhere, "define", lambda *_: Entry(lambda: None, lambda: True, follow))
            engine.apply({"t": [{"k": 1}]}, time=1)
        assert len(followed) == 2 and engine._commits._under_way is None
        assert engine.apply({"t": [{"k": 2}]}, time=2).upper == 3 and engine.read("t").num_rows == 2
