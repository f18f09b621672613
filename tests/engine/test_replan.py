"""Views are planned anew when their inputs have grown, so the order of definitions and loads does not matter."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import halfjoin as hj
from halfjoin.engine.arrange import collection, index
from halfjoin.engine.kernels import native
from halfjoin.engine.statements import replan
from halfjoin.engine.storage import filing
from tests.oracle.rows import bag

TABLES = """
CREATE TABLE flights (id bigint PRIMARY KEY, origin text, hour bigint, tail bigint);
CREATE TABLE weather (origin text, hour bigint, wind bigint, PRIMARY KEY (origin, hour));
CREATE TABLE airports (faa text PRIMARY KEY, name text);
CREATE TABLE planes (tail bigint, model text);
CREATE TABLE crew (tail bigint, name text)
"""
BOARD = "CREATE MATERIALIZED VIEW board AS SELECT f.id, a.name FROM flights f JOIN airports a ON f.origin = a.faa"
WINDY = """CREATE MATERIALIZED VIEW windy AS SELECT f.id, w.wind, p.model FROM flights f
    JOIN weather w ON f.origin = w.origin AND f.hour = w.hour JOIN planes p ON p.tail = f.tail"""
ABOVE = "CREATE MATERIALIZED VIEW above AS SELECT b.name, w.wind FROM board b JOIN windy w ON b.id = w.id"
MANNED = """CREATE MATERIALIZED VIEW manned AS SELECT f.id, c.name, p.model FROM flights f
    JOIN crew c ON c.tail = f.tail JOIN planes p ON p.tail = f.tail"""  # planes first, as crews are many
VIEWS = f"{BOARD};{WINDY};{ABOVE};{MANNED}"
NAMES = ("board", "windy", "above", "manned")
ORIGINS, HOURS = ("EWR", "JFK", "LGA"), 400
COARSE, FINE = "flights(origin)", "flights(hour, origin)"


def rows(flights: int = 3000) -> dict[str, list[dict[str, Any]]]:
    return {
        "flights": [{"id": n, "origin": ORIGINS[n % 3], "hour": n % HOURS, "tail": n % 500} for n in range(flights)],
        "weather": [{"origin": o, "hour": h, "wind": h % 7} for o in ORIGINS for h in range(HOURS)],
        "airports": [{"faa": o, "name": o.lower()} for o in ORIGINS],
        "planes": [{"tail": n, "model": f"m{n % 9}"} for n in range(500)],
        "crew": [{"tail": n % 100, "name": f"{n}"} for n in range(1500)],
    }


def plan_of(engine: hj.Engine, view: str) -> object:
    """The paths of a plan: the lookups, their keys, and their order."""
    joins = json.loads(engine.explain(view, "json"))["joins"]
    return [[(path["input"], [(one["input"], one["arrangement"]["name"], one["by"]) for one in path["lookups"]])
             for path in join] for join in joins]  # fmt: skip


def plans(engine: hj.Engine) -> dict[str, object]:
    return {view: plan_of(engine, view) for view in NAMES}


def used(engine: hj.Engine) -> set[tuple[str, tuple[str, ...]]]:
    return {(one.name, tuple(sorted(one.users))) for one in engine.stats().arrangements}


def planned(engine: hj.Engine) -> dict[str, int | None]:
    return {one.name: one.planned for one in engine.stats().collections if one.kind == "materialized view"}


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Count lookups in indexes, and the rows that they find."""
    found, real = [0, 0], index.Index.find

    def find(self: index.Index, probes: Any) -> Any:
        found[0] += 1
        for made in real(self, probes):
            found[1] += len(made[0])
            yield made

    with monkeypatch.context() as patched, native.used(False):
        patched.setattr(index.Index, "find", find)
        yield found


