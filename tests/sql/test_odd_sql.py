"""Every statement, however odd, gives an answer or one of halfjoin's errors. `HALFJOIN_FUZZ_SQL=n` tries more."""

from __future__ import annotations

import os

import pytest

import halfjoin as hj
from tests.oracle.choice import Seeded
from tests.oracle.odd import odd
from tests.sql.test_bind_total import SNIPPETS
from tests.support.seeds import first_seed

SETUP = """
    CREATE TABLE t (a integer, b bigint, s text, d date, ts timestamp, n numeric(10,2), arr integer[], ok boolean);
    CREATE TABLE u (a integer, c bigint, x double precision); CREATE TABLE w (c bigint, z text);
    CREATE VIEW pv AS SELECT a, b AS b1 FROM t;
    INSERT INTO t VALUES (1, 7, 'x y', '2020-01-01', '2020-01-02', 1.5, ARRAY[1, 2], true),
        (2, -7, '', NULL, NULL, -2.5, ARRAY[0, NULL], NULL), (NULL, NULL, NULL, NULL, NULL, NULL, NULL, false);
    INSERT INTO u VALUES (1, 5, 0.5), (NULL, NULL, 'NaN'); INSERT INTO w VALUES (5, 'a');
"""
MORE = os.environ.get("HALFJOIN_FUZZ_SQL")
EACH = 50
FIRST = first_seed() if MORE else 1
SEEDS = range(FIRST, FIRST + max(1, int(MORE or 200) // EACH))
KNOWN = [sql for sql in SNIPPETS if "RECURSIVE" not in sql and not sql.startswith("DROP")]


@pytest.mark.parametrize("seed", SEEDS)
def test_an_answer_or_a_reason(seed: int) -> None:
    choices = Seeded(seed)
    engine = hj.Engine()
    engine.execute(SETUP)
    for number in range(EACH):
        query = choices.one_of(KNOWN) if number % 5 == 0 else odd(choices, KNOWN)
        for sql, run in (
            (query, engine.query), (query, engine.explain),
            (f"CREATE MATERIALIZED VIEW v{number} AS {query}", engine.execute),
            (f"INSERT INTO w (c) {query}", engine.execute),
            (f"DELETE FROM w WHERE c IN ({query}) OR z = ({query})", engine.execute),
        ):  # fmt: skip
            try:
                run(sql)
            except hj.HalfjoinError as error:
                assert str(error)
            except Exception as error:
                raise AssertionError(f"seed {seed}: {type(error).__name__} of {sql}") from error
    engine.execute("INSERT INTO t SELECT * FROM t; DELETE FROM u WHERE a = 1")
    assert engine.query("SELECT count(*) FROM u").column(0).to_pylist() == [1]
