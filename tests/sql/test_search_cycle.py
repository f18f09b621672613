"""SEARCH and CYCLE mean what they mean in PostgreSQL, in queries and in views."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

import halfjoin as hj

pytest_plugins = ("tests.support.postgres",)

TABLE = "CREATE TABLE g (a bigint, b bigint, s text, f boolean, d double precision, n numeric(6,2), e date)"
ROWS = [
    (1, 2, "x", True, 1.5, 1, "2020-01-01"), (2, 3, "y", False, -0.5, 2, "2020-01-02"),
    (3, 1, "z w", None, 1e300, 3, None),
    (3, 4, 'q"u\\o', True, None, None, "2020-01-03"), (4, 4, "", False, 2.0, 10, "2020-01-03"),
    (10, 2, None, None, 3.0, 5, None), (10, 2, "(,)", None, 3.0, 5, None), (2, 10, "x", True, 0.0, 7, "1999-12-31"),
]  # fmt: skip
ARM = "SELECT g.b, g.s FROM r JOIN g ON g.a = r.k"
QUERIES = {
    "cycle": f"r(k, s) AS (SELECT a, s FROM g UNION ALL {ARM}) CYCLE k SET again USING path",
    "in parentheses": f"r(k, s) AS ((SELECT a, s FROM g) UNION ALL (({ARM}))) CYCLE k SET again USING path",
    "values in parentheses": f"r(k, s) AS ((VALUES (bigint '1', 'x'), (2, NULL)) UNION {ARM})"
                             " CYCLE k SET again USING path",
    "an own WITH": f"r(k, s) AS ((WITH w AS (SELECT a, s FROM g ORDER BY a LIMIT 1) SELECT * FROM w) UNION ALL {ARM})"
                   " CYCLE k SET again USING path",
    "cycle by two": f"r(k, s) AS (SELECT a, s FROM g UNION ALL {ARM}) CYCLE k, s SET again USING path",
    "cycle distinct": f"r(k, s) AS (SELECT a, s FROM g UNION {ARM}) CYCLE s, k SET again USING path",
    "cycle with marks": f"r(k, s) AS (SELECT a, s FROM g WHERE a < 3 UNION ALL {ARM} WHERE g.b < 10 OR r.k > 5)"
                        " CYCLE k SET again TO 'Y' DEFAULT 'N' USING path",
    "cycle of all types": "r(k, f, d, n, e) AS (SELECT a, f, d, n, e FROM g UNION ALL "
                          "SELECT g.b, g.f, g.d, g.n, g.e FROM r JOIN g ON g.a = r.k)"
                          " CYCLE k, f, n, e SET again USING path",
    "cycle of floats": "r(k, d) AS (SELECT a, d FROM g UNION ALL SELECT g.b, g.d FROM g, r old WHERE g.a = old.k)"
                       " CYCLE k, d SET again USING path",
    "cycle of its own names": "r AS (SELECT a, b FROM g UNION ALL SELECT g.a, g.b FROM r, g WHERE g.a = r.b)"
                              " CYCLE a, b SET again TO 1 DEFAULT 0 USING path",
    "search and cycle": f"r(k, s) AS (SELECT a, s FROM g UNION ALL {ARM}) SEARCH DEPTH FIRST BY k SET place"
                        " CYCLE k SET again USING path",
}  # fmt: skip
SEARCHES = {
    "depth by an integer": ("DEPTH", "k"), "depth by two": ("DEPTH", "s, k"), "breadth by an integer": ("BREADTH", "k"),
    "breadth by two": ("BREADTH", "k, s"), "breadth by text": ("BREADTH", "s"),
}  # fmt: skip


def _engine(rows: list[tuple[Any, ...]]) -> hj.Engine:
    engine = hj.Engine(clock="own")
    engine.execute(TABLE)
    engine.apply({"g": [dict(zip("absfdne", row, strict=True)) for row in rows]}, time=1)
    return engine


def _rows(table: Any) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in table.to_pylist()]


def _in_postgres(postgres: Any, sql: str, rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    postgres.execute(f"DROP TABLE IF EXISTS g; {TABLE}")
    postgres.cursor().executemany("INSERT INTO g VALUES (%s, %s, %s, %s, %s, %s, %s)", rows)
    found: list[tuple[Any, ...]] = postgres.execute(sql).fetchall()
    return found


@pytest.mark.parametrize("name", QUERIES)
def test_cycle_is_postgresqls(name: str, postgres: Any) -> None:
    engine, query = _engine(ROWS), QUERIES[name]
    columns = "a, b" if "r AS" in query else "k"
    sql = f"WITH RECURSIVE {query} SELECT {columns}, again, {{}} FROM r"
    # PostgreSQL's path has rows, and ours the texts of rows
    expected = Counter(map(_hashable, _in_postgres(postgres, sql.format("path::text::text[]"), ROWS)))
    found = Counter(map(_hashable, _rows(engine.query(sql.format("path")))))
    assert found == expected and any(row[-2] for row in found)
    engine.execute(f"CREATE MATERIALIZED VIEW v AS {sql.format('path')}")
    assert Counter(map(_hashable, _rows(engine.read("v")))) == found


def _hashable(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(tuple(value) if isinstance(value, list) else value for value in row)


@pytest.mark.parametrize("name", SEARCHES)
def test_search_orders_as_postgresql_does(name: str, postgres: Any) -> None:
    kind, by = SEARCHES[name]
    edges = (1, 2, "b"), (1, 3, "a"), (3, 4, "a"), (2, 12, None), (2, -5, ""), (3, 9, "B"), (12, 7, "x y")
    tree = [(*edge, None, None, None, None) for edge in edges]
    sql = (f"WITH RECURSIVE r(k, s) AS (SELECT 1::bigint, 'root' UNION ALL {ARM}) "
           f"SEARCH {kind} FIRST BY {by} SET place "
           "SELECT k, s FROM r ORDER BY place, k, s")  # fmt: skip
    assert _rows(_engine(tree).query(sql)) == _in_postgres(postgres, sql, tree)


TYPES = {  # values of each type, which are to be ordered as PostgreSQL orders them
    "boolean": ["true", "false"],
    "smallint": ["-32768", "-1", "0", "7", "32767"],
    "real": ["-Infinity", "-1.5", "-0", "0", "1e-30", "2.5", "10", "NaN", "Infinity"],
    "double precision": ["-1e300", "-2", "-1e-300", "0", "-0", "1e-300", "9.75", "10.5", "1e300", "NaN"],
    "numeric(12,2)": ["-1000.5", "-9.99", "0", "0.01", "2", "10", "99.5", "1000000000.25"],
    "numeric(38,0)": ["-99999999999999999999999999999999999999", "-18446744073709551616", "-1", "18446744073709551615",
                      "18446744073709551616", "99999999999999999999999999999999999999"],
    "date": ["0001-01-01", "1969-12-31", "1970-01-01", "2024-02-29", "9999-12-31"],
    "time": ["00:00:00", "09:30:00", "23:59:59.999999"],
    "timestamp": ["1900-01-01 00:00:00", "1969-12-31 23:59:59.5", "2024-02-29 12:00:00", "2024-02-29 12:00:00.000001"],
    "timestamptz": ["1969-12-31 23:59:59+02", "2024-02-29 12:00:00+00", "2024-02-29 12:00:00+05"],
    "uuid": ["00000000-0000-0000-0000-000000000001", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
             "F0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"],
    "bytea": [r"\x", r"\x00", r"\x0a", r"\x0aff", r"\xff"],
    "varchar(5)": ["", "A", "a", "a b", "ab", "é", "z"],
    "bigint[]": ["{}", "{-2}", "{-2,NULL}", "{1}", "{1,2}", "{2}", "{10}", "{NULL}"],
    "double precision[]": ["{-1.5}", "{0,NaN}", "{0,1}", "{10}", "{9}"],
    "text[]": ["{}", "{a}", "{a,b}", "{ab}", '{"a b"}', '{""}', "{NULL}", '{"a\x01"}', '{"a\x02"}', '{"a\x03"}', "{b}"],
}


@pytest.mark.parametrize("kind", ["DEPTH", "BREADTH"])
@pytest.mark.parametrize("type", TYPES)
def test_search_orders_each_type_as_postgresql(type: str, kind: str, postgres: Any) -> None:
    random = Random(f"{type} {kind}")
    values: list[str | None] = [*TYPES[type], *TYPES[type], None]
    random.shuffle(values)
    rows = [(number, random.randrange(number), value) for number, value in enumerate(values, 1)]
    text = ", ".join(f"({k}, {above}, {'NULL' if v is None else _literal(v)}::{type})" for k, above, v in rows)
    sql = (f"WITH RECURSIVE h(k, above, v) AS (VALUES {text}), "
           "r(k, v) AS (SELECT h.k, h.v FROM h WHERE h.above = 0 "
           "UNION ALL SELECT h.k, h.v FROM r JOIN h ON h.above = r.k) "
           f"SEARCH {kind} FIRST BY v SET place SELECT k FROM r ORDER BY place, k")  # fmt: skip
    postgres.execute("SET TimeZone = 'UTC'")
    expected = postgres.execute(sql.replace("varchar(5)", 'varchar(5) COLLATE "C"')
                                .replace("::text[]", '::text[] COLLATE "C"')).fetchall()  # fmt: skip
    assert _rows(hj.Engine(clock="own").query(sql)) == expected


def _literal(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


@pytest.mark.parametrize("seed", range(4))
def test_a_view_with_a_cycle_follows_its_tables(seed: int, postgres: Any) -> None:
    random = Random(seed)
    engine, there = hj.Engine(clock="own"), Counter[tuple[int, int]]()
    engine.execute(TABLE)
    sql = ("WITH RECURSIVE r(k) AS (SELECT 1::bigint UNION SELECT g.b FROM r JOIN g ON g.a = r.k) "
           "SEARCH DEPTH FIRST BY k SET place CYCLE k SET again USING path SELECT k, again, {} FROM r")  # fmt: skip
    engine.execute(f"CREATE MATERIALIZED VIEW v AS {sql.format('path')}")
    for time in range(1, 9):
        batch = []
        for _ in range(3):
            row, diff = (random.randrange(5), random.randrange(5)), 1
            if +there and random.random() < 0.4:
                row, diff = random.choice(sorted(+there)), -1
            there[row] += diff
            batch.append({"a": row[0], "b": row[1], "__diff": diff})
        engine.apply({"g": batch}, time=time)
        rows = [(*row, None, None, None, None, None) for row in there.elements()]
        expected = _in_postgres(postgres, sql.format("path::text::text[]"), rows)
        assert Counter(map(_hashable, _rows(engine.read("v")))) == Counter(map(_hashable, expected))


WRONG = {
    "WITH RECURSIVE r(k) AS (SELECT a FROM g) CYCLE k SET c USING p SELECT k FROM r": "need a query that reads itself",
    "WITH r(k) AS (SELECT a FROM g) CYCLE k SET c USING p SELECT k FROM r": "CYCLE needs WITH RECURSIVE",
    "WITH RECURSIVE r(k) AS (SELECT a FROM g UNION SELECT k FROM r) CYCLE x SET c USING p SELECT k FROM r":
        "unknown column 'x'",
    "WITH RECURSIVE r(k) AS (SELECT a FROM g UNION SELECT k FROM r) CYCLE k SET c USING c SELECT k FROM r":
        "two columns c",
    "WITH RECURSIVE r(k) AS (SELECT a FROM g UNION SELECT k FROM r) CYCLE k, k SET c USING p SELECT k FROM r":
        "named twice",
    "WITH RECURSIVE r(k) AS (SELECT a FROM g UNION SELECT * FROM r, g) CYCLE k SET c USING p SELECT k FROM r":
        "name the columns",
    "WITH RECURSIVE r(k) AS (SELECT a FROM g UNION SELECT k FROM (SELECT k FROM r) x) CYCLE k SET c USING p SELECT 1":
        "once in FROM",
    "WITH RECURSIVE r(k) AS (SELECT a FROM g UNION SELECT k FROM r) CYCLE k SET c SELECT k FROM r":
        "CYCLE takes columns",
    "WITH RECURSIVE r(k) AS (SELECT a FROM g UNION SELECT k FROM r) SEARCH k SET c SELECT k FROM r":
        "SEARCH takes columns",
    "WITH MUTUALLY RECURSIVE r(k bigint) AS (SELECT a FROM g) CYCLE k SET c USING p SELECT k FROM r": "CYCLE needs",
}


@pytest.mark.parametrize("sql", WRONG)
def test_wrong_clauses_are_refused(sql: str) -> None:
    with pytest.raises(hj.HalfjoinError, match=WRONG[sql]):
        _engine([]).query(sql)
