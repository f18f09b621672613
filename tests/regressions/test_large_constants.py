"""No cache keeps the large constants of statements: a server that gets documents would have gigabytes of them."""

from __future__ import annotations

import gc

import pytest

import halfjoin as hj
from halfjoin.sql.expr import Call, Column, Expr, Literal
from halfjoin.sql.kept import MOST_LENGTH, MOST_NODES, is_small
from halfjoin.sql.types import BOOLEAN, TEXT
from halfjoin.sql.unseen import Unseen

LENGTH, TIMES, KEPT = 100_000, 20, 8  # the last statements may be kept
STATEMENTS = {
    "query": "SELECT k FROM t WHERE v = $1",
    "text": "SELECT k, v || $1 FROM t WHERE v LIKE $1 || '%' OR v || 'a' = $1",
    "join": "SELECT a.k FROM t AS a, t AS b WHERE a.k = b.k AND a.v = $1 AND b.v = $1",
    "update": "UPDATE t SET v = $1 WHERE k = 1",
    "upsert": "INSERT INTO t VALUES (1, $1) ON CONFLICT (k) DO UPDATE SET v = excluded.v",
}


def large_constants() -> int:
    """How many large constants of expressions this process has."""
    gc.collect()
    return sum(type(one) is Literal and type(one.value) is str and len(one.value) == LENGTH for one in gc.get_objects())


@pytest.mark.parametrize("statement", STATEMENTS)
def test_large_constants_go_with_their_statement(statement: str) -> None:
    with hj.Engine(clock="own") as engine:
        engine.execute("CREATE TABLE t (k bigint PRIMARY KEY, v text)")
        for number in range(TIMES):
            text = f"{number:0{LENGTH}}"
            engine.execute(f"SET TIME = {number}")
            engine.execute(STATEMENTS[statement], [text])
        assert large_constants() <= KEPT


@pytest.mark.parametrize(("expr", "small"), [
    (Column("k", TEXT), True),
    (Literal("a" * MOST_LENGTH, TEXT), True),
    (Literal("a" * (MOST_LENGTH + 1), TEXT), False),
    (Literal(["a" * 600, ["a" * 600]], TEXT), False),
    (Literal(Unseen("p", 0, TEXT), TEXT), True),
    (Call("or", (Column("b", BOOLEAN),) * MOST_NODES, BOOLEAN), False),
])  # fmt: skip
def test_small_is_what_takes_little_memory(expr: Expr, small: bool) -> None:
    assert is_small(expr) is small
