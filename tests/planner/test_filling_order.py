"""The paths of queries: what drops rows by a unique key comes before keys are asked for, which cost one row each."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import halfjoin as hj
from halfjoin.engine.statements.evaluating import planned_query
from halfjoin.planner import filling
from halfjoin.planner.plan import Join, Path
from halfjoin.sql.bind.query import bind_query
from halfjoin.sql.parse.parse import parse_query

SCHEMA = """
    CREATE TABLE sold (id bigint PRIMARY KEY, day bigint, shop bigint, price bigint);
    CREATE TABLE back (id bigint PRIMARY KEY, sold bigint); CREATE TABLE day (id bigint PRIMARY KEY, year bigint);
    CREATE TABLE shop (id bigint PRIMARY KEY, state bigint)
"""


@pytest.fixture
def engine() -> hj.Engine:
    engine = hj.Engine(clock="own")
    engine.execute(SCHEMA)
    n = np.arange(200_000)
    engine.apply({
        "sold": pa.table({"id": n, "day": n % 5000, "shop": n % 12, "price": n}),
        "back": pa.table({"id": n[:50_000], "sold": n[:50_000]}),
        "day": pa.table({"id": n[:10_000], "year": n[:10_000] // 365}),
        "shop": pa.table({"id": n[:12], "state": n[:12] // 4}),
    }, time=1)  # fmt: skip
    return engine


def path(engine: hj.Engine, sql: str, reads: str) -> Path:
    """The path that fills the join which reads a table."""
    relation = bind_query(parse_query(sql), engine._state.catalog, sql).relation
    (found,) = [branch.paths[branch.fill] for node in planned_query(engine._state, relation).nodes
                if isinstance(node, Join) and reads in node.collections for branch in node.branches]  # fmt: skip
    return found


@pytest.mark.parametrize("asks", ["NOT EXISTS", "EXISTS"])
def test_a_row_that_drops_others_is_looked_up_first(
    engine: hj.Engine, asks: str, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    monkeypatch.setattr(filling, "beginning", lambda *_: (0, 0))
    monkeypatch.setattr(filling, "filling_cost", lambda path, *_: path.collection != "sold")
    sql = (f"SELECT sum(price) AS p FROM sold JOIN day ON day.id = sold.day WHERE day.year < 20 "
           f"AND {asks} (SELECT 1 FROM back WHERE back.sold = sold.id)")  # fmt: skip
    order = [stage.half_join.arrangement.collection for stage in path(engine, sql, "sold").stages]
    assert order.index("day") < order.index("back")


def test_to_ask_for_a_key_of_many_rows_costs_one_row(engine: hj.Engine) -> None:
    sql = ("SELECT sum(price) AS p FROM sold JOIN day ON day.id = sold.day JOIN shop ON shop.id = sold.shop "
           "WHERE day.year BETWEEN 1 AND 2 AND shop.state IN (SELECT max(id) FROM back GROUP BY sold)")  # fmt: skip
    assert path(engine, sql, "sold").collection != "shop"
