"""Random expressions over random documents, row by row: PostgreSQL has the same answer, or fails as well.

`HALFJOIN_FUZZ_SQL=n` tries n new expressions.
"""

from __future__ import annotations

import os
from typing import Any

import pytest

import halfjoin as hj
from halfjoin.sql.functions.json_text import canonical
from tests.oracle.choice import Seeded
from tests.oracle.documents import Expressions, document, text_of
from tests.support.seeds import first_seed

pytest_plugins = ("tests.support.postgres",)

MORE = os.environ.get("HALFJOIN_FUZZ_SQL")
FIRST = first_seed() if MORE else 1
EACH, ROWS = 40, 12
SEEDS = range(FIRST, FIRST + max(4, int(MORE or 0) // EACH))
FAILED = "ERROR"


def theirs(postgres: Any, sql: str) -> Any:
    from psycopg import Error

    try:
        return postgres.execute(sql).fetchone()[0]
    except Error:
        return FAILED


def ours(engine: hj.Engine, sql: str) -> Any:
    try:
        return engine.query(sql).column(0)[0].as_py()
    except (hj.DataError, hj.UnsupportedSQL) as error:
        assert error.sqlstate[:2] == "22" or "22P02" in str(error), f"{error}: {sql}"
        return FAILED


@pytest.mark.parametrize("seed", SEEDS)
def test_an_expression_has_postgresqls_value(seed: int, postgres: Any) -> None:
    choices, engine = Seeded(seed), hj.Engine()
    rows = [tuple(None if choices.integer(0, 9) == 0 else text_of(choices, document(choices)) for _ in "jkl")
            for _ in range(ROWS)]  # fmt: skip
    for run in (engine.execute, postgres.execute):
        run("CREATE TABLE t (n integer, j jsonb, k jsonb, l jsonb)")
    engine.apply({"t": [dict(zip("njkl", (n, *row), strict=True)) for n, row in enumerate(rows)]})
    with postgres.cursor() as cursor:
        cursor.executemany("INSERT INTO t VALUES (%s, %s, %s, %s)", [(n, *row) for n, row in enumerate(rows)])
    failed = values = 0
    for _ in range(EACH):
        expression = Expressions(choices).any(choices.integer(0, 2))
        whole = f"SELECT ({expression})::text FROM t ORDER BY n"
        try:  # most have a value for every row
            found = engine.query(whole).column(0).to_pylist()
            expected = [row[0] for row in postgres.execute(whole).fetchall()]
        except Exception:  # some row fails
            one = [f"SELECT ({expression})::text FROM t WHERE n = {n}" for n in range(ROWS)]
            found, expected = [ours(engine, sql) for sql in one], [theirs(postgres, sql) for sql in one]
        assert found == expected, f"seed {seed}: {expression}"
        failed += sum(value == FAILED for value in found)
        values += sum(value is not None and value != FAILED for value in found)
    assert failed and values > EACH


@pytest.mark.parametrize("seed", range(3))
def test_texts_and_their_order_are_postgresqls(seed: int, postgres: Any) -> None:
    choices = Seeded(100 + seed)
    texts = [text_of(choices, document(choices, 4)) for _ in range(300)]
    listed = ", ".join(f"({n}, '{text.replace(chr(39), chr(39) * 2)}'::jsonb)" for n, text in enumerate(texts))
    sql = f"SELECT n, x::text FROM (VALUES {listed}) v (n, x) ORDER BY x, n"
    expected = [tuple(row) for row in postgres.execute(sql).fetchall()]
    found = hj.Engine().query(sql)
    assert list(zip(*(column.to_pylist() for column in found.columns), strict=True)) == expected
    assert [text for _, text in expected] == [canonical(texts[n]) for n, _ in expected]


@pytest.mark.parametrize("text", [
    "", " ", "{", "[1,]", '{"a"}', '{"a":1,}', "{'a':1}", "01", "1.", ".5", "+1", "1e", "nul", "NaN", "Infinity", "tru",
    '"a\tb"', '"\\x"', '"\\u12"', '"\\u0000"', '"\\ud800"', '"\\udc00x"', "1 2", "[1}", "\ufeff1", "1e131072",
    '{"a":1}}', "- 1", "0x10", "'a'", "[1 2]", '{"a" 1}', "//", '{1:2}', "1e-16384",
])  # fmt: skip
def test_what_postgresql_refuses_is_refused(text: str, postgres: Any) -> None:
    from psycopg import Error

    with pytest.raises(Error):
        postgres.execute("SELECT %s::text::jsonb", [text])
    engine = hj.Engine()
    engine.execute("CREATE TABLE t (x text); CREATE TABLE d (j jsonb)")
    engine.apply({"t": [{"x": text}]})
    with pytest.raises(hj.DataError):
        engine.query("SELECT x::jsonb FROM t")
    with pytest.raises(hj.UnsupportedSQL):
        engine.query("SELECT $1::jsonb", [text])
    with pytest.raises(hj.InvalidRow):
        engine.apply({"d": [{"j": text}]})


@pytest.mark.parametrize("text", [
    " \n\t\r1 ", '"\\u00e9\\/\\b"', '"\\ud83d\\ude00"', "1E5", "-0", "-0.0e3", "1e131071", "1e-16383", '{"a":1,"a":2}',
    "[[[[]]]]", '{"":{}}', '"\x7f"', "123456789012345678901234567890.5", "0e99",
])  # fmt: skip
def test_what_postgresql_takes_is_equal(text: str, postgres: Any) -> None:
    found = hj.Engine().query("SELECT $1::jsonb::text", [text]).column(0)[0].as_py()
    same = postgres.execute("SELECT %s::text::jsonb = %s::text::jsonb", [text, found]).fetchone()
    assert same == (True,)
    assert canonical(found) == found
