"""Queries that group by a key first have the answers that they have where the rows are joined and grouped at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import halfjoin as hj
from halfjoin.engine.batch.readable import closed
from halfjoin.engine.batch.state import State
from halfjoin.engine.reduce import at_once
from halfjoin.engine.statements import querying
from halfjoin.engine.statements.evaluating import planned_query
from halfjoin.planner.cutting import groups
from halfjoin.planner.plan import Reduce
from halfjoin.planner.reduces import key_first
from halfjoin.sql.bind.query import bind_query
from halfjoin.sql.parse.parse import parse_query
from halfjoin.sql.parse.prepared import prepared
from tests.oracle.answers import assert_same
from tests.oracle.rows import tuples
from tests.support.kernels import both_ways

__all__ = ["both_ways"]

SCHEMA = """
    CREATE TABLE c (id bigint PRIMARY KEY, name text, land text, day int, a double precision);
    CREATE TABLE s (k bigint PRIMARY KEY, c bigint, d bigint, price numeric(7,2), q int, f double precision);
    CREATE TABLE w (k bigint PRIMARY KEY, c bigint, d bigint, price numeric(7,2));
    CREATE TABLE d (x bigint, y bigint, t text, PRIMARY KEY (x, y))
"""
JOINED = "FROM s JOIN c ON c.id = s.c"
BY_KEY = (
    f"SELECT c.name, c.land, sum(s.price) AS p, count(*) AS n, avg(s.price) AS m {JOINED} GROUP BY c.name, c.land",
    f"SELECT c.name, s.d, sum(s.q) AS p, count(s.q) AS n {JOINED} WHERE s.q <> 3 GROUP BY s.d, c.name",
    f"SELECT c.name, sum(s.f) AS p, avg(s.f) AS m, stddev_samp(s.f) AS d, corr(s.f, s.q) AS r {JOINED} GROUP BY c.name",
    f"SELECT DISTINCT c.name, c.land, s.d {JOINED}",
    f"SELECT upper(c.name) AS u, bool_and(s.q > 1) AS b, bit_or(s.q) AS o {JOINED} GROUP BY upper(c.name)",
    "SELECT c.day, sum(CASE WHEN c.land = 'x' THEN s.price END) AS x, avg(CASE WHEN c.name IS NULL THEN s.q END) AS y,"
    f" count(CASE WHEN c.a > 1 THEN s.f ELSE NULL END) AS z, sum(s.q) AS q {JOINED} GROUP BY c.day",
    f"SELECT c.day, s.d, count(*) FILTER (WHERE s.q > 2) AS n, sum(s.q) FILTER (WHERE c.land = 'x') AS m {JOINED} "
    "GROUP BY c.day, s.d",
    "SELECT c.name, d.t, sum(s.price) AS p FROM s, c, d WHERE s.c = c.id AND s.d = d.x AND s.q = d.y "
    "GROUP BY c.name, d.t",
    "SELECT d.t, sum(s.price) AS p, count(*) AS n FROM s, d WHERE s.d = d.x AND s.q = d.y GROUP BY d.t",
    "SELECT c.name, sum(u.price) AS p, count(*) AS n FROM (SELECT c, price FROM s UNION ALL SELECT c, price FROM w) u "
    "JOIN c ON c.id = u.c GROUP BY c.name",
    f"SELECT c.name, c.land, sum(s.q) AS p, count(*) AS n {JOINED} WHERE c.day = 1 AND s.q <> 2 "
    "GROUP BY c.name, c.land",
    "SELECT c.name, sum(CASE WHEN d.t = 'p' THEN s.price END) AS p, count(CASE WHEN d.t = 'q' THEN s.q END) AS q, "
    "count(*) AS n FROM s, c, d WHERE s.c = c.id AND s.d = d.x AND s.q = d.y AND d.y > 0 AND c.land = 'x' "
    "GROUP BY c.name",
    "SELECT u.n, u.land, d.t, avg(s.f) AS m FROM s, (SELECT upper(name) AS n, * FROM c) u, d "
    "WHERE s.c = u.id AND s.d = d.x AND s.q = d.y GROUP BY u.n, u.land, d.t",
    f"SELECT c.name, sum(60 / s.q) AS p, sum(s.q + s.q) AS q {JOINED} WHERE s.q <> 0 GROUP BY c.name",
    f"SELECT c.name, 2 / c.day AS x, sum(s.q) AS p {JOINED} WHERE c.day > 0 GROUP BY c.name, 2 / c.day",
    f"SELECT name, max(p) AS m FROM (SELECT c.name, c.land, sum(s.price) AS p {JOINED} GROUP BY c.name, c.land) q "
    "GROUP BY name",
)  # fmt: skip
COUNTED = "SELECT count(*) AS n, sum(s.q) AS p FROM s, c, d WHERE s.c = c.id AND s.d = d.x AND s.q = d.y AND c.day = {}"
SHARED = "SELECT * FROM " + ", ".join(f"({COUNTED.format(day)}) q{day}" for day in range(4))  # no row has the last day
AT_ONCE = (  # and why
    f"SELECT c.name, max(s.price) AS p {JOINED} GROUP BY c.name",  # it does not add up
    f"SELECT c.name, sum(s.q * c.day) AS p {JOINED} GROUP BY c.name",  # a row's value is of both
    f"SELECT c.name, sum(c.day) AS p {JOINED} GROUP BY c.name",  # a value is of the joined table
    f"SELECT c.name, sum(CASE WHEN c.day = 1 THEN s.q ELSE 0 END) AS p {JOINED} GROUP BY c.name",  # others count
    f"SELECT c.name, sum(s.q) AS p {JOINED} AND c.day > s.q GROUP BY c.name",  # the join has another condition
    "SELECT d.t, sum(s.q) AS p FROM s JOIN d ON d.x = s.d GROUP BY d.t",  # the key is not whole
    "SELECT c.name, sum(s.q) AS p FROM s LEFT JOIN c ON c.id = s.c GROUP BY c.name",  # rows without a partner count
    f"SELECT c.day, sum(s.q) AS p {JOINED} GROUP BY c.day",  # it does not pay
)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rows of a key are as good as many, and few groups are added up as many are."""
    monkeypatch.setattr(at_once, "FROM", 1)
    monkeypatch.setattr(key_first, "_PAYS", 0)
    monkeypatch.setattr(key_first, "_LESS", 0)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each aggregate was grouped by a key first."""
    found, real = list[bool](), groups.key_first

    def spy(*args: Any) -> Any:
        result = real(*args)
        found.append(result is not None)
        return result

    monkeypatch.setattr(groups, "key_first", spy)
    return found


def batches(random: np.random.Generator, count: int) -> Iterator[dict[str, pa.Table]]:
    """Rows that come, change and go: with NULLs, and with keys that no row has."""

    def some(values: np.ndarray[Any, Any], nulls: float = 0.1) -> pa.Array:
        return pa.array(values, mask=random.random(len(values)) < nulls)

    def words(letters: str, n: int) -> pa.Array:
        return pa.array([None if one == "_" else one for one in random.choice([*letters], n)])

    def ints(high: int, n: int) -> np.ndarray[Any, Any]:
        return random.integers(0, high, n)

    for number in range(count):
        n, m = (6_000, 12) if number == 0 else (int(random.integers(1, 60)), int(random.integers(1, 4)))
        price = pa.array(ints(9999, n)).cast(pa.decimal128(21, 2)).cast(pa.decimal128(7, 2))
        sales = pa.table({"k": random.permutation(7_000)[:n], "c": some(ints(16, n)), "d": some(ints(4, n)),
                          "price": price, "q": some(ints(5, n).astype(np.int32)), "f": some(random.normal(size=n))})
        people = pa.table({"id": random.permutation(14)[:m], "name": words("abc_", m), "land": words("xy_", m),
                           "day": some(ints(3, m).astype(np.int32)), "a": random.normal(size=m)})  # fmt: skip
        others = sales.select(["k", "c", "d", "price"]).slice(0, n // 2)
        batch = {"s": hj.upserts(sales), "c": hj.upserts(people), "w": hj.upserts(others)}
        if number == 0:
            pairs = np.unique(np.stack([ints(4, 30), ints(5, 30)]), axis=1)
            batch["d"] = hj.upserts(pa.table({"x": pairs[0], "y": pairs[1], "t": words("pq_", pairs.shape[1])}))
        yield batch


@pytest.mark.parametrize("seed", range(2))
def test_answers_are_those_of_views_and_of_duckdb(seed: int, both_ways: None) -> None:
    engine, random = hj.Engine(retain=100), np.random.default_rng(seed)
    engine.execute(SCHEMA)
    for number, sql in enumerate(BY_KEY):
        engine.execute(f"CREATE MATERIALIZED VIEW v{number} AS {sql}")
    for time, batch in enumerate(batches(random, 5)):
        engine.apply(batch, time=time)
        duck = duckdb.connect(config={"threads": 1})
        for table in "cswd":
            duck.register("rows", engine.read(table))
            duck.execute(f"CREATE TABLE {table} AS SELECT * FROM rows")
        for number, sql in enumerate(BY_KEY):
            got = tuples(engine.query(sql))
            assert got, sql
            assert_same(got, tuples(engine.read(f"v{number}")), sql)
            assert_same(got, duck.execute(sql).fetchall(), sql)
        assert_same(tuples(engine.query(SHARED)), duck.execute(SHARED).fetchall(), SHARED)
        for number, sql in enumerate(BY_KEY if time else ()):
            before = tuples(engine.read(f"v{number}", as_of=time - 1))
            assert_same(tuples(engine.query(sql, as_of=time - 1)), before, sql)


@pytest.mark.parametrize("sql", BY_KEY)
def test_a_query_groups_by_a_key_first(sql: str, made: list[bool]) -> None:
    engine = hj.Engine()
    engine.execute(SCHEMA)
    engine.query(sql)
    assert True in made


@pytest.mark.parametrize(("days", "firsts"), [(3, 0), (4, 1)])
def test_aggregates_without_groups_share_the_groups_of_a_key(days: int, firsts: int) -> None:
    engine = hj.Engine()
    engine.execute(SCHEMA)
    sql = "SELECT * FROM " + ", ".join(f"({COUNTED.format(day)}) q{day}" for day in range(days))
    plan = planned_query(closed(engine._state), bind_query(parse_query(sql), engine._state.catalog, sql).relation)
    by_key = [node for node in plan.nodes if isinstance(node, Reduce) and node.keys]
    assert len(by_key) == firsts
    assert engine.query(sql).num_rows == 1


def test_what_fails_only_without_a_partner_does_not_fail() -> None:
    """The first reduce divides by zero for a row that the join leaves out. The query is asked again without it."""
    engine, sql = hj.Engine(), f"SELECT c.name, sum(60 / s.q) AS p {JOINED} GROUP BY c.name"
    engine.execute(SCHEMA)
    engine.apply({"c": [{"id": 1, "name": "a"}], "s": [{"k": 1, "c": 1, "q": 3}, {"k": 2, "c": 9, "q": 0}]})
    asked = [engine.query(sql).to_pylist() for _ in range(2)]
    assert asked == [[{"name": "a", "p": 20}]] * 2
    engine.apply({"s": [{"k": 3, "c": 1, "q": 0}]})
    with pytest.raises(hj.DataError, match=r"division by zero in 60 / s\.q, for a row with s\.q = 0"):
        engine.query(sql)


def test_a_query_that_has_dared_too_much_is_remembered_as_it_was_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, sql = hj.Engine(), f"SELECT c.name, sum(60 / s.q) AS p {JOINED} GROUP BY c.name"
    engine.execute(SCHEMA)
    engine.apply({"c": [{"id": 1, "name": "a"}], "s": [{"k": 1, "c": 1, "q": 3}, {"k": 2, "c": 9, "q": 0}]})
    engine.query(sql)
    monkeypatch.setattr(querying, "prepare", None)
    assert engine.query(sql).to_pylist() == [{"name": "a", "p": 20}]


def test_a_query_with_other_constants_dares_as_much(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, sql = hj.Engine(), f"SELECT c.name, sum({{}} / s.q) AS p {JOINED} GROUP BY c.name"
    engine.execute(SCHEMA)
    engine.apply({"c": [{"id": 1, "name": "a"}], "s": [{"k": 1, "c": 1, "q": 3}]})
    seen, answered = list[bool](), querying.answered

    def noted(state: State, ready: querying.Ready, as_of: int | None) -> Any:
        seen.append(ready.evaluation.plan.dares)
        return answered(state, ready, as_of)

    monkeypatch.setattr(querying, "answered", noted)
    for value in (30, 60, 90, 120):
        assert engine.query(sql.format(value)).to_pylist() == [{"name": "a", "p": value // 3}]
    assert seen == [True] * 4
    engine.apply({"s": [{"k": 2, "c": 9, "q": 0}]})
    for value in (150, 180):
        assert engine.query(sql.format(value)).to_pylist() == [{"name": "a", "p": value // 3}]
        found = engine.connect().run(prepared(sql.format(value + 3))).rows
        assert found is not None and found.to_pylist() == [{"name": "a", "p": value // 3 + 1}]


@pytest.mark.parametrize("sql", AT_ONCE)
def test_others_group_at_once(sql: str, made: list[bool]) -> None:
    engine = hj.Engine()
    engine.execute(SCHEMA)
    engine.query(sql)
    assert True not in made


def test_a_view_groups_at_once(made: list[bool]) -> None:
    """Sizes choose, and a view outlives them."""
    engine = hj.Engine()
    engine.execute(f"{SCHEMA}; CREATE MATERIALIZED VIEW v AS {BY_KEY[0]}")
    assert made == []


def test_few_rows_of_a_key_are_grouped_at_once(made: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_first, "_PAYS", 4)
    engine, rows = hj.Engine(), [{"k": number, "c": 1, "price": 1} for number in range(7)]
    engine.execute(SCHEMA)
    engine.apply({"c": [{"id": 1}, {"id": 2}], "s": rows})
    engine.query(BY_KEY[0])
    engine.apply({"s": [{"k": 7, "c": 1, "price": 1}]})
    engine.query(BY_KEY[0].replace("AS p", "AS other"))
    assert made == [False, True]


def test_a_table_without_a_key_is_grouped_at_once() -> None:
    """A row of it may be there fewer than no times: then groups of the key would be errors that the join never sees."""
    engine = hj.Engine()
    engine.execute(SCHEMA.replace("s (k bigint PRIMARY KEY", "s (k bigint"))
    engine.apply({"c": [{"id": 1, "name": "a"}], "s": hj.deletes([{"k": 1, "c": 5, "q": 2}])})
    assert engine.query(f"SELECT c.name, sum(s.q) AS p {JOINED} GROUP BY c.name").num_rows == 0


@pytest.mark.parametrize(("people", "late"), [(20, ["c", "d"]), (2000, ["d"])])
def test_tables_come_late_while_few_groups_are_left(
    people: int, late: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many people with many rows of the other table each would leave about as many groups as there are rows."""
    monkeypatch.setattr(key_first, "_LESS", 2)
    found, real = list[list[str] | None](), groups.key_first

    def spy(*args: Any) -> Any:
        result = real(*args)
        found.append(None if result is None else [one.collection for one in result.joined])
        return result

    monkeypatch.setattr(groups, "key_first", spy)
    engine = hj.Engine()
    engine.execute(SCHEMA)
    engine.apply({"c": pa.table({"id": range(people), "name": [f"n{number % 3}" for number in range(people)]}),
                  "d": pa.table({"x": range(50), "y": [0] * 50, "t": [f"t{number}" for number in range(50)]}),
                  "s": pa.table({"k": range(9000), "c": [number % people for number in range(9000)],
                                 "d": [number % 50 for number in range(9000)], "q": [0] * 9000})})  # fmt: skip
    join = "FROM s JOIN c ON c.id = s.c JOIN d ON d.x = s.d AND d.y = s.q"
    engine.query(f"SELECT c.name, d.t, count(*) AS n {join} GROUP BY c.name, d.t")
    engine.query(f"SELECT c.name, s.k, count(*) AS n {join} GROUP BY c.name, s.k")
    assert found == [late, None]
