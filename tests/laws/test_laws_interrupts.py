"""Ctrl-C or a MemoryError at any line: before the commit point nothing has happened, after it everything is done.

An everyday run tries a few lines of each call; HALFJOIN_CRASHES=1000 tries them all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from threading import Thread

import pytest
from deltalake import DeltaTable

import halfjoin as hj
from halfjoin.engine.batch import wiring
from tests.oracle.rows import Bag, bag, updates
from tests.support.interrupting import KINDS, Ender

DDL = """
CREATE TABLE t (k bigint PRIMARY KEY, v bigint); CREATE TABLE u (k bigint, n bigint);
CREATE MATERIALIZED VIEW joined AS SELECT t.k, t.v, u.n FROM t, u WHERE t.k = u.k;
CREATE MATERIALIZED VIEW counted AS SELECT n, count(*) AS c, sum(v) AS s, max(k) AS m FROM joined GROUP BY n;
CREATE MATERIALIZED VIEW first AS SELECT k, v FROM t ORDER BY v DESC, k DESC LIMIT 2;
CREATE MATERIALIZED VIEW padded AS SELECT u.k, t.v FROM u LEFT JOIN t ON u.k = t.k AND t.v > 0;
CREATE MATERIALIZED VIEW recent AS SELECT n, count(*) AS c FROM u WHERE mz_now() <= k + 4 GROUP BY n;
CREATE MATERIALIZED VIEW chain AS
    WITH RECURSIVE r(k) AS (SELECT 1::bigint UNION SELECT u.k + 1 FROM r JOIN u ON u.k = r.k WHERE u.k < 6)
    SELECT k FROM r;
CREATE MATERIALIZED VIEW above AS SELECT k, 12 / n AS r FROM joined WHERE v >= 0
"""
NAMES = ("t", "u", "joined", "counted", "first", "padded", "recent", "chain", "above")


def batch(number: int) -> dict[str, object]:
    """A batch that adds a row to each table, and changes a row of t."""
    last = [{"k": number - 1, "v": -1}] if number > 1 else []
    return {"t": hj.upserts([{"k": number, "v": number}, *last]), "u": [{"k": number, "n": 1 + number % 3}]}


def contents(number: int) -> dict[str, Bag]:
    """The expected contents after so many batches."""
    t = Counter({(k, k if k == number else -1): 1 for k in range(1, number + 1)})
    joined = Counter({(k, v, 1 + k % 3): 1 for k, v in t})
    groups: dict[int, list[tuple[int, int]]] = {}
    for k, v, n in joined:
        groups.setdefault(n, []).append((k, v))
    recent = Counter(n for k, _, n in joined if number <= k + 4)
    return {"t": t, "u": Counter({(k, 1 + k % 3): 1 for k, _ in t}), "joined": joined,
            "counted": Counter({(n, len(rows), sum(v for _, v in rows), max(rows)[0]): 1
                                for n, rows in groups.items()}),
            "first": Counter(sorted(t, key=lambda row: (-row[1], -row[0]))[:2]),
            "padded": Counter({(k, v if v > 0 else None): 1 for k, v in t}),
            "recent": Counter(dict.fromkeys(recent.items(), 1)),
            "chain": Counter((k,) for k in range(1, min(number, 5) + 2)),
            "above": Counter({(k, 12 // n): 1 for k, v, n in joined if v >= 0})}  # fmt: skip


def held(engine: hj.Engine) -> dict[str, Bag]:
    """The contents as the engine reads them, here and in another thread, which must not wait forever."""
    found: list[dict[str, Bag]] = []
    other = Thread(target=lambda: found.append({name: bag(engine.read(name)) for name in NAMES}), daemon=True)
    other.start()
    other.join(60)
    assert found, "another thread cannot read"
    assert found[0] == {name: bag(engine.read(name)) for name in NAMES}
    return found[0]


@pytest.fixture(params=["memory", "folder"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    """The warehouse's folder, None for an engine in memory."""
    return None if request.param == "memory" else tmp_path / "w"


