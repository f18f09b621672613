"""Node collections: views share them, a warehouse keeps them, missing ones are filled, and users cannot name them."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import halfjoin as hj
from halfjoin.engine.storage import filling
from halfjoin.engine.updates import limits
from halfjoin.planner import regions
from tests.oracle.rows import Bag, bag

TABLES = "; ".join(f"CREATE TABLE {name} (k bigint, x bigint)" for name in "rst")
FIRST = "(SELECT k, x FROM r UNION ALL SELECT k, x FROM s)"
SECOND = "(SELECT k, x FROM s WHERE x > 0 UNION ALL SELECT k, x FROM t)"
VIEW = f"CREATE MATERIALIZED VIEW {{}} AS SELECT a.x, b.x AS y FROM {FIRST} AS a, {SECOND} AS b WHERE a.k = b.k"
OTHER = f"""CREATE MATERIALIZED VIEW {{}} AS SELECT big.x, c.x AS y FROM {FIRST} AS big, {SECOND} AS small, t AS c
    WHERE big.k = small.x AND c.k = big.x"""


@pytest.fixture(autouse=True)
def _eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a join of two unions enough for a node."""
    monkeypatch.setattr(regions, "MOST_JOINS", 1)


class World:
    """The tables' rows by time, and the expected contents of the views."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, int, int, int, int]] = []  # table, k, x, time, diff

    def apply(self, engine: hj.Engine, time: int) -> None:
        """A batch that adds a row to each table, and removes an old row from `s`."""
        new = [(table, (time + i) % 3, (time * 7 + i) % 4, time, 1) for i, table in enumerate("rst")]
        old = [one for one in self.rows if one[0] == "s" and one[3] == time - 2 and one[4] > 0]
        new += [(table, k, x, time, -1) for table, k, x, _, _ in old]
        batch: dict[str, list[dict[str, Any]]] = {}
        for table, k, x, _, diff in new:
            batch.setdefault(table, []).append({"k": k, "x": x, "__diff": diff})
        engine.apply(batch, time=time)
        self.rows += new

    def _at(self, table: str, time: int) -> Bag:
        found: Bag = Counter()
        for name, k, x, at, diff in self.rows:
            if name == table and at <= time:
                found[k, x] += diff
        return found

    def view(self, time: int) -> Bag:
        """The contents of a view of `VIEW`."""
        s = self._at("s", time)
        first, second = self._at("r", time), Counter({row: n for row, n in s.items() if row[1] > 0})
        found: Bag = Counter()
        for (k, x), n in [*first.items(), *s.items()]:
            for (k2, y), m in [*second.items(), *self._at("t", time).items()]:
                found[x, y] += n * m * (k == k2)
        return Counter({row: n for row, n in found.items() if n})

    def other(self, time: int) -> Bag:
        """The contents of a view of `OTHER`."""
        s, t = self._at("s", time), self._at("t", time)
        found: Bag = Counter()
        for (k, x), n in [*self._at("r", time).items(), *s.items()]:
            for (_, x2), m in [*((row, m) for row, m in s.items() if row[1] > 0), *t.items()]:
                for (k3, y), o in t.items():
                    found[x, y] += n * m * o * (k == x2 and k3 == x)
        return Counter({row: n for row, n in found.items() if n})


def nodes(engine: hj.Engine) -> dict[str, list[str]]:
    """The users of each node."""
    return {one.name: one.users for one in engine.stats().collections if one.kind == "node"}


def check(engine: hj.Engine, world: World, upper: int, since: int = 0) -> None:
    views = {"v": world.view, "w": world.other}
    for name in [name for name in views if name in engine._state.views]:
        for time in range(since, upper):
            found = bag(engine.read(name, as_of=time, multiplicity=True))
            assert found == views[name](time), (name, time)


def test_views_share_a_node_and_count_as_users() -> None:
    with hj.Engine(clock="own") as engine:
        engine.execute(f"{TABLES}; {VIEW.format('v')}; {OTHER.format('w')}")
        (shared,) = [name for name, users in nodes(engine).items() if users == ["v", "w"]]
        assert f"node {shared} (k bigint, x bigint), shared with v" in engine.explain("w")
        users = {user for one in engine.stats().arrangements if one.collection == shared for user in one.users}
        assert users == {"v", "w"}


def test_a_later_view_has_its_past_from_the_log() -> None:
    world = World()
    with hj.Engine(clock="own", retain=1000) as engine:
        engine.execute(f"{TABLES}; {VIEW.format('v')}")
        for time in range(1, 9):
            world.apply(engine, time)
        engine.compact()
        assert [one.since for one in engine.stats().collections if one.kind == "node"] == [8]
        engine.execute(OTHER.format("w"))
        check(engine, world, 9)
        world.apply(engine, 9)
        check(engine, world, 10)


def test_a_node_goes_with_its_last_user(tmp_path: Path) -> None:
    world = World()
    with hj.Engine(tmp_path / "w", clock="own") as engine:
        engine.execute(f"{TABLES}; {VIEW.format('v')}; {OTHER.format('w')}")
        world.apply(engine, 1)
        engine.flush()
        engine.execute("DROP MATERIALIZED VIEW v")
        assert set(map(tuple, nodes(engine).values())) == {("w",)}
        world.apply(engine, 2)
        check(engine, world, 3, 1)
        engine.execute("DROP MATERIALIZED VIEW w")
        assert not nodes(engine) and not list((tmp_path / "w" / "nodes").iterdir())
        assert not engine.stats().arrangements


def test_a_view_that_is_replaced_keeps_its_node() -> None:
    world = World()
    with hj.Engine(clock="own") as engine:
        engine.execute(f"{TABLES}; {VIEW.format('v')}")
        world.apply(engine, 1)
        before = dict(nodes(engine))
        engine.execute(VIEW.format("v").replace("CREATE", "CREATE OR REPLACE"))
        assert nodes(engine) == before
        world.apply(engine, 2)
        check(engine, world, 3)
        engine.execute("CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT k FROM r")
        assert not nodes(engine)


def test_a_new_table_of_an_old_name_has_other_nodes(tmp_path: Path) -> None:
    with hj.Engine(tmp_path / "w", clock="own") as engine:
        engine.execute(f"{TABLES}; {VIEW.format('v')}")
        World().apply(engine, 1)
        before = set(nodes(engine))
        engine.execute("DROP MATERIALIZED VIEW v; DROP TABLE r; CREATE TABLE r (k bigint, x bigint)")
        engine.execute("DROP TABLE s; CREATE TABLE s (k bigint, x bigint)")
        engine.execute(VIEW.format("v"))
        assert before.isdisjoint(nodes(engine)) and engine.read("v").num_rows == 0


def test_a_view_that_fails_half_way_leaves_no_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    with hj.Engine(tmp_path / "w", clock="own") as engine:
        engine.execute(TABLES)
        world.apply(engine, 1)
        for name in ("fill_nodes", "forget_past"):
            with monkeypatch.context() as patch, pytest.raises(hj.StorageError, match="no more"):
                patch.setattr(f"halfjoin.engine.statements.definitions.{name}", _failing(getattr(filling, name)))
                engine.execute(VIEW.format("v"))
            assert not nodes(engine) and not engine.stats().arrangements
        engine.execute(VIEW.format("v"))
        check(engine, world, 2)


def _failing(work: Any) -> Any:
    def call(*args: Any) -> None:
        work(*args)
        raise hj.StorageError("no more")

    return call


def test_nodes_are_opened_with_their_warehouse(tmp_path: Path) -> None:
    world, names = World(), set[str]()
    for start in (1, 4, 7):
        with hj.Engine(tmp_path / "w", clock="own") as engine:
            if start == 1:
                engine.execute(f"{TABLES}; {VIEW.format('v')}; {OTHER.format('w')}")
                names = set(nodes(engine))
            assert set(nodes(engine)) == names
            for time in range(start, start + 3):
                world.apply(engine, time)
            check(engine, world, start + 3, 1)
            if start == 4:
                engine.flush()
            copy = tmp_path / f"copy{start}"  # as if the process had been killed here
            shutil.copytree(tmp_path / "w", copy, ignore=shutil.ignore_patterns("lock"))
        with hj.Engine(copy) as killed:
            check(killed, world, start + 3, 1)
            assert set(nodes(killed)) == names
    with hj.Engine(tmp_path / "w", read_only=True) as reader:
        check(reader, world, 10, 1)


def test_missing_nodes_are_filled_and_others_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A version that plans a view differently opens the warehouse of another version, and the other way round."""
    world = World()
    for number in range(4):
        with monkeypatch.context() as patch:
            patch.setattr(regions, "MOST_JOINS", 1 if number % 2 else 100)
            if number == 3:
                with hj.Engine(tmp_path / "w", read_only=True) as reader:
                    check(reader, world, 3 * number + 1, 1)
            with hj.Engine(tmp_path / "w", clock="own") as engine:
                if not number:
                    engine.execute(f"{TABLES}; {VIEW.format('v')}; {OTHER.format('w')}")
                assert bool(nodes(engine)) is bool(number % 2)
                for time in range(3 * number + 1, 3 * number + 4):
                    world.apply(engine, time)
                check(engine, world, 3 * number + 4, 1)
    with hj.Engine(tmp_path / "w") as engine:
        check(engine, world, 13, 1)


