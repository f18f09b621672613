"""Random expressions of the function table, casts and forms over a table of extremes, against a real PostgreSQL.

Each is asked for all rows in a query, and kept as a view while rows come and go. `HALFJOIN_FUZZ_SQL=n` tries n new
expressions over 1,000 rows each: 1,000 of them are more than a million comparisons of rows.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from decimal import Decimal, InvalidOperation
from typing import Any

import pytest

import halfjoin as hj
from tests.oracle.choice import Seeded
from tests.oracle.extremes import DDL, TYPES_DDL, row
from tests.oracle.nested_calls import expression
from tests.oracle.row_answers import Answers, answers, differences, of_postgres, query, texts_differ
from tests.sql.test_functions_postgres import LIMITS, agree
from tests.support.seeds import first_seed

pytest_plugins = ("tests.support.postgres",)

MORE = os.environ.get("HALFJOIN_FUZZ_SQL")
ROWS, EACH = (1000, 100) if MORE else (60, 60)  # rows of the table, and expressions over them
LATER = ROWS // 4  # rows that come after the views are made; as many go
FIRST = first_seed() if MORE else 1
SEEDS = range(FIRST, FIRST + max(2, int(MORE or 0) // EACH))
_ZEROS = re.compile(r"\.0+(?!\d)|(\.\d*?)0+(?!\d)")  # PostgreSQL's number of decimals varies
_OF_EACH_OTHER = re.compile(r"\b(exp|ln|log|log10|sqrt|power|pow)\(")


@pytest.fixture(scope="module")
def utf8(postgres_server: Any) -> Iterator[Any]:
    """A connection to a database that knows the letters of Unicode."""
    with postgres_server("LC_COLLATE 'C' LC_CTYPE 'C.UTF-8' TEMPLATE template0") as connection:
        # Else the function that asks for one row is planned with its values, and a branch that is not taken fails.
        connection.execute("SET statement_timeout = '5s'; SET plan_cache_mode = force_generic_plan")
        connection.execute(TYPES_DDL)
        yield connection


@pytest.mark.parametrize("seed", SEEDS)
def test_expressions_over_extremes_are_postgresqls(seed: int, utf8: Any) -> None:
    choices, engine, bad = Seeded(seed), hj.Engine(), list[str]()
    utf8.execute("DROP TABLE IF EXISTS t CASCADE")
    utf8.execute(DDL)
    engine.execute(f"{TYPES_DDL}; {DDL}")
    _insert(engine, utf8, [row(choices, number) for number in range(ROWS - LATER)])
    compared, views = 0, list[tuple[str, str]]()
    for number in range(EACH):
        sql = expression(choices)
        wanted = of_postgres(utf8, sql)
        if wanted.late:
            continue
        wrong = list(differences(engine, sql, wanted, _agreeing(sql), LIMITS))
        bad += wrong
        compared += len(wanted.texts) + len(wanted.codes)
        if not wrong and wanted.texts and _made(engine, f"v{number}", sql, wanted):
            views.append((f"v{number}", sql))
            compared += len(wanted.texts)
            bad += texts_differ(f"view of {sql}", answers(engine, f"SELECT id, x FROM v{number}"), wanted,
                                    _agreeing(sql))  # fmt: skip
    _insert(engine, utf8, [row(choices, number) for number in range(ROWS - LATER, ROWS)])
    for run in (utf8.execute, engine.execute):
        run(f"DELETE FROM t WHERE id < {LATER}")
    for name, sql in views:
        wanted = of_postgres(utf8, sql)
        compared += len(wanted.texts)
        bad += _of_view(engine, name, sql, wanted)
    print(f"seed {seed}: {compared} rows compared, {len(views)} views")
    assert not bad, f"seed {seed}:\n" + "\n".join(bad)
    assert compared > ROWS * EACH and len(views) > EACH // 3


def _insert(engine: hj.Engine, connection: Any, rows: list[str]) -> None:
    """Insert rows, written as SQL, in both. halfjoin reads them as PostgreSQL prints them."""
    connection.execute("CREATE TEMP TABLE come (LIKE t)")
    connection.execute(f"INSERT INTO come VALUES {', '.join(rows)}; INSERT INTO t SELECT * FROM come")
    with connection.cursor() as cursor, cursor.copy("COPY come TO STDOUT") as copy:
        data = b"".join(map(bytes, copy))
    engine.copy_from("COPY t FROM STDIN", data)
    connection.execute("DROP TABLE come")


def _agree(found: str | None, answer: str | None) -> bool:
    if agree(found, answer):
        return True
    return found is not None and answer is not None and _ZEROS.sub(r"\1", found) == _ZEROS.sub(r"\1", answer)


def _agreeing(sql: str) -> Callable[[str | None, str | None], bool]:
    """How the answers of an expression are compared. An operand has the decimals of its column, so a power or logarithm
    of another one may have other digits than PostgreSQL's after the fifteenth."""
    return _nearly if len(_OF_EACH_OTHER.findall(sql)) > 1 else _agree


def _nearly(found: str | None, answer: str | None) -> bool:
    if _agree(found, answer):
        return True
    try:
        return abs(Decimal(found or "") - Decimal(answer or "")) <= abs(Decimal(answer or "")) * Decimal("1e-15")
    except InvalidOperation:  # one is NULL, or no number
        return False


def _made(engine: hj.Engine, name: str, sql: str, wanted: Answers) -> bool:
    """Whether the expression, over the rows that do not fail, can be a view: not if its answer is that of the clock,
    or it is refused, or too long."""
    try:
        engine.execute(f"CREATE MATERIALIZED VIEW {name} AS {query(sql, wanted.codes, without=True)}")
        answers(engine, f"SELECT id, x FROM {name}")
    except (hj.UnsupportedSQL, hj.DataError):
        return False
    return True


def _of_view(engine: hj.Engine, name: str, sql: str, wanted: Answers) -> Iterator[str]:
    """The differences of a view. It cannot be read while it has a row that fails."""
    old = {number for number in wanted.codes if number < ROWS - LATER}  # the view is without them
    come = {number: code for number, code in wanted.codes.items() if number not in old}
    try:
        found = answers(engine, f"SELECT id, x FROM {name}")
    except hj.DataError as error:
        if not come and not any(limit in str(error) for limit in LIMITS):
            yield f"view of {sql}: {error}"
        elif come and error.sqlstate[:2] not in {code[:2] for code in come.values()}:
            yield f"view of {sql}: {error.sqlstate} {error}, but PostgreSQL: {sorted(set(come.values()))}"
    else:
        if come:
            yield f"view of {sql}: no error, but PostgreSQL: {come}"
        yield from texts_differ(f"view of {sql}", found, wanted, _agreeing(sql))
