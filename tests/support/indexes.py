"""Notes the indexes that are made, so that tests bound the work of a query without a clock."""

from __future__ import annotations

from typing import Any

import pytest

from halfjoin.engine.arrange.run import Run


def indexed_rows(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The rows of each run that gets an index from now on."""
    made, index = list[int](), Run.index

    def noted(self: Run, key: Any, *more: Any) -> Any:
        if key not in self.indexes:
            made.append(len(self))
        return index(self, key, *more)

    monkeypatch.setattr(Run, "index", noted)
    return made
