"""The view law for columns of jsonb: keys of groups, joins, DISTINCT, orders, aggregates and rows made of elements.

PostgreSQL evaluates each view over the tables' contents, at every time. Batches insert, delete and replace rows, at
open times too; equal values come as different texts.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import halfjoin as hj
from halfjoin.sql.functions.json_text import canonical
from tests.oracle.choice import Choices, Seeded, chance
from tests.oracle.rows import Bag, nonzero

pytest_plugins = ("tests.support.postgres",)

TABLES = {"t": ("n", "j", "k"), "u": ("j", "n")}
DDL = ("CREATE TABLE t (n integer, j jsonb, k jsonb)", "CREATE TABLE u (j jsonb, n integer)")
# Each value as texts that are equal; objects have keys in any order.
VALUES = (
    ("1", "1.0", "10e-1"), ("0", "-0.0"), ("[]",), ("{}", " { } "), ("null",), ("true",), ('"1"', '"\\u0031"'),
    ('{"a": 1, "b": [1, 2]}', '{"b":[1,2.0],"a":1.00}'), ('{"a": {"b": 2}}',),
    ('[1, {"b": 1}, null]', '[1.0,{"b":1},null]'),
    ('{"b": "é"}', '{"b":"\\u00e9"}'), ("[[1], [2, 3]]",), ("[1, 2]",), ('"b"',),
)  # fmt: skip
VIEWS = {
    "groups": "SELECT j, count(*) AS c, sum(n) AS s FROM t GROUP BY j",
    "part groups": "SELECT j -> 'b' AS b, count(j) AS c FROM t GROUP BY j -> 'b' HAVING count(*) > 1",
    "distinct": "SELECT DISTINCT j, k FROM t",
    "distinct on": "SELECT DISTINCT ON (k) k, j, n FROM t ORDER BY k, j DESC NULLS LAST, n",
    "counts": "SELECT n, count(DISTINCT j) AS c, jsonb_agg(j ORDER BY j, n) AS l FROM t GROUP BY n",
    "sorted once": "SELECT n, jsonb_agg(DISTINCT j ORDER BY j DESC) AS l FROM t GROUP BY n",
    "object": "SELECT j, jsonb_object_agg(coalesce(n, -1), k ORDER BY k) AS o FROM t GROUP BY j",
    "one array": "SELECT array_agg(j ORDER BY j NULLS FIRST, k) AS a FROM t",
    "join": "SELECT t.n, t.k, u.n AS m FROM t JOIN u ON t.j = u.j",
    "join of parts": "SELECT t.n, u.n AS m FROM t JOIN u ON t.j -> 'a' = u.j",
    "contains": "SELECT t.n, u.n AS m FROM t JOIN u ON t.n = u.n AND t.j @> u.j",
    "less": "SELECT t.n, u.n AS m FROM t JOIN u ON t.n = u.n AND t.j < u.j",
    "left": "SELECT t.n, t.j, u.n AS m FROM t LEFT JOIN u ON u.j = t.j AND u.n > 1",
    "full": "SELECT t.n, u.j, u.n AS m FROM t FULL JOIN u ON u.j = t.k",
    "exists": "SELECT n, j FROM t WHERE EXISTS (SELECT FROM u WHERE u.j = t.j)",
    "not in": "SELECT n FROM t WHERE j NOT IN (SELECT u.j FROM u WHERE u.j IS NOT NULL)",
    "union": "SELECT j FROM t UNION SELECT j FROM u",
    "except": "SELECT j FROM t EXCEPT ALL SELECT j FROM u",
    "first": "SELECT j, n FROM t ORDER BY j DESC, n, k LIMIT 4",
    "ranks": "SELECT j, n, rank() OVER (PARTITION BY k ORDER BY j) AS r FROM t",
    "lag": "SELECT DISTINCT j, lag(j) OVER (PARTITION BY n ORDER BY j) AS p FROM t",
    "elements": "SELECT t.n, e.value AS v, count(*) AS c FROM t, jsonb_array_elements(CASE WHEN jsonb_typeof(t.j) = "
                "'array' THEN t.j END) AS e GROUP BY t.n, e.value",
    "element texts": "SELECT n, e.v, e.i FROM t, jsonb_array_elements_text(CASE jsonb_typeof(j) WHEN 'array' THEN j "
                     "END) WITH ORDINALITY AS e (v, i)",
    "each": "SELECT e.key, e.value, count(*) AS c FROM t, jsonb_each(CASE jsonb_typeof(j) WHEN 'object' THEN j END) "
            "AS e GROUP BY e.key, e.value",
    "records": "SELECT x.b, count(x.c) AS c FROM t, jsonb_to_recordset(jsonb_build_array(CASE jsonb_typeof(t.j) WHEN "
               "'object' THEN t.j ELSE '{}' END, jsonb_build_object('c', t.n))) AS x (b jsonb, c integer) GROUP BY x.b",
    "record": "SELECT t.n, x.a, x.b FROM t LEFT JOIN LATERAL jsonb_to_record(CASE jsonb_typeof(t.k) WHEN 'object' "
              "THEN t.k END) AS x (a text, b jsonb) ON t.n > 0",
    "keys": "SELECT n, jsonb_object_keys(CASE jsonb_typeof(j) WHEN 'object' THEN j END) AS key FROM t",
    "made": "SELECT jsonb_build_object('n', n, 'j', j) AS o, to_jsonb(n) || k AS p, j #>> '{a,b}' AS q FROM t",
    "filter": "SELECT n FROM t WHERE j ? 'b' OR j <@ '[1, 2, null]' OR (j ->> 'a')::text = '1'",
}  # fmt: skip


def shown(value: Any) -> Any:
    return tuple(map(shown, value)) if isinstance(value, list) else value


def theirs(postgres: Any, sql: str) -> Bag:
    """PostgreSQL's rows; jsonb in the canonical text."""
    return Counter(tuple(map(shown, row)) for row in postgres.execute(sql).fetchall())


