"""Golden scripts in tests/plans: SQL, the normal form after each rule that changed it, and the paths.

`HALFJOIN_UPDATE=1 pytest tests/planner/test_plan_golden.py` writes them anew; the difference is then read in review.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from halfjoin.planner.explain import text, trace_text
from halfjoin.planner.plan_view import trace
from tests.support.plan_facts import World

SCRIPTS = sorted((Path(__file__).parent / "plans").glob("*.txt"))
RULE = "-" * 20
DDL = """
CREATE TABLE region (r_regionkey bigint PRIMARY KEY, r_name text);
CREATE TABLE nation (n_nationkey bigint PRIMARY KEY, n_name text, n_regionkey bigint);
CREATE TABLE supplier (s_suppkey bigint PRIMARY KEY, s_nationkey bigint);
CREATE TABLE customer (c_custkey bigint PRIMARY KEY, c_nationkey bigint, c_mktsegment text);
CREATE TABLE orders (o_orderkey bigint PRIMARY KEY, o_custkey bigint, o_orderdate date);
CREATE TABLE lineitem (l_orderkey bigint, l_linenumber integer, l_suppkey bigint, l_shipdate date,
    l_extendedprice numeric(15,2), l_discount numeric(15,2), PRIMARY KEY (l_orderkey, l_linenumber));
CREATE TABLE a (k integer PRIMARY KEY, x integer, s text, p numeric(6,2));
CREATE TABLE b (x integer, y bigint, s varchar(8), d date);
CREATE TABLE c (y integer, lo integer, hi bigint, ts timestamp, r integer[])
"""
SIZES = {"region": 5, "nation": 25, "supplier": 10_000, "customer": 150_000, "orders": 1_500_000, "lineitem": 6_000_000,
         "a": 1000, "b": 10_000, "c": 100}  # fmt: skip


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_golden(path: Path) -> None:
    sql = path.read_text().partition(RULE)[0].strip()
    world = World(DDL, SIZES)
    rules, planned = trace(world.relation(sql), world)
    found = f"{sql}\n{RULE}\n{trace_text(rules)}\n{RULE}\n{text(planned, world, path.stem)}\n"
    if os.environ.get("HALFJOIN_UPDATE"):
        path.write_text(found)
    assert found == path.read_text()
