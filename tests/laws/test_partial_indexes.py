"""The law of partial indexes: one may lack the entry of a row that no user of its arrangement wants; never another.

Here an index of a single row counts as large, so every one is partial that may be.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import halfjoin as hj
from halfjoin.engine.arrange import collection, partial
from halfjoin.engine.arrange.collection import User
from halfjoin.engine.arrange.partial import Partial
from halfjoin.engine.batch.commit import Step
from halfjoin.engine.batch.writer import Writer
from halfjoin.engine.storage import parquet, stored_run
from halfjoin.engine.updates.updates import MINIMUM
from halfjoin.planner.linear import Atom
from halfjoin.planner.wants import Want
from halfjoin.sql.expr import Call, Column, Literal
from halfjoin.sql.types import BIGINT, BOOLEAN
from tests.engine.test_budget import TightReplay
from tests.oracle.choice import Drawn
from tests.oracle.replay import Replay, run
from tests.oracle.rows import bag
from tests.oracle.streams import Program, random_program
from tests.storage.test_storage_law import DurableReplay
from tests.support.kernels import both_ways  # noqa: F401
from tests.support.seeds import some


@pytest.fixture(autouse=True)
def no_index_is_too_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partial, "LARGE", 0)


@st.composite
def programs(draw: Callable[[st.SearchStrategy[Any]], Any]) -> Program:
    return random_program(Drawn(draw), most=12)


@given(programs())
def test_view_law_with_partial_indexes(program: Program) -> None:
    run(program)


@pytest.mark.parametrize("kind", [DurableReplay, TightReplay])
@settings(max_examples=max(some(10), settings().max_examples // 3))
@given(program=programs())
def test_view_law_over_reopened_warehouses(kind: type[DurableReplay], program: Program) -> None:
    with tempfile.TemporaryDirectory() as folder:
        replay: Replay = kind(program.retain, Path(folder) / "w", seed=len(program.steps))
        for step in program.steps:
            replay.step(step)
            replay.check_now()
        replay.check_all()
        replay.engine.close()


TABLES = ("CREATE TABLE a (k bigint, x bigint); CREATE TABLE b (k bigint, x bigint, lo bigint, hi bigint); "
          "CREATE TABLE c (k bigint, x bigint)")  # fmt: skip
OWN = ["b.x > 1", "b.x > 0", "b.x >= 2", "2 > b.x", "b.x BETWEEN 1 AND 2",
       "b.x = 2", "b.x <> 0", "b.x < 2 OR b.lo IS NULL", "a.x > 0", "a.x IN (1, 2)", "6 / b.x > 2",
       "b.x > 0 AND 6 / b.x > 2", "mz_now() < b.hi", "b.lo <= mz_now() AND mz_now() < b.hi", "b.hi > mz_now()",
       "mz_now() < b.hi AND b.x > 1", "mz_now() = b.lo", "NOT mz_now() < b.lo", "a.x < b.x", "true",
       "mz_now() < b.hi + 1", "mz_now() < b.hi + 12 / b.x", "mz_now() < b.hi AND 6 / b.x > 2"]  # fmt: skip
SHAPES = [
    "SELECT a.k, a.x, b.x AS y, b.hi FROM a JOIN b ON a.k = b.k WHERE {}",
    "SELECT a.k, b.x, c.x AS y FROM a, b, c WHERE a.k = b.k AND b.k = c.k AND {}",
    "SELECT a.k, b.x, c.x AS y FROM a, b, c WHERE a.k = b.k AND b.x = c.x AND a.x = c.k AND {}",
    "SELECT a.k, sum(b.x) AS s, count(*) AS n FROM a JOIN b ON a.k = b.k WHERE {} GROUP BY a.k",
    "SELECT a.k, a.x, c.x AS y FROM a JOIN b ON a.k = b.k LEFT JOIN c ON c.k = b.x WHERE {}",
    "SELECT b.k, b.x FROM b JOIN a ON a.k = b.k WHERE EXISTS (SELECT FROM c WHERE c.k = b.k) AND {}",
    "SELECT o.k, b.x FROM b, b o, a WHERE o.k = b.k AND o.x > 0 AND a.k = o.k AND {}",
    "SELECT a.k, b.x FROM a LEFT JOIN b ON a.k = b.k WHERE a.x > 0",
]


class World:
    """Random batches. Rows come twice, go, come back, and lie in the future."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.there: dict[str, list[dict[str, Any]]] = {name: [] for name in "abc"}

    def batch(self, time: int) -> dict[str, list[dict[str, Any]]]:
        pick, found = self.random.choice, dict[str, list[dict[str, Any]]]()
        for name, there in self.there.items():
            found[name] = []
            for _ in range(self.random.randrange(5)):
                at = time + pick([0, 0, 0, 1, 4])
                if there and self.random.random() < 0.4:
                    found[name].append({**there.pop(self.random.randrange(len(there))), "__time": at, "__diff": -1})
                    continue
                row: dict[str, Any] = {"k": pick([0, 1, 2, None]), "x": pick([0, 1, 2, 3, None])}
                if name == "b":
                    row |= {"lo": pick([time - 3, time, time + 2, None]), "hi": pick([time - 1, time + 1, time + 4])}
                there.append(row)
                found[name].append({**row, "__time": at, "__diff": 1})
        return {name: rows for name, rows in found.items() if rows}

    def view(self) -> str:
        shape = self.random.choice(SHAPES)
        names = [one for one in OWN if "mz_now" not in one or "{} GROUP" not in shape or self.random.random() < 0.5]
        return shape.format(self.random.choice(names))


