"""Batches that change the same rows again and again: what cancels is not looked up."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

import halfjoin as hj
from tests.support.kernels import both_ways  # noqa: F401

PARTNERS, CHANGES = 20, 200


@pytest.fixture
def engine() -> Iterator[hj.Engine]:
    with hj.Engine() as made:
        made.execute("""
            CREATE TABLE customers (id bigint PRIMARY KEY, name text);
            CREATE TABLE lines (id bigint PRIMARY KEY, c bigint);
            CREATE MATERIALIZED VIEW v AS SELECT lines.id, name FROM customers JOIN lines ON lines.c = customers.id
        """)
        made.apply({"customers": [{"id": c, "name": "n0"} for c in range(9)],
                    "lines": [{"id": n, "c": n % 9} for n in range(9 * PARTNERS)]}, time=1)  # fmt: skip
        yield made


def flips(key: int, many: int) -> list[dict[str, object]]:
    """A row that changes its name so often, to `n{many}`."""
    steps = ((number, step) for number in range(many) for step in (0, 1))
    return [{"id": key, "name": f"n{number + step}", "__diff": 2 * step - 1} for number, step in steps]


def test_a_row_that_changes_often_is_joined_as_one_that_changes_once(engine: hj.Engine) -> None:
    engine.apply({"customers": flips(3, CHANGES)}, time=2)
    assert engine.activity().recent[-1].nodes["v"].found == 2 * PARTNERS
    assert {row["name"] for row in engine.read("v").to_pylist()} == {"n0", f"n{CHANGES}"}
    assert {row["name"] for row in engine.read("v", as_of=1).to_pylist()} == {"n0"}
    there = flips(4, CHANGES)
    engine.apply({"customers": [*there, *({**row, "__diff": -row["__diff"]} for row in there)]}, time=3)
    assert engine.read("v") == engine.read("v", as_of=2)
    with pytest.raises(hj.InvalidRow, match="second row"):
        engine.apply({"customers": [*flips(5, CHANGES), {"id": 5, "name": "more", "__diff": 1}]}, time=4)


def test_constraints_see_each_row_by_its_number() -> None:
    with hj.Engine() as engine:
        engine.execute("CREATE TABLE t (id bigint PRIMARY KEY, x bigint CHECK (x < 5))")
        rows = [{"id": 1, "x": 1, "__diff": 1}, {"id": 1, "x": 1, "__diff": -1}] * CHANGES
        wrong = [{"id": 1, "x": 7, "__diff": 1}, {"id": 1, "x": 7, "__diff": -1}]
        with pytest.raises(hj.InvalidRow, match="row 400"):
            engine.apply({"t": [*rows, *wrong]}, time=1)
        engine.apply({"t": rows}, time=1)
        assert engine.read("t").num_rows == 0


def test_they_are_what_their_rows_one_by_one_are(engine: hj.Engine) -> None:
    seed, plain = random.Random(7), hj.Engine()
    with plain:
        plain.execute("CREATE TABLE customers (id bigint PRIMARY KEY, name text)")
        plain.apply({"customers": [{"id": c, "name": "n0"} for c in range(9)]}, time=1)
        names: dict[int, str | None] = dict.fromkeys(range(9), "n0")
        rows, times = [], {}
        for time in (2, 3, 5):
            for _ in range(300):
                key, now = seed.randrange(9), seed.choice([None, "n0", "n1", "n2"])
                for name, diff in ((names[key], -1), (now, 1)):
                    if name is not None:
                        rows.append({"id": key, "name": name, "__time": time, "__diff": diff})
                names[key] = now
            times[time] = sorted((key, name) for key, name in names.items() if name is not None)
        seed.shuffle(rows)
        for made in (engine, plain):
            made.apply({"customers": rows})
            for time, expected in times.items():
                there = made.read("customers", as_of=time).to_pylist()
                assert sorted((row["id"], row["name"]) for row in there) == expected
        for time, expected in times.items():
            joined = sorted((row["id"] % 9, row["name"]) for row in engine.read("v", as_of=time).to_pylist())
            assert joined == sorted(expected * PARTNERS)
