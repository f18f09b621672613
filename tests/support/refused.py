"""Holds our refusals against PostgreSQL's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import halfjoin as hj


def refused_alike(sql: str, postgres: Any, run: Callable[[str], Any]) -> None:
    """Both refuse a statement, with the same SQLSTATE. `run`: a method of an engine, with what PostgreSQL has too."""
    from psycopg import Error

    with pytest.raises(Error) as theirs:
        postgres.execute(sql)
    with pytest.raises(hj.HalfjoinError) as ours:
        run(sql)
    assert ours.value.sqlstate == theirs.value.sqlstate
