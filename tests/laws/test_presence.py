"""Present, absent and padded inputs of a join: after every batch the view agrees with brute force over the tables."""

from __future__ import annotations

import doctest
import os
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import halfjoin
from halfjoin.engine.arrange.part import Part
from halfjoin.engine.arrange.run import Run
from halfjoin.engine.batch.state import State, Versions
from halfjoin.engine.join import presence
from halfjoin.engine.join.presence import AppearingKeys, PresenceOperator
from halfjoin.engine.kernels import native
from halfjoin.engine.storage import parquet
from halfjoin.engine.storage.place import LocalPlace
from halfjoin.engine.storage.stored_run import StoredRun
from halfjoin.engine.updates.codes import codes
from halfjoin.engine.updates.updates import MAXIMUM, Ints, Updates, empty
from halfjoin.planner.block import Block, Input, Match
from halfjoin.planner.plan import InputKind, Version
from halfjoin.sql.expr import Expr
from tests.support.joins import Row, call, contents, create, evaluate, integer, join, number, table
from tests.support.joins import planned as plan_of
from tests.support.kernels import both_ways  # noqa: F401

SEEDS = range(int(os.environ.get("HALFJOIN_FUZZ", "60")))
TABLES = "abcd"
ABSENT, PADDED, PLAIN, PRESENT = InputKind.ABSENT, InputKind.PADDED, InputKind.PLAIN, InputKind.PRESENT


def asked(alias: str, kind: InputKind, *on: Match, collection: str = "", conditions: tuple[Expr, ...] = (),
          default: tuple[int | None, ...] = ()) -> Input:  # fmt: skip
    literals = tuple(map(number, default))
    plain = table(alias, "k", "x", collection=collection)
    return replace(plain, kind=kind, on=on, conditions=conditions, default=literals)


def match(key: str, probe: str, null_safe: bool = False) -> Match:
    return Match(integer(key), integer(probe), null_safe)


# a LEFT JOIN b ON b.k = a.k LEFT JOIN c ON c.k = b.x WHERE NOT EXISTS (d.k = a.k), as one join of four inputs.
CHAIN = join((
    table("a", "k", "x"), asked("b", PADDED, match("b.k", "a.k")), asked("c", PADDED, match("c.k", "b.x")),
    asked("d", ABSENT, match("d.k", "a.k")),
))  # fmt: skip


def random_block(rng: random.Random) -> Block:
    """A random block: one or two plain tables, and up to three padded, present or absent inputs matched to them."""
    inputs = [table("a", "k", "x")]
    predicates: list[Expr] = []
    if rng.random() < 0.4:
        inputs.append(table("e", "k", "x", collection=rng.choice(TABLES)))
        predicates.append(call("=", integer("a.x"), integer("e.k")))
    there = [column.name for item in inputs for column in item.columns]
    for alias in "bcd"[: rng.randint(1, 3)]:
        kind = rng.choice([PADDED, PADDED, PRESENT, ABSENT])
        keys = rng.choice([("k",), ("k",), ("k",), ("k", "x"), ("x",), ()])
        on = [match(f"{alias}.{key}", rng.choice(there), rng.random() < 0.2) for key in keys]
        if on and rng.random() < 0.1:
            on[0] = replace(on[0], probe=call("case", call("is null", on[0].probe), number(1), on[0].probe))
        conditions = (call(rng.choice(["<", "="]), integer(f"{alias}.x"), number(1)),) if rng.random() < 0.3 else ()
        default = (rng.choice([None, 0, 1]), rng.choice([None, 0, 1])) if kind is PADDED and rng.random() < 0.4 else ()
        collection = alias if rng.random() < 0.8 else rng.choice(TABLES)
        inputs.append(asked(alias, kind, *on, collection=collection, conditions=conditions, default=default))
        if kind is PADDED:
            there += [f"{alias}.k", f"{alias}.x"]
    for _ in range(rng.choice([0, 0, 1, 2])):
        column = integer(rng.choice(there))
        predicates.append(rng.choice([
            call("is null", column), call("=", column, integer(rng.choice(there))), call("<", column, number(1)),
            call("is not distinct from", column, integer(rng.choice(there))),
        ]))  # fmt: skip
    rng.shuffle(inputs)
    return join(tuple(inputs), tuple(predicates))


