"""Errors as data: a view cannot be read exactly while it has a row for which one of its expressions fails.

Which rows fail must not depend on their path: a view made early and a view filled late always agree.
"""

from __future__ import annotations

import pytest

import halfjoin as hj
from tests.oracle.choice import Seeded
from tests.oracle.duck import Oracle
from tests.oracle.rows import Bag, bag
from tests.oracle.schema import BY_NAME, TABLES
from tests.oracle.streams import Advance, Apply, tame_batches

# The view; when its SELECT list or a condition over several inputs fails; when a condition of one input may fail.
VIEWS = {
    "SELECT list": ("SELECT b.x, 6 / b.y AS q FROM b WHERE b.x > 0", "b WHERE b.x > 0 AND b.y = 0", None),
    "SELECT list of a join": (
        "SELECT a.k, a.x / b.y AS q FROM a, b WHERE a.s = b.s",
        "a, b WHERE a.s = b.s AND b.y = 0 AND a.x IS NOT NULL", None),
    "three inputs": (
        "SELECT c.lo / (a.x - b.x) AS q FROM a, b, c WHERE a.s = b.s AND c.y = b.y",
        "a, b, c WHERE a.s = b.s AND c.y = b.y AND a.x = b.x AND c.lo IS NOT NULL", None),
    "guarded": ("SELECT CASE WHEN b.y <> 0 THEN 6 / b.y END AS q FROM b", "b WHERE false", None),
    "condition over two inputs": (
        "SELECT a.k FROM a, b WHERE a.s = b.s AND 6 / (a.x - b.x) > 1",
        "a, b WHERE a.s = b.s AND a.x = b.x", None),
    "condition of one input": (
        "SELECT a.k FROM a, b WHERE a.s = b.s AND 6 / b.y > 1", "a, b WHERE a.s = b.s AND b.y = 0", "b WHERE b.y = 0"),
    "join key": (
        "SELECT a.k, b.x FROM a, b WHERE a.k = 6 / b.y", "b WHERE b.y = 0 AND EXISTS (FROM a)", "b WHERE b.y = 0"),
    "with time": (
        "SELECT 6 / c.y AS q FROM c WHERE mz_now() < c.hi", "c WHERE c.y = 0 AND mz_now() < c.hi", None),
    "table function": (
        "SELECT 6 / g.n AS q FROM b, generate_series(b.x, 2) AS g(n)", "b WHERE b.x <= 0", None),
    "cast": ("SELECT (b.y + 32766)::smallint AS q FROM b", "b WHERE b.y > 1", None),
}  # fmt: skip


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_cannot_be_read_while_a_row_of_it_fails(name: str) -> None:
    sql, fails, may_fail = VIEWS[name]
    engine, oracle = hj.Engine(), Oracle()
    for table in TABLES:
        engine.execute(table.ddl)
        oracle.create_table(table)
    engine.execute(f"CREATE MATERIALIZED VIEW early AS {sql}")
    for number, step in enumerate([*tame_batches(Seeded(11), 25), Advance(60)]):
        if number == 18:
            engine.execute(f"CREATE MATERIALIZED VIEW late AS {sql}")
        if isinstance(step, Apply):
            batch = {table: BY_NAME[table].arrow(rows) for table, rows in step.updates.items()}
            for table, rows in batch.items():
                oracle.apply(table, rows)
            upper = engine.apply(batch).upper
        else:
            upper = engine.advance(to=step.to).upper
    readable = 0
    for time in range(upper):
        early, late = read(engine, "early", time), read(engine, "late", time)
        assert early == late, f"made early and filled late, as of {time}"
        if oracle.ask(f"SELECT 1 FROM {fails}", time):
            assert early is None, f"as of {time} a row fails, and the view can be read"
        elif not (may_fail and oracle.ask(f"SELECT 1 FROM {may_fail}", time)):
            assert early is not None, f"as of {time} no row fails, and the view cannot be read"
        readable += early is not None
    assert readable


def read(engine: hj.Engine, view: str, time: int) -> Bag | None:
    """The contents, None if the view has an error."""
    try:
        return bag(engine.read(view, as_of=time))
    except hj.DataError:
        return None
