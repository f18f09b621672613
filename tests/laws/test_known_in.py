"""The law of known keys, where another table has them: `IN (SELECT ...)` and EXISTS look keys up. The answer, or the
error, is that of a scan."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest.mock import patch

import pytest

import halfjoin as hj
from halfjoin.engine.join import known as engine_known
from halfjoin.engine.statements import evaluating, reading
from halfjoin.planner import known
from halfjoin.planner.plan import KnownIn
from tests.laws.test_known_keys import DDL, World, both, opened_each_time  # noqa: F401
from tests.oracle.rows import bag

IN = {
    "t": ["t.a IN (SELECT y FROM w)", "t.k IN (SELECT y FROM u WHERE y > 0)", "t.s = ANY (SELECT s FROM u)",
          "t.k IN (SELECT y FROM w WHERE s = 'a')", "t.n IN (SELECT y FROM u)", "t.n IN (SELECT f FROM u)",
          "t.n IN (SELECT y * 1.255 FROM u)", "t.d IN (SELECT m FROM w)",
          "t.d IN (SELECT date '2024-01-01' + y::int FROM w)",
          "t.c IN (SELECT s FROM u)", "t.c IN (SELECT s::char(6) FROM w)", "t.a IN (SELECT a FROM g WHERE n > 1)",
          "t.a IN (VALUES (1), (NULL), (2))", "t.k IN (SELECT unnest(ARRAY[1, 2, 2, NULL]))",
          "t.a IN (SELECT 6 / y FROM u)",
          "EXISTS (SELECT 1 FROM u WHERE u.a = t.a AND u.s = t.s)",
          "EXISTS (SELECT 1 FROM w WHERE w.y = t.k AND 6 / w.y > 1)",
          "t.k IN (SELECT u.y FROM u JOIN w ON u.y = w.y)", "t.k IN (SELECT max(y) FROM u GROUP BY s)",
          "t.a IN (SELECT y FROM w) AND t.k IN (SELECT a FROM u)", "t.a IN (SELECT y FROM w) AND t.s = 'a'",
          "(t.a, t.s) IN (SELECT a, s FROM u)",
          "t.a IN (SELECT y FROM w) AND t.k NOT IN (SELECT y FROM w WHERE y > 1)"],
    "u": ["u.a IN (SELECT a FROM t)", "u.s IN (SELECT s FROM w)", "(u.a, u.s) IN (SELECT y, s FROM w)",
          "lower(u.s) IN (SELECT s FROM w)", "u.a IN (SELECT k FROM t WHERE n > 0)",
          "u.a IN (SELECT a FROM t WHERE k = 2)",
          "EXISTS (SELECT 1 FROM t WHERE t.k = u.y AND t.a = u.a)", "u.a IN (SELECT y FROM w) AND 6 / u.y > 1"],
    "w": ["w.y IN (SELECT k FROM t)", "(w.s, w.y) IN (SELECT s, a FROM u)", "w.y IN (SELECT n FROM t)"],
    "v": ["v.k IN (SELECT y FROM w)", "v.s IN (SELECT s FROM u WHERE a = 1)"],
    "g": ["g.a IN (SELECT y FROM w)", "g.a IN (SELECT a FROM t WHERE s = 'b')"],
}  # fmt: skip


class Asked(World):
    def condition(self, name: str, column: str) -> str:
        return self.random.choice(IN[name])


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[KnownIn]]:
    """The keys of others with which queries began, however few rows there are."""
    found = list[KnownIn]()
    lookups = known.lookups

    def noted(*args: object) -> Iterator[object]:
        made = list(lookups(*args))  # type: ignore[arg-type]
        found.extend(one for one in made if isinstance(one, KnownIn))
        return iter(made)

    monkeypatch.setattr(known, "_SMALL", 0)
    monkeypatch.setattr(known, "SCANNED", 0.01)
    monkeypatch.setattr(evaluating, "lookups", noted)
    yield found


def random_queries(engine: hj.Engine, world: World, time: int, both: Callable[..., bool]) -> None:  # noqa: F811
    for _ in range(10):
        both(engine, world.query(), world.random.choice([None, *range(1, time + 1)]))


@pytest.mark.parametrize("scanned", [0.01, 1.0])
@pytest.mark.parametrize("seed", range(10))
def test_keys_of_others_have_the_answer_of_a_scan(
    seed: int, scanned: float, both: Callable[..., bool], used: list[KnownIn], monkeypatch: pytest.MonkeyPatch  # noqa: F811
) -> None:  # fmt: skip
    monkeypatch.setattr(engine_known, "SCANNED", scanned)
    world = Asked(seed)
    with hj.Engine(clock="own", retain=100) as engine:
        engine.execute(DDL)
        for time in range(1, 9):
            world.submit(engine, time)
            random_queries(engine, world, time, both)
            if time == 5:
                engine.compact()
    assert len(used) > 20


@pytest.mark.parametrize("seed", range(5))
def test_keys_of_others_are_looked_up_in_files(
    seed: int, both: Callable[..., bool], used: list[KnownIn], monkeypatch: pytest.MonkeyPatch, tmp_path: Path  # noqa: F811
) -> None:  # fmt: skip
    monkeypatch.setattr(engine_known, "SCANNED", 0.01)
    world = Asked(100 + seed)
    for engine, time in opened_each_time(world, tmp_path / "w"):
        random_queries(engine, world, time, both)
    assert len(used) > 10


CHANGES = [
    "UPDATE {} SET y = y + 1 WHERE k IN (SELECT k FROM few)", "DELETE FROM {} WHERE k IN (SELECT k + 1 FROM few)",
    "UPDATE {} SET y = 0 WHERE EXISTS (SELECT 1 FROM few WHERE few.k = {}.k AND few.z < 3)",
    "UPDATE {} SET y = few.z FROM few WHERE few.k = {}.k", "DELETE FROM {} USING few WHERE few.k + 2 = {}.k",
    "UPDATE {} SET y = 6 / z FROM few WHERE few.k = {}.k",
    "UPDATE {} SET y = 6 / (y - 2) WHERE k IN (SELECT k FROM few)",
    "DELETE FROM {} WHERE 6 / y > 1 AND k IN (SELECT k FROM few)",
    "DELETE FROM {} WHERE k IN (VALUES (1), (NULL), (70))",
    "UPDATE {} SET y = x.z FROM unnest(ARRAY[3, 4], ARRAY[9, NULL]) AS x (k, z) WHERE {}.k = x.k",
    "MERGE INTO {} USING (SELECT DISTINCT ON (k) k, z FROM few WHERE k > 0 ORDER BY k, z) AS f ON f.k = {}.k "
    "WHEN MATCHED AND z > 2 THEN DELETE WHEN MATCHED THEN UPDATE SET y = z WHEN NOT MATCHED THEN INSERT VALUES (k, z)",
]  # fmt: skip


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("key", ["k bigint PRIMARY KEY", "k bigint"])
def test_changes_are_those_of_scans(seed: int, key: str, used: list[KnownIn]) -> None:
    """`plain` has no index, and `keyed` has one; both are changed by the same statements."""
    pick = random.Random(seed)
    engine = hj.Engine()
    engine.execute(f"CREATE TABLE keyed ({key}, y integer); CREATE TABLE plain (k bigint, y integer); "
                   "CREATE INDEX ON keyed (k); CREATE TABLE few (k integer, z integer)")  # fmt: skip
    keys = [*range(60)] if "PRIMARY" in key else [pick.choice([*range(30), None]) for _ in range(60)]
    rows = [{"k": one, "y": pick.randrange(1, 6)} for one in keys]
    engine.apply({"keyed": rows, "plain": rows})
    for _ in range(25):
        if pick.random() < 0.5:
            engine.execute("DELETE FROM few")
            engine.apply({"few": [{"k": pick.choice([1, 2, 3, 5, 40, 80, None]), "z": pick.choice([0, 1, 2, 3, 4])}
                                  for _ in range(pick.randrange(5))]})  # fmt: skip
        change, outcomes = pick.choice(CHANGES), []
        for table in ("keyed", "plain"):
            try:
                outcomes.append(engine.execute(change.replace("{}", table)).to_pylist())
            except hj.HalfjoinError as problem:
                outcomes.append(str(problem).splitlines()[0].replace(table, "the table"))
        assert outcomes[0] == outcomes[1], change
        assert bag(engine.read("keyed")) == bag(engine.read("plain")), change
    assert used


@pytest.mark.parametrize("on_disk", [False, True])
def test_copies_of_rows_are_counted_by_an_index(on_disk: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Of a table without a PRIMARY KEY, joined statements must know how often it has a row."""
    engine = hj.Engine(tmp_path / "w" if on_disk else None)
    engine.execute("CREATE TABLE t (k bigint, y integer); CREATE TABLE few (k bigint, z integer)")
    engine.execute("CREATE INDEX ON t (k)")
    engine.execute("INSERT INTO t SELECT i / 2, i / 4 FROM generate_series(0, 3999) AS s (i); "
                   "INSERT INTO few VALUES (1, 7), (1, 7), (5, 8), (NULL, 1); UPDATE t SET k = NULL WHERE k = 9")
    if on_disk:
        engine.flush()
        engine.close()
        engine = hj.Engine(tmp_path / "w")
    with engine:
        monkeypatch.setattr(reading, "contents", None)
        made = engine.execute("UPDATE t SET y = z FROM few WHERE few.k = t.k RETURNING t.k, t.y").to_pylist()
        assert sorted(tuple(row.values()) for row in made) == [(1, 7), (1, 7), (5, 8), (5, 8)]
        assert engine.execute("DELETE FROM t USING few WHERE few.k = t.k AND few.z = 7").to_pylist() == [{"count": 2}]
        assert engine.query("SELECT count(*) AS n, count(k) AS k FROM t").to_pylist() == [{"n": 3998, "k": 3996}]


