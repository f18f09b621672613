"""Remembers queries that are ready, so that one that is asked again is not parsed, bound, planned and compiled again.

An entry is found by all that is said: the text, the values of parameters with their types, and the settings of the
session. It is used only where everything that it was made from is as it was: every definition of the catalog, what is
temporary and what an open transaction has defined included; the user's functions; which arrangements exist; about how
many rows there are. These are compared, not counted, so no statement can change a definition and leave an entry
behind. What a query means only now (the clock, chance, sequences, PostgreSQL's catalog) is never remembered.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from threading import Lock
from typing import Any

from halfjoin.catalog.catalog import Catalog
from halfjoin.engine.batch.state import State
from halfjoin.engine.statements.querying import Ready
from halfjoin.planner.drift import FEW, GROWTH
from halfjoin.planner.plan import ArrangementKey
from halfjoin.sql.expr import Expr
from halfjoin.sql.parse.parameters import Params

MOST = 256  # queries
LONGEST = 20_000  # characters of a text, and of its parameters
_ELSEWHERE = {"numbers", "last", "unkept", "asker"}  # what goes on without a definition; no remembered query asks it
_PLAIN = (type(None), bool, int, float, str, bytes, Decimal, dt.date, dt.datetime, dt.time, dt.timedelta, uuid.UUID)


@dataclass(frozen=True, slots=True)
class _Kept:
    """A query that is ready, the time that its text names, and what it was made from."""

    ready: Ready
    as_of: Expr | None
    definitions: Mapping[str, Any]
    functions: Mapping[str, Any]
    arrangements: Mapping[ArrangementKey, bool]
    rows: Mapping[str, int]

    def holds(self, state: State) -> bool:
        """Whether the query would be made the same again."""
        return (
            _definitions(state.catalog) == self.definitions and state.functions == self.functions
            and all(_exists(state, key) == there for key, there in self.arrangements.items())
            and all(state.has(name) and _alike(rows, state.rows(name)) for name, rows in self.rows.items())
        )  # fmt: skip


class Remembered:
    """The queries of an engine that were asked last. All its sessions share them, from any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept: OrderedDict[Hashable, _Kept] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def __contains__(self, key: Hashable | None) -> bool:
        return key in self._kept

    def find(self, key: Hashable | None, state: State) -> tuple[Ready, Expr | None] | None:
        """The query of a key, with the time that its text names; None if it has to be made."""
        with self._lock:
            kept = self._kept.get(key)
            if kept is None:
                return None
            self._kept.move_to_end(key)
        return (kept.ready, kept.as_of) if kept.holds(state) else None

    def keep(self, key: Hashable, as_of: Expr | None, state: State, ready: Ready) -> None:
        """Remember a query; the one that was asked longest ago is forgotten."""
        evaluation = ready.evaluation
        kept = _Kept(
            ready, as_of, {name: _copied(one) for name, one in _definitions(state.catalog).items()},
            dict(state.functions), {one: _exists(state, one) for one in evaluation.plan.arrangements},
            {name: state.rows(name) for name in evaluation.collections},
        )  # fmt: skip
        with self._lock:
            self._kept[key] = kept
            self._kept.move_to_end(key)
            while len(self._kept) > MOST:
                self._kept.popitem(last=False)


def key_of(
    sql: str, params: Params, settings: Mapping[str, str], path: Sequence[str], types: Hashable = None
) -> Hashable | None:
    """What tells a question apart from others; None if it is too long, or has a parameter of an unknown type. `types`:
    what says how `params` are read, if they are texts."""
    if not isinstance(sql, str) or len(sql) > LONGEST:
        return None
    given = list(params.items()) if isinstance(params, Mapping) else params
    if given is not None and not (isinstance(given, list | tuple) and _is_plain(given)):
        return None
    said = f"{isinstance(params, Mapping)} {given!r}"
    return (sql, said, types, tuple(sorted(settings.items())), *path) if len(said) <= LONGEST else None


def _is_plain(value: object) -> bool:
    """Whether the text of a value tells it apart: 1, 1.0, '1', True, Decimal('1') and Decimal('1.0') are different."""
    return all(map(_is_plain, value)) if isinstance(value, list | tuple) else type(value) in _PLAIN


def _definitions(catalog: Catalog) -> dict[str, Any]:
    return {name: one for name, one in vars(catalog).items() if name not in _ELSEWHERE}


def _copied(one: Any) -> Any:
    """What a definition that comes later does not reach. The definitions themselves never change."""
    return dict(one) if isinstance(one, dict) else one


def _exists(state: State, key: ArrangementKey) -> bool:
    return key.constant is None and state.users(key) is not None


def _alike(before: int, now: int) -> bool:
    """Whether a plan for so many rows is good for that many."""
    return now < GROWTH * max(before, FEW) and before < GROWTH * max(now, FEW)
