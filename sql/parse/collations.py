"""COLLATE: text compares by code point, so a collation that does so is allowed, and changes nothing."""

from __future__ import annotations

from sqlglot import exp

from halfjoin.sql.parse.locate import refuse
from halfjoin.sql.types import STRINGS, Kind, SqlType, innermost

_BY_CODE_POINT = ("C", "POSIX", "ucs_basic", "C.UTF-8", "C.utf8", "pg_c_utf8", "default")


def check_collation(collation: exp.Expr, type: SqlType, text: str) -> None:
    """Refuse a collation of values of a type.

    Raises:
        UnsupportedSQL: they are no texts, or it has another order, as that of a language.
    """
    if innermost(type).kind not in (*STRINGS, Kind.UNKNOWN, Kind.NAMED):
        raise refuse(collation, text, f"collations are not supported by type {type}").with_(code="42804")
    if collation.name not in _BY_CODE_POINT:
        raise refuse(collation, text, "text compares by code point only", 'write COLLATE "C" or nothing')
