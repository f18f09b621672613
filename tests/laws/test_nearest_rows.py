"""The view law where one row answers for many: the nearest row (`planner.as_of`), and the extremes of a key or its only
row in place of pairs (`planner.one_partner`). Rows come and go at any times, and DuckDB answers."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest.mock import patch

import pytest

import halfjoin as hj
from halfjoin.planner import as_of
from tests.oracle.histories import random_history, told
from tests.oracle.judges import Answers
from tests.oracle.watch import View, Watch
from tests.support.seeds import first_seed, some

FIRST = first_seed()


def nearest(rng: random.Random) -> Iterator[str]:
    """A query for the nearest row before or after each row, in each way to write it. Rows that tie show the same."""
    operator = rng.choice(("<", "<=", ">", ">="))
    order = f"ORDER BY q.x{' DESC' if operator in '<=' else ''}{rng.choice(('', ' NULLS LAST'))}, q.t"
    keys = rng.choice(("q.k = o.k AND", "q.k = o.k AND", "q.k = o.k AND q.k + 1 > o.v AND", ""))
    more = rng.choice(("", "", " AND q.t IS NOT NULL", " AND o.v > 0", " AND q.x < 2"))
    found = f"FROM b q WHERE {keys} q.x {operator} o.v{more} {order} LIMIT 1"
    yield f"SELECT o.k, o.s, l.x, l.t FROM a o, LATERAL (SELECT q.x, q.t {found}) l"
    yield f"SELECT o.k, o.v, l.x, l.t FROM a o LEFT JOIN LATERAL (SELECT q.x, q.t {found}) l ON true"
    yield f"SELECT o.k, (SELECT q.x {found}) AS y FROM a o"
    yield (f"SELECT k, v, x, t FROM (SELECT o.k, o.v, q.x, q.t, row_number() OVER (PARTITION BY o.k, o.v {order}) AS n "
           f"FROM (SELECT DISTINCT k, v FROM a) o JOIN b q ON {keys} q.x {operator} o.v) r WHERE n = 1")  # fmt: skip


def of_one(rng: random.Random) -> Iterator[str]:
    """A query for the rows that have, or have no partner with a comparison beside the key."""
    operator, no = rng.choice(("<", "<=", ">", ">=", "<>")), rng.choice(("", "NOT "))
    own = rng.choice(("", "", " AND q.t IS NOT NULL", " AND o.v > 0"))
    groups = "(SELECT k, max(x) AS x, max(t) AS t FROM b GROUP BY k) q"
    loop = ("(WITH RECURSIVE w (k, x, t) AS (SELECT k, x, t FROM b UNION SELECT k, x + 2, t FROM w "
            "WHERE x < 4) TABLE w) q")  # fmt: skip
    for table, key in (("b q", "q.k = o.k"), ("b q", "q.k IS NOT DISTINCT FROM o.k"), ("b q", "true"),
                       (groups, "q.k = o.k"), (loop, "q.k = o.k")):  # fmt: skip
        yield f"SELECT o.* FROM a o WHERE {no}EXISTS (SELECT 1 FROM {table} WHERE {key} AND q.x {operator} o.v{own})"
    yield f"SELECT o.*, q.x FROM a o LEFT JOIN {groups} ON q.k = o.k AND q.x {operator} o.v{own}"
    yield f"SELECT o.*, q.x FROM a o LEFT JOIN {groups} ON q.k = o.k AND q.x + 1 > o.v"
    yield f"SELECT o.* FROM a o LEFT JOIN b q ON q.k = o.k AND q.x {operator} o.v{own} WHERE q.k IS NULL"


def of_groups(rng: random.Random) -> Iterator[str]:
    """A query for the first row of each group of which it reads nothing but the groups."""
    order = rng.choice(("x", "x DESC, t", "t, x"))
    numbered = f"(SELECT k, x, row_number() OVER (PARTITION BY k ORDER BY {order}) AS r FROM b) q WHERE r = 1"
    yield f"SELECT count(*) AS n FROM {numbered}"
    yield f"SELECT k FROM {numbered} AND k > {rng.choice((-1, 0, 1))}"
    yield (f"SELECT o.s, count(*) AS n FROM a o JOIN (SELECT DISTINCT ON (k) k, x FROM b ORDER BY k, {order}) q "
           "ON q.k = o.k GROUP BY o.s")  # fmt: skip


@pytest.mark.parametrize("seed", range(FIRST, FIRST + some(8)))
@pytest.mark.parametrize("queries", [nearest, of_one, of_groups])
def test_views_agree_with_duckdb(queries: Callable[[random.Random], Iterator[str]], seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    made = [*queries(rng), *queries(rng)]
    views = [View(f"v{number}", sql, sql) for number, sql in enumerate(made)]
    end = rng.choice((4, 8))
    history = random_history(rng, rng.choice((12, 35, 60)), end)
    durable = seed % 4 == 3
    watch = Watch(tmp_path / "w" if durable else None, retain=rng.choice((1, 1000)))
    for number, batch in enumerate([None, *told(rng, history, end)]):
        if batch is not None:
            watch.tell(batch)
        for view in views:
            if number == 0 and rng.random() < 0.7:
                assert watch.create(view, view.name)
        if durable and rng.random() < 0.2:
            watch.restart()
    for view in views:
        assert watch.create(view, f"late_{view.name}")
    assert not watch.wrong(Answers(), history)
    watch.engine.close()


def test_the_nearest_row_is_found_without_pairs() -> None:
    engine = hj.Engine()
    engine.execute("""
        CREATE TABLE rate (ccy text, day date, rate numeric(8, 4), PRIMARY KEY (ccy, day));
        CREATE TABLE trade (id bigint PRIMARY KEY, ccy text, day date);
        INSERT INTO rate SELECT 'EUR', date '2020-01-01' + g, 1 + g / 1000.0 FROM generate_series(1, 1000) g;
        INSERT INTO trade SELECT g, 'EUR', date '2020-01-01' + g FROM generate_series(1, 1000) g
    """)
    sql = ("SELECT t.id, r.rate FROM trade t, LATERAL (SELECT rate FROM rate r WHERE r.ccy = t.ccy AND r.day <= t.day "
           "ORDER BY r.day DESC LIMIT 1) r")  # fmt: skip
    with patch.object(as_of, "_nearest", return_value=None):
        paired = engine.query(sql)
    engine.execute(f"CREATE MATERIALIZED VIEW valued AS {sql}")
    assert sorted(map(str, engine.read("valued").to_pylist())) == sorted(map(str, paired.to_pylist()))
    engine.compact()
    rows = {one.collection: one.rows for one in engine.stats().arrangements if "#" in one.collection}
    assert rows and max(rows.values()) <= 2000  # pairs would be 500,500
