"""VARIADIC: the elements of an array are the last arguments. The answers are PostgreSQL's."""

from __future__ import annotations

import pytest

import halfjoin as hj

ANSWERS = [
    ("concat(VARIADIC a)", ["12", "", None]),
    ("concat_ws('-', VARIADIC a)", ["1-2", "", None]),
    ("format('%s', VARIADIC ARRAY[true, NULL])", ["t"] * 3),
    ("format('%2$s.%1$s', VARIADIC b)", ["y.x"] * 3),
    ("format('x', VARIADIC NULL::text[])", ["x"] * 3),
    ("num_nulls(VARIADIC a)", [1, 0, None]),
    ("json_build_array(VARIADIC a)::text", ["[1, null, 2]", "[]", None]),
    ("json_build_array(VARIADIC ARRAY['q\"', NULL])::text", ['["q\\"", null]'] * 3),
    ("json_build_array(VARIADIC '{{1,4},{2,5}}'::integer[][])::text", ["[1, 4, 2, 5]"] * 3),
    ("jsonb_build_array(VARIADIC '{{1,4},{2,5}}'::integer[][])::text", ["[1, 4, 2, 5]"] * 3),
    ("num_nonnulls(VARIADIC a)", [2, 0, None]),
]


@pytest.fixture(scope="module")
def engine() -> hj.Engine:
    made = hj.Engine()
    made.execute("""
        CREATE TABLE t (id integer, a integer[], b text[]);
        INSERT INTO t VALUES (1, ARRAY[1, NULL, 2], ARRAY['x', 'y']), (2, '{}', '{x,y,z}'), (3, NULL, '{x,y}')
    """)
    return made


@pytest.mark.parametrize(("call", "answers"), ANSWERS)
def test_elements_are_arguments(engine: hj.Engine, call: str, answers: list[object]) -> None:
    assert engine.query(f"SELECT {call} AS x FROM t ORDER BY id").column("x").to_pylist() == answers
    engine.execute(f"CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT id, {call} AS x FROM t")
    assert engine.query("SELECT x FROM v ORDER BY id").column("x").to_pylist() == answers


@pytest.mark.parametrize(("call", "reason"), [
    ("concat(VARIADIC 10)", "VARIADIC argument must be an array"),
    ("concat(VARIADIC '{a}')", "VARIADIC argument must be an array"),
    ("lower(VARIADIC ARRAY['a'])", "lower with VARIADIC is not supported"),
    ("json_build_array(VARIADIC ARRAY[1.5])", "is not supported"),
    ("format(VARIADIC ARRAY['a'])", "format takes 1 arguments before VARIADIC"),
])  # fmt: skip
def test_others_are_refused(engine: hj.Engine, call: str, reason: str) -> None:
    with pytest.raises(hj.UnsupportedSQL, match=reason):
        engine.query(f"SELECT {call}")


def test_numerics_make_a_series(engine: hj.Engine) -> None:
    series = engine.query("SELECT x FROM generate_series(1.0, 2, 0.25) x ORDER BY x DESC").column("x").to_pylist()
    assert list(map(str, series)) == ["2.00", "1.75", "1.50", "1.25", "1.00"]
    assert not len(engine.query("SELECT x FROM generate_series(1.0, NULL) x"))