def test_nodes_have_no_name_for_users() -> None:
    with hj.Engine(clock="own") as engine:
        engine.execute(f"{TABLES}; {VIEW.format('v')}")
        World().apply(engine, 1)
        (name,) = nodes(engine)
        shown = engine.execute("SHOW VIEWS"), engine.execute("SHOW TABLES"), engine.execute("SHOW MATERIALIZED VIEWS")
        assert not any(name in str(table) for table in shown)
        assert name not in engine.apply({"r": [{"k": 1, "x": 1}]}, time=2).diffs
        for call in (lambda: engine.read(name), lambda: engine.subscribe(name), lambda: engine.explain(name),
                     lambda: engine.query(f'SELECT * FROM "{name}"'),
                     lambda: engine.execute(f"""CREATE SINK c FROM "{name}" INTO DELTA 'c'""")):  # fmt: skip
            with pytest.raises(hj.UnknownName):
                call()


def test_an_error_of_a_node_is_one_of_its_views(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    with hj.Engine(clock="own") as engine:
        engine.execute(f"{TABLES}; {VIEW.format('v')}; CREATE MATERIALIZED VIEW u AS SELECT x FROM v;"
                       "CREATE MATERIALIZED VIEW apart AS SELECT x FROM r WHERE x > 5")  # fmt: skip
        world.apply(engine, 1)
        monkeypatch.setattr(limits, "MOST_ROWS", 20)
        applied = engine.apply({"r": [{"k": 100, "x": i} for i in range(30)]}, time=2)
        assert set(applied.errors) == {"u", "v", "apart"}
        monkeypatch.undo()
        monkeypatch.setattr(regions, "MOST_JOINS", 1)
        for name in ("v", "u"):
            with pytest.raises(hj.DataError, match="a part of v cannot be read as of 2: one batch would change more"):
                engine.read(name)
            assert bag(engine.read("v", as_of=1, multiplicity=True)) == world.view(1)


def test_queries_over_many_unions_are_answered() -> None:
    world = World()
    with hj.Engine(clock="own") as engine:
        engine.execute(TABLES)
        for time in range(1, 5):
            world.apply(engine, time)
        select = VIEW.partition(" AS ")[2]
        assert Counter(map(tuple, _rows(engine.query(select)))) == world.view(4)
        assert Counter(map(tuple, _rows(engine.query(select, as_of=2)))) == world.view(2)
        engine.execute(VIEW.format("v"))
        assert Counter(map(tuple, _rows(engine.query(select, as_of=3)))) == world.view(3)
        assert not [one for one in engine.stats().arrangements if "this query" in one.users]


def _rows(table: Any) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))
