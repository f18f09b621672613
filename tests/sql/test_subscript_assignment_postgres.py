"""Assignments to elements, slices, fields and parts of jsonb change a row as in PostgreSQL, or fail as there."""

from __future__ import annotations

import random
from typing import Any

import pytest

import halfjoin as hj
from tests.support.seeds import first_seed, some

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed: pip install '.[test-postgres]'")
pytest_plugins = ("tests.support.postgres",)

TABLES = ("CREATE TYPE pair AS (a integer, b text)", "CREATE TYPE wide AS (x integer[], j jsonb, p pair[])",
          "CREATE TABLE t (k integer PRIMARY KEY, a integer[], m integer[][], s text[], j jsonb, w wide, p pair[])",
          "CREATE TABLE u (k integer PRIMARY KEY, v jsonb, n integer)",
          "INSERT INTO u VALUES (1, '[1, 2]', 7), (2, NULL, NULL)")  # fmt: skip
COLUMNS = ("k", "a", "m", "s", "j", "w", "p")
ARRAYS = ("NULL", "'{}'", "'{1}'", "'{1,2,3}'", "'{1,NULL,3,4}'")
MATRICES = ("NULL", "'{}'", "'{{1,2},{3,4}}'", "'{{1},{NULL},{3}}'")
DOCUMENTS = ("NULL", "'{}'", "'[]'", "'1'", "'null'", """'{"a": 1, "b": [1, {"c": null}]}'""",
             """'[{"a": [1, 2]}, null, "x"]'""", """'{"a": {"b": {}}}'""")  # fmt: skip
ROWS = ("NULL", "ROW('{1}', '{}', '{}')", "ROW(NULL, NULL, ARRAY[ROW(1, 'x')]::pair[])")
KEYS = ("'a'", "'b'", "'c'", "0", "1", "2", "-1", "-4", "'1'", "'x y'", "' 1'", "NULL::text", "NULL::integer", "k")
VALUES = ("'5'", "NULL", """'{"z": [1]}'""", "(SELECT v FROM u WHERE u.k = t.k)", "j", "j['a']")
NUMBERS = ("1", "2", "3", "4", "6", "k", "0", "NULL", "a[1]", "(SELECT max(n) - 4 FROM u)", "'2'")
NOT_HERE = "arrays begin at subscript 1 here"
OTHER_SHAPE = "must have all dimensions of its type"
WRONG = (
    "a[1] = DEFAULT", "a[1][1:2] = '{1}'", "a[1] = 'x'::text", "a[1] = 1, a = '{}'", "k[1] = 1", "s['x'] = 'a'",
    "m[1][1] = 'x'", "j['a'] = 1", "j['a'] = 'x'::text", "j['a'] = '{'", "j[1:2] = '1'", "j[1.5] = '1'",
    "w.x[1] = DEFAULT", "w.y[1] = 1", "a[1].b = 1", "p[1].c = 1", "(a[1], k) = (1, 2, 3)", "a['{'] = 1",
    "j[true] = '1'", "w.a = DEFAULT", "m[1:1] = 5", "j['a'].b = '1'", "nothing[1] = 1", "a[1:2][1:2][1:2] = '{1}'",
)  # fmt: skip


def both(postgres: Any) -> hj.Engine:
    engine = hj.Engine()
    for statement in TABLES:
        engine.execute(statement)
        postgres.execute(statement)
    return engine


def contents(engine: hj.Engine, postgres: Any) -> tuple[list[Any], list[Any]]:
    sql = f"SELECT {', '.join(f'{name}::text' for name in COLUMNS)} FROM t ORDER BY k"
    found = engine.query(sql)
    return [*zip(*(column.to_pylist() for column in found.columns), strict=True)], postgres.execute(sql).fetchall()


def run_both(engine: hj.Engine, postgres: Any, statement: str) -> None:
    """Both do it, or both fail with the same SQLSTATE; halfjoin alone where its arrays cannot be so."""
    ours = theirs = "00000"
    refused = False
    postgres.execute("BEGIN; SAVEPOINT before")
    try:
        postgres.execute(statement)
    except psycopg.Error as error:
        theirs = str(error.sqlstate)
        postgres.execute("ROLLBACK TO before")
    try:
        engine.execute(statement)
    except hj.HalfjoinError as error:
        ours, refused = error.sqlstate, NOT_HERE in str(error) or OTHER_SHAPE in str(error)
    if refused:
        postgres.execute("ROLLBACK TO before")
    postgres.execute("COMMIT")
    assert refused or ours == theirs, statement
    mine, there = contents(engine, postgres)
    assert mine == there, statement


