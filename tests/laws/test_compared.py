"""Cross products with a moving threshold: a batch joins the rows between the old one and the new one, and no answer or
error differs for it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

import halfjoin as hj
from halfjoin.engine.arrange.run import Run
from halfjoin.engine.join import compared, crossed
from halfjoin.engine.join.half_join import HalfJoinOperator
from halfjoin.engine.join.path import compile_path
from halfjoin.engine.kernels import native
from halfjoin.engine.linear.tables import Registry
from halfjoin.engine.updates.updates import Updates
from halfjoin.sql.functions import render
from tests.oracle.choice import Seeded
from tests.oracle.duck import Oracle
from tests.oracle.rows import Bag, bag
from tests.oracle.schema import BY_NAME, TABLES
from tests.oracle.streams import Apply, tame_batches
from tests.support.plan_facts import World

pytestmark = pytest.mark.skipif(not native.BUILT, reason="the native kernels are not built")

ANSWERS = [
    "SELECT a.k, a.x FROM a WHERE a.x > (SELECT avg(x) FROM a)",
    "SELECT a.s FROM a WHERE a.x + 1 <= (SELECT max(y) FROM b)",
    "SELECT a.k FROM a WHERE (SELECT max(y) FROM b) <= a.x AND a.k > 0",
    "SELECT s, sum(x) AS total FROM a GROUP BY s HAVING sum(x) > (SELECT sum(x) * 0.2 FROM a)",
    "SELECT s FROM a GROUP BY s HAVING count(*) >= (SELECT count(*) * 0.3 FROM a) AND sum(x) < (SELECT sum(y) FROM b)",
    "SELECT a.k FROM a WHERE a.x BETWEEN (SELECT avg(y) - 1 FROM b) AND (SELECT avg(x) + 1 FROM a)",
    "SELECT a.k FROM a WHERE a.x BETWEEN (SELECT min(y) FROM b) AND (SELECT max(y) FROM b)",
    "SELECT a.k FROM a WHERE a.s > (SELECT min(s) FROM b)",
    "SELECT a.k FROM a, b WHERE a.x > b.y",
    "SELECT a.k, b.s FROM a, b WHERE a.x < b.y",
    "SELECT a.k FROM a, b WHERE a.s = b.s AND b.y > (SELECT avg(x) FROM a)",
    "SELECT a.k, b.y FROM a, b WHERE a.s = b.s AND a.x > (SELECT avg(x) FROM a)",
    "SELECT a.s FROM a WHERE a.x > (SELECT avg(y) FROM b) AND NOT EXISTS (SELECT 1 FROM b WHERE b.y = a.k)",
    "SELECT a.k, b.y FROM a LEFT JOIN b ON a.s = b.s WHERE a.x + a.k >= (SELECT avg(y) FROM b)",
    "SELECT DISTINCT a.s FROM a WHERE a.x::double precision >= (SELECT avg(y::double precision) FROM b)",
]
ERRORS = [  # of the threshold, of a partner, of both, before the comparison, after it, and beside it
    "SELECT a.k FROM a WHERE a.x < (SELECT 6 / (count(*) - 3) FROM b)",
    "SELECT a.k FROM a WHERE 6 / (a.x - 2) > (SELECT min(y) FROM b)",
    "SELECT s FROM a GROUP BY s HAVING (10 / sum(x))::int >= (SELECT 10 / (sum(y) - 3) FROM b)",
    "SELECT a.k FROM a WHERE 6 / (a.x - 1) > 0 AND a.x >= (SELECT avg(y) FROM b)",
    "SELECT a.k, 6 / (a.x - 1) AS q FROM a WHERE a.x >= (SELECT avg(y) FROM b)",
    "SELECT a.s, 6 / (a.x - t.m) AS q FROM a, (SELECT max(y) AS m FROM b) AS t WHERE a.x >= t.m",
    "SELECT a.s FROM a WHERE a.x >= (SELECT max(y) FROM b) AND 6 / (a.x - (SELECT min(y) FROM b)) > 0",
    "SELECT a.k FROM a WHERE 6 / (a.x - 1) > (SELECT min(y) FROM b) AND a.x < (SELECT 6 / (count(*) - 3) FROM b)",
    "SELECT a.s FROM a, b WHERE a.x < b.y AND 6 / (a.x - 1) > 0",
    "SELECT a.k, 6 / b.y AS q FROM a, b WHERE a.s = b.s AND a.x > (SELECT avg(x) FROM a)",
    "SELECT a.k FROM a, b WHERE a.s = b.s AND a.x > (SELECT avg(x) FROM a) AND 6 / (b.y - a.k) > 0",
    "SELECT a.s FROM a WHERE a.x >= (SELECT avg(y) FROM b) AND 6 / (a.k - (SELECT count(*) % 4 FROM b)) > 0",
    "SELECT a.s, 6 / (a.x - t.m) AS q FROM a, (SELECT max(y) AS m, count(*) AS n FROM b) AS t WHERE a.x >= t.m - t.n",
]


@pytest.fixture(autouse=True)
def searched(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[bool]]:
    """How many streams had rows that are alike, and how many not. Small tables are searched, too, by kernels."""
    monkeypatch.setattr(compared, "FROM", 0)
    seen = Counter[bool]()

    def counted(given: Any, stream: Updates, runs: Any) -> Any:
        made = compared.choices(given, stream, runs)
        if made is not None:
            seen[len(made) < len(stream)] += 1
        return made

    monkeypatch.setattr(crossed, "choices", counted)
    with native.used(True):
        yield seen


@pytest.mark.parametrize("seed", range(6))
def test_a_moving_threshold_has_the_answers_and_errors_of_all_pairs(seed: int, searched: Counter[bool]) -> None:
    views = {f"v{number}": sql for number, sql in enumerate([*ANSWERS, *ERRORS])}
    oracle = Oracle()
    for table in TABLES:
        oracle.create_table(table)
    engines = {True: hj.Engine(retain=1000), False: hj.Engine(retain=1000)}  # with kernels, and without
    for kernels, engine in engines.items():
        with native.used(kernels):
            for text in (*(table.ddl for table in TABLES),
                         *(f"CREATE MATERIALIZED VIEW {name} AS {sql}" for name, sql in views.items())):  # fmt: skip
                engine.execute(text)
    upper = 0
    for batch in batches(seed):
        for name, rows in batch.items():
            oracle.apply(name, rows)
        for kernels, engine in engines.items():
            with native.used(kernels):
                upper = engine.apply(batch).upper
    failed = 0
    for time in range(upper):
        for name, sql in views.items():
            found, plain = (read(engine, name, time) for engine in engines.values())
            assert found == plain, f"{sql} as of {time}"
            failed += isinstance(found, str)
            if sql in ANSWERS:
                assert found == oracle.ask(sql, time), f"{sql} as of {time}"
    assert failed and searched[True] and searched[False]


def test_a_failure_beside_null_is_an_error() -> None:
    """False spares the other predicates, NULL does not."""
    engine = hj.Engine(retain=1000)
    engine.execute("CREATE TABLE t (k bigint, x bigint); CREATE TABLE u (y bigint)")
    engine.execute("CREATE MATERIALIZED VIEW v AS SELECT k FROM t WHERE x > (SELECT avg(y) FROM u) "
                   "AND 6 / (k - (SELECT count(*) FROM u)) <> 9")  # fmt: skip
    engine.apply({"t": [{"k": 1, "x": 0}, {"k": 2, "x": None}, {"k": 3, "x": 5}, {"k": 4, "x": 5}]})
    expected: list[Bag | str] = [
        "one row",  # there is no average, and k = 1 fails
        "one row",  # the average is 3. x is NULL where k = 2 fails
        "one row",  # it is 2 where k = 3 fails
        Counter(),  # it is 8, above x where k = 4 fails
    ]
    for y, wanted in zip((None, 3, 1, 20), expected, strict=True):
        upper = engine.apply({"u": [{"y": y}]}).upper
        assert read(engine, "v", upper - 1) == wanted


def batches(seed: int) -> Iterator[dict[str, pa.Table]]:
    """Changes of the tables. Some come with those before, so that several times of a batch close at once."""
    waiting: dict[str, pa.Table] = {}
    for number, step in enumerate(one for one in tame_batches(Seeded(seed), 30) if isinstance(one, Apply)):
        for name, updates in step.updates.items():
            rows = BY_NAME[name].arrow(updates)
            waiting[name] = pa.concat_tables([waiting[name], rows]) if name in waiting else rows
        if number % 3:
            yield waiting
            waiting = {}
    if waiting:
        yield waiting


def read(engine: hj.Engine, view: str, time: int) -> Bag | str:
    """The contents, or how many rows fail."""
    try:
        return bag(engine.read(view, as_of=time))
    except hj.DataError as error:
        more = re.search(r"\(and \d+ more\)", str(error))
        return more[0] if more else "one row"


def rows(count: int, first: int = 0) -> pa.Table:
    return pa.table({"k": range(first, first + count), "x": [one * 37 % 1000 for one in range(count)]})


def joined(engine: hj.Engine, monkeypatch: pytest.MonkeyPatch, x: int) -> int:
    """How many pairs a batch of one row joins without a key."""
    made = 0

    def counted(stream: Updates, updates: Updates) -> Any:
        nonlocal made
        made += len(stream) * len(updates)
        return product(stream, updates)

    product = crossed._product
    with monkeypatch.context() as patch:
        patch.setattr(crossed, "_product", counted)
        engine.apply({"t": [{"k": -1, "x": x}]})
    return made


@pytest.mark.parametrize(("sql", "most"), [
    ("SELECT k FROM t WHERE x > (SELECT avg(x) FROM t)", 20),
    ("SELECT k FROM t WHERE x - 1 <= (SELECT avg(x) FROM t)", 20),
    ("SELECT k, 10 / (x + 1) AS q FROM t WHERE x > (SELECT avg(x) FROM t)", 20),
    ("SELECT t.k FROM t, u WHERE u.k = t.k % 10 AND x > (SELECT avg(x) FROM t)", 20),
    ("SELECT k FROM t WHERE x > (SELECT avg(x) FROM t) AND NOT EXISTS (SELECT FROM u WHERE u.k = t.k)", 20),
    ("SELECT k FROM t WHERE x < (SELECT sum(x) FROM t)", 20),  # beyond all integers
    ("SELECT k % 50 AS g FROM t GROUP BY g HAVING sum(x) >= (SELECT sum(x) * 0.02 FROM t)", 60),
    ("SELECT k FROM t WHERE x BETWEEN (SELECT avg(x) - 20 FROM t) AND (SELECT avg(x) + 20 FROM t)", 600),
])  # fmt: skip
def test_only_rows_between_thresholds_are_joined(sql: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = hj.Engine()
    engine.execute("CREATE TABLE t (k bigint, x integer); CREATE TABLE u (k bigint)")
    engine.apply({"t": rows(2000), "u": [{"k": k} for k in range(5)]})
    engine.execute(f"CREATE MATERIALIZED VIEW v AS {sql}")
    assert max(joined(engine, monkeypatch, x) for x in (0, 999, 5000)) <= most
    assert bag(engine.read("v")) == bag(engine.query(sql))


def test_a_path_with_another_constant_has_its_own_threshold() -> None:
    world = World("CREATE TABLE t (k bigint, x integer)")
    paths = [world.plan(f"SELECT k FROM t GROUP BY k HAVING sum(x) > (SELECT sum(x) * {share} FROM t)").output.branches[
        0].paths[1] for share in ("0.1", "0.2")]  # fmt: skip
    registry: Registry = {}
    first = compile_path(paths[0], registry)
    same, other = (compile_path(replace(paths[0], final=path.final), registry, first) for path in paths)
    found = [path.stages[-1].lookup for path in (first, same, other)]
    assert all(isinstance(one, HalfJoinOperator) and len(one.compared) == 1 for one in found)
    shown = [render(one.compared[0].mine.expr) for one in found if isinstance(one, HalfJoinOperator)]
    assert shown == ["sum(x) * 0.1", "sum(x) * 0.1", "sum(x) * 0.2"] and same.stages is first.stages


def test_a_run_keeps_what_it_compares_until_the_view_is_dropped() -> None:
    engine = hj.Engine()
    engine.execute("CREATE TABLE t (k bigint, x integer)")
    engine.apply({"t": rows(2000)})
    engine.execute("CREATE MATERIALIZED VIEW v AS SELECT k FROM t WHERE x - 1 > (SELECT avg(x) FROM t)")
    (run,) = engine._state.collection("t").held
    assert isinstance(run, Run)
    sizes = [run.index_bytes]
    for x in (0, 1000):
        engine.apply({"t": [{"k": -1, "x": x}]})
        run = engine._state.collection("t").held[0]
        assert isinstance(run, Run)
        sizes.append(run.index_bytes)
    engine.execute("DROP MATERIALIZED VIEW v")
    assert sizes[1] - sizes[0] == sizes[2] - sizes[0] == 4 * 2000
    assert run.index_bytes <= sizes[0] and not run.computed
