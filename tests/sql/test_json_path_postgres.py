"""Random SQL/JSON paths over random values, against PostgreSQL: ad hoc, and as views through changes."""

from __future__ import annotations

import json
import os
from collections import Counter
from random import Random
from typing import Any

import pytest

import halfjoin as hj
from tests.support.seeds import first_seed

pytest_plugins = ("tests.support.postgres",)

MORE = os.environ.get("HALFJOIN_FUZZ_SQL")
FIRST = first_seed() if MORE else 1
PATHS = 150
SEEDS = range(FIRST, FIRST + max(2, int(MORE or 0) // PATHS))
FUNCTIONS = ("jsonb_path_query_array", "jsonb_path_query_first", "jsonb_path_exists", "jsonb_path_match")
VARIABLES = '{"n": 2, "s": "ab", "l": [1, "a"], "o": {"a": 1}}'


@pytest.mark.parametrize("seed", SEEDS)
def test_paths_give_what_postgresql_gives(seed: int, postgres: Any) -> None:
    """Whether a text is a path, the answers, and the errors that are not silent."""
    random, engine, seen = Random(seed), hj.Engine(), Counter[str]()
    for _ in range(PATHS):
        path, value = _path(random), json.dumps(_value(random, 0))
        name = random.choice(FUNCTIONS)
        sql = f"{name}('{value}', '{path}', '{VARIABLES}', {random.choice(('true', 'false'))})"
        expected, found = _there(postgres, f"SELECT {sql} AS x"), _here(engine, f"SELECT {sql} AS x")
        assert found == expected, f"seed {seed}: {sql}"
        seen["fails" if found.startswith("ERROR") else "works"] += 1
    assert seen["works"] > 20 and seen["fails"] > 5, seen


@pytest.mark.parametrize("seed", SEEDS)
def test_views_over_paths_obey_the_view_law(seed: int, postgres: Any) -> None:
    random, engine = Random(seed), hj.Engine(clock="own")
    for connection in (engine, postgres):
        connection.execute("CREATE TABLE t (id integer, j jsonb, v jsonb)")
    queries: list[str] = []
    while len(queries) < 8:
        sql = random.choice((
            "SELECT id, x FROM t, jsonb_path_query(j, 'PATH', v, true) AS x",
            "SELECT id, jsonb_path_query_array(j, 'PATH', v, true) AS x FROM t",
            "SELECT id, j @? 'PATH' AS a, j @@ 'PATH' AS b FROM t", "SELECT id FROM t WHERE j @? 'PATH'",
            "SELECT jsonb_path_query_first(j, 'PATH', v, true) AS x, count(*) AS n FROM t GROUP BY 1",
        )).replace("PATH", _path(random))  # fmt: skip
        if not _here(engine, sql).startswith("ERROR"):  # some texts are no paths
            engine.execute(f"CREATE MATERIALIZED VIEW v{len(queries)} AS {sql}")
            queries.append(sql)
    variables = json.dumps({**json.loads(VARIABLES), "x": None})
    for time in range(1, 9):
        sql = f"DELETE FROM t WHERE id % 3 = {random.randrange(3)}"
        if random.random() < 0.8:
            rows = (f"({random.randrange(20)}, '{json.dumps(_value(random, 0))}', '{variables}')" for _ in range(6))
            sql = f"INSERT INTO t VALUES {', '.join(rows)}"
        engine.execute(f"SET TIME = {time}; {sql}")
        postgres.execute(sql)
        for number, query in enumerate(queries):
            expected = Counter(_normal(row[0]) for row in postgres.execute(_whole(query)).fetchall())
            for sql in (_whole(f"SELECT * FROM v{number}"), _whole(query)):
                found = Counter(map(_normal, engine.query(sql).column("x").to_pylist()))
                assert found == expected, f"seed {seed}: {query}"


def _whole(query: str) -> str:
    return f"SELECT to_jsonb(q)::text AS x FROM ({query}) AS q"


def _value(random: Random, depth: int) -> Any:
    kind = random.randrange(9 if depth < 3 else 6)
    if kind < 6:
        numbers, texts = (1.5, -0.25, 12345678, 1e20, 0.001), ("", "a", "ab", "abc", "1.5", "x\ny", "é")
        values = (None, random.random() < 0.5, random.randrange(9), random.choice(numbers), random.choice(texts), -2)
        return values[kind]
    if kind == 6:
        return [_value(random, depth + 1) for _ in range(random.randrange(4))]
    return {key: _value(random, depth + 1) for key in random.sample("abc", random.randrange(4))}


def _path(random: Random) -> str:
    mode = random.choice(("", "", "lax ", "strict "))
    return mode + (_condition(random, 0, False) if random.random() < 0.3 else _chain(random, 0, False))


def _chain(random: Random, depth: int, inside: bool) -> str:
    if depth > 2:
        return random.choice(("$", "@" if inside else "$", "1", '"a"'))
    if random.random() < 0.15:
        sign = random.choice("+-*/%")
        made = f"{_chain(random, depth + 1, inside)} {sign} {_chain(random, depth + 1, inside)}"
        return f"({made})" if random.random() < 0.7 else made
    if random.random() < 0.06:
        return f"{random.choice('+-')}{_chain(random, depth + 1, inside)}"
    head = random.choice(("$", "$", "$", "$", "@" if inside else "$", "@" if inside else "$", "@" if inside else "$",
                          "1", "2.50", '"ab"', "null", "true", "$n", "$s", "$l", "$o", "$missing"))  # fmt: skip
    return head + "".join(_step(random, depth, inside) for _ in range(random.randrange(4)))


def _step(random: Random, depth: int, inside: bool) -> str:
    match random.randrange(14):
        case 0 | 1 | 2:
            return random.choice((".a", ".b", ".c", '."a"', ". b"))
        case 3:
            return ".*"
        case 4 | 5:
            return "[*]"
        case 6:
            return random.choice(("[0]", "[last]", "[0 to 1]", "[1, 0]", "[last - 1 to last]", "[-1]", "[5]", "[$n]",
                                  "[1.7]", "[$.a]"))  # fmt: skip
        case 7:
            return random.choice((".**", ".**{1}", ".**{1 to 2}", ".**{last}", ".**{0}", ".**{2 to last}"))
        case 8 | 9 | 10:
            return f" ? ({_condition(random, depth + 1, True)})"
        case 11:
            return random.choice((".type()", ".size()"))
        case 12:
            return random.choice((".double()", ".abs()", ".floor()", ".ceiling()"))
    return ".keyvalue()" + random.choice(("", ".key", ".value", ".id"))


def _condition(random: Random, depth: int, inside: bool) -> str:
    if depth > 3:
        return "1 == 1"
    chain = _chain(random, depth + 1, inside)
    match random.randrange(12):
        case 0:
            sign = random.choice(("&&", "||"))
            return f"{_condition(random, depth + 1, inside)} {sign} {_condition(random, depth + 1, inside)}"
        case 1:
            return f"!({_condition(random, depth + 1, inside)})"
        case 2:
            return f"({_condition(random, depth + 1, inside)}) is unknown"
        case 3:
            return f"exists({chain})"
        case 4:
            return f'{chain} starts with {random.choice((chr(34) + "a" + chr(34), "$s"))}'
        case 5:
            flag = random.choice(("", ' flag "i"', ' flag "s"', ' flag "m"', ' flag "q"', ' flag "ism"'))
            return f'{chain} like_regex "{random.choice(("^a", "A", "x.y", "b$", "^y", "1.5"))}"{flag}'
    return f"{chain} {random.choice(('==', '!=', '<>', '<', '>', '<=', '>='))} {_chain(random, depth + 1, inside)}"


def _here(engine: hj.Engine, sql: str) -> str:
    try:
        found = engine.execute(sql)
    except hj.HalfjoinError as error:
        return f"ERROR {error.sqlstate if error.sqlstate == '42601' else ''}"
    assert found is not None
    value = found.column("x")[0].as_py() if "x" in found.column_names and len(found) else None
    return _normal(value)


def _there(postgres: Any, sql: str) -> str:
    import psycopg

    try:
        return _normal(postgres.execute(sql.replace(" AS x", "::text AS x")).fetchone()[0])
    except psycopg.Error as error:
        return f"ERROR {error.sqlstate if error.sqlstate == '42601' else ''}"


def _normal(value: Any) -> str:
    """A jsonb as text with its numbers as PostgreSQL compares them."""
    if value is None or isinstance(value, bool):
        return str(value).lower()
    return json.dumps(json.loads(value, parse_float=_number, parse_int=_number), ensure_ascii=False, default=str)


def _number(text: str) -> str:
    from decimal import Decimal

    return f"#{Decimal(text).normalize()}"


@pytest.mark.parametrize("sql", [
    "SELECT jsonb_path_query_array('[1, \"a\"]', 'strict $[*] + 1', silent => true) AS x",
    "SELECT jsonb_path_exists('[1, 3]', '$[*] ? (@ > $n)', vars => '{\"n\": 2}') AS x",
    "SELECT jsonb_path_match('{}', 'strict $.a', silent => true, vars => '{}') AS x",
    "SELECT count(*) AS x FROM jsonb_path_query('[1, 2]', '$[*] ? (@ > $n)', vars => '{\"n\": 1}')",
])  # fmt: skip
def test_arguments_may_have_names(sql: str, postgres: Any) -> None:
    engine = hj.Engine()
    found = engine.query(sql).column("x")[0].as_py()
    assert found == postgres.execute(sql.replace(" AS x", "::text AS x") if "array" in sql else sql).fetchone()[0]
