"""LIKE and regular expressions. The binder checks constant patterns; those of regular expressions must be constant."""

from __future__ import annotations

from collections.abc import Sequence

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.expr import Call, Expr, Literal
from halfjoin.sql.functions.casting import cast
from halfjoin.sql.functions.regexps import check_regex, on_re2
from halfjoin.sql.functions.signature import function
from halfjoin.sql.types import BYTEA, TEXT, Kind

_LIKE = ("text, text -> boolean or error", "text, text, text -> boolean or error")  # a pattern from a column may fail


def _check_like(args: Sequence[Expr]) -> None:
    """Check a constant escape character, and a constant pattern with it."""
    pattern, escape = _constants(args)
    if escape is not None:
        like_pattern(pattern or "", escape)


def _constants(args: Sequence[Expr]) -> tuple[str | None, str | None]:
    """The pattern and the escape character of LIKE. None for one that is NULL or no constant."""
    given = (args[1], args[2] if len(args) == 3 else Literal("\\", TEXT))
    pattern, escape = (arg.value if isinstance(arg, Literal) else None for arg in given)
    return None if pattern is None else str(pattern), None if escape is None else str(escape)


def of_bytes(name: str, args: Sequence[Expr]) -> Sequence[Expr]:
    """The arguments of a function. LIKE of bytea is that of texts with a character for each byte."""
    if name != "like" or not any(arg.type.kind is Kind.BYTEA for arg in args):
        return args
    kinds = [arg.type.kind for arg in args]
    if not {*kinds} <= {Kind.BYTEA, Kind.UNKNOWN} or (len(args) == 3 and kinds[1] is Kind.UNKNOWN):
        return args  # which no LIKE takes: with ESCAPE, an untyped pattern is a text
    return [_letters(cast(arg, BYTEA)) for arg in args]


def _letters(data: Expr) -> Expr:
    if isinstance(data, Literal):
        return Literal(data.value.decode("latin-1") if isinstance(data.value, bytes) else None, TEXT)
    return Call("letters of bytes", (data,), TEXT)


def constant_pattern(args: Sequence[Expr]) -> bool:
    """Whether the pattern of LIKE is known before there are rows, with its escape character, and cannot fail."""
    if not all(isinstance(arg, Literal) for arg in args[1:]):
        return False
    try:
        _check_like(args)  # the planner may find that a column is constant, after the binder has checked
    except UnsupportedSQL:
        return False
    return True


def like_pattern(pattern: str, escape: str) -> str:
    """A constant pattern with `\\` as its escape character."""
    if len(escape) > 1:
        raise UnsupportedSQL(f"ESCAPE '{escape}'", remedy="the escape must be one character", wrong=True,
                             code="22025")
    return escaped(pattern, escape, at_end=f"LIKE pattern '{pattern}' ends with its escape character")


def escaped(pattern: str, escape: str, *, at_end: str | None = None) -> str:
    """The pattern with `\\` as its escape character. `at_end`: why an escape character at the end is an error."""
    out, rest = "", iter(pattern)
    for char in rest:
        if char == escape:
            following = next(rest, None)
            if following is None:
                if at_end is not None:
                    raise UnsupportedSQL(at_end)
                return out + "\\"
            out += ("\\" if following in "%_\\" else "") + following
        else:
            out += "\\\\" if char == "\\" else char
    return out


_MATCH = "text, text -> boolean or error"

PATTERNS = (
    function("like", "patterns", "`%` any characters, `_` any one, `\\` escapes", *_LIKE, check=_check_like,
        safe=constant_pattern, blanks=True, evaluator="arrow, duckdb", examples=[
        ("'abc' LIKE 'a%'", "true"), ("'abc' LIKE '_b_'", "true"), ("'abc' LIKE 'c'", "false"),
        ("'a%c' LIKE 'a\\%c'", "true"), ("'abc' LIKE 'a\\%c'", "false"), ("'10%' LIKE '10#%' ESCAPE '#'", "true"),
        ("'a.c' LIKE 'a.c'", "true"), ("E'a\\nb' LIKE 'a_b'", "true"), ("'é' LIKE '_'", "true"),
        ("NULL LIKE 'a'", None), ("'abc' NOT LIKE 'a%'", "false"), ("'\\xc3a9'::bytea LIKE '__'::bytea", "true"),
        ("'a%'::bytea LIKE 'a!%'::bytea ESCAPE '!'", "true"),
        ("'a_b' LIKE concat('a/_', 'b') ESCAPE '/'", "true")]),
    function("ilike", "patterns", "LIKE without regard to case", *_LIKE, check=_check_like, safe=constant_pattern,
        blanks=True, evaluator="arrow, duckdb", examples=[
        ("'ABC' ILIKE 'a%'", "true"), ("'É' ILIKE 'é'", "true"), ("'abc' ILIKE 'B%'", "false")]),
    function("~", "patterns", "Matches a regular expression", _MATCH, check=check_regex(), safe=on_re2(), blanks=True,
        examples=[
        ("'thomas' ~ 't.*ma'", "true"), ("'thomas' ~ '^T'", "false"), ("'a1' ~ '^[[:alpha:]]\\d$'", "true"),
        ("E'a\\nb' ~ 'a.b'", "true"), ("'abc' ~ 'b|z'", "true"), ("'abc' ~ ''", "true"),
        ("'foo bar' ~ '\\mbar\\M'", "true"), ("'noon' ~ '^(.)(.)\\2\\1$'", "true"), ("'ab' ~ 'a(?!b)'", "false"),
        ("'ab ab ab' ~ '^(\\w+)( \\1)+$'", "true"),
        ("'x' ~ '['", "ERROR: invalid regular expression: brackets [] not balanced")]),
    function("~*", "patterns", "Matches a regular expression without regard to case", _MATCH,
        check=check_regex(), safe=on_re2(), blanks=True, examples=[
        ("'thomas' ~* 'T.*MA'", "true"), ("'x' ~* 'Y'", "false")]),
    function("!~", "patterns", "Does not match", _MATCH, check=check_regex(), safe=on_re2(), blanks=True, examples=[
        ("'thomas' !~ 't.*max'", "true")]),
    function("!~*", "patterns", "Does not match, without regard to case", _MATCH, check=check_regex(), safe=on_re2(),
        blanks=True, examples=[("'thomas' !~* 'T.*ma'", "false")]),
)  # fmt: skip
