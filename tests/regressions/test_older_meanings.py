"""A warehouse whose views a version of halfjoin made that evaluated some expressions otherwise."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import halfjoin as hj
from tests.support.older_journal import age

# A view's text as it is, and a text that gives the rows which an older version gave it.
VIEWS = {
    "q": ("SELECT k, n / 3 AS x FROM t", "SELECT k, round(n / 3, 2) AS x FROM t"),  # another type
    "f": ("SELECT k, (n / 3)::float8 AS x FROM t", "SELECT k, round(n / 3, 2)::float8 AS x FROM t"),  # the same type
    "a": ("SELECT k, avg(n)::float8 AS x FROM t GROUP BY k",
          "SELECT k, round(avg(n), 1)::float8 AS x FROM t GROUP BY k"),
    "c": ("SELECT k, array_to_string(ARRAY[k::text::char(3)], ',') AS x FROM t", "SELECT k, k::text AS x FROM t"),
    "j": ("SELECT k, to_jsonb(ARRAY[k::text::char(3)])::text AS x FROM t",
          "SELECT k, to_jsonb(ARRAY[k::text])::text AS x FROM t"),
    "l": ("SELECT k, quote_literal(k::text::char(3)) AS x FROM t",
          "SELECT k, quote_literal(rpad(k::text, 3)) AS x FROM t"),
    "r": ("SELECT o.k, o.r, count(*) AS x FROM t LEFT JOIN o ON o.k = t.k + 1 GROUP BY o.k, o.r",
          "SELECT o.k, o.r, 2 * count(*) AS x FROM t LEFT JOIN o ON o.k = t.k + 1 GROUP BY o.k, o.r"),
    "e": ("SELECT k, max('ok'::mood)::text AS x FROM t GROUP BY k", "SELECT k, '2' AS x FROM t GROUP BY k"),
    "w": ("SELECT k, max(i) OVER (PARTITION BY k) AS x FROM s", "SELECT k, interval '1 day' AS x FROM s"),
    "p": ("SELECT k, min(ARRAY[i]) AS x FROM s GROUP BY k",
          "SELECT k, min(ARRAY[interval '1 day']) AS x FROM s GROUP BY k"),
    "b": ("SELECT k, ARRAY[i] && ARRAY[interval '1 day'] AS x FROM s",
          "SELECT k, i::text = '1 day' AS x FROM s"),
    "u": ("WITH RECURSIVE u(k, x) AS (SELECT k, i FROM s UNION SELECT k, x FROM u) SELECT k, x FROM u",
          "SELECT DISTINCT k, interval '1 day' AS x FROM s"),
    "g": ("SELECT a.k, b.x FROM (SELECT k, sum(k) AS x FROM t GROUP BY k) a, "
          "(SELECT k, sum(k) AS x FROM s GROUP BY k) b, y.t WHERE a.x < b.x + y.t.k AND a.k = b.k AND a.x = b.x",
          "SELECT a.k, b.x + 1 AS x FROM (SELECT k, sum(k) AS x FROM t GROUP BY k) a, (SELECT k, sum(k) AS x FROM s "
          "GROUP BY k) b, y.t WHERE a.k = b.k AND a.x = b.x"),
    "n": ("SELECT y.t.k, (SELECT count(*) FROM t WHERE y.t.k = 7) AS x FROM y.t", "SELECT k, 0::bigint AS x FROM y.t"),
    "above": ("SELECT x, count(*) AS c FROM f GROUP BY x", "SELECT x, count(*) AS c FROM f GROUP BY x"),
    "same": ("SELECT k, sum(n) AS x FROM t GROUP BY k", "SELECT k, sum(n) AS x FROM t GROUP BY k"),
}


def test_views_are_filled_anew_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    kept = _older(tmp_path)
    with pytest.raises(hj.StorageError, match="evaluated the materialized view q otherwise"):
        hj.Engine(tmp_path, read_only=True)
    with hj.Engine(tmp_path) as engine:
        said = [record.getMessage() for record in caplog.records]
        named = sorted(text.split(" view ")[1].split()[0] for text in said)
        assert named == ["a", "above", "b", "c", "e", "f", "g", "j", "l", "n", "p", "q", "r", "u", "w"]
        _check(engine, range(2, 5))
        engine.apply({"t": [{"k": 0, "n": 0, "__diff": -1}, {"k": 1, "n": 10}]}, time=5)
        _check(engine, range(2, 6))
    assert _ids(tmp_path)["same"] == kept["same"] and _ids(tmp_path)["q"] != kept["q"]
    caplog.clear()
    with hj.Engine(tmp_path) as engine:
        _check(engine, range(2, 6))
    with hj.Engine(tmp_path, read_only=True) as engine:
        _check(engine, range(2, 6))
    assert not caplog.records


def test_a_sink_of_such_a_view_is_an_error(tmp_path: Path) -> None:
    _older(tmp_path, "CREATE SINK s FROM f INTO DELTA 'out'")
    with pytest.raises(hj.StorageError, match="the sink s has its rows"):
        hj.Engine(tmp_path)


def test_the_older_version_opens_what_this_one_refused(tmp_path: Path) -> None:
    _older(tmp_path, "CREATE SINK s FROM f INTO DELTA 'out'")
    age(tmp_path, 3)
    with pytest.raises(hj.StorageError, match="open the warehouse with that version, drop the sink"):
        hj.Engine(tmp_path, retain=7)
    with closing(sqlite3.connect(tmp_path / "journal.sqlite")) as journal:
        meta = dict(journal.execute("SELECT key, value FROM meta").fetchall())
        assert (meta["format"], "retain" in meta) == (3, True) and meta["retain"] != 7
        assert journal.execute("SELECT count(*) FROM run").fetchone() != (0,)


@pytest.mark.parametrize(("text", "kept"), [
    ("SELECT public.t.k FROM public.t", True), ("SELECT zz.t.* FROM t", True),
    ('SELECT "zz"."t".k FROM t WHERE zz.t.k > 0', True),
    ("SELECT public.t.k FROM t WHERE EXISTS (SELECT FROM y.t)", False),
    ("SELECT public.t.k FROM t WHERE EXISTS (SELECT FROM (VALUES (1)) AS t (k) WHERE public.t.k = 1)", False),
])  # fmt: skip
def test_the_schema_of_a_column_that_was_not_looked_at(text: str, kept: bool, tmp_path: Path) -> None:
    """It may be any word, and a sink stays where no two tables are called the same."""
    same = text.replace("public.t.k", "t.k").replace('"zz"."t"', "t").replace("zz.", "")
    with hj.Engine(tmp_path / "w") as engine:
        engine.execute("CREATE SCHEMA y; CREATE TABLE y.t (k integer); CREATE TABLE t (k integer)")
        engine.execute("INSERT INTO t VALUES (1)")
        engine.execute(f"CREATE VIEW p AS {same}; CREATE MATERIALIZED VIEW v AS {same}")
        engine.execute(f"CREATE SINK s FROM v INTO DELTA '{tmp_path / 'out'}'")
    with closing(sqlite3.connect(tmp_path / "w" / "journal.sqlite")) as journal, journal:
        (catalog,) = journal.execute("SELECT value FROM meta WHERE key = 'catalog'").fetchone()
        document = json.loads(catalog)
        document["meaning"] = 13
        for view in document["views"]:
            view["text"] = text
        journal.execute("UPDATE meta SET value = ? WHERE key = 'catalog'", (json.dumps(document),))
    if not kept:
        with pytest.raises(hj.StorageError, match="the sink s has its rows"):
            hj.Engine(tmp_path / "w")
        return
    for _ in range(2):
        with hj.Engine(tmp_path / "w") as engine:
            engine.execute("INSERT INTO t VALUES (2)")
            assert engine.read("v").num_rows == engine.query("SELECT * FROM p").num_rows == engine.read("t").num_rows


def _check(engine: hj.Engine, times: range) -> None:
    for name, (text, _) in VIEWS.items():
        for time in times:
            found, wanted = engine.read(name, as_of=time), engine.query(text, as_of=time)
            assert found.schema.types == wanted.schema.types
            assert sorted(map(str, found.to_pylist())) == sorted(map(str, wanted.to_pylist())), (name, time)


def _older(folder: Path, more: str = "") -> dict[str, int]:
    """Make a warehouse as the older version left it, and return the ids of its views."""
    with hj.Engine(folder, clock="own") as engine:
        engine.execute("CREATE TABLE t (k integer, n numeric(10,2)); CREATE TYPE pair AS (a integer, b text)")
        engine.execute("CREATE TYPE mood AS ENUM ('sad', 'ok')")
        engine.execute("CREATE TABLE s (k integer, i interval); CREATE SCHEMA y; CREATE TABLE y.t (k integer)")
        engine.execute("CREATE TABLE o (k integer, r pair); SET TIME = 0; BEGIN; INSERT INTO o VALUES (1, NULL)")
        engine.execute("INSERT INTO y.t VALUES (7); COMMIT")
        engine.execute("SET TIME = 1; INSERT INTO s VALUES (1, '1 day'), (1, '24:00')")
        for name, (_, older) in VIEWS.items():
            engine.execute(f"CREATE MATERIALIZED VIEW {name} AS {older}")
        engine.execute(more)
        for time in (2, 3, 4):
            engine.apply({"t": [{"k": n % 2, "n": n * time} for n in range(4)]}, time=time)
    journal = sqlite3.connect(folder / "journal.sqlite")
    with journal:
        (catalog,) = journal.execute("SELECT value FROM meta WHERE key = 'catalog'").fetchone()
        document = json.loads(catalog)
        assert document.pop("meaning") > 1
        for view in document["views"]:
            view["text"] = VIEWS[view["name"]][0]
        journal.execute("UPDATE meta SET value = ? WHERE key = 'catalog'", (json.dumps(document),))
    journal.close()
    return _ids(folder)


def _ids(folder: Path) -> dict[str, int]:
    journal = sqlite3.connect(folder / "journal.sqlite")
    found = dict(journal.execute("SELECT name, id FROM collection WHERE kind = 'views'").fetchall())
    journal.close()
    return found
