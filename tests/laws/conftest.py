"""The random histories of laws are short, so small runs are merged at once there; elsewhere they wait for others."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from halfjoin.engine.arrange import collection


@pytest.fixture(autouse=True, scope="module")
def merged_at_once() -> Iterator[None]:
    """Merge small runs as soon as there are two."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(collection, "WAITING", 2)
        yield
