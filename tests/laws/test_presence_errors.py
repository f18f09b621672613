"""Errors of joins with present, absent and padded inputs: the same by every path, and as brute force has them."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

import halfjoin
from halfjoin.errors import UnsupportedSQL
from halfjoin.planner.block import Block, Input, Match
from halfjoin.planner.plan import InputKind
from halfjoin.sql.expr import Expr, columns_of
from halfjoin.sql.functions import fallible
from tests.laws.test_presence import ABSENT, PADDED, PRESENT, Streams, asked, match
from tests.support.joins import Row, call, contents, create, integer, join, number, planned, table
from tests.support.plan_interpreter import Failed, scalar

SEEDS = range(int(os.environ.get("HALFJOIN_FUZZ", "60")))


def inverse(name: str) -> Expr:
    return call("/", number(1), integer(name))


def risky_block(rng: random.Random) -> Block:
    """A random block whose expressions may fail: conditions, keys, what keys match, predicates above, outputs."""
    conditions = (call("<", inverse("b.x"), number(2)),) if rng.random() < 0.5 else ()
    on = [match("b.k", "a.k"), Match(inverse("b.k"), integer("a.k")), Match(integer("b.k"), inverse("a.k"))]
    kind = rng.choice([PADDED, PADDED, PRESENT, ABSENT])
    default = (rng.choice([None, 0, 1]), rng.choice([None, 0])) if kind is PADDED else ()
    b = asked("b", kind, rng.choice(on), conditions=conditions, default=default)
    c = asked("c", PADDED, match("c.k", "b.x" if kind is PADDED else "a.x"))
    some = ["a.x", "c.x", *(["b.x", "b.k"] if kind is PADDED else [])]
    predicates = [call("<", inverse(name), number(1)) for name in some if rng.random() < 0.4]
    if rng.random() < 0.4:
        predicates.append(call("=", inverse(rng.choice(some)), integer("a.k")))
    outputs = (integer("a.k"), integer("c.k"), inverse(rng.choice(some)))
    return join((table("a", "k", "x"), b, c), tuple(predicates), outputs)


class Brute:
    """The contents of such a block, and whether an expression fails."""

    def __init__(self, block: Block, tables: Mapping[str, Counter[Row]]) -> None:
        self.block, self.found, self.fails = block, Counter[Row](), False
        _, self.b, self.c = block.inputs
        own, self.later = [], []
        for predicate in block.predicates:
            alone = all(name.startswith("a.") for name in columns_of(predicate))
            (own if alone else self.later).append(predicate)
        self.rows = {item.alias: self._counting(item, tables[item.alias]) for item in (self.b, self.c)}
        for (k, x), count in tables["a"].items():
            row = {"a.k": k, "a.x": x}
            if self._all(own, row) and self._value([m.probe for m in self.b.on if fallible(m.probe)], row) is not None:
                for whole, copies in self._beside(self.b, row, count):
                    for complete, all_copies in self._beside(self.c, whole, copies):
                        self._give(complete, all_copies)
        self.found = Counter({row: count for row, count in self.found.items() if count})

    def _all(self, predicates: list[Expr], row: dict[str, Any]) -> bool:
        """Whether all conditions are true. If one fails, the result is a failure unless another is false."""
        values, failed = [], False
        for predicate in predicates:
            try:
                values.append(scalar(predicate, row))
            except Failed:
                failed = True
        self.fails |= failed and False not in values
        return not failed and all(value is True for value in values)

    def _value(self, exprs: list[Expr], row: dict[str, Any]) -> list[Any] | None:
        try:
            return [scalar(expr, row) for expr in exprs]
        except Failed:
            self.fails = True
            return None

    def _counting(self, item: Input, rows: Counter[Row]) -> list[tuple[list[Any], dict[str, Any], int]]:
        found = []
        for values, count in rows.items():
            row = {column.name: value for column, value in zip(item.columns, values, strict=True)}
            if self._all(list(item.conditions), row):
                key = self._value([match.key for match in item.on], row)
                if key is not None:
                    found.append((key, row, count))
        return found

    def _beside(self, item: Input, row: dict[str, Any], count: int) -> list[tuple[dict[str, Any], int]]:
        probe = [scalar(match.probe, row) for match in item.on]
        hits = [(own, n) for key, own, n in self.rows[item.alias] if key == probe and None not in key]
        if item.kind is PADDED:
            default = {name: literal.value for name, literal in item.default_row.items()}
            return [(row | own, count * n) for own, n in hits or [(default, 1)]]
        return [(row, count)] if bool(hits) is (item.kind is InputKind.PRESENT) else []

    def _give(self, row: dict[str, Any], count: int) -> None:
        if self._all(self.later, row):
            values = self._value([expr for _, expr in self.block.outputs], row)
            if values is not None:
                self.found[tuple(values)] += count


@pytest.mark.parametrize("seed", SEEDS)
def test_rows_fail_where_they_are(seed: int) -> None:
    rng = random.Random(seed)
    streams, block = Streams(rng, negative=False), risky_block(rng)
    create(streams.engine, block, "v")
    for _ in range(rng.randint(2, 6)):
        streams.batch()
    create(streams.engine, block, "w")
    for name in "vw":
        view = streams.engine._state.views[name]
        for time in range(view.contents.since, streams.upper):
            want = Brute(block, streams.at(time))
            assert bool(contents(view.errors, time)) is want.fails
            assert contents(view.contents, time) == want.found


def test_errors_of_rows_that_differ_do_not_cancel() -> None:
    """One row of b has a positive count, another a negative one. Both fail."""
    b = asked("b", PRESENT, match("b.k", "a.k"), conditions=(call("<", inverse("b.x"), number(2)),))
    streams = Streams(random.Random(0), negative=True)
    create(streams.engine, join((table("a", "k", "x"), b)))
    streams.engine.apply({"b": [{"k": 0, "x": 0, "__diff": 1}, {"k": 1, "x": 0, "__diff": -1}]}, time=0)
    assert len(contents(streams.engine._state.views["v"].errors, 0)) == 2


def test_what_fails_on_several_inputs_is_no_match() -> None:
    both = call("/", integer("a.k"), integer("e.x"))
    b = asked("b", PADDED, Match(integer("b.k"), both))
    with pytest.raises(UnsupportedSQL, match="may fail, and reads more than one table"):
        planned(join((table("a", "k", "x"), table("e", "k", "x"), b)), halfjoin.Engine()._state)