class Streams:
    """Random batches over four tables: open times, NULLs, several copies, and rows that are removed again."""

    def __init__(self, rng: random.Random, *, negative: bool) -> None:
        self.rng, self.negative, self.upper = rng, negative, 0
        self.updates: list[tuple[str, Row, int, int]] = []
        self.engine = halfjoin.Engine(retain=rng.choice([1, 4, 1000]))
        for name in TABLES:
            self.engine.execute(f"CREATE TABLE {name} (k integer, x integer)")

    def batch(self) -> None:
        """Apply random rows, or sometimes only advance the time."""
        rng, given = self.rng, dict[str, list[dict[str, int | None]]]()
        for _ in range(rng.choice([0, 2, 4, 8])):
            name, diff = rng.choice(TABLES), 1
            row: Row = tuple(rng.choice([0, 1, None]) for _ in "kx")
            time = self.upper + rng.randrange(4)
            own: Counter[Row] = Counter()
            for other, old, _, count in self.updates:
                own[old] += count if other == name else 0
            there = [old for old, count in own.items() if count > 0]
            if self.negative and rng.random() < 0.2:
                diff = -1
            elif there and rng.random() < 0.45:
                row, diff = rng.choice(there), -1
                time = max([time, *(when for other, old, when, _ in self.updates if (other, old) == (name, row))])
            self.updates.append((name, row, time, diff))
            given.setdefault(name, []).append({"k": row[0], "x": row[1], "__time": time, "__diff": diff})
        if given:
            self.engine.apply(given, close=False)
        upper = self.upper + rng.randrange(4)
        if upper > self.upper:
            last = max((time for *_, time, _ in self.updates), default=0)
            if given and rng.random() < 0.3 and last < self.upper + 20:
                upper = last + 1
            self.engine.advance(to=max(upper, self.upper))
            self.upper = max(upper, self.upper)
        if rng.random() < 0.2:
            self.engine.compact()

    def at(self, time: int) -> dict[str, Counter[Row]]:
        found: dict[str, Counter[Row]] = {name: Counter() for name in TABLES}
        for name, row, when, diff in self.updates:
            found[name][row] += diff if when <= time else 0
        return {name: Counter({row: n for row, n in rows.items() if n}) for name, rows in found.items()}

    def first_wrong(self, blocks: dict[str, Block]) -> str:
        for name, block in blocks.items():
            view = self.engine._state.views[name].contents
            for time in range(view.since, self.upper):
                got, want = contents(view, time), evaluate(block, self.at(time))
                if got != want:
                    return f"{name} at {time} of {self.upper}: {got - want} too many, {want - got} missing"
        return ""


def run(seed: int, make: Callable[[random.Random], Block], planned: Block | None = None) -> str:
    """Check a view made before the first row, and one made later. Returns how the first wrong one is wrong.

    `planned`: the views are made from this block instead, and still compared with the block of `make`.
    """
    rng = random.Random(seed)
    streams = Streams(rng, negative=seed % 3 == 0)
    block = make(rng)
    blocks = {"v": block}
    create(streams.engine, planned or block, "v")
    batches = rng.randint(2, 7)
    late = rng.randrange(batches)
    for number_ in range(batches):
        streams.batch()
        if number_ == late:
            create(streams.engine, planned or block, "w")
            blocks["w"] = block
        if wrong := streams.first_wrong(blocks):
            return wrong
    streams.engine.advance(to=streams.upper + 25)
    streams.upper += 25
    return streams.first_wrong(blocks)


@pytest.mark.parametrize("seed", SEEDS)
def test_left_joins_and_not_exists_are_one_join(seed: int) -> None:
    assert not run(seed, lambda rng: CHAIN)


@pytest.mark.parametrize("seed", SEEDS)
def test_any_kinds_of_inputs_are_one_join(seed: int) -> None:
    assert not run(seed, random_block)


