"""What a batch of a row costs where a table has many columns and conditions, and a view many aggregates."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

import halfjoin as hj
from halfjoin.engine.intake import generated
from tests.support.counting import calls


def called(engine: hj.Engine) -> int:
    """The calls of the last of some batches of a row."""
    for number in range(3):
        engine.apply({"t": [{"id": number, "x0": 1}]})
    return calls(partial(engine.apply, {"t": [{"id": 3, "x0": 1}]}))


def of_extremes(columns: int) -> int:
    engine, names = hj.Engine(), [f"x{number}" for number in range(columns)]
    engine.execute(f"CREATE TABLE t (id integer PRIMARY KEY, {', '.join(f'{name} integer' for name in names)})")
    values = ", ".join(f"max({name}) AS {name}" for name in names)
    engine.execute(f"CREATE MATERIALIZED VIEW v AS SELECT {values} FROM t GROUP BY id % 2")
    return called(engine)


def of_checks(checks: int) -> int:
    engine, conditions = hj.Engine(), [f"CHECK (x0 <> {number + 2})" for number in range(checks)]
    engine.execute(f"CREATE TABLE t (id integer PRIMARY KEY, x0 integer, {', '.join(conditions)})")
    return called(engine)


@pytest.mark.parametrize("count", [of_extremes, of_checks])
def test_a_row_costs_no_more_than_in_proportion_to_what_a_table_has(count: Callable[[int], int]) -> None:
    few, more, many = map(count, (20, 40, 80))
    assert many - more < 2.2 * (more - few)


def test_conditions_are_bound_once_however_many_tables_have_some(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, bound, plain = hj.Engine(), 0, generated.bind_check

    def counted(*given: object) -> object:
        nonlocal bound
        bound += 1
        return plain(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(generated, "bind_check", counted)
    for number in range(300):
        engine.execute(f"CREATE TABLE checked{number} (x integer CHECK (x > 0))")
    for _ in range(2):
        engine.apply({f"checked{number}": [{"x": 1}] for number in range(300)})
    assert bound == 300
