"""Lookups in pieces: a path takes any number of rows, and only a view that grows too large is refused."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import halfjoin as hj
from halfjoin.engine.arrange.keys import key_columns
from halfjoin.engine.arrange.run import Run
from halfjoin.engine.storage import parquet, stored_run
from halfjoin.engine.storage.place import LocalPlace
from halfjoin.engine.storage.stored_run import StoredRun
from halfjoin.engine.updates import limits
from halfjoin.engine.updates.updates import Updates, concat
from halfjoin.planner.plan import ArrangementKey
from halfjoin.sql.expr import Column
from halfjoin.sql.types import BIGINT
from tests.oracle.rows import bag

DDL = """
CREATE TABLE a (k bigint, x bigint, s text); CREATE TABLE b (k bigint, y bigint); CREATE TABLE c (y bigint, n bigint);
CREATE MATERIALIZED VIEW keyed AS SELECT a.x, a.s, b.y, c.n FROM a, b, c WHERE a.k = b.k AND b.y = c.y AND a.x <> c.n;
CREATE MATERIALIZED VIEW crossed AS SELECT a.x, c.n FROM a, c WHERE a.x > c.n;
CREATE MATERIALIZED VIEW through AS SELECT b.y, g FROM a, generate_series(a.k, a.k + 2) AS g, b WHERE b.k = g % 2;
CREATE MATERIALIZED VIEW failing AS SELECT a.x / b.y AS q FROM a JOIN b ON a.k = b.k;
"""
VIEWS = ("keyed", "crossed", "through", "failing")


def batches(seed: int) -> Iterator[dict[str, list[dict[str, Any]]]]:
    """Rows of few keys that are added, removed, and change their weights, sometimes in one batch."""
    chance = Random(seed)
    for _ in range(5):
        batch: dict[str, list[dict[str, Any]]] = {"a": [], "b": [], "c": []}
        for _ in range(chance.randrange(1, 12)):
            diff = chance.choice([1, 1, 1, -1, 2])
            some = {"k": chance.choice([None, 0, 0, 0, 1, 2]), "x": chance.randrange(3), "s": "s" * chance.randrange(3)}
            batch["a"].append({**some, "__diff": diff})
            batch["b"].append({"k": chance.choice([0, 0, 1, None]), "y": chance.randrange(3), "__diff": diff})
            batch["c"].append({"y": chance.randrange(3), "n": chance.randrange(3), "__diff": diff})
        yield batch


def answers(seed: int, folder: Path | None) -> list[Any]:
    """The changes of each batch, the final contents of the views, one of them new, and the errors of one."""
    found: list[Any] = []
    with hj.Engine(folder, memory=None if folder is None else 1, clock="own") as engine:
        engine.execute(DDL)
        for number, batch in enumerate(batches(seed), 1):
            applied = engine.apply(batch, time=number)
            found.append({view: bag(applied.diffs[view]) for view in VIEWS})
            if folder is not None:
                engine.flush()
        engine.execute("CREATE MATERIALIZED VIEW late AS SELECT a.x, b.y FROM a, b WHERE a.k = b.k")
        found += [bag(engine.read(view, multiplicity=True)) for view in ("keyed", "crossed", "through", "late")]
        errors = engine._state.views["failing"].errors.as_of(number, distinct=True)
        found.append(sorted(zip(*(c.to_pylist() for c in errors.columns.values()), errors.diff.tolist(), strict=True)))
    return found


@pytest.mark.parametrize("seed", range(2))
def test_answers_do_not_depend_on_the_size_of_pieces(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = answers(seed, None)
    for size in (1, 4):
        monkeypatch.setattr(limits, "PIECE_ROWS", size)
        monkeypatch.setattr(limits, "PIECE_BYTES", 40)
        assert answers(seed, None) == expected
    monkeypatch.setattr(stored_run, "SEARCHED_ROWS", 1)
    monkeypatch.setattr(parquet, "GROUP_ROWS", 2)
    monkeypatch.setattr(limits, "READ_ROWS", 2)
    assert answers(seed, tmp_path / "w") == expected


def table(count: int, **columns: Callable[[int], Any]) -> pa.Table:
    return pa.table({name: [value(n) for n in range(count)] for name, value in columns.items()})


@pytest.mark.parametrize("memory", [None, 1])
def test_a_large_intermediate_of_a_small_view_is_right(
    memory: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "PIECE_ROWS", 64)
    monkeypatch.setattr(limits, "MOST_ROWS", 500)
    with hj.Engine(None if memory is None else tmp_path / "w", memory=memory, clock="own") as engine:
        engine.execute("CREATE TABLE t (k bigint, n bigint); CREATE TABLE u (k bigint, n bigint)")
        query = "SELECT t.n, u.n AS m FROM t JOIN u ON t.k = u.k WHERE t.n + u.n = 7"
        engine.execute(f"CREATE MATERIALIZED VIEW v AS {query}")
        engine.apply({"u": table(150, k=lambda n: 1, n=lambda n: n)}, time=1)
        engine.apply({"t": table(150, k=lambda n: 1, n=lambda n: n)}, time=2)  # 22,500 pairs
        expected = {(n, 7 - n): 1 for n in range(8)}
        assert bag(engine.read("v")) == expected
        engine.execute(f"CREATE MATERIALIZED VIEW w AS {query}")
        assert bag(engine.read("w")) == expected


def test_rows_that_cancel_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PIECE_ROWS", 16)
    monkeypatch.setattr(limits, "MOST_ROWS", 100)
    with hj.Engine(clock="own") as engine:
        engine.execute("CREATE TABLE t (k bigint, n bigint); CREATE TABLE u (k bigint, n bigint)")
        engine.execute("CREATE MATERIALIZED VIEW v AS SELECT u.n FROM t JOIN u ON t.k = u.k")
        engine.apply({"u": table(90, k=lambda n: 1, n=lambda n: n)}, time=1)
        rows = [{"k": 1, "n": n, "__diff": 1 if n else -4} for n in range(5)]
        engine.apply({"t": rows}, time=2)  # they meet 450 rows, which add up to none
        assert engine.read("v").num_rows == 0


TEXT = r"in the arrangement s\(s\) the key \(some text\) finds 40 rows"
REFUSED = [
    ("SELECT t.n, u.n AS m FROM t JOIN u ON t.k = u.k", r"in the arrangement u\(k\) the key \(7\) finds 30 rows"),
    ("SELECT t.n, s.n AS m FROM t JOIN s ON t.s = s.s", TEXT),
    ("SELECT t.n, s.n AS m FROM t JOIN u ON t.k = u.k AND t.n = u.n JOIN s ON s.s = t.s AND s.n <> t.n",
     TEXT),
    ("SELECT t.n, u.n AS m FROM t, u", "its join has no equality that looks u up, so each row meets all 34 rows there"),
]


@pytest.mark.parametrize(("query", "why"), REFUSED)
def test_a_refusal_names_the_lookup_at_fault(query: str, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PIECE_ROWS", 16)
    with hj.Engine(clock="own") as engine:
        engine.execute("CREATE TABLE t (k bigint, n bigint, s text); CREATE TABLE u (k bigint, n bigint)")
        engine.execute("CREATE TABLE s (s text, n bigint)")
        engine.execute(f"CREATE MATERIALIZED VIEW v AS {query}")
        engine.apply({"u": table(30, k=lambda n: 7, n=lambda n: n), "s": table(40, s=lambda n: "some text",
                      n=lambda n: n)}, time=1)  # fmt: skip
        engine.apply({"u": table(4, k=lambda n: n, n=lambda n: n)}, time=2)
        monkeypatch.setattr(limits, "MOST_ROWS", 100)
        few = [{"k": n, "n": n, "s": f"{n}"} for n in range(4)]
        many = [{"k": 7, "n": n, "s": "some text"} for n in range(20)]
        engine.apply({"t": [*few, *many]}, time=3)
        with pytest.raises(hj.DataError, match=f"one batch would change more than 100 rows of v: {why}; .* time 3 on"):
            engine.read("v")
        with pytest.raises(hj.DataError, match="w would hold more than 100 rows: "):
            engine.execute(f"CREATE MATERIALIZED VIEW w AS {query}")
        with pytest.raises(hj.DataError, match="the query would hold more than 100 rows: "):
            engine.query(query)
        assert engine.read("u").num_rows == 34


def test_a_damaged_copy_takes_back_what_it_gave(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "READ_ROWS", 2)
    schema, place = {"k": pa.int64(), "n": pa.int64()}, LocalPlace(tmp_path)
    count = 7
    weights = np.array([1, 2, -1, np.iinfo(np.int64).min, 1, 1, 1])
    rows = Updates({"k": pa.array([5] * count), "n": pa.array(range(count))}, np.arange(count), weights)
    files = tuple(parquet.write(place, rows, schema, ["k"]))
    copied = (*parquet.write(place, rows.slice(0, 5), schema, ["k"]),
              *parquet.write(place, rows.slice(5, count), schema, ["k"]))  # fmt: skip
    damaged = tmp_path / copied[-1].name
    damaged.write_bytes(b"PAR1" + b"\xff" * 40 + damaged.read_bytes()[44:])  # its footer says nothing of that
    key = ArrangementKey("c", (Column("k", BIGINT),))
    run = StoredRun(place, files, schema, {key: StoredRun(place, copied, schema)})
    given: list[Run] = list(run.narrowed(key, key_columns(key, {}), [pa.array([5])], ["n"]))
    assert len(given) > 2
    whole = concat([one.updates for one in given])
    total = dict.fromkeys(range(count), 0)
    for n, diff in zip(whole.columns["n"].to_pylist(), whole.diff.tolist(), strict=True):
        total[n] += diff
    assert list(total.values()) == weights.tolist()


def test_a_lookup_without_end_can_be_interrupted() -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    with hj.Engine(clock="own") as engine:
        engine.execute("CREATE TABLE t (k bigint, n bigint)")
        engine.apply({"t": table(100_000, k=lambda n: 1, n=lambda n: n)}, time=1)
        before = signal.signal(signal.SIGALRM, interrupt)
        try:
            started = time.monotonic()
            signal.setitimer(signal.ITIMER_REAL, 1)
            with pytest.raises(KeyboardInterrupt):  # of 10 thousand million pairs, which hold none that fit
                engine.query("SELECT a.n FROM t a JOIN t b ON a.k = b.k WHERE a.n + b.n < 0")
            assert time.monotonic() - started < 20
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        assert engine.query("SELECT count(*) AS n FROM t")["n"].to_pylist() == [100_000]