def fill(engine: hj.Engine, postgres: Any, choose: random.Random) -> None:
    statement = "INSERT INTO t VALUES " + ", ".join(
        f"({k}, {choose.choice(ARRAYS)}, {choose.choice(MATRICES)}, {choose.choice(ARRAYS)}, "
        f"{choose.choice(DOCUMENTS)}, {choose.choice(ROWS)}, {choose.choice(('NULL', 'ARRAY[ROW(1, NULL)::pair]'))})"
        for k in (1, 2, 3))
    for one in ("DELETE FROM t", statement):
        engine.execute(one)
        postgres.execute(one)


def an_assignment(choose: random.Random) -> str:
    def number() -> str:
        return choose.choice(NUMBERS)

    def bounds() -> str:
        return f"[{choose.choice(('', number(), '1', '2'))}:{choose.choice(('', number(), '2', '3'))}]"

    def value() -> str:
        return choose.choice(("5", "NULL", "'6'", "k", "a[2]", "(SELECT n FROM u WHERE u.k = t.k)"))

    def array() -> str:
        return choose.choice(("'{7,8}'", "'{7,8,9,10,11}'", "a", "NULL", "'{}'", "ARRAY[k, NULL]", "m[1:1]"))

    keys = "".join(f"[{choose.choice(KEYS)}]" for _ in range(choose.choice((1, 1, 2, 3))))
    return choose.choice((
        f"a[{number()}] = {value()}", f"a[{number()}] = {value()}", f"a{bounds()} = {array()}",
        f"m[{number()}][{number()}] = {value()}", f"m{bounds()}{choose.choice((bounds(), ''))} = {array()}",
        f"m[1:{number()}][{number()}] = '{{{{9}},{{8}}}}'", f"s[{number()}] = {choose.choice(('NULL', 'k::text'))}",
        f"j{keys} = {choose.choice(VALUES)}", f"j{keys} = {choose.choice(VALUES)}", f"w.x[{number()}] = {value()}",
        f"w.j{keys} = {choose.choice(VALUES)}", f"w.p[{number()}].b = 'new'", f"p[{number()}].a = {value()}",
        f"p[{number()}] = ROW(k, 'r')", f"(a[{number()}], j{keys}) = (SELECT n, v FROM u WHERE u.k = t.k)"))


def test_random_assignments_to_parts_change_rows_as_in_postgresql(postgres: Any) -> None:
    seed = first_seed()
    choose, engine = random.Random(seed), both(postgres)
    for _ in range(some(25)):
        fill(engine, postgres, choose)
        for _ in range(12):
            change = ", ".join(dict.fromkeys(an_assignment(choose) for _ in range(choose.choice((1, 1, 2)))))
            try:
                run_both(engine, postgres, f"UPDATE t SET {change} WHERE k = {choose.choice((1, 2, 3))}")
            except AssertionError as error:
                error.add_note(f"HALFJOIN_SEED={seed}")
                raise


def test_wrong_assignments_to_parts_fail_as_in_postgresql(postgres: Any) -> None:
    engine = both(postgres)
    fill(engine, postgres, random.Random(1))
    for change in (*WRONG, "m = '{}'", "m[3:1][1:1] = '{7,8}'"):
        run_both(engine, postgres, f"UPDATE t SET {change} WHERE k = 1")


