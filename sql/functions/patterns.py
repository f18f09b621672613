"""LIKE and regular expressions. The binder checks constant patterns; those of regular expressions must be constant."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.expr import Expr, Literal
from halfjoin.sql.functions.regex import to_re2
from halfjoin.sql.functions.signature import function

_LIKE = ("text, text -> boolean or error", "text, text, text -> boolean or error")  # a pattern from a column may fail


def _check_like(args: Sequence[Expr]) -> None:
    """Check a constant pattern; with ESCAPE, both the pattern and the escape character must be constants."""
    constants = [arg.value for arg in args[1:] if isinstance(arg, Literal)]
    if len(args) == 3 and len(constants) < 2:
        raise UnsupportedSQL("LIKE ... ESCAPE with a pattern that is not constant", remedy="escape with \\")
    if constants and constants[0] is not None and constants[-1] is not None and isinstance(args[1], Literal):
        like_pattern(str(constants[0]), str(constants[1]) if len(args) == 3 else "\\")


def _constant_pattern(args: Sequence[Expr]) -> bool:
    return isinstance(args[1], Literal)


def like_pattern(pattern: str, escape: str) -> str:
    """Rewrite the pattern to use `\\` as its escape character."""
    if len(escape) > 1:
        raise UnsupportedSQL(f"ESCAPE '{escape}'", remedy="the escape must be one character")
    out, rest = "", iter(pattern)
    for char in rest:
        if char == escape:
            following = next(rest, None)
            if following is None:
                raise UnsupportedSQL(f"LIKE pattern '{pattern}' ends with its escape character")
            out += ("\\" if following in "%_\\" else "") + following
        else:
            out += "\\\\" if char == "\\" else char
    return out


def _check_regex(spans: bool, flags_at: int | None = None, groups: bool = False) -> Callable[[Sequence[Expr]], None]:
    """Build a check that refuses regular expressions that the evaluator cannot run as PostgreSQL does.

    `spans`: the extent of a match matters; `groups`: it matters which groups take part in a match.
    """

    def check(args: Sequence[Expr]) -> None:
        pattern = args[1]
        flags = args[flags_at] if flags_at is not None and len(args) > flags_at else Literal("", pattern.type)
        if not isinstance(pattern, Literal) or not isinstance(flags, Literal):
            raise UnsupportedSQL("a regular expression that is not constant", remedy="write it as a literal")
        if isinstance(pattern.value, str) and isinstance(flags.value, str):
            regex = to_re2(pattern.value, flags.value, spans=spans)
            if groups and regex.optional:
                raise UnsupportedSQL("regexp_match with an optional group",
                                     remedy="write (?:...) around it")
            if groups and regex.everywhere:
                raise UnsupportedSQL("regexp_match with flag g", remedy="leave it out: it returns the first match")
            if regex.everywhere and regex.nullable:
                raise UnsupportedSQL("replacing every match of an expression that matches the empty text",
                                     remedy="write + for *")

    return check


_MATCH = "text, text -> boolean"

PATTERNS = (
    function("like", "patterns", "`%` any characters, `_` any one, `\\` escapes", *_LIKE, check=_check_like,
        safe=_constant_pattern, blanks=True, evaluator="arrow, duckdb", examples=[
        ("'abc' LIKE 'a%'", "true"), ("'abc' LIKE '_b_'", "true"), ("'abc' LIKE 'c'", "false"),
        ("'a%c' LIKE 'a\\%c'", "true"), ("'abc' LIKE 'a\\%c'", "false"), ("'10%' LIKE '10#%' ESCAPE '#'", "true"),
        ("'a.c' LIKE 'a.c'", "true"), ("E'a\\nb' LIKE 'a_b'", "true"), ("'é' LIKE '_'", "true"),
        ("NULL LIKE 'a'", None), ("'abc' NOT LIKE 'a%'", "false")]),
    function("ilike", "patterns", "LIKE without regard to case", *_LIKE, check=_check_like, safe=_constant_pattern,
        blanks=True, evaluator="arrow, duckdb", examples=[
        ("'ABC' ILIKE 'a%'", "true"), ("'É' ILIKE 'é'", "true"), ("'abc' ILIKE 'B%'", "false")]),
    function("~", "patterns", "Matches a regular expression", _MATCH, check=_check_regex(False), blanks=True,
        examples=[
        ("'thomas' ~ 't.*ma'", "true"), ("'thomas' ~ '^T'", "false"), ("'a1' ~ '^[[:alpha:]]\\d$'", "true"),
        ("E'a\\nb' ~ 'a.b'", "true"), ("'abc' ~ 'b|z'", "true"), ("'abc' ~ ''", "true")]),
    function("~*", "patterns", "Matches a regular expression without regard to case", _MATCH,
        check=_check_regex(False), blanks=True, examples=[("'thomas' ~* 'T.*MA'", "true"), ("'x' ~* 'Y'", "false")]),
    function("!~", "patterns", "Does not match", _MATCH, check=_check_regex(False), blanks=True, examples=[
        ("'thomas' !~ 't.*max'", "true")]),
    function("!~*", "patterns", "Does not match, without regard to case", _MATCH, check=_check_regex(False),
        blanks=True, examples=[("'thomas' !~* 'T.*ma'", "false")]),
    function("regexp_replace", "patterns", "Replaces the first match, or all with flag g; `\\1` is a group",
        "text, text, text -> text", "text, text, text, text -> text", check=_check_regex(True, 3), examples=[
        ("regexp_replace('Thomas', '.[mN]a.', 'M')", "ThM"), ("regexp_replace('foobarbaz', 'b..', 'X', 'g')", "fooXX"),
        ("regexp_replace('foobarbaz', 'b(..)', 'X\\1Y', 'g')", "fooXarYXazY"),
        ("regexp_replace('abc', 'B', 'x', 'i')", "axc"),
        ("regexp_replace('abc', 'b', '[\\&]')", "a[b]c"), ("regexp_replace('abc', 'z', 'x')", "abc")]),
    function("regexp_match", "patterns", "The groups of the first match, or all of it; NULL if none",
        "text, text -> text[]", "text, text, text -> text[]", check=_check_regex(True, 2, True), examples=[
        ("(regexp_match('foobarbequebaz', '(bar)(beque)'))[2]", "beque"), ("(regexp_match('abc', 'b.'))[1]", "bc"),
        ("regexp_match('abc', 'x')", None)]),
)  # fmt: skip
