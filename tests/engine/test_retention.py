"""ALTER ... SET (RETAIN HISTORY FOR ...): times stay readable as long as asked for, and each of them is right."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

import halfjoin as hj

SETUP = """CREATE TABLE t (a integer); CREATE TABLE u (a integer);
    CREATE MATERIALIZED VIEW v AS SELECT t.a % 3 AS g, count(*) AS n, sum(10 / t.a) AS s FROM t GROUP BY t.a % 3;
    CREATE MATERIALIZED VIEW w AS SELECT g, n FROM v JOIN u ON u.a = v.g; CREATE VIEW p AS SELECT a FROM t"""


def readable(engine: hj.Engine, name: str, upper: int) -> list[int]:
    """The times at which it can be read."""
    found = []
    for time in range(upper):
        try:
            engine.read(name, as_of=time)
        except hj.InvalidTime:
            continue
        found.append(time)
    return found


def grow(engine: hj.Engine, first: int, after: int) -> None:
    for time in range(first, after):
        engine.apply({"t": [{"a": time % 7 + 1}], "u": [{"a": time % 3}] if time < 4 else []}, time=time)


def test_the_length_of_history_changes(tmp_path: Path) -> None:
    engine = hj.Engine(tmp_path / "w", clock="own", retain=10)
    engine.execute(SETUP)
    grow(engine, 1, 30)
    assert readable(engine, "v", 30)[0] == readable(engine, "t", 30)[0] == 20
    engine.execute("ALTER MATERIALIZED VIEW v SET (RETAIN HISTORY FOR 25); ALTER TABLE t SET (RETAIN HISTORY = FOR 3)")
    assert readable(engine, "v", 30)[0] == 20  # what is forgotten does not come back
    grow(engine, 30, 50)
    assert (readable(engine, "v", 50)[0], readable(engine, "t", 50)[0], readable(engine, "w", 50)[0]) == (25, 47, 40)
    shown = engine.execute("SHOW CREATE MATERIALIZED VIEW v")
    assert shown is not None and "WITH (RETAIN HISTORY FOR 25)" in shown["create_statement"][0].as_py()
    engine.close()
    engine = hj.Engine(tmp_path / "w", clock="own", retain=10)
    assert (readable(engine, "v", 50)[0], readable(engine, "t", 50)[0]) == (25, 47)
    engine.execute("ALTER TABLE v RESET (RETAIN HISTORY); ALTER TABLE IF EXISTS none SET (RETAIN HISTORY FOR 1)")
    grow(engine, 50, 60)
    assert (readable(engine, "v", 60)[0], readable(engine, "t", 60)[0]) == (50, 57)
    engine.close()


@pytest.mark.parametrize("seed", range(6))
def test_every_readable_time_is_right(seed: int, tmp_path: Path) -> None:
    random, history, rows = Random(seed), list[dict[int, int]](), dict[int, int]()
    engine = hj.Engine(tmp_path / "w", clock="own", retain=8)
    engine.execute("CREATE TABLE t (a integer)")
    engine.execute("CREATE MATERIALIZED VIEW v AS SELECT a, count(*) AS n FROM t GROUP BY a")
    history.append({})
    for time in range(1, 60):
        one = random.randrange(5)
        rows = {**rows, one: rows.get(one, 0) + 1}
        engine.apply({"t": [{"a": one}]}, time=time)
        history.append(rows)
        if random.random() < 0.2:
            kind, name = random.choice([("MATERIALIZED VIEW", "v"), ("TABLE", "t")])
            lengths = ["SET (RETAIN HISTORY FOR 2)", "SET (RETAIN HISTORY FOR 40)", "RESET (RETAIN HISTORY)"]
            engine.execute(f"ALTER {kind} {name} {random.choice(lengths)}")
        if random.random() < 0.15:
            engine.compact()
        if random.random() < 0.1:
            engine.close()
            engine = hj.Engine(tmp_path / "w", clock="own", retain=8)
        for name in ("t", "v"):
            times = readable(engine, name, time + 1)
            assert times and times == [*range(times[0], time + 1)]
            for at in times:
                table = engine.query(f"SELECT a, {'count(*)' if name == 't' else 'sum(n)'} AS n FROM {name} GROUP BY a",
                                     as_of=at)  # fmt: skip
                assert {row["a"]: int(row["n"]) for row in table.to_pylist()} == history[at], (name, at, time)
    engine.close()


@pytest.mark.parametrize(("sql", "said"), [
    ("ALTER TABLE p SET (RETAIN HISTORY FOR 3)", "a plain view holds no history"),
    ("ALTER TABLE none SET (RETAIN HISTORY FOR 3)", "unknown table or view 'none'"),
    ("ALTER TABLE t SET (RETAIN HISTORY)", "expected SET"), ("ALTER TABLE t RESET (RETAIN)", "RETAIN|RESET"),
    ("ALTER TABLE t SET (RETAIN HISTORY FOR a)", "a duration must be a constant"),
    ("BEGIN; ALTER TABLE t SET (RETAIN HISTORY FOR 3)", "in a transaction"),
    ("CREATE TEMPORARY TABLE q (a integer); ALTER TABLE q SET (RETAIN HISTORY FOR 3)", "temporary"),
    ("ALTER MATERIALIZED VIEW v SET (fillfactor = 3)", "needs RENAME TO"),
])  # fmt: skip
def test_what_cannot_be_retained_is_refused(sql: str, said: str) -> None:
    engine = hj.Engine()
    engine.execute(SETUP)
    with pytest.raises(hj.HalfjoinError, match=said):
        engine.execute(sql)