def test_conflicts_and_merge_assign_to_parts_as_in_postgresql(postgres: Any) -> None:
    engine = both(postgres)
    fill(engine, postgres, random.Random(2))
    for statement in (
        "INSERT INTO t (k, a, j) VALUES (1, '{4,5}', '[3]'), (4, '{6}', '{}') ON CONFLICT (k) DO UPDATE "
        "SET a[1] = excluded.a[2], a[2] = t.k, j = '{}'",
        "INSERT INTO t AS o (k) VALUES (1), (2) ON CONFLICT (k) DO UPDATE SET j = '{}', a = '{}', m = '{}'",
        "INSERT INTO t AS o (k, j) VALUES (2, '9') ON CONFLICT (k) DO UPDATE SET j['a'][2] = excluded.j WHERE o.k > 1",
        "MERGE INTO t USING u ON t.k = u.k WHEN MATCHED AND u.n > 0 THEN UPDATE SET a[1] = u.n, j['v']['n'] = u.v, "
        "w.x[1] = t.k WHEN MATCHED THEN UPDATE SET j['none'] = u.v",
        "UPDATE t SET p[1].b = 'x', p[1].a = n, a[1:2] = ARRAY[n, t.k] FROM u WHERE u.k = t.k",
        "UPDATE t SET a[1] = DEFAULT", "INSERT INTO t (k) VALUES (1) ON CONFLICT (k) DO UPDATE SET a[1] = DEFAULT",
    ):  # fmt: skip
        run_both(engine, postgres, statement)


def test_an_array_that_would_not_begin_at_1_fails_its_row_alone() -> None:
    with hj.Engine() as engine:
        engine.execute("CREATE TABLE t (k integer, a integer[])")
        engine.execute("INSERT INTO t VALUES (1, '{}'), (2, '{1}')")
        for change in ("a[2] = 1", "a[0] = 1", "a[2:3] = '{1,2}'", "a[-1:0] = '{1,2}'"):
            with pytest.raises(hj.HalfjoinError, match=NOT_HERE) as caught:
                engine.execute(f"UPDATE t SET {change}")
            assert caught.value.sqlstate == "0A000"
        engine.execute("UPDATE t SET a[2] = 5 WHERE k = 2")
        with pytest.raises(hj.HalfjoinError, match="would be longer"):
            engine.execute("UPDATE t SET a[2000000000] = 1 WHERE k = 2")
        assert [*engine.query("SELECT a FROM t ORDER BY k").column("a").to_pylist()] == [[], [1, 5]]


def test_only_what_an_assignment_makes_counts_for_its_length() -> None:
    with hj.Engine() as engine:
        engine.execute("CREATE TABLE t (k integer, s text[])")
        engine.execute("INSERT INTO t SELECT 1, array_fill(repeat('x', 1000000), ARRAY[10])")
        engine.execute("UPDATE t SET s[:] = s, s[3] = 'y'")
        assert engine.query("SELECT length(s[2]) + length(s[3]) AS n FROM t").to_pylist() == [{"n": 1_000_001}]
        with pytest.raises(hj.HalfjoinError, match="would be longer"):
            engine.execute("UPDATE t SET s[10:11] = array_fill(repeat('y', 5000000), ARRAY[2])")


def test_a_jsonb_that_cannot_be_assigned_to_fails_its_row_alone() -> None:
    with hj.Engine() as engine:
        engine.execute("CREATE TABLE t (k integer, j jsonb)")
        values = """('["x", {}, null, 1]'::jsonb) -> (n % 4)"""
        engine.execute(f"INSERT INTO t SELECT n, {values} FROM generate_series(1, 40) AS s (n)")
        with pytest.raises(hj.DataError, match=r"cannot replace existing key.*and 29 more"):
            engine.execute("UPDATE t SET j['a'] = '1'")
        engine.execute("UPDATE t SET j['a'] = '1' WHERE k % 4 = 1")
        assert engine.query("SELECT DISTINCT j FROM t WHERE k % 4 = 1").to_pylist() == [{"j": '{"a": 1}'}]


def test_errors_name_the_assignment_as_it_is_written() -> None:
    with hj.Engine() as engine:
        engine.execute("CREATE TABLE t (k integer, a integer[], j jsonb)")
        engine.execute("INSERT INTO t VALUES (1, '{1}', '2')")
        for change, shown in (("a[k - 1] = k", r"in t\.a\[t\.k - 1\] = t\.k,"), ("a[:0] = a", r"in t\.a\[:0\] = t\.a,"),
                              ("a[1] = 2, a[-1] = 3", r"in \(t\.a\[1\] = 2\)\[-1\] = 3,"),
                              ("j['x'] = '1'", r"in t\.j\['x'\] = jsonb '1',")):  # fmt: skip
            with pytest.raises(hj.HalfjoinError, match=shown):
                engine.execute(f"UPDATE t SET {change}")
