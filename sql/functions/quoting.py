"""Text for SQL: quoted literals and identifiers, and format."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.expr import Call, Expr
from halfjoin.sql.functions.casting import cast, coerce
from halfjoin.sql.functions.signature import Resolve, function
from halfjoin.sql.functions.strings import as_printed
from halfjoin.sql.types import TEXT

_FULL_WORDS = """
    all analyse analyze and any array as asc asymmetric authorization between bigint binary bit boolean both case cast
    char character check coalesce collate collation column concurrently constraint create cross current_catalog
    current_date current_role current_schema current_time current_timestamp current_user dec decimal default deferrable
    desc distinct do else end except exists extract false fetch float for foreign freeze from full grant greatest group
    grouping having ilike in initially inner inout int integer intersect interval into is isnull join lateral leading
    least left like limit localtime localtimestamp national natural nchar none normalize not notnull null nullif numeric
    offset on only or order out outer overlaps overlay placing position precision primary real references returning
    right row select session_user setof similar smallint some substring symmetric table tablesample then time timestamp
    to trailing treat trim true union unique user using values varchar variadic verbose when where window with
    xmlattributes xmlconcat xmlelement xmlexists xmlforest xmlnamespaces xmlparse xmlpi xmlroot xmlserialize xmltable
"""
QUOTED_WORDS = frozenset(_FULL_WORDS.split())  # PostgreSQL 15's keywords that quote_ident quotes


def _quote(name: str) -> Callable[[Resolve, Sequence[Expr]], Expr]:
    """quote_literal and quote_nullable take a value of any type, as its cast to text: a char(n) without its blanks."""

    def special(resolve: Resolve, args: Sequence[Expr]) -> Expr:
        if len(args) != 1:
            raise UnsupportedSQL(f"{name} takes one argument", wrong=True)
        return Call(name, (cast(args[0], TEXT, explicit=True),), TEXT)

    return special


def _format(resolve: Resolve, args: Sequence[Expr]) -> Expr:
    if not args:
        raise UnsupportedSQL("no function format()", remedy="write format('...', values)", wrong=True)
    return Call("format", (coerce(args[0], TEXT), *(as_printed(resolve, arg) for arg in args[1:])), TEXT)


QUOTING = (
    function("quote_literal", "strings", "As a literal of SQL", "any -> text or error", special=_quote("quote_literal"),
        examples=[("quote_literal('a''b')", "'a''b'"), ("quote_literal('a\\b')", "E'a\\\\b'"),
        ("quote_literal(42.5)", "'42.5'"), ("quote_literal('a'::char(3))", "'a'"), ("quote_literal(NULL)", None)]),
    function("quote_nullable", "strings", "As a literal of SQL, or the text NULL", "any -> text or error",
        special=_quote("quote_nullable"), examples=[("quote_nullable(NULL)", "NULL"), ("quote_nullable(1)", "'1'")]),
    function("quote_ident", "strings", "As an identifier of SQL, quoted where needed", "text -> text or error",
        examples=[("quote_ident('abc')", "abc"), ("quote_ident('Foo bar')", '"Foo bar"'),
        ("quote_ident('select')", '"select"'), ("quote_ident('a\"b')", '"a""b"'), ("quote_ident('')", '""')]),
    function("parse_ident", "strings", "The parts of a qualified identifier; what follows is an error, or left out",
        "text -> text[] or error", "text, boolean -> text[] or error",
        examples=[("parse_ident('Sales.\"Line\"')", "{sales,Line}"), ("parse_ident('f(x)', false)", "{f}"),
        ("parse_ident('a.')", 'ERROR: string is not a valid identifier: "a."'), ("parse_ident(NULL)", None)]),
    function("format", "strings", "Values in a text: `%s` as text, `%I` as an identifier, `%L` as a literal",
        "text, any... -> text or error", special=_format, examples=[
        ("format('Hello %s, %1$s', 'World')", "Hello World, World"),
        ("format('%I = %L', 'a b', 'it''s')", "\"a b\" = 'it''s'"),
        ("format('|%5s|%-5s|%*s|', 'a', 'b', 3, 'c')", "|    a|b    |  c|"), ("format('%s%L', NULL, NULL)", "NULL"),
        ("format('100%%')", "100%"), ("format(NULL, 1)", None),
        ("format('%s')", "ERROR: too few arguments for format()"),
        ("format('%x', 1)", 'ERROR: unrecognized format() type specifier "x"')]),
)  # fmt: skip
