"""Remembers queries and changes that are ready, so that one that is asked again is not parsed, bound, planned and
compiled again.

An entry is found by all that is said: the text, the values of parameters with their types, and the settings of the
session. A query that is asked again with other values, or other constants in its text, is made once for all values of
its shape (`statements.shapes`), and found by that.

An entry is used only where everything that it was made from is as it was: every definition of the catalog, what is
temporary and what an open transaction has defined included; the user's functions; which arrangements exist; about how
many rows there are. These are compared, not counted, so no statement can change a definition and leave an entry
behind. What a query means only now (the clock, chance, sequences, PostgreSQL's catalog) is never remembered.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any, Generic, TypeAlias, TypeVar

from halfjoin.catalog.catalog import Catalog
from halfjoin.engine.batch.state import State
from halfjoin.engine.statements.asked import Asked
from halfjoin.engine.statements.changing import ReadyChange
from halfjoin.engine.statements.describing import Described
from halfjoin.engine.statements.evaluating import filled
from halfjoin.engine.statements.querying import Ready
from halfjoin.engine.statements.shapes import Fill, Shape, Unfit, fill_of
from halfjoin.errors import HalfjoinError
from halfjoin.planner.drift import FEW, GROWTH
from halfjoin.planner.plan import ArrangementKey
from halfjoin.sql.expr import Expr
from halfjoin.sql.parse.parameters import Params
from halfjoin.sql.unseen import Looked

MOST = 256  # queries
TRIES = 16  # to make a query for all values: each may find one that has to be looked at
_ELSEWHERE = {"numbers", "last", "unkept", "asker"}  # what goes on without a definition; no remembered query asks it
T = TypeVar("T")
R = TypeVar("R", Ready, ReadyChange)

# Makes the query of a shape with these parameters, with the time that its text names; None if it cannot be remembered.
Make: TypeAlias = Callable[[Shape, Params], tuple[R, Expr | None] | None]


@dataclass(frozen=True, slots=True)
class _MadeFrom:
    """What a query was made from, besides the question."""

    definitions: Mapping[str, Any]
    functions: Mapping[str, Any]
    arrangements: Mapping[ArrangementKey, bool]
    rows: Mapping[str, int]

    @classmethod
    def now(cls, state: State, ready: Ready | ReadyChange) -> _MadeFrom:
        """What a query is made from that is ready."""
        return cls(_copies(state.catalog), dict(state.functions),
                   {one: _exists(state, one) for one in ready.evaluation.plan.arrangements},
                   {name: state.rows(name) for name in ready.evaluation.collections})  # fmt: skip

    def holds(self, state: State) -> bool:
        """Whether the query would be made the same again."""
        return (
            _definitions(state.catalog) == self.definitions and state.functions == self.functions
            and all(_exists(state, key) == there for key, there in self.arrangements.items())
            and all(state.has(name) and _alike(rows, state.rows(name)) for name, rows in self.rows.items())
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Kept(Generic[R]):
    """A query that is ready, the time that its text names unless the question has it, and what it was made from. `key`:
    what it is found by. `fill`: what makes its plan, if it is ready but for values."""

    key: Hashable
    ready: R
    as_of: Expr | None
    made_from: _MadeFrom
    fill: Fill | None = None


class Remembered(Generic[R]):
    """The queries, or the changes, of an engine that were asked last. All its sessions share them, from any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept: OrderedDict[Hashable, _Kept[R]] = OrderedDict()
        self._looked: OrderedDict[Hashable, frozenset[str]] = OrderedDict()  # parameters, by the keys of shapes
        self._asked: OrderedDict[Hashable, _MadeFrom] = OrderedDict()  # by shapes with the values that belong to them
        self._described: OrderedDict[Hashable, tuple[Mapping[str, Any], Described]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def __contains__(self, asked: Asked | None) -> bool:
        return asked is not None and asked.key in self._kept

    def knows(self, asked: Asked | None) -> bool:
        """Whether a query may be found."""
        return asked is not None and (
            asked.key in self._kept or (asked.shape is not None and asked.shape.key in self._looked)
        )

    def find(self, asked: Asked | None, state: State, make: Make[R]) -> tuple[R, Expr | None] | None:
        """The query of a question, with the time that its text names; None if it has to be made.

        A question that was asked with other values is answered by what `make` makes once for all values of its shape.
        """
        if asked is None:
            return None
        kept = self._find(asked.key, state)
        if kept is not None:
            return kept.ready, asked.as_of or kept.as_of
        shape = asked.shape
        looked = None if shape is None else self._get(self._looked, shape.key)
        if shape is None or looked is None or looked >= shape.constants.keys():
            return None
        kept = self._find(shape.narrowed(looked), state) or self._made(shape, looked, state, make)
        if kept is None or kept.fill is None:
            return None
        try:
            plan = kept.fill(shape.constants)
        except (HalfjoinError, Unfit):  # the query that is made for these values says what is wrong with them
            return None
        ready = replace(kept.ready, evaluation=filled(state, kept.ready.evaluation, plan))
        if kept.ready.evaluation.flows.keys() < ready.evaluation.flows.keys():  # the next values take what has none
            self._keep(replace(kept, ready=ready))
        self._keep(_Kept(asked.key, ready, kept.as_of, kept.made_from))
        return ready, asked.as_of or kept.as_of

    def _find(self, key: Hashable, state: State) -> _Kept[R] | None:
        kept = self._get(self._kept, key)
        return kept if kept is not None and kept.made_from.holds(state) else None

    def _made(self, shape: Shape, looked: frozenset[str], state: State, make: Make[R]) -> _Kept[R] | None:
        """What `make` makes for all values of a shape that has been asked before, and nothing has changed since. Values
        that `make` looks at belong to the shape from now on."""
        made_from = self._get(self._asked, shape.narrowed(looked))
        if made_from is None or not made_from.holds(state):
            return None
        for _ in range(TRIES):
            if not looked < shape.constants.keys():
                break
            try:
                made = make(shape, shape.hidden(looked))
                fill = None if made is None else fill_of(made[0].evaluation.plan)
            except Looked as problem:
                looked = looked | {problem.parameter}
                continue
            except Exception:  # the query was made for values: what fails expects one, and need not say so as `Looked`
                break
            if made is None or fill is None:
                break
            kept = _Kept(shape.narrowed(looked), *made, _MadeFrom.now(state, made[0]), fill)
            self._note(shape, looked, kept.made_from)
            self._keep(kept)
            return kept
        self._note(shape, frozenset(shape.constants), made_from)
        return None

    def _note(self, shape: Shape, looked: frozenset[str], made_from: _MadeFrom) -> None:
        """Note which values belong to a shape, and that it has been asked."""
        with self._lock:
            _put(self._looked, shape.key, looked)
            _put(self._asked, shape.narrowed(looked), made_from)

    def keep(self, asked: Asked, as_of: Expr | None, state: State, ready: R) -> None:
        """Remember a query that has been made for a question; the one that was asked longest ago is forgotten."""
        made_from, shape = _MadeFrom.now(state, ready), asked.shape
        self._keep(_Kept(asked.key, ready, as_of, made_from))
        looked = None if shape is None else self._get(self._looked, shape.key) or frozenset()
        if shape is not None and looked is not None and looked < shape.constants.keys():
            self._note(shape, looked, made_from)

    def described(self, key: Hashable, catalog: Catalog, make: Callable[[], Described]) -> Described:
        """What a statement will answer, which follows from the definitions; `make` tells it if it is not known."""
        known = self._get(self._described, key)
        if known is None or known[0] != _definitions(catalog):
            known = _copies(catalog), make()
            with self._lock:
                _put(self._described, key, known)
        return known[1]

    def _keep(self, kept: _Kept[R]) -> None:
        with self._lock:
            _put(self._kept, kept.key, kept)

    def _get(self, notes: OrderedDict[Hashable, T], key: Hashable) -> T | None:
        """What is noted under a key; it is now the last that was asked."""
        with self._lock:
            if (found := notes.get(key)) is not None:
                notes.move_to_end(key)
        return found


def _put(notes: OrderedDict[Hashable, T], key: Hashable, note: T) -> None:
    """Note something as the last that was asked; the one that was asked longest ago is forgotten."""
    notes[key] = note
    notes.move_to_end(key)
    while len(notes) > MOST:
        notes.popitem(last=False)


def _definitions(catalog: Catalog) -> dict[str, Any]:
    return {name: one for name, one in vars(catalog).items() if name not in _ELSEWHERE}


def _copies(catalog: Catalog) -> dict[str, Any]:
    """The definitions, such that one that comes later does not reach them. The definitions themselves never change."""
    return {name: dict(one) if isinstance(one, dict) else one for name, one in _definitions(catalog).items()}


def _exists(state: State, key: ArrangementKey) -> bool:
    return key.constant is None and state.users(key) is not None and key in state.arranged(key.collection)


def _alike(before: int, now: int) -> bool:
    """Whether a plan for so many rows is good for that many."""
    return now < GROWTH * max(before, FEW) and before < GROWTH * max(now, FEW)