def cost(engine: hj.Engine, time: int, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The lookups of small changes of every table, with all indexes made before."""
    changes = {"flights": [{"id": 5, "origin": "JFK", "hour": 7, "tail": 3}],
               "weather": [{"origin": "LGA", "hour": h, "wind": -1} for h in range(9)],
               "airports": [{"faa": "EWR", "name": "newark"}]}  # fmt: skip
    engine.apply({name: hj.upserts(given) for name, given in changes.items()}, time=time)
    with counted(monkeypatch) as found:
        engine.apply({"planes": [{"tail": 4, "model": "new"}],
                      "weather": hj.upserts([{"origin": "LGA", "hour": 3, "wind": -2}])}, time=time + 1)
        engine.apply({"flights": hj.upserts([{"id": 6, "origin": "EWR", "hour": 8, "tail": 4}])}, time=time + 2)
    return found


@pytest.fixture(params=["memory", "folder"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    return None if request.param == "memory" else tmp_path / "w"


def late(folder: Path | None, *, reopened: bool = False) -> hj.Engine:
    """An engine whose views were made after the rows came."""
    engine = hj.Engine(folder and folder.parent / "late", clock="own")
    engine.execute(TABLES)
    engine.apply(rows(), time=0)
    if reopened:
        engine.close()
        engine = hj.Engine(folder and folder.parent / "late")
    engine.execute(VIEWS)
    return engine


def test_views_before_and_after_loading_cost_the_same(folder: Path | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collection, "WAITING", 2)  # rows that cancel in runs that wait would be found, too
    after = late(folder)
    for batches in (1, 5):
        place = folder and folder.parent / f"early {batches}"
        early = hj.Engine(place, clock="own")
        early.execute(f"{TABLES};{VIEWS}")
        for start in range(batches):
            early.apply({name: given[start::batches] for name, given in rows().items()}, time=start)
        assert plans(early) == plans(after) and used(early) == used(after)
        assert {view: bag(early.read(view)) for view in NAMES} == {view: bag(after.read(view)) for view in NAMES}
        if place is not None:
            early.close()
            early = hj.Engine(place)
            assert plans(early) == plans(after) and used(early) == used(after)
        with hj.Engine(clock="own") as other:  # each has a late one of its own to change
            other.execute(TABLES)
            other.apply(rows(), time=0)
            other.execute(VIEWS)
            assert cost(early, 20, monkeypatch) == cost(other, 20, monkeypatch)
            assert {view: bag(early.read(view)) for view in NAMES} == {view: bag(other.read(view)) for view in NAMES}
        early.close()
    assert (FINE, ("windy",)) in used(after) and (COARSE, ("board",)) in used(after)
    after.close()


def test_views_after_reopening_get_the_same_plans(tmp_path: Path) -> None:
    with late(tmp_path / "w", reopened=True) as reopened, late(None) as after:
        assert plans(reopened) == plans(after) and used(reopened) == used(after)


def test_the_first_load_does_not_take_the_coarse_key(monkeypatch: pytest.MonkeyPatch) -> None:
    with hj.Engine(clock="own") as engine:
        engine.execute(f"{TABLES};{BOARD};{WINDY}")
        with counted(monkeypatch) as found:
            engine.apply(rows(), time=0)
        assert found[1] < 10 * 3000  # by origin alone they are 1,200 * 1,000


def test_what_shrinks_and_grows_by_turns_keeps_its_plan(folder: Path | None) -> None:
    with hj.Engine(folder, clock="own", retain=1) as engine:
        engine.execute(f"{TABLES};{VIEWS}")
        given, seen = rows(1500), list[object]()
        gone = {name: hj.deletes(table) for name, table in given.items()}
        for turn in range(6):
            engine.apply(given, time=2 * turn)
            engine.apply(gone, time=2 * turn + 1)
            engine.compact()
            seen.append((plans(engine), planned(engine)))
        assert all(one == seen[0] for one in seen)
        for view in NAMES:
            engine.execute(f"REFRESH PLAN {view}")  # of empty tables: what was known of them stands
        assert plans(engine) == seen[0][0]  # type: ignore[index]


def test_arrangements_that_nobody_uses_any_more_go(monkeypatch: pytest.MonkeyPatch) -> None:
    with hj.Engine(clock="own") as engine:
        engine.execute(f"{TABLES};{BOARD};{WINDY}")
        engine.apply(rows(), time=0)
        monkeypatch.setattr(replan, "Statistics", Fixed)
        before = used(engine)
        engine.execute("REFRESH PLAN windy")
        names = {name for name, _ in used(engine)}
        assert FINE in {name for name, _ in before} and FINE not in names
        assert all(users for _, users in used(engine))
        collection = engine._state.tables["flights"]
        assert all(set(run.indexes) <= set(collection.arrangements) for run in collection.held)  # type: ignore[union-attr]


class Fixed(replan.Statistics):
    """Statistics in which the coarse key is as good as the fine one."""

    def distinct(self, key: Any) -> int | None:
        return 1000


def test_explain_says_when_and_on_what_a_plan_was_made(tmp_path: Path) -> None:
    with hj.Engine(tmp_path / "w", clock="own") as engine:
        engine.execute(f"{TABLES};{BOARD}")
        assert "planned at upper 0, on airports 0 rows, flights 0 rows" in engine.explain("board")
        engine.apply(rows(), time=6)
        engine.execute(WINDY)
        made = "planned at upper 7, on flights 3,000 rows, planes 500 rows, weather 1,200 rows"
        assert made in engine.explain("windy") and f"{FINE} 1,200 keys" in engine.explain("windy")
        assert planned(engine)["windy"] == json.loads(engine.explain("windy", "json"))["planned"]["upper"] == 7
        query = WINDY.partition(" AS ")[2]
        assert "planned at" not in engine.explain(query)
        assert json.loads(engine.explain(query, "json"))["planned"] is None
        with hj.Engine(tmp_path / "w", read_only=True) as reader:
            assert _figures(reader.explain("windy")) == _figures(engine.explain("windy"))
            assert plan_of(reader, "windy") == plan_of(engine, "windy")
            engine.apply({"planes": [{"tail": 1, "model": "x"}]}, time=8)
            engine.execute("REFRESH PLAN windy")
            assert "planned at upper 9" in reader.explain("windy") and planned(reader)["windy"] == 9
        shown = engine.explain("windy")
    with hj.Engine(tmp_path / "w") as engine:
        assert _figures(engine.explain("windy")) == _figures(shown)


def _figures(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("planned at")]


def test_a_reader_follows_a_plan_that_changes(tmp_path: Path) -> None:
    with hj.Engine(tmp_path / "w", clock="own") as engine:
        engine.execute(f"{TABLES};{VIEWS}")
        with hj.Engine(tmp_path / "w", read_only=True) as reader:
            before = plans(engine)
            assert plans(reader) == before
            given = rows()
            given["weather"] = given["weather"][:40]
            engine.apply(given, time=0)
            assert plans(reader) == plans(engine) and planned(reader) == planned(engine)
            assert bag(reader.read("above")) == bag(engine.read("above"))


def test_opening_keeps_the_plan_that_ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with hj.Engine(tmp_path / "w", clock="own") as engine:
        engine.execute(f"{TABLES};{VIEWS}")
        engine.apply(rows(), time=0)
        monkeypatch.setattr(replan, "Statistics", Fixed)
        for view in NAMES:
            engine.execute(f"REFRESH PLAN {view}")
        monkeypatch.undo()
        odd, when = plans(engine), planned(engine)
        engine.execute("DROP MATERIALIZED VIEW above, manned; CREATE INDEX more ON weather (origin)")
    for number in range(3):
        with hj.Engine(tmp_path / "w") as engine:
            assert {view: plan_of(engine, view) for view in NAMES[:2]} == {view: odd[view] for view in NAMES[:2]}
            assert planned(engine) == {view: when[view] for view in NAMES[:2]}
            engine.apply({"planes": [{"tail": number, "model": "more"}]}, time=5 + number)


def test_a_warehouse_without_figures_gets_them(tmp_path: Path) -> None:
    with hj.Engine(tmp_path / "w", clock="own") as engine:
        engine.execute(f"{TABLES};{VIEWS}")
        engine.apply(rows(), time=0)
        new = plans(engine)
        document = json.loads(engine._store._journal.meta("catalog"))  # type: ignore[attr-defined]
        for view in document["views"]:
            del view["planned"]
        engine._store._journal.keep(catalog=json.dumps(document))  # type: ignore[attr-defined]
    with hj.Engine(tmp_path / "w") as engine:
        assert planned(engine) == dict.fromkeys(NAMES) and _figures(engine.explain("board")) == []
        engine.apply({"flights": [{"id": -1, "origin": "JFK", "hour": 1, "tail": 1}]}, time=1)
        for view in NAMES:
            engine.execute(f"REFRESH PLAN {view}")
        assert plans(engine) == new and planned(engine) == dict.fromkeys(NAMES, 2)


def test_refresh_notes_the_figures_of_an_unchanged_plan() -> None:
    with hj.Engine(clock="own") as engine:
        engine.execute(f"{TABLES};{BOARD}")
        before = plan_of(engine, "board")
        engine.apply({"airports": [{"faa": "JFK", "name": "Kennedy"}]}, time=4)
        assert planned(engine) == {"board": 0}
        assert engine.execute("REFRESH PLAN board") is None
        assert planned(engine) == {"board": 5} and plan_of(engine, "board") == before
        assert "on airports 1 rows, flights 0 rows" in engine.explain("board")


@pytest.mark.parametrize(("sql", "error", "words"), [
    ("REFRESH PLAN nobody", hj.UnknownName, "unknown materialized view 'nobody'"),
    ("REFRESH PLAN flights", hj.UnsupportedSQL, "flights is a table, which has no plan"),
    ("REFRESH PLAN plain", hj.UnsupportedSQL, "plain is a plain view, which is planned with each query"),
    ("REFRESH MATERIALIZED VIEW nobody", hj.UnknownName, "unknown materialized view 'nobody'"),
    ("REFRESH MATERIALIZED VIEW flights", hj.UnsupportedSQL, "flights is not a materialized view"),
    ("REFRESH MATERIALIZED VIEW board WITH NO DATA", hj.UnsupportedSQL, "a view always has its rows"),
    ("REFRESH board", hj.UnsupportedSQL, "write REFRESH PLAN v"),
    ("REFRESH PLAN", hj.UnsupportedSQL, "syntax error at the end, after 'PLAN'"),
    ("REFRESH PLAN board now", hj.UnsupportedSQL, "now"),
    ("BEGIN; REFRESH PLAN board; COMMIT", hj.UnsupportedSQL, "REFRESH PLAN cannot be in a transaction"),
])  # fmt: skip
def test_refresh_is_refused_with_a_reason(sql: str, error: type[Exception], words: str) -> None:
    with hj.Engine() as engine:
        engine.execute(f"{TABLES};{BOARD}; CREATE VIEW plain AS SELECT id FROM flights")
        with pytest.raises(error, match=re.escape(words)):
            engine.execute(sql)


def test_a_reader_cannot_refresh_a_plan(tmp_path: Path) -> None:
    with hj.Engine(tmp_path / "w") as engine:
        engine.execute(f"{TABLES};{BOARD}")
        with hj.Engine(tmp_path / "w", read_only=True) as reader, pytest.raises(hj.HalfjoinError, match="read_only"):
            reader.execute("REFRESH PLAN board")


def test_a_new_plan_that_fails_leaves_the_old(folder: Path | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The batch succeeds, and the next batch does not try the plan again."""
    tried = []

    def fails(*given: Any, **more: Any) -> None:
        tried.append(given)
        raise MemoryError

    with hj.Engine(folder, clock="own") as engine:
        engine.execute(f"{TABLES};{VIEWS}")
        engine.apply({"weather": rows()["weather"]}, time=0)
        before = plans(engine), planned(engine), used(engine)
        monkeypatch.setattr(replan, "plan", lambda *given: _odd(*given))
        monkeypatch.setattr(replan, "share", fails)
        engine.apply({name: given for name, given in rows().items() if name != "weather"}, time=1)
        assert len(tried) == 1 and (plans(engine), planned(engine), used(engine)) == before
        engine.apply({"planes": [{"tail": 1, "model": "x"}]}, time=2)
        assert len(tried) == 1 and engine.read("windy").num_rows == 3006


def _odd(relation: Any, facts: Any, name: str) -> Any:
    """A plan made on other statistics."""
    from halfjoin.planner.plan_view import plan

    return plan(relation, Fixed(facts.facts.state), name)


def test_a_collection_in_files_is_planned_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filing, "BULK_ROWS", 500)
    with hj.Engine(tmp_path / "w", clock="own", memory=1) as engine, late(None) as after:
        engine.execute(f"{TABLES};{VIEWS}")
        given = rows()
        for start in range(2):
            engine.apply({name: table[start::2] for name, table in given.items()}, time=start)
        for view in NAMES:
            engine.execute(f"REFRESH PLAN {view}")
        assert FINE in {name for name, _ in used(engine)}
        for time in (3, 4):
            changes = {"weather": hj.upserts([{"origin": "LGA", "hour": 3, "wind": -time}])}
            engine.apply(changes, time=time)
            after.apply(changes, time=time)
        assert {view: bag(engine.read(view)) for view in NAMES} == {view: bag(after.read(view)) for view in NAMES}


def test_refresh_finds_a_view_up_to_date() -> None:
    engine = hj.Engine(clock="own")
    engine.execute("CREATE TABLE t (a integer); CREATE MATERIALIZED VIEW v AS SELECT a FROM t")
    engine.apply({"t": [{"a": 1}]}, time=1)
    engine.execute("REFRESH MATERIALIZED VIEW v; REFRESH MATERIALIZED VIEW CONCURRENTLY v WITH DATA")
    engine.execute("BEGIN; CREATE MATERIALIZED VIEW w AS SELECT a FROM v; REFRESH MATERIALIZED VIEW w; COMMIT")
    assert engine.read("w").to_pylist() == [{"a": 1}] and engine.stats().upper == 2