def test_explain_says_whose_keys_are_looked_up() -> None:
    engine = hj.Engine()
    engine.execute("CREATE TABLE t (k bigint PRIMARY KEY, a integer); CREATE TABLE few (k bigint NOT NULL); "
                   "CREATE TABLE many (k bigint)")  # fmt: skip
    engine.execute("INSERT INTO t SELECT i, i FROM generate_series(1, 5000) AS s (i); INSERT INTO few VALUES (1), (2); "
                   "INSERT INTO many SELECT i FROM generate_series(1, 2000) AS s (i)")  # fmt: skip
    for sql, said in {
        "SELECT * FROM t WHERE k IN (SELECT k FROM few)": "looks up the keys of few(k) in t(k), scans few",
        "SELECT * FROM t WHERE k IN (SELECT k FROM many)": "scans t",
        "SELECT * FROM t WHERE k IN (SELECT k FROM few) AND 10 / a > 1": "scans t",
        "SELECT * FROM t WHERE k NOT IN (SELECT k FROM few)": "scans t",
        "SELECT * FROM t WHERE k IN (VALUES (5), (6))": "looks up the keys of a subquery in t(k)",
        "SELECT * FROM few WHERE k IN (SELECT k FROM t WHERE k = 2)": "looks up 1 key in t(k), scans few",
        "SELECT * FROM t WHERE a IN (SELECT k FROM few)": "scans t",
        "SELECT * FROM t WHERE k IN (SELECT a FROM t WHERE k = 2)":
            "looks up 1 key in t(k), looks up the keys of a subquery in t(k)",
    }.items():  # fmt: skip
        assert f"as a query: {said}" in engine.explain(sql).splitlines(), sql


def test_more_keys_than_expected_are_a_scan() -> None:
    """The figures tell how many rows a table has, and not how many elements an array has."""
    engine = hj.Engine()
    engine.execute("CREATE TABLE t (k bigint PRIMARY KEY)")
    engine.execute("INSERT INTO t SELECT i FROM generate_series(1, 5000) AS s (i)")
    with patch.object(engine_known, "present", side_effect=engine_known.present) as scan:
        for keys, scans in ((3, 0), (3000, 1)):
            scan.reset_mock()
            found = engine.query("SELECT * FROM t WHERE k IN (SELECT unnest($1::bigint[]))", (list(range(keys)),))
            assert found.num_rows == keys - 1
            assert sum(sum(map(len, call.args[0])) == 5000 for call in scan.call_args_list) == scans
