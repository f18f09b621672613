"""The wrong ways of the reduce law, the fill law and exact sums: put into the engine, each is found by a history."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import halfjoin as hj
from halfjoin.engine.batch import runner, stage
from halfjoin.engine.batch.state import Versions
from halfjoin.engine.reduce import flow, law, lifted, seen
from halfjoin.engine.reduce.totals import Totals
from halfjoin.engine.statements import definitions
from halfjoin.engine.updates.updates import MAXIMUM, Updates, concat, constant
from halfjoin.planner.plan import Version
from tests.oracle.histories import random_history, told
from tests.oracle.judges import Answers
from tests.oracle.watch import View, Watch

LEAST = "SELECT k, min(v) AS m, count(*) AS n FROM a GROUP BY k"
VIEWS = [View(f"v{number}", sql, sql) for number, sql in enumerate((
    "SELECT k, count(*) AS n, sum(v) AS s FROM a GROUP BY k",
    LEAST,
    f"SELECT t.k, t.v, g.m FROM a AS t JOIN ({LEAST}) AS g ON t.k = g.k",
    f"SELECT b.x, g.n FROM b LEFT JOIN ({LEAST}) AS g ON b.k = g.k",
    "SELECT k, count(*) AS n FROM a WHERE mz_now() <= v + 2 GROUP BY k",
    "SELECT k, v FROM a ORDER BY v NULLS LAST, k NULLS LAST LIMIT 2",
    "SELECT k, v, rank() OVER (PARTITION BY k ORDER BY v NULLS LAST) AS r FROM a",
))]  # fmt: skip
RIGHT, MANY = range(12), range(40)


def wrong(seed: int) -> str:
    """How a view is wrong over a random history: one made early, or one made late."""
    rng = random.Random(seed)
    history = random_history(rng, 25, 6)
    batches, watch, late = list(told(rng, history, 6)), Watch(), rng.randrange(1, 6)
    for view in VIEWS:
        watch.create(view, view.name)
    for number, batch in enumerate(batches, 1):
        watch.tell(batch)
        if number == min(late, len(batches)):
            for view in VIEWS:
                watch.create(view, f"late_{view.name}")
    return watch.wrong(Answers(), history)


def caught(seed: int) -> bool:
    """Whether the wrong way is told from the right one: by an answer, or because the engine does not bear it."""
    try:
        return bool(wrong(seed))
    except Exception:
        return True


@pytest.mark.parametrize("seed", RIGHT)
def test_the_right_ways_hold(seed: int) -> None:
    assert not wrong(seed)


Ways = dict[str, tuple[Any, str, Callable[[Any], Any]]]  # what takes the place of an attribute, given it


def _of_this_batch(original: Any) -> Any:
    """Look only at what this batch brings. What arrived open before is forgotten."""
    def updates(self: Versions, name: str) -> Updates:
        found: Updates = original(self, name)
        part = self.staged.get(name)
        pieces = [] if part is None else [*part.pieces(self.state.upper, self.upper)]
        return concat([found.slice(0, 0), *(piece.select(found.columns) for piece in pieces)])
    return updates


def _at_the_last_time(original: Any) -> Any:
    """Look at a group once, at the last closing time."""
    def moments_of(updates: Updates, keys: Any, **more: Any) -> law.Moments:
        last = int(updates.time.max()) if len(updates) else 0
        late = Updates(updates.columns, constant(last, len(updates)), updates.diff)
        found: law.Moments = original(late, keys, **more)
        return found
    return moments_of


def _before_of_the_batch(original: Any) -> Any:
    """What a group was is what had arrived, open rows as well."""
    def contents_of(moments: law.Moments, rows: Updates, group: Any, before: int) -> Any:
        return original(moments, rows, group, MAXIMUM)
    return contents_of


def _from_the_kept_node(original: Any) -> Any:
    """A fill takes the rows of a node that is there as its history."""
    def fill_nodes(state: Any, plan: Any, *more: Any) -> Any:
        new = tuple(node for node in plan.below if node.output not in state.maintained)
        return original(state, _Below(new), *more)
    return fill_nodes


class _Below:
    def __init__(self, below: Any) -> None:
        self.below = below


def _netted_index(original: Any) -> Any:
    """A fill looks up what is there now, and not the log."""
    return lambda self, flow, held, lookup, title: flow.fill(lookup, lookup.closing.after, lookup.closing.after)


def _forgotten(original: Any) -> Any:
    """What a passing node makes for later times does not wait."""
    def passed(*given: Any) -> Any:
        now, later = original(*given)
        return now, later.slice(0, 0)
    return passed


def _reduced(part: Version) -> Callable[[Any], Any]:
    """A reduce's output is looked up in one version only."""
    def swapped(original: Any) -> Any:
        def with_staged(self: Versions, name: str, version: Version, parts: Any) -> Any:
            return original(self, name, part if name.startswith("reduce#") else version, parts)
        return with_staged
    return swapped


def _null_is_no_key(original: Any) -> Any:
    """A group whose key is NULL finds nothing, as in a join."""
    def lookup_of(*given: Any) -> Any:
        found = original(*given)
        return replace(found, spec=replace(found.spec, null_safe=(False,) * len(found.spec.probe)), null_safe=0)
    return lookup_of


WAYS: Ways = {
    "groups of this batch only": (Versions, "updates", _of_this_batch),
    "once, at the last time": (flow, "moments_of", _at_the_last_time),
    "after minus before of the batch": (seen, "contents_of", _before_of_the_batch),
    "a fill from a kept node": (definitions, "fill_nodes", _from_the_kept_node),
    "a fill from the netted index": (runner._Local, "fill", _netted_index),
    "open updates of a passing node forgotten": (stage, "_passed", _forgotten),
    "a reduce's output always before": (Versions, "_with_staged", _reduced(Version.BEFORE)),
    "a reduce's output always after": (Versions, "_with_staged", _reduced(Version.AFTER)),
    "NULL is no key of a group": (flow, "lookup_of", _null_is_no_key),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_wrong_way_is_caught(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where, name, made = WAYS[way]
    monkeypatch.setattr(where, name, made(getattr(where, name)))
    assert any(map(caught, MANY))


def _plain_sums(totals: Totals) -> pa.Array:
    """Keep sums of floats as floats."""
    found = _KEPT(totals)
    if totals.kind != "floats":
        return found
    exact = [int.from_bytes(one[1:], "little", signed=True) << 32 * one[0] if one else 0 for one in found.to_pylist()]
    rounded = pa.array([number / (1 << 1074) for number in exact])
    return _KEPT(Totals.lifted("floats", [rounded], np.ones(len(rounded), np.int64)))


_KEPT = Totals.kept


def _back_at_its_bits() -> bool:
    """Whether a sum of floats is what it was, after a large value came and went."""
    engine = hj.Engine(clock="own")
    engine.execute("CREATE TABLE t (y double precision)")
    engine.execute("CREATE MATERIALIZED VIEW v AS SELECT sum(y) AS s, avg(y) AS a FROM t")
    engine.apply({"t": [{"y": 0.1}, {"y": 0.2}]}, time=0)
    engine.apply({"t": [{"y": 1e17}]}, time=1)
    engine.apply({"t": hj.deletes([{"y": 1e17}])}, time=2)
    return bool(engine.read("v", as_of=2).equals(engine.read("v", as_of=0)))


def test_sums_of_floats_end_at_the_bits_where_they_began(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _back_at_its_bits()
    monkeypatch.setattr(lifted, "FEW", 0)  # or sums of a few updates are added up elsewhere
    monkeypatch.setattr(Totals, "kept", _plain_sums)
    assert not _back_at_its_bits()
