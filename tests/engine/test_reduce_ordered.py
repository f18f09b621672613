"""Functions of whole groups have PostgreSQL's values, whatever the order and the copies of the rows."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import numpy as np
import pytest

from halfjoin.engine.reduce.groups import Groups
from halfjoin.engine.reduce.ordered import evaluate
from halfjoin.engine.scalar.arrow_types import arrow_type
from halfjoin.planner.group_functions import Ordered
from halfjoin.sql.expr import Column, Expr, Literal
from halfjoin.sql.functions.aggregates import resolve_aggregate
from halfjoin.sql.relation import SortKey
from halfjoin.sql.types import DOUBLE, TEXT, array
from tests.support.whole_groups import (
    COLUMNS,
    comparable,
    groups_of,
    key_text,
    order_text,
    random_key,
    random_rows,
)

if TYPE_CHECKING:
    from tests.support.sql_oracles import Oracle

pytest_plugins = ("tests.support.postgres", "tests.support.sql_oracles")

COMMA = Literal(", ", TEXT)


def _part(name: str, args: tuple[Expr, ...], *, distinct: bool = False, order: tuple[SortKey, ...] = (),
          condition: Column | None = None) -> Ordered:  # fmt: skip
    call = resolve_aggregate(name, args, distinct=distinct, order=order, condition=condition)
    return Ordered(Column("x", call.type), call.function, call.args, call.distinct, call.order, condition)


def _check(part: Ordered, text: str, groups: Groups, oracle: Oracle) -> None:
    if part.condition is not None:
        text += f" FILTER (WHERE {part.condition.name})"
    wanted = [comparable(row[1]) for row in oracle.ask(f"SELECT g, {text} FROM t GROUP BY g ORDER BY g")]
    assert [comparable(value) for value in evaluate(part, groups).to_pylist()] == wanted, text


def _cases(seed: int, oracle: Oracle, *, finite: bool = False) -> tuple[Random, Groups, Column | None]:
    random = Random(seed)
    rows = random_rows(random, finite=finite)
    oracle.put(rows)
    return random, groups_of(rows), COLUMNS["b"] if random.random() < 0.3 else None


@pytest.mark.parametrize("seed", range(25))
def test_least_and_greatest_values(seed: int, oracle: Oracle) -> None:
    _, groups, condition = _cases(seed, oracle)
    for name in ("min", "max"):
        for column in ("i", "f", "n", "s", "d"):
            _check(_part(name, (COLUMNS[column],), condition=condition), f"{name}({column})", groups, oracle)


@pytest.mark.parametrize("seed", range(25))
def test_collected_values_keep_the_order(seed: int, oracle: Oracle) -> None:
    random, groups, condition = _cases(seed, oracle)
    for column in ("i", "f", "n", "s", "d", "b"):
        order = tuple(random_key(random, COLUMNS) for _ in range(random.randint(0, 2)))
        text = f"array_agg({column} ORDER BY {order_text(order)})"
        _check(_part("array_agg", (COLUMNS[column],), order=order, condition=condition), text, groups, oracle)
        key = random_key(random, [column])
        for order in ((), (key,)):
            by = key_text(key) if order else f"{column} ASC NULLS LAST"
            text = f"array_agg(DISTINCT {column} ORDER BY {by})"
            part = _part("array_agg", (COLUMNS[column],), distinct=True, order=order, condition=condition)
            _check(part, text, groups, oracle)


@pytest.mark.parametrize("seed", range(25))
def test_joined_texts_have_delimiters_between(seed: int, oracle: Oracle) -> None:
    random, groups, condition = _cases(seed, oracle)
    order = tuple(random_key(random, COLUMNS) for _ in range(random.randint(0, 2)))
    text = f"string_agg(s, ', ' ORDER BY {order_text(order)})"
    _check(_part("string_agg", (COLUMNS["s"], COMMA), order=order, condition=condition), text, groups, oracle)
    part = _part("string_agg", (COLUMNS["s"], COMMA), distinct=True, condition=condition)
    _check(part, "string_agg(DISTINCT s, ', ' ORDER BY s)", groups, oracle)


@pytest.mark.parametrize("seed", range(25))
def test_percentiles_of_sorted_values(seed: int, oracle: Oracle) -> None:
    random, groups, condition = _cases(seed, oracle, finite=True)
    fractions = [0.0, 0.25, 0.5, 1.0, random.random()]
    for column in ("i", "f", "n"):
        key = SortKey(COLUMNS[column], random.random() < 0.5)
        for fraction in random.sample(fractions, 2):
            for name in ("percentile_cont", "percentile_disc"):
                value = f"{column}::double precision" if name == "percentile_cont" else column
                text = f"{name}({fraction!r}) WITHIN GROUP (ORDER BY {value} {'DESC' if key.descending else ''})"
                part = _part(name, (Literal(fraction, DOUBLE),), order=(key,), condition=condition)
                _check(part, text, groups, oracle)


@pytest.mark.parametrize("seed", range(10))
def test_arrays_of_fractions_give_arrays(seed: int, oracle: Oracle) -> None:
    if oracle.name == "duckdb":
        pytest.skip("DuckDB counts from the other end")
    random, groups, condition = _cases(seed, oracle, finite=True)
    fractions = [0.5, None, random.random(), 1.0]
    for name in ("percentile_cont", "percentile_disc"):
        part = _part(name, (Literal(fractions, array(DOUBLE)),), order=(SortKey(COLUMNS["i"]),), condition=condition)
        shown = ", ".join("NULL" if one is None else repr(one) for one in fractions)
        _check(part, f"{name}(array[{shown}]::float8[]) WITHIN GROUP (ORDER BY i)", groups, oracle)


@pytest.mark.parametrize("seed", range(25))
def test_the_mode_is_the_first_of_the_most_frequent(seed: int, oracle: Oracle) -> None:
    if oracle.name == "duckdb":
        pytest.skip("of several modes DuckDB takes the first row's")
    random, groups, condition = _cases(seed, oracle)
    for column in ("i", "f", "n", "s", "d", "b"):
        key = SortKey(COLUMNS[column], random.random() < 0.5)
        text = f"mode() WITHIN GROUP (ORDER BY {column} {'DESC' if key.descending else ''})"
        _check(_part("mode", (), order=(key,), condition=condition), text, groups, oracle)


@pytest.mark.parametrize("seed", range(25))
def test_distinct_values_add_up_once(seed: int, oracle: Oracle) -> None:
    _, groups, condition = _cases(seed, oracle)
    for name, columns in (("count", "s"), ("count", "f"), ("sum", "i"), ("sum", "n"), ("sum", "f"), ("avg", "i"),
                          ("bit_xor", "i"), ("covar_pop", "g, i")):  # fmt: skip
        args = tuple(COLUMNS[column] for column in columns.split(", "))
        part = _part(name, args, distinct=True, condition=condition)
        _check(part, f"{name}(DISTINCT {columns})", groups, oracle)


def test_nothing_has_no_value_and_counts_zero() -> None:
    groups = groups_of([(1, 2, 0.5, None, "a", None, True)]).where(np.zeros(1, np.bool_))
    key = (SortKey(COLUMNS["i"]),)
    for name, args, order in (
        ("min", (COLUMNS["i"],), ()), ("any_value", (COLUMNS["s"],), ()), ("array_agg", (COLUMNS["i"],), ()),
        ("string_agg", (COLUMNS["s"], COMMA), ()), ("mode", (), key), ("sum", (COLUMNS["i"],), ()),
        ("percentile_cont", (Literal(0.5, DOUBLE),), key), ("percentile_disc", (Literal(0.5, DOUBLE),), key),
    ):  # fmt: skip
        for distinct in (False, True) if not order else (False,):
            part = _part(name, args, distinct=distinct, order=order)
            assert evaluate(part, groups).to_pylist() == [None], name
            assert evaluate(part, groups).type == arrow_type(part.column.type)
    assert evaluate(_part("count", (COLUMNS["i"],), distinct=True), groups).to_pylist() == [0]
