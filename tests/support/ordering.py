"""Lets reduces read even the smallest groups in order, which they do only with groups of hundreds of rows."""

from __future__ import annotations

import pytest

from halfjoin.engine.reduce import around, front, regions


def read_in_order(patch: pytest.MonkeyPatch, small: bool) -> None:
    """If `small`, no group is looked up whole because it is small."""
    if small:
        patch.setattr(front, "LARGE", 2)
        patch.setattr(front, "_SEARCH", 0)
        patch.setattr(front, "_SPARE", 0)
        patch.setattr(around, "_SEARCH", 0)
        patch.setattr(around, "_SPARE", 1)
        patch.setattr(regions, "LARGE", 1)
        patch.setattr(regions, "_SPARE", 0)