def answer(engine: hj.Engine, ask: Callable[[hj.Engine], Any]) -> Any:
    """What an engine answers, or why it does not."""
    try:
        found = ask(engine)
        return bag(found) if isinstance(found, pa.Table) else found
    except hj.HalfjoinError as problem:
        return type(problem)


def changed(engine: hj.Engine, batch: dict[str, Any], time: int) -> Any:
    applied = [engine.apply(batch, time=time, close=False), engine.advance(time + 1)]
    return [({name: bag(rows) for name, rows in one.diffs.items()}, sorted(one.errors)) for one in applied]


@pytest.mark.parametrize("seed", range(18))
def test_partial_and_full_indexes_give_the_same_answers(
    seed: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Views come, go and are replaced between batches; time passes; every readable time is read."""
    world, lacking = World(seed), 0
    retain, memory = world.random.choice([1, 3, 100]), world.random.choice([None, None, 1, 20_000])
    engines = [hj.Engine(tmp_path / name, clock="own", retain=retain) for name in ("partial", "full")]

    def both(ask: Callable[[hj.Engine], Any]) -> Any:
        answers = []
        for engine, least in zip(engines, (0, 1 << 60), strict=True):
            monkeypatch.setattr(partial, "LARGE", least)
            answers.append(answer(engine, ask))
        assert answers[0] == answers[1]
        return answers[0]

    both(lambda engine: engine.execute(TABLES) and None)
    views: dict[str, str] = {}
    for time in range(1, 22):
        if time % 3 == 1 or not views:
            name, sql = world.random.choice(["v", "w", "x", "y"]), world.view()
            if both(lambda engine: engine.execute(f"CREATE OR REPLACE MATERIALIZED VIEW {name} AS {sql}") and None) is None:  # noqa: B023, E501
                views[name] = sql
        if time % 5 == 4 and len(views) > 1:
            gone = world.random.choice(list(views))
            del views[gone]
            both(lambda engine: engine.execute(f"DROP MATERIALIZED VIEW {gone}") and None)  # noqa: B023
        if world.random.random() < 0.15:
            both(lambda engine: engine.compact())
        if world.random.random() < 0.15:
            for number, name in enumerate(("partial", "full")):
                engines[number].close()
                engines[number] = hj.Engine(tmp_path / name, memory=memory)
        if world.random.random() < 0.2:
            both(lambda engine: engine.execute("CREATE INDEX IF NOT EXISTS i ON b (k)") and None)
        batch = world.batch(time)
        both(lambda engine: changed(engine, batch, time))  # noqa: B023
        lacking += _lacking(engines[0])
        for name, sql in views.items():
            at = world.random.randrange(max(1, time - retain), time + 1)
            there = both(lambda engine: engine.read(name, as_of=at))  # noqa: B023
            if "mz_now" not in sql and not isinstance(there, type):
                assert both(lambda engine: engine.query(sql, as_of=at)) == there  # noqa: B023
    for engine in engines:
        engine.close()
    assert memory or lacking > 3  # rows in files have no index in memory


def _lacking(engine: hj.Engine) -> int:
    indexes = (index for one in engine._state.collections() for run in one.in_memory for index in run.indexes.values())
    return sum(index.partial is not None for index in indexes)


def _small() -> hj.Engine:
    engine = hj.Engine(clock="own", retain=100)
    engine.execute("CREATE TABLE a (k bigint); CREATE TABLE b (k bigint, x bigint)")
    for time in range(1, 6):
        engine.apply({"a": [{"k": time}], "b": [{"k": k, "x": time} for k in range(1, 6)]}, time=time)
    return engine


def _entries(engine: hj.Engine) -> tuple[int, str]:
    (found,) = (one for one in engine.stats().arrangements if one.name == "b(k)")
    return found.rows, found.only


def _view(engine: hj.Engine, name: str, condition: str) -> list[Any]:
    engine.execute(f"CREATE MATERIALIZED VIEW {name} AS SELECT a.k, x FROM a JOIN b ON a.k = b.k WHERE {condition}")
    return sorted(engine.read(name).to_pydict()["x"])


def test_an_index_has_what_its_users_want_and_follows_them() -> None:
    engine = _small()
    assert _view(engine, "v", "x > 3") == [4] * 5 + [5] * 5
    assert _entries(engine) == (10, "x > 3")
    assert _view(engine, "w", "x = 1") == [1] * 5
    assert _entries(engine) == (15, "(x = 1) OR (x > 3)")
    engine.execute("DROP MATERIALIZED VIEW v")
    assert _entries(engine) == (5, "x = 1")
    with pytest.raises(hj.HalfjoinError):
        engine.execute("CREATE MATERIALIZED VIEW v (k, k) AS SELECT a.k, x FROM a JOIN b ON a.k = b.k")
    assert _entries(engine) == (5, "x = 1")
    engine.execute("CREATE INDEX i ON b (k)")
    assert _entries(engine) == (25, "")
    engine.execute("DROP INDEX i")
    assert _entries(engine) == (5, "x = 1")
    engine.execute("CREATE MATERIALIZED VIEW o AS SELECT a.k, x FROM a LEFT JOIN b ON a.k = b.k")
    assert _entries(engine) == (25, "")


def test_ten_days_of_the_same_query_share_what_the_widest_wants() -> None:
    engine = _small()
    for number, day in enumerate([4, 3, 5, 2, 7, 6, 9, 8, 10, 11]):
        found = _view(engine, f"v{number}", f"x > {day} AND x < 20")
        assert found == [x for x in (3, 4, 5) if x > day for _ in range(5)]
    assert _entries(engine) == (15, "x < 20 AND x > 2")
    engine.execute("DROP MATERIALIZED VIEW v3")
    assert _entries(engine) == (10, "x < 20 AND x > 3")


def test_many_ranges_apart_share_all_between_the_first_and_the_last() -> None:
    engine = _small()
    for number in range(10):
        _view(engine, f"v{number}", f"x >= {number + 3} AND x < {number + 4}")
    assert _entries(engine) == (15, "x < 13 AND x >= 3")


def test_an_index_forgets_rows_whose_window_has_passed() -> None:
    engine = _small()
    assert _view(engine, "v", "mz_now() < x + 3") == [3] * 5 + [4] * 5 + [5] * 5
    assert _entries(engine)[0] == 10  # times below 6 are closed, so rows with x + 3 <= 6 never pass again
    engine.advance(8)
    engine.compact()
    assert _entries(engine)[0] == 0
    applied = engine.apply({"a": [{"k": 1}], "b": [{"k": 1, "x": 9}]}, time=9)
    assert [one["__diff"] for one in applied.diffs["v"].to_pylist() if one["__time"] == 9] == [2]


def test_a_query_never_misses_what_an_index_lacks() -> None:
    engine = _small()
    _view(engine, "v", "x > 3")
    for time in range(1, 6):
        found = engine.query("SELECT count(*) AS n FROM a JOIN b ON a.k = b.k WHERE x < 3", as_of=time)
        assert found.to_pydict() == {"n": [min(time, 2) * time]}
        assert engine.query("SELECT count(*) AS n FROM b WHERE k = 1", as_of=time).to_pydict() == {"n": [time]}
    assert _entries(engine) == (10, "x > 3")


@pytest.mark.parametrize("end", ["ROLLBACK", "CREATE TABLE a (k bigint); COMMIT"])
def test_what_a_transaction_takes_back_leaves_indexes_as_they_were(end: str) -> None:
    """Its own definitions want other rows meanwhile."""
    engine = _small()
    _view(engine, "v", "x > 3")
    _view(engine, "w", "x = 1")
    with suppress(hj.Conflict):
        engine.execute("BEGIN; DROP MATERIALIZED VIEW w; CREATE MATERIALIZED VIEW z AS "
                       f"SELECT a.k, x FROM a JOIN b ON a.k = b.k WHERE x = 2; {end}")  # fmt: skip
    assert _entries(engine) == (15, "(x = 1) OR (x > 3)")
    engine.execute("DROP MATERIALIZED VIEW v")
    assert _entries(engine) == (5, "x = 1")
    assert engine.apply({"a": [{"k": 1}]}, time=6).diffs["w"].to_pylist() == [
        {"k": 1, "x": 1, "__time": 6, "__diff": 1}
    ]


def test_a_definition_that_cannot_be_kept_leaves_no_index(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = _small()
    _view(engine, "v", "x > 3")
    before = [set(run.indexes) for one in engine._state.collections() for run in one.in_memory]

    def full(writer: Writer, change: Step) -> Any:
        defined(writer, change)
        raise hj.StorageError("no space left")

    defined = Writer._defined
    monkeypatch.setattr(Writer, "_defined", full)
    with pytest.raises(hj.StorageError):
        engine.execute("CREATE INDEX i ON b (x)")
    assert before == [set(run.indexes) for one in engine._state.collections() for run in one.in_memory]


def test_rows_that_are_not_left_in_files_have_partial_indexes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Few lookups would leave them there, but nothing sorts the files by the key."""
    monkeypatch.setattr(parquet, "GROUP_ROWS", 8)
    engine = hj.Engine(tmp_path, clock="own")
    engine.execute("CREATE TABLE a (k bigint); CREATE TABLE b (x bigint PRIMARY KEY, k bigint)")
    engine.apply({"b": [{"k": k % 4, "x": k} for k in range(100)]}, time=1)
    _view(engine, "v", "x > 90")
    engine.flush()
    engine.close()
    monkeypatch.setattr(collection, "LOOKUP_ROWS", 0)
    monkeypatch.setattr(stored_run, "SEARCHED_ROWS", 1)
    engine = hj.Engine(tmp_path)
    assert engine.apply({"a": [{"k": 3}]}, time=2).diffs["v"].num_rows == 3
    assert _entries(engine) == (9, "x > 90")
    engine.close()


def test_an_index_that_lacks_rows_is_not_narrowed_to_them() -> None:
    """A new user's rows may be wanted before an index has them: where a job fills the view, none is built."""
    engine = _small()
    _view(engine, "v", "x > 3")
    there, user = engine._state.collection("b"), User("view", "w")
    ((key, arrangement),) = there.arrangements.items()
    one = Want(frozenset((Call("=", (Column("x", BIGINT), Literal(1, BIGINT)), BOOLEAN),)))
    there.share(key, user, engine._state.functions, frozenset((one,)))
    there.narrow(engine._state.upper)
    found = [run.index(key, arrangement.columns, frozenset((one,))) for run in there.in_memory]
    assert sum(map(len, found)) == 15 and _entries(engine) == (15, "(x = 1) OR (x > 3)")


def test_wrong_to_look_up_what_an_index_may_lack(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = _small()
    _view(engine, "v", "x > 3")
    monkeypatch.setattr(partial.Partial, "serves", lambda *_: True)
    assert _view(engine, "w", "x = 1") != [1] * 5


def test_wrong_to_forget_for_history_what_has_passed() -> None:
    """A view of a past that can still be read needs rows whose window has passed."""
    engine = _small()
    _view(engine, "v", "mz_now() < x + 1")
    there = Partial(frozenset((Want(frozenset(), frozenset((Atom("<", Literal(1, BIGINT)),))),)), 6)
    assert there.serves(there.wants, 6) and not there.serves(there.wants, MINIMUM)
    _view(engine, "w", "mz_now() < x + 1")
    assert [engine.read("w", as_of=time).num_rows for time in range(1, 6)] == [1, 2, 3, 4, 5]
