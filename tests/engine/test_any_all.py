"""ANY and ALL of one array and many rows: the answers of each row alone, without a pair for each row and element."""

from __future__ import annotations

from typing import Any

import pytest

import halfjoin as hj
from halfjoin.engine.scalar import any_all
from tests.oracle.rows import bag

VALUES = {
    "integer": ["1", "2", "3", "NULL"], "numeric(6,2)": ["1.5", "-3", "2.00", "NULL"],
    "text": ["'a'", "''", "'é'", "NULL"],
    "double precision": ["'NaN'", "'0'", "'-0'", "'Infinity'", "NULL"], "boolean": ["true", "false", "NULL"],
    "date": ["'0044-03-15 BC'", "'2024-01-01'", "'12000-01-01'", "NULL"], "bytea": [r"'\xde'", r"'\x00'", "NULL"],
    "timestamptz": ["'2024-01-01 00:00+00'", "'2025-01-01 00:00+00'", "NULL"], "char(3)": ["'a'", "'b'", "NULL"],
    "interval": ["'1 day'", "'24 hours'", "'2 days'", "NULL"],
}  # fmt: skip
COMPARISONS = [f"x {operator} {word}" for operator in ("=", "<>", "<", "<=", ">", ">=") for word in ("ANY", "ALL")]


def arrays(values: list[str]) -> list[list[str]]:
    """No element, one, two, the same twice, all but NULL, NULL alone and all."""
    known = values[:-1]
    return [[], known[:1], known[:2], known[:1] * 2, known, ["NULL"], ["NULL", "NULL"], [*known[1:], "NULL"]]


@pytest.mark.parametrize("type", VALUES)
def test_one_array_has_the_answers_of_an_array_in_each_row(type: str) -> None:
    engine = hj.Engine()
    engine.execute(f"CREATE TABLE t (x {type}, a {type}[])")
    for items in arrays(VALUES[type]):
        given = f"ARRAY[{', '.join(items)}]::{type}[]"
        rows = ", ".join(f"({x}, {given})" for x in VALUES[type])
        engine.execute(f"DELETE FROM t; INSERT INTO t VALUES {rows}")
        compared = [", ".join(f"{how} ({a}) AS c{at}" for at, how in enumerate(COMPARISONS)) for a in (given, "a")]
        one, each = (engine.query(f"SELECT x::text AS x, {columns} FROM t") for columns in compared)
        assert bag(one) == bag(each), items


@pytest.mark.parametrize("asked", ["= ANY", "<> ALL", "< ANY", ">= ALL", "<> ANY"])
def test_many_elements_and_many_rows_make_no_pairs(asked: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made, elements = [0], any_all.elements

    def counted(array: Any) -> tuple[Any, Any]:
        rows, values = elements(array)
        made[0] += len(values)
        return rows, values

    monkeypatch.setattr(any_all, "elements", counted)
    engine = hj.Engine()
    engine.execute("CREATE TABLE t (x integer); INSERT INTO t SELECT generate_series(1, 1000)")
    found = engine.query(f"SELECT x {asked} ($1) AS y FROM t", [list(range(0, 2000, 2))]).column("y").to_pylist()
    expected = {"= ANY": 500, "<> ALL": 500, "< ANY": 1000, ">= ALL": 0, "<> ANY": 1000}
    assert found.count(True) == expected[asked]
    assert made[0] <= 3 * 1000, "a pair for each row and element"


ORDERED = {"en": ["'z'", "'a'", "'m'", "NULL"], "jsonb": ["'null'", "'2'", "'10'", """'"a"'""", "'[]'", "'{}'", "NULL"]}


@pytest.mark.parametrize("type", ORDERED)
def test_what_orders_elements_need_not_be_their_values(type: str) -> None:
    """Enums are ordered by the places of their labels, and jsonb by kinds; a subquery of the elements says the same."""
    engine = hj.Engine()
    rows = ", ".join(f"({x}, {y})" for x in ORDERED[type] for y in ORDERED[type])
    engine.execute(f"CREATE TYPE en AS ENUM ('z', 'a', 'm'); CREATE TABLE t (x {type}, y {type}); "
                   f"INSERT INTO t VALUES {rows}")
    for items in ([], [ORDERED[type][1]], ORDERED[type], [*ORDERED[type][:2], "y"], ["NULL", "y"]):
        given = f"ARRAY[{', '.join(items)}]::{type}[]"
        values = f"(VALUES {', '.join(f'({item}::{type})' for item in items or ['NULL'])}) AS v (i)"
        asked = f"(SELECT i FROM {values}{'' if items else ' WHERE false'})"
        array, query = (", ".join(f"{how} ({one}) AS c{at}" for at, how in enumerate(COMPARISONS))
                        for one in (given, asked))
        engine.execute(f"CREATE MATERIALIZED VIEW v AS SELECT x, y, {array} FROM t")
        assert bag(engine.read("v")) == bag(engine.query(f"SELECT x, y, {query} FROM t")), items
        engine.execute("DROP MATERIALIZED VIEW v")
    with pytest.raises(hj.UnsupportedSQL, match="an order of"):
        engine.query("SELECT x < ANY (array_agg(y)) FROM t GROUP BY x")