def ours(table: Any) -> Bag:
    return Counter(tuple(map(shown, row.values())) for row in table.to_pylist())


def hold(postgres: Any, contents: dict[str, Bag]) -> None:
    for name, rows in contents.items():
        postgres.execute(f"DELETE FROM {name}")
        with postgres.cursor() as cursor:
            places = ", ".join("%s" for _ in TABLES[name])
            cursor.executemany(f"INSERT INTO {name} VALUES ({places})", list(rows.elements()))


def random_row(choices: Choices, table: str) -> dict[str, Any]:
    """A row whose jsonb are texts, or values of Python's."""
    row: dict[str, Any] = {}
    for name in TABLES[table]:
        if chance(choices, 10):
            row[name] = None
        elif name == "n":
            row[name] = choices.integer(0, 2)
        else:
            text = choices.one_of(choices.one_of(VALUES))
            value = json.loads(text)
            row[name] = value if not isinstance(value, str | None) and chance(choices, 30) else text
    return row


def plain(row: dict[str, Any]) -> tuple[Any, ...]:
    """The row with canonical texts."""
    texts = (value if isinstance(value, str) else json.dumps(value) for value in row.values())
    return tuple(value if name == "n" or value is None else canonical(text)
                 for (name, value), text in zip(row.items(), texts, strict=True))  # fmt: skip


class Stream:
    """Batches, and what they make of the tables."""

    def __init__(self, choices: Choices) -> None:
        self.choices = choices
        self.updates: list[tuple[str, tuple[Any, ...], int, int]] = []

    def contents(self, time: int) -> dict[str, Bag]:
        found: dict[str, Bag] = {name: Counter() for name in TABLES}
        for table, row, at, diff in self.updates:
            if at <= time:
                found[table][row] += diff
        return {name: nonzero(rows) for name, rows in found.items()}

    def batch(self, time: int) -> dict[str, list[dict[str, Any]]]:
        """Rows that come and go at a time, or come a little later."""
        batch: dict[str, list[dict[str, Any]]] = {name: [] for name in TABLES}
        for table in TABLES:
            there = list(self.contents(time)[table].elements())
            for _ in range(self.choices.integer(0, 4)):
                if there and chance(self.choices, 45):
                    row = there.pop(self.choices.integer(0, len(there) - 1))
                    self._add(batch, table, dict(zip(TABLES[table], row, strict=True)), time, -1)
                    if chance(self.choices, 50):
                        continue
                self._add(batch, table, random_row(self.choices, table), time + self.choices.one_of((0, 0, 0, 2)), 1)
        return batch

    def _add(self, batch: dict[str, list[dict[str, Any]]], table: str, row: dict[str, Any], time: int,
             diff: int) -> None:
        self.updates.append((table, plain(row), time, diff))
        batch[table].append({**row, "__time": time, "__diff": diff})


@pytest.mark.parametrize("seed", range(4))
def test_views_over_jsonb_agree_with_postgres(seed: int, tmp_path: Path, postgres: Any) -> None:
    from psycopg.types.string import TextLoader

    postgres.adapters.register_loader("jsonb", TextLoader)
    choices, end = Seeded(seed), 7
    options: dict[str, Any] = {"retain": 1000, "clock": "own"}
    engine, stream = hj.Engine(tmp_path / "w", **options), Stream(choices)
    for ddl in DDL:
        engine.execute(ddl)
        postgres.execute(ddl)
    names = {sql: f"v{number}" for number, sql in enumerate(VIEWS.values())}
    late = {sql for sql in names if chance(choices, 30)}
    for time in range(1, end + 1):
        for sql, name in names.items():
            if time == (5 if sql in late else 1):
                engine.execute(f"CREATE MATERIALIZED VIEW {name} AS {sql}")
        engine.apply(stream.batch(time), time=time, close=False)
        engine.advance(to=time + 1)
        if chance(choices, 15):
            engine.close()
            engine = hj.Engine(tmp_path / "w", **options)
    engine.advance(to=end + 4)
    asked = choices.integer(2, end + 3)
    seen: dict[str, set[str]] = {label: set() for label in VIEWS}
    for time in range(1, end + 4):
        hold(postgres, stream.contents(time))
        for label, sql in VIEWS.items():
            expected = theirs(postgres, sql)
            assert ours(engine.read(names[sql], as_of=time)) == expected, f"{label} at {time}: {sql}"
            if time == asked:
                assert ours(engine.query(sql, as_of=time)) == expected, f"query of {label} at {time}: {sql}"
            seen[label].add(repr(sorted(expected, key=repr)))
    engine.close()
    assert sum(len(answers) > 2 for answers in seen.values()) > len(VIEWS) * 3 // 4, "most views change"


def test_equal_values_are_one_key(postgres: Any) -> None:
    engine = hj.Engine()
    engine.execute("CREATE TABLE t (j jsonb)")
    engine.execute("CREATE MATERIALIZED VIEW v AS SELECT j, count(*) AS c FROM t GROUP BY j")
    for texts in VALUES:
        engine.apply({"t": [{"j": text} for text in texts for _ in range(2)]})
        engine.apply({"t": [{"j": text, "__diff": -1} for text in reversed(texts)]})
        for text in texts:
            assert postgres.execute("SELECT %s::text::jsonb = %s::text::jsonb", [text, texts[0]]).fetchone() == (True,)
    assert engine.read("v").to_pylist() == [{"j": canonical(texts[0]), "c": len(texts)} for texts in VALUES]
