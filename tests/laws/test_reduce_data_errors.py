"""Data errors below, in and above reduces: a view cannot be read while one is there, whatever its path, and heals.

DuckDB cannot say which rows fail, so each view comes with a query that tells whether there is an error.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest

import halfjoin as hj
from tests.oracle.histories import random_history, told
from tests.oracle.judges import Answers, normal
from tests.oracle.rows import tuples
from tests.oracle.watch import Watch

GROUPED = "(SELECT k, count(*) AS n, sum(v) AS s, min(v) AS m FROM a GROUP BY k) AS g"


@dataclass(frozen=True)
class Failing:
    """A view; whether it fails, as a condition over subqueries; DuckDB's text, which does not fail."""

    sql: str
    fails: str
    safe: str = ""


VIEWS = {
    "an argument": Failing("SELECT k, sum(6 / v) AS s FROM a GROUP BY k", "EXISTS (FROM a WHERE v = 0)",
                           "SELECT k, sum(6 // v) AS s FROM a GROUP BY k"),
    "an argument of min": Failing("SELECT k, min(6 / v) AS s FROM a GROUP BY k", "EXISTS (FROM a WHERE v = 0)",
                                  "SELECT k, min(6 // v) AS s FROM a GROUP BY k"),
    "a filtered argument": Failing("SELECT sum(6 / v) FILTER (WHERE v > 0) AS s FROM a", "false",
                                   "SELECT sum(6 // v) FILTER (WHERE v > 0) AS s FROM a"),
    "a key": Failing("SELECT 6 / v AS q, count(*) AS n FROM a GROUP BY 6 / v", "EXISTS (FROM a WHERE v = 0)",
                     "SELECT 6 // v AS q, count(*) AS n FROM a GROUP BY 6 // v"),
    "HAVING": Failing("SELECT k FROM a GROUP BY k HAVING 6 / min(v) > 2", f"EXISTS (FROM {GROUPED} WHERE m = 0)",
                      "SELECT k FROM a GROUP BY k HAVING 6 // min(v) > 2"),
    "a result": Failing("SELECT k, count(*) / sum(v) AS q FROM a GROUP BY k", f"EXISTS (FROM {GROUPED} WHERE s = 0)",
                        "SELECT k, count(*) // sum(v) AS q FROM a GROUP BY k"),
    "a sort key": Failing("SELECT k, v FROM a ORDER BY 6 / v, k NULLS LAST, v LIMIT 2", "EXISTS (FROM a WHERE v = 0)",
                          "SELECT k, v FROM a ORDER BY 6 // v NULLS LAST, k NULLS LAST, v NULLS LAST LIMIT 2"),
    "a window's argument": Failing(
        "SELECT k, v, sum(6 / v) OVER (PARTITION BY k ORDER BY v) AS s FROM a", "EXISTS (FROM a WHERE v = 0)",
        "SELECT k, v, sum(6 // v) OVER (PARTITION BY k ORDER BY v NULLS LAST) AS s FROM a"),
    "above a window": Failing(
        "SELECT k, 6 / (r - 4) AS q FROM (SELECT k, row_number() OVER (PARTITION BY k ORDER BY v) AS r FROM a) AS w",
        f"EXISTS (FROM {GROUPED} WHERE n > 3)",
        "SELECT k, 6 // (r - 4) AS q FROM (SELECT k, row_number() OVER (PARTITION BY k ORDER BY v) AS r FROM a) AS w"),
    "a joined group": Failing(
        f"SELECT b.x, 6 / g.s AS q FROM b JOIN {GROUPED} ON b.k = g.k",
        f"EXISTS (FROM b JOIN {GROUPED} ON b.k = g.k WHERE s = 0)",
        f"SELECT b.x, 6 // g.s AS q FROM b JOIN {GROUPED} ON b.k = g.k"),
    "a set operation": Failing(
        "SELECT 6 / v AS q FROM a EXCEPT SELECT x FROM b", "EXISTS (FROM a WHERE v = 0)",
        "SELECT 6 // v AS q FROM a EXCEPT SELECT x FROM b"),
    "an overflow of a sum": Failing(
        "SELECT k, sum(v * 2000000000)::int AS s FROM a WHERE v < 2 GROUP BY k",
        "EXISTS (FROM (SELECT k, sum(v) AS s FROM a WHERE v < 2 GROUP BY k) AS g WHERE s > 1)",
        "SELECT k, sum(v * 2000000000::bigint) AS s FROM a WHERE v < 2 GROUP BY k"),
    "more than one row": Failing(
        "SELECT b.x, (SELECT a.v FROM a WHERE a.k = b.k) AS v FROM b",
        f"EXISTS (FROM b JOIN {GROUPED} ON b.k = g.k WHERE n > 1)",
        "SELECT b.x, (SELECT min(a.v) FROM a WHERE a.k = b.k) AS v FROM b"),
}  # fmt: skip


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_cannot_be_read_while_something_fails(name: str) -> None:
    case, readable, failed = VIEWS[name], 0, 0
    for seed in range(4):
        rng = random.Random(seed)
        history = random_history(rng, 24, 8)
        batches, watch, oracle = list(told(rng, history, 8)), Watch(), Answers()
        late = rng.randrange(len(batches))
        watch.engine.execute(f"CREATE MATERIALIZED VIEW early AS {case.sql}")
        watch.engine.execute("CREATE MATERIALIZED VIEW above AS SELECT count(*) AS n FROM early AS p, early AS q")
        for number, batch in enumerate(batches):
            watch.tell(batch)
            if number == late:
                watch.engine.execute(f"CREATE MATERIALIZED VIEW late AS {case.sql}")
        for time in range(watch.upper):
            oracle.at(history, time)
            fails = bool(oracle.ask(f"SELECT 1 WHERE {case.fails}"))
            failed, readable = failed + fails, readable + (not fails)
            for view in ("early", "late", "above"):
                try:
                    found = normal(tuples(watch.engine.read(view, as_of=time)))
                except hj.DataError:
                    assert fails, f"{view} at {time}: an error too many"
                else:
                    assert not fails, f"{view} at {time}: an error is missing"
                    assert view == "above" or found == oracle.ask(case.safe or case.sql), f"{view} at {time}"
    assert readable
    assert failed or case.fails == "false"


def test_a_diamond_counts_one_error_once() -> None:
    """Views over views over one failing group: each tells of it once, and all heal when it does."""
    engine = hj.Engine(clock="own")
    engine.execute("CREATE TABLE t (k int, v int)")
    engine.execute("CREATE MATERIALIZED VIEW v0 AS SELECT k, count(*) / sum(v) AS q FROM t GROUP BY k")
    for level in range(12):
        both = f"SELECT p.k, p.q FROM v{level} AS p JOIN v{level} AS q ON p.k = q.k"
        engine.execute(f"CREATE MATERIALIZED VIEW v{level + 1} AS SELECT k, max(q) AS q FROM ({both}) AS r GROUP BY k")
    engine.apply({"t": [{"k": 1, "v": 1}, {"k": 1, "v": -1}]}, time=0)
    told = set()
    for level in range(13):
        with pytest.raises(hj.DataError, match="division by zero") as problem:
            engine.read(f"v{level}")
        told.add(str(problem.value).count("division by zero"))
    assert told == {1}
    engine.apply({"t": [{"k": 1, "v": 1}]}, time=1)
    assert engine.read("v12").to_pylist() == [{"k": 1, "q": 3}]