@pytest.fixture
def engine(folder: Path | None) -> Iterator[hj.Engine]:
    """An engine that has applied a batch."""
    with hj.Engine(folder) as engine:
        engine.execute(DDL)
        engine.apply(batch(1), time=1)
        yield engine


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_has_not_happened_or_is_done(engine: hj.Engine, folder: Path | None, kind: type[BaseException]) -> None:
    subscription, ender, done = engine.subscribe("joined", snapshot=False), Ender(kind), 1

    def apply() -> hj.Applied:
        return engine.apply(batch(done + 1), done + 1, f"batch {done + 1}")

    points = ender.points(apply)
    for at in points:
        done += 1  # the batch that was carried out last, whether at once or again
        ender.ends(apply, at)
        now = held(engine)
        assert now in (contents(done), contents(done + 1)), ender.where
        assert engine.stats().upper == done + 1 + (now == contents(done + 1)), ender.where
        apply()
        assert held(engine) == contents(done + 1), ender.where
    engine.close()
    given = [change for table in subscription for change in updates(table)]
    assert Counter(given) == Counter(_changes_of_joined(2, done + 1))
    if folder is not None:
        with hj.Engine(folder) as again:
            assert held(again) == contents(done + 1)


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_batch_has_not_happened_or_is_done(kind: type[BaseException]) -> None:
    """It finds what later batches know: which views a change reaches, and by which values."""

    def engine() -> hj.Engine:
        made = hj.Engine()
        made.execute(DDL)
        return made

    ender = Ender(kind)
    with engine() as counted:
        points = ender.points(lambda: counted.apply(batch(1), 1, "first"))
    for at in points:
        with engine() as one:
            ender.ends(lambda: one.apply(batch(1), 1, "first"), at)
            for number in (1, 2):
                one.apply(batch(number), number, "first" if number == 1 else "second")
                assert held(one) == contents(number), ender.where


