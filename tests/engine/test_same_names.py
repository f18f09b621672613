"""Views over tables of one name in two schemas, whose columns are told apart by their schemas."""

from __future__ import annotations

from pathlib import Path

import pytest

import halfjoin as hj

VIEWS = {
    "joined": ("SELECT a.t.k, a.t.n, public.t.n AS m FROM a.t LEFT JOIN t ON public.t.k = a.t.k",
               "SELECT x.k, x.n, y.n AS m FROM a.t AS x LEFT JOIN t AS y ON y.k = x.k"),
    "without": ("SELECT a.t.k FROM a.t WHERE NOT EXISTS (SELECT FROM t WHERE public.t.k = a.t.k)",
                "SELECT x.k FROM a.t AS x WHERE NOT EXISTS (SELECT FROM t AS y WHERE y.k = x.k)"),
    "greatest": ("SELECT a.t.k, (SELECT max(public.t.n) FROM t WHERE public.t.k <= a.t.k) AS m FROM a.t",
                 "SELECT x.k, (SELECT max(y.n) FROM t AS y WHERE y.k <= x.k) AS m FROM a.t AS x"),
    "missing": ("SELECT public.t.k, count(a.t.*) AS c FROM t LEFT JOIN a.t ON a.t.k = public.t.k GROUP BY public.t.k",
                "SELECT y.k, count(x.k) AS c FROM t AS y LEFT JOIN a.t AS x ON x.k = y.k GROUP BY y.k"),
}  # fmt: skip


def test_views_follow_both_tables_also_once_these_are_renamed(tmp_path: Path) -> None:
    with hj.Engine(tmp_path) as engine:
        engine.execute("CREATE SCHEMA a; CREATE TABLE a.t (k integer, n integer)")
        engine.execute("CREATE TABLE t (k integer, n integer)")
        for name, (text, _) in VIEWS.items():
            engine.execute(f"CREATE MATERIALIZED VIEW {name} AS {text}")
        engine.execute("INSERT INTO a.t VALUES (1, 10), (2, 20), (4, 40); INSERT INTO t VALUES (2, 21), (3, 30)")
        _check(engine, "a.t", "t")
        engine.execute("ALTER TABLE a.t RENAME TO u; INSERT INTO a.u VALUES (3, 31); DELETE FROM t WHERE k = 2")
        _check(engine, "a.u", "t")
        engine.execute("ALTER TABLE t RENAME TO w; INSERT INTO w VALUES (2, 5), (1, 7); DELETE FROM a.u WHERE k = 1")
        _check(engine, "a.u", "w")
    with hj.Engine(tmp_path) as engine:
        engine.execute("INSERT INTO w VALUES (4, 8); INSERT INTO a.u VALUES (9, 9)")
        _check(engine, "a.u", "w")


def test_a_name_that_another_table_takes_later_means_the_first_one() -> None:
    engine = hj.Engine()
    engine.execute("CREATE SCHEMA a; CREATE SCHEMA b; CREATE TABLE a.t (k integer); CREATE TABLE b.t (k integer)")
    engine.execute("INSERT INTO a.t VALUES (1); INSERT INTO b.t VALUES (2)")
    for kind in ("VIEW p", "MATERIALIZED VIEW v"):
        engine.execute(f"CREATE {kind} AS SELECT a.t.k, b.t.k AS n FROM a.t, b.t")
    engine.execute("ALTER TABLE a.t RENAME TO o; ALTER TABLE b.t SET SCHEMA a; ALTER TABLE a.t RENAME TO q")
    engine.execute("INSERT INTO a.o VALUES (5)")
    for rows in (engine.read("v"), engine.query("SELECT * FROM p")):
        assert sorted(map(tuple, (row.values() for row in rows.to_pylist()))) == [(1, 2), (5, 2)]


def test_an_alias_has_no_schema() -> None:
    engine = hj.Engine()
    engine.execute("CREATE SCHEMA a; CREATE SCHEMA b; CREATE TABLE a.t (k integer); CREATE TABLE b.t (k integer)")
    for sql in ("SELECT t.k FROM a.t AS t WHERE EXISTS (SELECT FROM b.t AS t WHERE a.t.k = b.t.k)",
                "WITH t AS (SELECT 9 AS k) SELECT b.t.k FROM t"):  # fmt: skip
        with pytest.raises(hj.UnknownName, match=r"unknown table or alias '[ab]\.t'"):
            engine.execute(sql)


def test_a_name_without_its_schema_is_ambiguous() -> None:
    engine = hj.Engine()
    engine.execute("CREATE SCHEMA a; CREATE TABLE a.t (k integer); CREATE TABLE t (k integer)")
    with pytest.raises(hj.UnsupportedSQL, match=r"table reference t is ambiguous[\s\S]*public\.t or a\.t") as raised:
        engine.execute("SELECT t.k FROM t, a.t")
    assert raised.value.sqlstate == "42P09"
    with pytest.raises(hj.UnknownName, match=r"unknown table or alias 'b\.t'"):
        engine.execute("SELECT b.t.k FROM t, a.t")


def test_a_search_path_leads_to_the_changed_table_and_to_the_catalog() -> None:
    engine = hj.Engine()
    engine.execute("CREATE SCHEMA a; CREATE TABLE a.t (k integer, n integer); CREATE TABLE t (k integer, n integer)")
    engine.execute("SET search_path = a; WITH t AS (SELECT 8 AS k, 80 AS n) INSERT INTO t SELECT * FROM t")
    engine.execute("WITH t AS (SELECT 8 AS k) UPDATE t SET n = 0; INSERT INTO public.t VALUES (9, 90)")
    assert engine.execute("SELECT a.t.k, a.t.n, public.t.k AS p FROM t, public.t").to_pylist() == [
        {"k": 8, "n": 0, "p": 9}
    ]
    found = engine.execute("SELECT count(*) AS c FROM pg_class WHERE pg_catalog.pg_class.relname = 't'")
    assert found.to_pylist() == [{"c": 2}]
    engine.execute("CREATE TABLE public.pg_t (k integer)")
    with pytest.raises(hj.UnknownName, match=r"unknown table 'a\.pg_t'"):
        engine.execute("DELETE FROM pg_t")


def _check(engine: hj.Engine, first: str, second: str) -> None:
    for name, (_, same) in VIEWS.items():
        wanted = engine.query(same.replace("a.t AS", f"{first} AS").replace(" t AS", f" {second} AS"))
        assert sorted(map(str, engine.read(name).to_pylist())) == sorted(map(str, wanted.to_pylist())), name
