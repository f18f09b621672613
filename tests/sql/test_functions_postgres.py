"""The function table against an installed PostgreSQL: every example, and random calls of every function.

`HALFJOIN_FUZZ_SQL=n` tries n new calls.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from halfjoin.sql.functions import TABLE
from tests.oracle.choice import Seeded
from tests.oracle.functions import call, callable_entries
from tests.support.scalar_sql import same, wrong
from tests.support.seeds import first_seed

pytest_plugins = ("tests.support.postgres",)

MORE = os.environ.get("HALFJOIN_FUZZ_SQL")
FIRST = first_seed() if MORE else 1
# A path is of a type of its own; test_json_path_postgres makes some.
ENTRIES = [entry for entry in callable_entries() if not entry.name.startswith(("jsonb_path_", "@?", "@@"))]
EACH = 6  # calls of each function
SEEDS = range(FIRST, FIRST + max(1, int(MORE or 0) // (EACH * len(ENTRIES))))
# What our numerics cannot hold, and what is refused with a reason. Any other failure must be PostgreSQL's, too.
LIMITS = ("numeric field overflow", "not supported", "invalid regular expression", "the result would be longer",
          "write ", "cast ", "ends with its escape character", "is not unique", "use ", "the escape",
          "numeric constant", "a time of day ends", "' as a ", "invalid format specification",
          "cannot convert NaN", "numeric has no",
          "timestamp out of range", "date out of range for timestamp", "rounding to", "cannot be used together",
          "reads no date", "the pattern ", "time zone ", "nothing to repeat",
          "does not support the \"global\"", "interval out of range", "several dimensions must be written")  # fmt: skip


@pytest.fixture(scope="module")
def utf8(postgres_server: Any) -> Iterator[Any]:
    """A connection to a database that knows the letters of Unicode."""
    with postgres_server("LC_COLLATE 'C' LC_CTYPE 'C.UTF-8' TEMPLATE template0") as connection:
        yield connection


@pytest.mark.parametrize("category", sorted({entry.category for entry in TABLE}))
def test_the_table_has_postgresqls_answers(category: str, utf8: Any) -> None:
    wrong = []
    for entry in TABLE:
        for example in entry.examples if entry.category == category else ():
            answer = _asked(utf8, example.sql)
            failed = [text is not None and text.startswith("ERROR: ") for text in (answer, example.answer)]
            if not (all(failed) or same(answer, example.answer)):
                wrong.append(f"{example.sql}: {example.answer}, but PostgreSQL: {answer}")
    assert not wrong, "\n".join(wrong)


def _asked(connection: Any, sql: str) -> str | None:
    from psycopg import Error

    try:
        found: str | None = connection.execute(f"SELECT ({sql})::text").fetchone()[0]
        return found
    except Error as error:
        return f"ERROR: {error.diag.message_primary}"


@pytest.mark.parametrize("seed", SEEDS)
def test_random_calls_are_postgresqls(seed: int, utf8: Any) -> None:
    choices, tried, refused, bad = Seeded(seed), 0, 0, []
    for entry in ENTRIES:
        for _ in range(EACH):
            sql = call(choices, entry)
            answer = _asked(utf8, sql)
            if answer is not None and answer.startswith("ERROR"):
                answer = "ERROR"
            tried += 1
            found = [text for text in wrong(sql, answer) if not agree(text, answer)]
            refused += any(_limit(text) for text in found)
            if not all(_limit(text) for text in found):
                bad.append(f"{sql}: {sorted(set(map(str, found)))}, but PostgreSQL: {answer}")
    assert not bad, f"seed {seed}:\n" + "\n".join(bad)
    assert refused <= tried // 8, f"{refused} of {tried} calls were refused"


def _limit(text: str | None) -> bool:
    return text is not None and any(limit in text for limit in LIMITS)


def agree(found: str | None, answer: str | None) -> bool:
    """Whether texts are equal, or numerics in the decimals that both have. (PostgreSQL's number of decimals varies.)"""
    if found == answer:
        return True
    try:
        one, two = Decimal(found or ""), Decimal(answer or "")
        if one == two:
            return True
        if not (one.is_finite() and two.is_finite()):
            return False
        places = min(-int(one.as_tuple().exponent), -int(two.as_tuple().exponent))
        return places > 0 and abs(one - two) <= Decimal(1).scaleb(-places)
    except (ArithmeticError, TypeError):
        return False