@pytest.mark.parametrize("rows", [1, 100])
@pytest.mark.parametrize("seed", SEEDS[::2])
def test_keys_are_looked_up_as_often_as_they_come(seed: int, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key has at most so many rows on average; some keys have more."""
    monkeypatch.setattr(presence, "_MANY", 0)
    monkeypatch.setattr(presence, "_FEW_ROWS", rows)
    assert not run(seed, random_block)


@pytest.mark.parametrize("seed", SEEDS)
def test_keys_whose_codes_are_equal_stay_apart(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Codes find candidates; the values decide. (Kernels make codes of their own.)"""
    monkeypatch.setattr(native, "on", False)
    for room in ("engine.arrange.index", "engine.join.half_join", "engine.join.presence"):
        monkeypatch.setattr(f"halfjoin.{room}.is_exact", lambda columns: False)
        monkeypatch.setattr(f"halfjoin.{room}.codes", lambda columns, length: codes(columns, length) & 1)
    monkeypatch.setattr("halfjoin.engine.join.lookup.codes", lambda columns, length: codes(columns, length) & 1)
    assert not run(seed, random_block)


@pytest.mark.parametrize("seed", SEEDS[:12])
def test_keys_are_found_in_files_as_in_memory(seed: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    right, place = Versions._with_staged, LocalPlace(tmp_path)

    def in_files(self: Versions, name: str, version: Version, parts: Sequence[Part]) -> Sequence[Part]:
        schema = self.state.schema(name)
        return [
            StoredRun(place, tuple(parquet.write(place, part.updates, schema, ["k"])), schema)
            for part in right(self, name, version, parts) if isinstance(part, Run) and len(part)
        ]  # fmt: skip

    monkeypatch.setattr(Versions, "_with_staged", in_files)
    assert not run(seed, random_block)


def test_the_examples_of_presence_hold() -> None:
    assert doctest.testmod(presence, raise_on_error=True).attempted


# The wrong ways: each is held against the same streams, and some stream tells it from the right one.


def found_out(block: Block = CHAIN, planned: Block | None = None) -> bool:
    return any(run(seed, lambda rng: block, planned) for seed in range(60))


def test_open_rows_are_not_present_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    right = PresenceOperator._counts

    def every(self: PresenceOperator, keys: list[pa.Array], count: int, runs: Sequence[Part], closed: int,
              upper: int, most: int = MAXIMUM) -> tuple[Ints, Ints, Ints] | None:  # fmt: skip
        return right(self, keys, count, runs, closed, MAXIMUM, most)

    monkeypatch.setattr(PresenceOperator, "_counts", every)
    assert found_out()


def test_presence_before_counts_what_was_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    right = PresenceOperator.__call__

    def late(self: PresenceOperator, stream: Updates, runs: Sequence[Part], closed: int,
             upper: int, begins: int, share: float) -> Iterator[Updates]:  # fmt: skip
        before = self.spec.version is Version.BEFORE
        yield from right(self, stream, runs, closed, upper + 4 if before else upper, begins, share)

    monkeypatch.setattr(PresenceOperator, "__call__", late)
    assert found_out()


def test_changes_are_not_after_minus_before(monkeypatch: pytest.MonkeyPatch) -> None:
    right = AppearingKeys.__call__

    def once(self: AppearingKeys, closing: Updates, after: Sequence[Part], closed: int, upper: int) -> Updates:
        found = right(self, closing, after, closed, upper)  # all of it at the end of the batch
        return Updates(found.columns, np.full(len(found), upper - 1), found.diff)

    monkeypatch.setattr(AppearingKeys, "__call__", once)
    assert found_out()


def test_keys_of_earlier_batches_appear_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def of_this_batch(self: Versions, name: str) -> Updates:
        run = self.staged.get(name)
        pieces = [] if run is None else list(run.pieces(self.state.upper, self.upper))
        return pieces[0] if pieces else empty(self.state.schema(name))

    monkeypatch.setattr(Versions, "updates", of_this_batch)
    assert found_out()


def test_views_are_due_when_nothing_arrives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(State, "closing", lambda self, upper: set())
    assert found_out()


def test_a_predicate_above_is_no_condition_below() -> None:
    outer = asked("b", PADDED, match("b.k", "a.k"))
    null = call("is null", integer("b.x"))
    right = join((table("a", "k", "x"), outer), (null,))
    assert found_out(right, join((table("a", "k", "x"), replace(outer, conditions=(null,)))))
    assert not found_out(right)


def test_a_match_of_a_padded_input_is_no_equality() -> None:
    outer = asked("b", PADDED, match("b.k", "a.k"))
    equal = call("=", integer("b.k"), integer("a.k"))
    right = join((table("a", "k", "x"), outer))
    assert found_out(right, join((table("a", "k", "x"), outer), (equal,)))
    assert not found_out(right)


def test_chained_left_joins_look_up_by_the_inner_one() -> None:
    """The path of c looks b up by b.x, as a plain input: b's default row has no x, so it never matches a row of c."""
    engine = halfjoin.Engine()
    for name in TABLES:
        engine.execute(f"CREATE TABLE {name} (k integer, x integer)")
    paths = plan_of(CHAIN, engine._state).branches[0].paths
    assert [(s.half_join.alias, s.half_join.kind) for s in paths[2].stages] == [
        ("b", PLAIN), ("a", PLAIN), ("d", ABSENT)]  # fmt: skip
    assert [(s.half_join.alias, s.half_join.kind) for s in paths[0].stages] == [
        ("d", ABSENT), ("b", PADDED), ("c", PADDED)]  # fmt: skip


def test_explain_names_the_kind_of_an_input() -> None:
    with halfjoin.Engine(clock="own") as engine:
        engine.execute("; ".join(f"CREATE TABLE {name} (k integer, x integer)" for name in TABLES))
        create(engine, CHAIN)
        shown = {format: engine.explain("v", format) for format in ("text", "mermaid", "html", "json")}
    assert all("absent d(k)" in shown[format] and "padded b(k)" in shown[format] for format in ("text", "mermaid"))
    assert "absent d(k)" in shown["html"] and '"kind": "absent"' in shown["json"] and "plain a" not in shown["text"]
