"""Estimates sizes from what is known of the collections, for choosing join orders and for EXPLAIN.

The estimates are rough on purpose: a plan outlives the sizes that it was made for. A unique key finds one row. An
existing index knows its number of distinct keys. A probe by another input's unique key has as many values as that input
has rows. Otherwise the guess at the number of distinct values is the square root of the number of rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from halfjoin.planner.facts import Facts
from halfjoin.planner.linear import Filter, Linear, Temporal
from halfjoin.planner.plan import ArrangementKey, Constant
from halfjoin.planner.series import about_rows
from halfjoin.sql.expr import Call, Cast, Column, Expr, Literal

UNKNOWN_ROWS = 1000.0  # guess for an empty collection; from this many rows on, distinct keys are measured
_ROWS_PER_PARENT = 10.0  # rows that refer to one row of another collection, if sizes are unknown
_SELECTIVITY = {"=": 0.1, "in": 0.2, "<": 0.4, "<=": 0.4, ">": 0.4, ">=": 0.4, "like": 0.2, "is null": 0.1,
                "value fails": 0.001}  # fmt: skip
_TEMPORAL_SELECTIVITY = 0.4
Values: TypeAlias = Callable[[str], int | None]


@dataclass(frozen=True)
class Estimates:
    """Sizes of the collections that view `view` reads. `constants`: the number of rows of each constant. `nodes`:
    guesses at the rows of node collections that do not exist yet. `unique`: columns that identify a row of a node, or
    of a constant."""

    facts: Facts
    constants: Mapping[str, int]
    view: str
    nodes: Mapping[str, float] = field(default_factory=dict)
    unique: Mapping[str, frozenset[str]] = field(default_factory=dict)
    _asked: dict[str, tuple[frozenset[str], ...]] = field(default_factory=dict, compare=False, repr=False)

    def with_constants(self, constants: Iterable[Constant]) -> Estimates:
        """The same estimates with the constants of a join."""
        given = [*constants]
        rows = {one.name: len(one.rows) if one.made is None else about_rows(one.made) for one in given}
        unique = {one.name: frozenset({one.columns[0].name}) for one in given
                  if one.made is not None and one.made.function == "generate_series"}  # fmt: skip
        return replace(self, constants=rows, unique={**self.unique, **unique})

    def with_node(self, name: str, rows: float, unique: frozenset[str] | None = None) -> Estimates:
        """The same estimates with a guess at the rows of a node collection, and the columns that identify a row."""
        known = self.unique if unique is None else {**self.unique, name: unique}
        return replace(self, nodes={**self.nodes, name: rows}, unique=known)

    def rows(self, collection: str) -> float:
        """Rows of a collection, at least 1."""
        if collection in self.constants:
            return max(1.0, self.constants[collection])
        return float(self.facts.rows(collection)) or max(1.0, self.nodes.get(collection, UNKNOWN_ROWS))

    def is_known(self, collection: str) -> bool:
        """Whether the number of rows is known. An empty collection tells nothing."""
        return collection in self.constants or self.facts.rows(collection) > 0

    def is_measured(self, key: ArrangementKey) -> bool:
        """Whether the distinct keys of an arrangement are known, from enough rows to predict later ones."""
        if key.collection in self.constants:
            return True
        return self.facts.rows(key.collection) >= UNKNOWN_ROWS and self.facts.distinct(key) is not None

    def unique_keys(self, collection: str) -> tuple[frozenset[str], ...]:
        """Sets of columns that identify a row; the smallest first."""
        if collection in self.unique:
            return (self.unique[collection],)
        if collection in self.constants:
            return ()
        found = self._asked.get(collection)
        if found is None:
            keys = map(frozenset, self.facts.unique_keys(collection))
            found = self._asked[collection] = tuple(sorted(keys, key=lambda k: (len(k), sorted(k))))
        return found

    def exists(self, key: ArrangementKey) -> bool:
        """Whether the engine already holds this arrangement for another user than the view, which may be replaced."""
        users = None if key.collection in self.constants else self.facts.users(key)
        return users is not None and any(user != self.view for user in users)

    def is_unique(self, key: ArrangementKey) -> bool:
        """Whether a lookup finds at most one row at any one time."""
        columns = {expr.name for expr in key.keys if isinstance(expr, Column)}
        steps = () if key.through is None else key.through.steps
        return all(isinstance(step, Filter) for step in steps) and any(
            unique <= columns for unique in self.unique_keys(key.collection))  # fmt: skip

    def fan_out(self, key: ArrangementKey, probe: Sequence[Expr], sources: Mapping[str, str]) -> float:
        """Rows that one lookup finds on average; `sources` maps each alias of the stream to its collection."""
        rows = self.rows(key.collection)
        if not key.keys:
            return rows
        if self.is_unique(key):
            return 1.0
        if key.collection not in self.constants and (known := self.facts.distinct(key)):
            return max(1.0, rows / known)
        return max(1.0, rows / min(rows, self._distinct(rows, key, probe, sources)))

    def values(self, columns: Mapping[str, tuple[str, str]]) -> Values:
        """How many different values a column of a stream has, given the collections of columns and their names there.
        """

        def of(name: str) -> int | None:
            found = columns.get(name)
            return None if found is None or found[0] in self.constants else self.facts.values(*found)

        return of

    def _distinct(
        self, rows: float, key: ArrangementKey, probe: Sequence[Expr], sources: Mapping[str, str]
    ) -> float:
        """A guess at the number of distinct keys."""
        by_alias: dict[str, set[str]] = {}
        for expr in probe:
            if isinstance(expr, Column):
                alias, _, name = expr.name.rpartition(".")
                by_alias.setdefault(alias, set()).add(name)
        counts: list[float] = []
        covered: set[str] = set()
        for alias, names in by_alias.items():
            collection = sources.get(alias)
            if collection is not None and any(unique <= names for unique in self.unique_keys(collection)):
                sized = self.is_known(collection) and self.is_known(key.collection)
                counts.append(self.rows(collection) if sized else rows / _ROWS_PER_PARENT)
                covered |= {f"{alias}.{name}" for name in names}
        for expr, own in zip(probe, key.keys, strict=True):
            if isinstance(expr, Column) and expr.name in covered:
                continue
            alone = replace(key, keys=(own,))
            known = self.facts.distinct(alone) if len(key.keys) > 1 and self.exists(alone) else None
            counts.append(float(known or math.sqrt(rows)))
        return math.prod(counts)


def selectivity(operator: Linear, values: Values = lambda _: None) -> float:
    """The estimated share of rows that an operator's filters let through. `values`: how many different values a column
    has, if that is known."""
    share = 1.0
    for step in operator.steps:
        if isinstance(step, Filter):
            share *= math.prod(_share(one, values) for one in step.predicates)
        elif isinstance(step, Temporal):
            share *= _TEMPORAL_SELECTIVITY
    return share


def _share(predicate: Expr, values: Values) -> float:
    if not isinstance(predicate, Call):
        return 0.5
    if predicate.function == "or":
        return min(1.0, sum(_share(arg, values) for arg in predicate.args))
    if predicate.function == "and":
        return math.prod(_share(arg, values) for arg in predicate.args)
    if predicate.function in ("=", "in"):
        columns = [arg for arg in map(_without_cast, predicate.args) if not isinstance(arg, Literal)]
        if len(columns) == len(predicate.args):
            return 0.3  # between columns: an equality that the lookup left to be checked
        known = values(columns[0].name) if len(columns) == 1 and isinstance(columns[0], Column) else None
        if known:
            return min(1.0, (len(predicate.args) - 1) / known)
    return _SELECTIVITY.get(predicate.function, 0.7)


def _without_cast(expr: Expr) -> Expr:
    return expr.arg if isinstance(expr, Cast) else expr
