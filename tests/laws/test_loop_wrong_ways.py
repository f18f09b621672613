"""The wrong ways of the loop law: put into the engine, each is found by a history of a recursive program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import halfjoin as hj
from halfjoin.engine.arrange.run import make_run
from halfjoin.engine.loop import reduce, rounds
from halfjoin.engine.loop.first import FirstRow
from halfjoin.engine.updates.consolidate import consolidate
from halfjoin.engine.updates.updates import concat, constant
from halfjoin.planner.plan import ROUND
from halfjoin.planner.rounds import Rounds
from halfjoin.sql.bind import bind, loops
from halfjoin.sql.expr import Literal
from halfjoin.sql.relation import Fed
from halfjoin.sql.types import BIGINT
from tests.oracle.mutual import SIZE, Bag, Term, contents, failing_program, random_program, read_by, text

assert bind  # imported before `loops`, which it imports
RIGHT, MANY = range(8), range(30)
FAILS = "fails"
ROWS: list[tuple[int, int]] = [(a, b) for a in range(SIZE) for b in range(SIZE)]
EDGES = "WITH RECURSIVE r(n) AS ({}) SELECT n FROM r"
RECURSIVE = (  # beside the mutual programs: what tells the working table from a fixpoint
    "SELECT a FROM inp UNION ALL SELECT DISTINCT (r.n + 1) FROM r WHERE r.n < 5",
    "SELECT a FROM inp UNION SELECT max(n) + 1 FROM r HAVING max(n) < 6",
)


def _working_table(query: str, table: Bag) -> Bag:
    """What PostgreSQL's working table gives for one of the queries."""
    every = [a for a, _ in table.elements()]
    if "UNION ALL" in query:
        last = every
        while last:
            last = sorted({n + 1 for n in last if n < 5})
            every = every + last
        return Counter((n,) for n in every)
    found = set(every)
    last = sorted(found)
    while last:
        new = {max(last) + 1} if max(last) < 6 else set()
        last = sorted(new - found)
        found |= new
    return Counter((n,) for n in found)


def _read(engine: hj.Engine, name: str, time: int) -> Bag | str:
    try:
        return Counter(tuple(row.values()) for row in engine.read(name, as_of=time).to_pylist())
    except hj.DataError:
        return FAILS


def _expected(program: list[Term], table: Bag, limit: int, shown: int) -> Bag | str:
    read = read_by(program, shown)
    used = [term if number in read else Term("table") for number, term in enumerate(program)]
    try:
        return contents(used, table, limit)[shown]
    except ZeroDivisionError:
        return FAILS


def wrong(seed: int) -> bool:
    """Whether a view is wrong over a random history."""
    random = Random(seed)
    program = (failing_program if seed % 3 == 0 else random_program)(random)
    limit = random.choice([1, 2, 3, 4, 9])
    engine = hj.Engine(clock="own", retain=1_000)
    engine.execute("CREATE TABLE inp (a bigint, b bigint)")
    for shown in range(len(program)):
        engine.execute(f"CREATE MATERIALIZED VIEW v{shown} AS {text(program, limit, shown)}")
    for number, query in enumerate(RECURSIVE):
        engine.execute(f"CREATE MATERIALIZED VIEW w{number} AS {EDGES.format(query)}")
    table: Bag = Counter()
    history = []
    for time in range(5):
        batch = []
        for _ in range(random.randint(1, 3)):
            there = [row for row, count in table.items() if count > 0]
            row, diff = random.choice(ROWS), 1
            if there and random.random() < 0.45:
                row, diff = random.choice(there), -1
            table[row] += diff
            batch.append({"a": row[0], "b": row[1], "__diff": diff, "__time": 2 * time + random.randrange(2)})
        engine.apply({"inp": batch}, time=2 * time + 1)
        history += [((row["a"], row["b"]), row["__time"], row["__diff"]) for row in batch]
    for time in range(10):
        now: Bag = Counter()
        for row, at, diff in history:
            now[row] += diff if at <= time else 0
        if min(now.values(), default=0) < 0:
            continue  # within a batch the deletion may come first
        if any(_read(engine, f"v{shown}", time) != _expected(program, +now, limit, shown)
               for shown in range(len(program))):  # fmt: skip
            return True
        tables = [_working_table(query, +now) for query in RECURSIVE]
        if any(_read(engine, f"w{number}", time) != expected for number, expected in enumerate(tables)):
            return True
    return False


def caught(seed: int) -> bool:
    """Whether the wrong way is told from the right one: by an answer, or because the engine does not bear it."""
    try:
        return wrong(seed)
    except TypeError:  # of the wrong way itself
        raise
    except Exception:
        return True


