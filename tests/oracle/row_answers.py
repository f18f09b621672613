"""What an expression gives for each row of the table `t`: PostgreSQL's answers, and how halfjoin's differ from them.

An answer is a text, or for a row that fails the SQLSTATE of its error.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import halfjoin as hj

Agree = Callable[[str | None, str | None], bool]
_FAILED = "\x01failed "  # before the SQLSTATE of a row that fails
_TIMEOUT = "57014"
_BRANCHES = re.compile(r"\b(CASE|coalesce|AND|OR)\b")


@dataclass(slots=True)
class Answers:
    """`texts`: the answers of rows that have one, by id. `codes`: the SQLSTATEs of the others. `whole`: the SQLSTATE
    of an expression that PostgreSQL refuses even for no rows, or cannot answer in time."""

    texts: dict[int, str | None] = field(default_factory=dict)
    codes: dict[int, str] = field(default_factory=dict)
    whole: str | None = None

    @property
    def late(self) -> bool:
        """Whether PostgreSQL took too long."""
        return _TIMEOUT in (self.whole, *self.codes.values())


def of_postgres(connection: Any, sql: str) -> Answers:
    """PostgreSQL's answers. It stops at the first error, so then each row is asked for alone, by a function."""
    from psycopg import Error

    try:
        return Answers(dict(connection.execute(f"SELECT id, ({sql})::text FROM t").fetchall()))
    except Error as error:
        code = str(error.sqlstate)
    try:
        connection.execute(f"SELECT ({sql})::text FROM t WHERE id < 0")
        connection.execute(
            "CREATE OR REPLACE FUNCTION of_row(r t) RETURNS text LANGUAGE plpgsql AS $of$ BEGIN "
            f"RETURN (SELECT ({sql})::text FROM (SELECT (r).*) AS s); "
            f"EXCEPTION WHEN OTHERS THEN RETURN E'\\x01failed ' || SQLSTATE; END $of$")  # fmt: skip
        rows = connection.execute("SELECT id, of_row(t) FROM t").fetchall()
    except Error:
        return Answers(whole=code)
    found = Answers()
    for number, text in rows:
        if text is not None and text.startswith(_FAILED):
            found.codes[number] = text.removeprefix(_FAILED)
        else:
            found.texts[number] = text
    return found


def query(sql: str, ids: Iterable[int], *, without: bool = False) -> str:
    """The query for the answers of some rows, or of all others."""
    listed = ",".join(map(str, ids))
    return f"SELECT id, ({sql})::text AS x FROM t WHERE id {'<> ALL' if without else '= ANY'} ('{{{listed}}}'::int[])"


def differences(engine: hj.Engine, sql: str, wanted: Answers, agree: Agree, limits: Collection[str]) -> Iterator[str]:
    """How halfjoin's answers differ in queries. `limits`: texts of errors that PostgreSQL need not have."""
    if wanted.whole is not None:
        try:
            engine.query(f"SELECT id, ({sql})::text AS x FROM t")
        except hj.HalfjoinError:
            return
        # (A constant branch fails when PostgreSQL plans, whether a row needs it or not.)
        if not (wanted.whole.startswith("22") and _BRANCHES.search(sql)):
            yield f"{sql}: no error, but PostgreSQL: {wanted.whole}"
        return
    try:
        found = answers(engine, query(sql, wanted.codes, without=True))
        yield from texts_differ(sql, found, wanted, agree)
    except hj.HalfjoinError as error:
        # (PostgreSQL gives a call with a constant NULL no other argument's error.)
        if any(text is not None for text in wanted.texts.values()) and not _is(error, limits):
            yield f"{sql}: {error}"
        return
    rows = defaultdict(list)
    for number, code in wanted.codes.items():
        rows[code].append(number)
    for code, ids in rows.items():
        yield from _failing(engine, sql, code, ids, limits)


def _failing(engine: hj.Engine, sql: str, code: str, ids: list[int], limits: Collection[str]) -> Iterator[str]:
    """Whether all these rows fail here as well, with an error of the same class."""
    try:
        found = answers(engine, query(sql, ids))
    except hj.DataError as error:
        if error.more + 1 < len(ids):
            yield f"{sql}: only {error.more + 1} of the rows {ids[:20]}... fail, but PostgreSQL: all, {code}"
        elif error.sqlstate[:2] != code[:2] and not _is(error, limits):
            yield f"{sql}: {error.sqlstate} {error}, but PostgreSQL: {code}"
    except hj.HalfjoinError:
        return  # refused for all rows
    else:
        yield f"{sql}: {list(found.items())[:3]}, but PostgreSQL: {code}"


def answers(engine: hj.Engine, sql: str) -> dict[int, str | None]:
    """The rows (id, x) of a query."""
    ids, texts = (column.to_pylist() for column in engine.query(sql).columns)
    return dict(zip(ids, texts, strict=True))


def texts_differ(sql: str, found: dict[int, str | None], wanted: Answers, agree: Agree) -> Iterator[str]:
    """The answers that differ; the first of them, since they have one cause."""
    for number, text in wanted.texts.items():
        if not agree(found.get(number, "no row"), text):
            yield f"{sql}: row {number}: {found.get(number, 'no row')!r}, but PostgreSQL: {text!r}"
            return


# A numeric that is made of a float has 10 decimals (docs/sql.md), so one below 0.00000000005 is 0. PostgreSQL's is not:
# it can divide by it, and take its logarithm.
_ROUNDED = re.compile(r"(division by zero|cannot take logarithm of zero) in .*(numeric\(38,10\)|\b0\.0{10}\b)")


def _is(error: hj.HalfjoinError, limits: Collection[str]) -> bool:
    if _ROUNDED.search(str(error)):
        return True
    # (PostgreSQL drops branches that constants decide, with the constants in them that fail.)
    constant = isinstance(error, hj.UnsupportedSQL) and error.sqlstate[:2] == "22"
    return constant or any(limit in str(error) for limit in limits)
