"""Remembers queries that are ready, so that one that is asked again is not parsed, bound, planned and compiled again.

An entry is found by all that is said: the text, the values of parameters with their types, and the settings of the
session. A query that is asked again with other values is made once more, for all values of its shape
(`statements.shapes`), and found by that.

An entry is used only where everything that it was made from is as it was: every definition of the catalog, what is
temporary and what an open transaction has defined included; the user's functions; which arrangements exist; about how
many rows there are. These are compared, not counted, so no statement can change a definition and leave an entry
behind. What a query means only now (the clock, chance, sequences, PostgreSQL's catalog) is never remembered.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from threading import Lock
from typing import Any, TypeAlias

from halfjoin.catalog.catalog import Catalog
from halfjoin.engine.batch.state import State
from halfjoin.engine.statements.evaluating import filled
from halfjoin.engine.statements.querying import Ready
from halfjoin.engine.statements.shapes import Fill, Shape, Unfit, fill_of, shape_of
from halfjoin.errors import HalfjoinError
from halfjoin.planner.drift import FEW, GROWTH
from halfjoin.planner.plan import ArrangementKey
from halfjoin.sql.expr import Expr
from halfjoin.sql.parse.parameters import Params
from halfjoin.sql.parse.parse import Tree
from halfjoin.sql.unseen import Looked

MOST = 256  # queries
LONGEST = 20_000  # characters of a text, and of its parameters
_ELSEWHERE = {"numbers", "last", "unkept", "asker"}  # what goes on without a definition; no remembered query asks it
_PLAIN = (type(None), bool, int, float, str, bytes, Decimal, dt.date, dt.datetime, dt.time, dt.timedelta, uuid.UUID)

# Makes a query with these parameters, with the time that its text names; None if it cannot be remembered.
Make: TypeAlias = Callable[[Params], tuple[Ready, Expr | None] | None]


@dataclass(frozen=True, slots=True)
class _Kept:
    """A query that is ready, the time that its text names, and what it was made from. `fill`: what makes its plan, if
    it is ready but for values."""

    ready: Ready
    as_of: Expr | None
    fill: Fill | None
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
        self._looked: OrderedDict[Hashable, frozenset[str]] = OrderedDict()  # parameters, by the keys of shapes
        self._asked: OrderedDict[Hashable, None] = OrderedDict()  # shapes with the values that belong to them

    def __len__(self) -> int:
        return len(self._kept)

    def __contains__(self, key: Hashable | None) -> bool:
        return key in self._kept

    def knows(self, key: Hashable | None, shape: Shape | None) -> bool:
        """Whether a query may be found."""
        return key in self._kept or (shape is not None and shape.key in self._looked)

    def find(self, key: Hashable | None, state: State, shape: Shape | None = None) -> tuple[Ready, Expr | None] | None:
        """The query of a key, with the time that its text names; None if it has to be made. `shape`: of the question;
        a query that was asked with other values is found by it."""
        kept = self._find(key, state)
        if kept is not None:
            return kept.ready, kept.as_of
        looked = None if shape is None else self._looked.get(shape.key)
        if key is None or shape is None or looked is None:
            return None
        kept = self._find(shape.narrowed(looked), state)
        if kept is None or kept.fill is None:
            return None
        try:
            plan = kept.fill(shape.constants)
        except HalfjoinError:  # the query that is made for these values says what is wrong with them
            return None
        except Unfit:
            self._note(shape, frozenset(shape.constants))
            return None
        ready = replace(kept.ready, evaluation=filled(state, kept.ready.evaluation, plan))
        self.keep(key, kept.as_of, state, ready)
        return ready, kept.as_of

    def _find(self, key: Hashable | None, state: State) -> _Kept | None:
        with self._lock:
            kept = self._kept.get(key)
            if kept is None:
                return None
            self._kept.move_to_end(key)
        return kept if kept.holds(state) else None

    def keep_shape(self, shape: Shape, state: State, make: Make) -> None:
        """Note that a query has been made for a question. If its shape has been asked before, remember what `make`
        makes for all values of the shape. Values that `make` looks at belong to the shape from now on."""
        looked = self._looked.get(shape.key, frozenset())
        unseen = shape.narrowed(looked)
        if unseen not in self._asked:
            self._note(shape, looked)
            return
        while looked < shape.constants.keys():
            try:
                made = make(shape.hidden(looked))
                fill = None if made is None else fill_of(made[0].evaluation.plan)
            except Looked as problem:
                looked = looked | {problem.parameter}
                continue
            except Exception:  # the query was made for values: what fails expects one, and need not say so as `Looked`
                break
            if made is None or fill is None:
                break
            self._note(shape, looked)
            self.keep(shape.narrowed(looked), made[1], state, made[0], fill)
            return
        self._note(shape, frozenset(shape.constants))

    def _note(self, shape: Shape, looked: frozenset[str]) -> None:
        """Note which values belong to a shape, and that it has been asked."""
        with self._lock:
            self._looked[shape.key] = looked
            self._asked[shape.narrowed(looked)] = None
            for notes in (self._looked, self._asked):
                while len(notes) > MOST:
                    notes.popitem(last=False)

    def keep(
        self, key: Hashable, as_of: Expr | None, state: State, ready: Ready, fill: Fill | None = None
    ) -> None:
        """Remember a query; the one that was asked longest ago is forgotten."""
        evaluation = ready.evaluation
        kept = _Kept(
            ready, as_of, fill, {name: _copied(one) for name, one in _definitions(state.catalog).items()},
            dict(state.functions), {one: _exists(state, one) for one in evaluation.plan.arrangements},
            {name: state.rows(name) for name in evaluation.collections},
        )  # fmt: skip
        with self._lock:
            self._kept[key] = kept
            self._kept.move_to_end(key)
            while len(self._kept) > MOST:
                self._kept.popitem(last=False)


@dataclass(frozen=True, slots=True)
class Asked:
    """A question. `key`: what tells it apart from others. `shape`: the key without values, if it has some. `trees`: its
    statements as syntax trees, with these parameters."""

    key: Hashable
    shape: Shape | None
    trees: Callable[[Params], Sequence[Tree]]


def asked_of(
    sql: str, params: Params, settings: Mapping[str, str], path: Sequence[str],
    trees: Callable[[Params], Sequence[Tree]], types: Sequence[str] = (),
) -> Asked | None:
    """A question that may be remembered; None if it is too long, or has a parameter of an unknown type. `types`: those
    of the parameters that a client has told."""
    if not isinstance(sql, str) or len(sql) > LONGEST:
        return None
    given = list(params.items()) if isinstance(params, Mapping) else params
    if given is not None and not (isinstance(given, list | tuple) and _is_plain(given)):
        return None
    said = f"{isinstance(params, Mapping)} {given!r}"
    if len(said) > LONGEST:
        return None
    others = (sql, tuple(types), tuple(sorted(settings.items())), *path)
    return Asked((said, *others), shape_of(params, *others) if params else None, trees)


def _is_plain(value: object) -> bool:
    """Whether the text of a value tells it apart: 1, 1.0, '1', True, Decimal('1') and Decimal('1.0') are different."""
    return all(map(_is_plain, value)) if isinstance(value, list | tuple) else type(value) in _PLAIN


def _definitions(catalog: Catalog) -> dict[str, Any]:
    return {name: one for name, one in vars(catalog).items() if name not in _ELSEWHERE}


def _copied(one: Any) -> Any:
    """What a definition that comes later does not reach. The definitions themselves never change."""
    return dict(one) if isinstance(one, dict) else one


def _exists(state: State, key: ArrangementKey) -> bool:
    return key.constant is None and state.users(key) is not None and key in state.arranged(key.collection)


def _alike(before: int, now: int) -> bool:
    """Whether a plan for so many rows is good for that many."""
    return now < GROWTH * max(before, FEW) and before < GROWTH * max(now, FEW)