@pytest.fixture(autouse=True)
def _few_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong way may go on for ever."""
    monkeypatch.setattr(loops, "MOST_ROUNDS", 20)


@pytest.mark.parametrize("seed", RIGHT)
def test_the_right_ways_hold(seed: int) -> None:
    assert not wrong(seed)


Ways = dict[str, list[tuple[Any, str, Callable[[Any], Any]]]]  # what takes the place of an attribute, given it


def _touched_alone(original: Any) -> Any:
    """Look at a group where it is touched, and not where that meets its history."""
    def looked_at(touched: Any, history: Any) -> Any:
        return original(touched, (history[0][:0], [column[:0] for column in history[1]]))
    return looked_at


def _no_short_cut(original: Any) -> Any:
    """Take the general way, which the wrong ways are in."""
    return lambda *given: None


def _all_rounds(original: Any) -> Any:
    """A group is what all its rounds add up to, later ones as well."""
    return lambda self, rows, round: np.ones(len(rows), np.bool_)


def _all_at_once(original: Any) -> Any:
    """All bindings are computed from the round before."""
    def fed(self: Rounds, relation: Fed) -> Any:
        return original(self, Fed(relation.loop, relation.number, True, relation.alias, relation.columns))
    return fed


def _one_round_more(original: Any) -> Any:
    """The rows of the last round that is allowed are fed back."""
    def fed(self: Rounds, relation: Fed) -> Any:
        rows, rounds = original(self, relation)
        if not relation.before:
            return rows, rounds
        less, later = rows.predicate.args[0], Literal(self.loop.limit + 1, BIGINT)
        return type(rows)(rows.input, type(rows.predicate)("<", (less, later), rows.predicate.type)), rounds
    return fed


def _fixpoint(original: Any) -> Any:
    """The least fixpoint instead of the working table."""
    return lambda relation, loop: True


def _of_the_last_answer(original: Any) -> Any:
    """Patch the last answer: what is there before a batch is there from round 0 on."""
    def __init__(
        self: rounds.Pass, flows: Any, base: Any, entering: Any, closing: Any, *steps: Any, **more: Any
    ) -> None:  # fmt: skip
        def patched(name: str) -> list[Any]:
            pieces = [piece for part in base(name) for piece in part.pieces()]
            if name in flows:
                pieces = [piece.with_columns({ROUND: pa.array(constant(0, len(piece)))}) for piece in pieces]
            return [make_run(piece, closing.after) for piece in pieces]
        original(self, flows, patched, entering, closing, *steps, **more)
    return __init__


def _before_all_has_entered(original: Any) -> Any:
    """Rounds begin with the half of what enters the loop; the rest comes in round 1."""
    def _next(self: rounds.Pass, scope: Any, around: Any, soonest: int) -> Any:
        if not around and soonest == 0:
            outer = [one for one, parts in self._parts.items() if one not in self.flows and parts]
            every = {one: concat([piece for part in self._parts[one] for piece in part.pieces()]) for one in outer}
            late[self] = {one: rows.slice((len(rows) + 1) // 2, len(rows)) for one, rows in every.items()}
            for one, rows in every.items():
                self._parts[one] = [make_run(rows.slice(0, (len(rows) + 1) // 2), self.closing.after)]
        elif not around:
            for one, rows in late.pop(self, {}).items():
                self._parts[one] += [make_run(rows, self.closing.after)] if len(rows) else []
        return original(self, scope, around, soonest)
    late: dict[rounds.Pass, Any] = {}
    return _next


def _netted_too_soon(original: Any) -> Any:
    """The times that a pass closes are added up in it, as those that were closed before."""
    def __init__(
        self: rounds.Pass, flows: Any, base: Any, entering: Any, closing: Any, *steps: Any, **more: Any
    ) -> None:  # fmt: skip
        sooner = closing._replace(netted=closing.after, before=closing.after)
        original(self, flows, base, entering, sooner, *steps, **more)
    return __init__


def _netted_over_rounds(original: Any) -> Any:
    """Closed updates of a binding are added up over their rounds, in the last of them."""
    def __init__(
        self: rounds.Pass, flows: Any, base: Any, entering: Any, closing: Any, *steps: Any, **more: Any
    ) -> None:  # fmt: skip
        def netted(name: str) -> list[Any]:
            if name not in flows:
                return list(base(name))
            pieces = [piece for part in base(name) for piece in part.pieces() if len(piece)]
            last = max((piece.columns[ROUND].to_numpy().max() for piece in pieces), default=0)
            moved = [piece.with_columns({ROUND: pa.array(constant(last, len(piece)))}) for piece in pieces]
            return [make_run(consolidate(concat(moved)), closing.after)] if moved else []
        original(self, flows, netted, entering, closing, *steps, **more)
    return __init__


WAYS: Ways = {
    "touched times alone": [(reduce, "looked_at", _touched_alone), (FirstRow, "round", _no_short_cut)],
    "rounds are not told apart": [(reduce.RoundReduce, "_reached", _all_rounds), (FirstRow, "round", _no_short_cut)],
    "all bindings at once": [(Rounds, "fed", _all_at_once)],
    "one round too many": [(Rounds, "fed", _one_round_more)],
    "a fixpoint, not the working table": [(loops, "is_linear", _fixpoint)],
    "rounds begin before all has entered": [(rounds.Pass, "_next", _before_all_has_entered)],
    "times are netted before they close": [(rounds.Pass, "__init__", _netted_too_soon)],
    "rounds are netted": [(rounds.Pass, "__init__", _netted_over_rounds)],
    "the last answer is patched": [(rounds.Pass, "__init__", _of_the_last_answer)],
}


@pytest.mark.parametrize("way", WAYS)
def test_a_wrong_way_is_caught(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for where, name, made in WAYS[way]:
        monkeypatch.setattr(where, name, made(getattr(where, name)))
    assert any(map(caught, MANY))
