"""Looks groups up: the row kept for each group in a reduce's output, and the rows of each group in its input."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from halfjoin.engine.join.half_join import HalfJoinOperator, compile_half_join
from halfjoin.engine.linear.tables import Registry
from halfjoin.engine.reduce.law import Moments
from halfjoin.engine.updates.updates import MINIMUM, Ints, Updates, constant, indices_of
from halfjoin.planner.plan import ArrangementKey, HalfJoin, Version
from halfjoin.sql.expr import Column

GROUP = "#group"  # the number of a row's group; no SQL column has this name
_KEY = "#key"


def lookup_of(
    key: ArrangementKey, keys: Sequence[Column], fetch: Iterable[str], version: Version, registry: Registry, *,
    adds_up: bool = True,
) -> HalfJoinOperator:  # fmt: skip
    """A half-join of groups with the rows of an arrangement by their keys. NULL is a key like any other.

    A result has the fetched columns under their own names, and `GROUP`. `adds_up`: see `HalfJoinOperator`.
    """
    probes = tuple(Column(f"{_KEY}{number}", column.type) for number, column in enumerate(keys))
    named = tuple((name, name) for name in fetch)
    spec = HalfJoin(0, "groups", key, probes, (True,) * len(probes), version, named)
    return compile_half_join(spec, registry, wanted=frozenset((GROUP, *(name for name, _ in named))), adds_up=adds_up)


def stream_of(moments: Moments) -> Updates:
    """The touched groups as rows that look their keys up."""
    keys = {f"{_KEY}{number}": array for number, array in enumerate(moments.keys.values())}
    columns = {**keys, GROUP: indices_of(np.arange(moments.groups))}
    return Updates(columns, constant(MINIMUM, moments.groups), constant(1, moments.groups))


def group_of(rows: Updates) -> Ints:
    """The number of the group of each row that a lookup found."""
    numbers: Ints = rows.columns[GROUP].to_numpy()
    return numbers
