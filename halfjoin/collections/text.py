"""Pieces of SQL text: names that are quoted if need be, Python values as literals, and the user's expressions, each
checked to be one whole expression."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import TokenType

from halfjoin.errors import HalfjoinError, UnsupportedSQL, shown
from halfjoin.sql.parse.dialect import Halfjoin
from halfjoin.sql.parse.locate import name_of

_PLAIN = re.compile("[a-z_][a-z0-9_]*")
# Words that are names to our tokenizer, but not to PostgreSQL or at every place.
_RESERVED = re.compile(
    "analyse|asymmetric|authorization|both|cast|check|collation|concurrently|current_role|deferrable|foreign|freeze|group"
    "|initially|iterate|leading|of|order|placing|primary|similar|symmetric|system_user|to|trailing|user|verbose"
)


class Fragment(NamedTuple):
    """An expression's text, its syntax tree, and the tables that it reads in subqueries."""

    text: str
    tree: exp.Expr
    mentions: frozenset[str]


def name(text: object) -> str:
    """A name as SQL accepts it, quoted only if need be.

    Examples:
        >>> print(name("src"), name("Total"), name("group"), name('a "b" c'))
        src "Total" "group" "a ""b"" c"
    """
    if not isinstance(text, str) or not text or "\0" in text:
        raise HalfjoinError(f"{shown(text)} is not a name")
    if _PLAIN.fullmatch(text) and not _RESERVED.fullmatch(text):
        tokens = Halfjoin().tokenize(text)
        if [token.token_type for token in tokens] == [TokenType.VAR]:
            return text
    escaped = text.replace('"', '""')
    return f'"{escaped}"'


def expression(text: object, kind: type[exp.Expr] = exp.Condition) -> Fragment:
    """The user's expression, without comments around it.

    Raises:
        UnsupportedSQL: it is not the text of one expression.
    """
    if not isinstance(text, str):
        raise HalfjoinError(f"{shown(text)} is not SQL text", remedy="write an expression as a str, such as 'n + 1'")
    trees: Sequence[exp.Expr | None] = ()
    try:
        tokens = Halfjoin().tokenize(text)
        if not any(token.token_type is TokenType.SEMICOLON for token in tokens):
            trees = Halfjoin().parse_into(kind, text)
    except (SqlglotError, UnsupportedSQL):
        trees = ()
    if len(trees) != 1 or trees[0] is None:
        raise UnsupportedSQL(f"{shown(text)} is not one SQL expression",
                             remedy="give several as several arguments, and name one by a keyword: map(n='a + 1')")
    mentions = frozenset(name_of(table) for table in trees[0].find_all(exp.Table) if table.name)
    return Fragment(text[tokens[0].start : tokens[-1].end + 1], trees[0], mentions)


def is_name(fragment: Fragment) -> bool:
    """Whether an expression is the name of a column, and nothing more."""
    return isinstance(fragment.tree, exp.Column) and not fragment.tree.table and not fragment.tree.is_star


def is_star(fragment: Fragment) -> bool:
    """Whether an expression stands for several columns: `*` or `this.*`."""
    return bool(fragment.tree.is_star)


def lit(value: Any) -> str:
    """A Python value as the text of an SQL literal, for the expressions of collections.

    None, bool, int, float, Decimal, str, bytes, date, datetime, time, timedelta, and lists of these (ARRAY).

    Examples:
        >>> lit("it's"), lit(-1), lit(None), lit(datetime.date(2024, 1, 31))
        ("'it''s'", '(-1)', 'NULL', "DATE '2024-01-31'")
        >>> print("name = " + lit("x'; DROP TABLE t; --"))
        name = 'x''; DROP TABLE t; --'

        Raises:
            HalfjoinError: SQL has no literal for the value.
    """
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case int():
            return str(int(value)) if value >= 0 else f"({int(value)})"
        case float():
            text = repr(float(value)) if math.isfinite(value) else "NaN" if value != value else f"{value}inity"
            return f"'{text}'::double precision"
        case Decimal() if value.is_finite():
            return f"'{value}'::numeric" if value.is_signed() or "E" in str(value) else str(value)
        case str() if "\0" not in value:
            escaped = value.replace("'", "''")
            return f"'{escaped}'"
        case bytes():
            return f"'\\x{value.hex()}'::bytea"
        case datetime.datetime():
            kind = "TIMESTAMP" if value.tzinfo is None else "TIMESTAMPTZ"
            return f"{kind} '{value.isoformat(sep=' ')}'"
        case datetime.date():
            return f"DATE '{value.isoformat()}'"
        case datetime.time() if value.tzinfo is None:
            return f"TIME '{value.isoformat()}'"
        case datetime.timedelta():
            return f"INTERVAL '{value.days} days {value.seconds}.{value.microseconds:06d} seconds'"
        case (int(months), int(days), int(nanos)) if hasattr(value, "nanoseconds") and nanos % 1000 == 0:
            return f"INTERVAL '{months} months {days} days {nanos // 1000} microseconds'"  # as Arrow has it
        case list() | tuple() if value:
            return f"ARRAY[{', '.join(map(lit, value))}]"
    raise HalfjoinError(f"SQL has no literal for {shown(value)}", remedy="write it as SQL text")
