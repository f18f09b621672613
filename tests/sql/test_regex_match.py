"""Regular expressions on the project's own matcher: PostgreSQL's matches and groups, within a bound on steps."""

from __future__ import annotations

import os
from typing import Any

import pytest

import halfjoin as hj
from halfjoin.engine.scalar.regex_match import compiled
from halfjoin.errors import UnsupportedSQL
from tests.oracle.choice import Choices, Seeded
from tests.support.seeds import first_seed

pytest_plugins = ("tests.support.postgres",)

MORE = os.environ.get("HALFJOIN_FUZZ_SQL")
EACH = 300
FIRST = first_seed() if MORE else 1
SEEDS = range(FIRST, FIRST + max(1, int(MORE or 0) // EACH))
_PLACES = ("^", "$", "\\y", "\\m", "\\M", "\\Y", "\\A", "\\Z", "(?=a)", "(?!b)", "(?<=a)", "(?<!b)")
_SETS = (".", "[ab]", "[^a]", "\\w", "\\d", "[[:alpha:]]")
_QUANTIFIERS = ("", "", "", "", "", "", "*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{0,1}?", "{1,1}?", "{2,}")


def _atom(choices: Choices, depth: int) -> str:
    kind = choices.integer(0, 10 if depth else 5)
    if kind < 4:
        return choices.one_of("aabbc")
    if kind < 6:
        return choices.one_of(_SETS if kind == 4 else _PLACES)
    if kind < 10:
        return f"({'' if kind < 8 else '?:'}{_pattern(choices, depth - 1)})"
    return "\\1"


def _pattern(choices: Choices, depth: int) -> str:
    branches = []
    for _ in range(choices.one_of((1, 1, 1, 2))):
        items = (_atom(choices, depth) + choices.one_of(_QUANTIFIERS) for _ in range(choices.integer(1, 3)))
        branches.append("".join(items))
    return "|".join(branches)


def _ours(text: str, pattern: str, flags: str) -> list[list[str | None]]:
    found = compiled(pattern, flags)
    matches = ([None if span is None else text[span[0] : span[1]] for span in spans] for spans in found.all(text))
    return [match[1:] if found.groups else match for match in matches]


@pytest.mark.parametrize("seed", SEEDS)
def test_matches_and_groups_are_postgresqls(seed: int, postgres: Any) -> None:
    from psycopg import Error

    choices, same = Seeded(seed), 0
    for _ in range(EACH):
        pattern, flags = _pattern(choices, 2), choices.one_of(("", "", "i", "n", "p", "w"))
        text = "".join(choices.one_of("aabbc d\n") for _ in range(choices.integer(0, 8)))
        try:
            ours = _ours(text, pattern, flags)
        except UnsupportedSQL:
            continue
        try:
            rows = postgres.execute("SELECT regexp_matches(%s, %s, %s)", (text, pattern, flags + "g")).fetchall()
        except Error:
            continue
        assert ours == [row[0] for row in rows], (seed, pattern, text, flags)
        same += bool(rows)
    assert same >= EACH // 10


def test_too_many_steps_are_an_error_of_the_row() -> None:
    engine = hj.Engine(clock="own")
    engine.execute("CREATE TABLE t (k integer, s text)")
    engine.execute(r"CREATE MATERIALIZED VIEW v AS SELECT k, s ~ '(?!z)(?:a|aa)*$' AS found FROM t")
    engine.apply({"t": [{"k": 1, "s": "aad"}]}, time=1)
    engine.apply({"t": [{"k": 2, "s": "a" * 300_000}]}, time=2)
    assert engine.read("v", as_of=1).to_pylist() == [{"k": 1, "found": True}]
    with pytest.raises(hj.DataError, match="too many steps"):
        engine.read("v", as_of=2)
    engine.apply({"t": hj.deletes([{"k": 2, "s": "a" * 300_000}])}, time=3)
    assert engine.read("v").num_rows == 1