def test_an_interrupt_leaves_no_part_of_the_views_that_a_change_reaches(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with hj.Engine() as engine:
        engine.execute(DDL)
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(wiring, "_gate_of", interrupted)
            engine.apply(batch(1), 1)
        engine.apply(batch(1), 1)
        assert held(engine) == contents(1)


def _changes_of_joined(first: int, last: int) -> Iterator[tuple[tuple[int, ...], int, int]]:
    for number in range(first, last + 1):
        before, after = contents(number - 1)["joined"], contents(number)["joined"]
        yield from ((row, number, -1) for row in before - after)
        yield from ((row, number, 1) for row in after - before)


DEFINITIONS = {  # what undoes them
    "CREATE TABLE made (k bigint PRIMARY KEY)": "DROP TABLE made",
    "CREATE MATERIALIZED VIEW made AS SELECT a.k, j.n FROM above AS a, joined AS j WHERE a.r = j.n":
        "DROP MATERIALIZED VIEW made",
    "CREATE INDEX made ON joined (v)": "DROP INDEX made",
    "DROP MATERIALIZED VIEW above": DDL.strip().splitlines()[-1],
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sql", DEFINITIONS)
def test_a_definition_has_not_happened_or_is_done(
    engine: hj.Engine, folder: Path | None, sql: str, kind: type[BaseException]
) -> None:
    ender, number = Ender(kind), 1
    engine.apply({"t": [{"k": -1, "v": -1}]}, time=2)

    def shown() -> list[object]:
        return [engine.execute(f"SHOW {what}").to_pylist() for what in ("TABLES", "VIEWS", "INDEXES")]

    before = shown()
    arrangements = {(one.name, tuple(one.users)) for one in engine.stats().arrangements}
    points = ender.points(lambda: engine.execute(sql))
    after = shown()
    for at in points:
        engine.execute(DEFINITIONS[sql])
        assert {(one.name, tuple(one.users)) for one in engine.stats().arrangements} == arrangements, ender.where
        ender.ends(lambda: engine.execute(sql), at)
        now = shown()
        assert now in (before, after), ender.where
        number += 1
        engine.apply({"t": [{"k": -number, "v": 0}]}, time=number + 1)
        if now == before:
            engine.execute(sql)
        assert shown() == after, ender.where
        assert bag(engine.read("t"))[-number, 0] == 1
    engine.close()
    if folder is not None:
        with hj.Engine(folder) as engine:
            assert shown() == after


CALLS = {
    "advance": lambda engine: engine.advance(to=engine.stats().upper),
    "flush": lambda engine: engine.flush(),
    "compact": lambda engine: engine.compact(),
    "read": lambda engine: engine.read("above"),
    "query": lambda engine: engine.query("SELECT j.v, count(*) FROM joined AS j, u WHERE j.n = u.n GROUP BY 1"),
    "subscribe": lambda engine: engine.subscribe("joined"),
    "explain": lambda engine: engine.explain("joined"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("call", CALLS)
def test_what_changes_nothing_changes_nothing(
    engine: hj.Engine, folder: Path | None, call: str, kind: type[BaseException]
) -> None:
    ender, done = Ender(kind), 1
    for at in ender.points(lambda: CALLS[call](engine)):
        done += 1
        engine.apply(batch(done), done)
        ender.ends(lambda: CALLS[call](engine), at)
        assert held(engine) == contents(done), ender.where
        CALLS[call](engine)
    assert all("query" not in one.users for one in engine.stats().arrangements)
    engine.close()
    if folder is not None:
        with hj.Engine(folder) as again:
            assert held(again) == contents(done)


@pytest.mark.parametrize("kind", KINDS)
def test_sinks_have_each_batch_once(tmp_path: Path, kind: type[BaseException]) -> None:
    with hj.Engine(tmp_path / "w") as engine:
        engine.execute(DDL)
        engine.apply(batch(1), time=1)
        ender, done = Ender(kind), 1
        create = "CREATE SINK IF NOT EXISTS above FROM above INTO DELTA '{}'"
        for at in ender.points(lambda: engine.execute(create.format("first"))):
            engine.execute("DROP SINK above")
            ender.ends(partial(engine.execute, create.format(f"begun{at}")), at)
            engine.execute("SHOW SINKS")
            engine.execute(create.format(f"again{at}"))

        def apply() -> hj.Applied:
            return engine.apply(batch(done + 1), done + 1, f"batch {done + 1}")

        for at in ender.points(apply):
            done += 1
            ender.ends(apply, at)
            apply()
        engine.flush()
        (target,) = engine.execute("SHOW SINKS")["into"].to_pylist()
        assert bag(DeltaTable(tmp_path / "w" / "sinks" / target).to_pyarrow_table()) == contents(done + 1)["above"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_reader_sees_the_last_batch(tmp_path: Path, kind: type[BaseException]) -> None:
    with hj.Engine(tmp_path / "w") as engine:
        engine.execute(DDL)
        engine.apply(batch(1), time=1)
        with hj.Engine(tmp_path / "w", read_only=True) as reader:
            ender, done = Ender(kind), 1
            for at in ender.points(lambda: reader.read("joined")):
                done += 1
                engine.apply(batch(done), done)
                if at % 3 == 0:
                    engine.execute(f"CREATE TABLE IF NOT EXISTS t{at} (k bigint)")
                ender.ends(lambda: reader.read("joined"), at)
                assert held(reader) == contents(done), ender.where


@pytest.mark.parametrize("kind", KINDS)
def test_an_opening_or_a_closing_can_be_repeated(tmp_path: Path, kind: type[BaseException]) -> None:
    """What an opening that ended had of a warehouse, nobody could close any more."""
    folder, opened = tmp_path / "w", list[hj.Engine]()
    with hj.Engine(folder) as engine:
        engine.execute(DDL + "; CREATE SINK above FROM above INTO DELTA 'target'")
        engine.apply(batch(1), time=1)
    ender = Ender(kind)
    for at in ender.points(lambda: hj.Engine(folder).close()):
        ender.ends(lambda: opened.append(hj.Engine(folder)), at)
        while opened:
            engine = opened.pop()
            ender.ends(engine.close, at)
            engine.close()
        with hj.Engine(folder) as again:
            assert held(again) == contents(1), ender.where
