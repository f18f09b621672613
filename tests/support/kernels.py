"""Runs the tests of a file twice: with native kernels, and without. Import `both_ways` into the file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from halfjoin.engine.kernels import native


@pytest.fixture(autouse=True, scope="module", params=[True, False], ids=["kernels", "fallback"])
def both_ways(request: pytest.FixtureRequest) -> Iterator[None]:
    """Use kernels, or not."""
    if request.param and not native.BUILT:
        pytest.skip("the native kernels are not built")
    with native.used(request.param):
        yield
