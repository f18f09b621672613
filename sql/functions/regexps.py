"""Functions of regular expressions. A constant expression is checked when the statement is bound."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.expr import Expr, Literal
from halfjoin.sql.functions.regex import to_re2
from halfjoin.sql.functions.regex_parse import parsed
from halfjoin.sql.functions.signature import function
from halfjoin.sql.functions.similar import similar_pattern


def _constant(args: Sequence[Expr], position: int | None) -> str | None:
    """A constant text argument; nothing for one that is left out. None for NULL, and if it is not constant."""
    if position is None or position >= len(args):
        return ""
    arg = args[position]
    return arg.value if isinstance(arg, Literal) and isinstance(arg.value, str) else None


def check_regex(flags_at: int | None = None, everywhere: str = "") -> Callable[[Sequence[Expr]], None]:
    """A check that refuses malformed constant expressions. `everywhere`: the name of a function without flag g."""

    def check(args: Sequence[Expr]) -> None:
        pattern, flags = _constant(args, 1), _constant(args, flags_at)
        found = parsed(pattern or "", flags) if flags is not None else None
        if found is not None and everywhere and found.options.everywhere:
            raise UnsupportedSQL(f'{everywhere}() does not support the "global" option', wrong=True, code="22023")

    return check


def on_re2(flags_at: int | None = None, *, spans: bool = False) -> Callable[[Sequence[Expr]], bool]:
    """Whether RE2 runs the expression, which then cannot fail. `spans`: the extent of a match matters."""

    def safe(args: Sequence[Expr]) -> bool:
        pattern, flags = _constant(args, 1), _constant(args, flags_at)
        if pattern is None or flags is None:
            return False
        try:
            regex = to_re2(pattern, flags, spans=spans)
        except UnsupportedSQL:
            return False
        return not (spans and regex.everywhere and regex.nullable)

    return safe


def _check_similar(args: Sequence[Expr]) -> None:
    pattern, escape = _constant(args, 1), "\\" if len(args) < 3 else _constant(args, 2)
    if pattern is not None and escape is not None:
        parsed(similar_pattern(pattern, escape))


_TEXTS = "text, text"
_START = "integer"


def _signatures(result: str, *more: str) -> list[str]:
    """(text, pattern), and with ever more arguments."""
    return [f"{', '.join((_TEXTS, *more[:count]))} -> {result} or error" for count in range(len(more) + 1)]


REGEXPS = (
    function("regexp_replace", "patterns", "Replaces the first match, all (flag g), or the nth from a start (all: 0)",
        "text, text, text -> text or error", "text, text, text, text -> text or error",
        "text, text, text, integer -> text or error", "text, text, text, integer, integer -> text or error",
        "text, text, text, integer, integer, text -> text or error", check=check_regex(3), safe=lambda args:
        len(args) < 5 and on_re2(3, spans=True)(args), examples=[
        ("regexp_replace('Thomas', '.[mN]a.', 'M')", "ThM"), ("regexp_replace('foobarbaz', 'b..', 'X', 'g')", "fooXX"),
        ("regexp_replace('foobarbaz', 'b(..)', 'X\\1Y', 'g')", "fooXarYXazY"),
        ("regexp_replace('abc', 'B', 'x', 'i')", "axc"),
        ("regexp_replace('abc', 'b', '[\\&]')", "a[b]c"), ("regexp_replace('abc', 'z', 'x')", "abc"),
        ("regexp_replace('A PostgreSQL function', 'a|e|i|o|u', 'X', 1, 0, 'i')", "X PXstgrXSQL fXnctXXn"),
        ("regexp_replace('banana', 'a', 'o', 3, 2)", "banano"), ("regexp_replace('abc', 'x*', '-', 'g')", "-a-b-c-"),
        ("regexp_replace('aab', '(a|ab)(b*)', '<\\1|\\2>')", "<a|>ab"),
        ("regexp_replace('a', 'a', 'b', 0)", "ERROR: invalid value for parameter \"start\": 0")]),
    function("regexp_match", "patterns", "The groups of the first match, or all of it; NULL if none",
        *(f"{params} -> text[] or error" for params in (_TEXTS, "text, text, text")),
        check=check_regex(2, "regexp_match"), safe=on_re2(2, spans=True), examples=[
        ("(regexp_match('foobarbequebaz', '(bar)(beque)'))[2]", "beque"), ("(regexp_match('abc', 'b.'))[1]", "bc"),
        ("regexp_match('abc', 'x')", None), ("regexp_match('abd', 'a(b)?(c)?d')", "{b,NULL}"),
        ("regexp_match('XYZ', '(?<=x)y', 'i')", "{Y}")]),
    function("regexp_like", "patterns", "Whether it matches", *(f"{params} -> boolean or error" for params in
        (_TEXTS, "text, text, text")), check=check_regex(2, "regexp_like"), safe=on_re2(2), examples=[
        ("regexp_like('Hello World', 'world$', 'i')", "true"), ("regexp_like('a', 'b')", "false")]),
    function("regexp_count", "patterns", "The number of matches from a start", *_signatures("integer", _START, "text"),
        check=check_regex(3, "regexp_count"), examples=[
        ("regexp_count('123456789012', '\\d\\d\\d', 2)", "3"), ("regexp_count('abab', 'A', 1, 'i')", "2"),
        ("regexp_count('abc', '')", "4"), ("regexp_count('a', 'b')", "0")]),
    function("regexp_instr", "patterns", "Where the nth match (or a group of it) begins, or the place after it",
        *_signatures("integer", _START, "integer", "integer", "text", "integer"),
        check=check_regex(5, "regexp_instr"), examples=[
        ("regexp_instr('ABCDEF', 'c(.)(..)', 1, 1, 0, 'i', 2)", "5"), ("regexp_instr('abcabc', 'b', 1, 2)", "5"),
        ("regexp_instr('abc', 'b', 1, 1, 1)", "3"), ("regexp_instr('abc', 'b', 1, 1, 0, '', 1)", "2"),
        ("regexp_instr('abc', 'x')", "0"),
        ("regexp_instr('a', 'a', 1, 0)", 'ERROR: invalid value for parameter "n": 0')]),
    function("regexp_substr", "patterns", "The nth match from a start, or a group of it; NULL if none",
        *_signatures("text", _START, "integer", "text", "integer"), check=check_regex(4, "regexp_substr"), examples=[
        ("regexp_substr('ABCDEF', 'c(.)(..)', 1, 1, 'i', 2)", "EF"), ("regexp_substr('abcabd', 'ab.', 1, 2)", "abd"),
        ("regexp_substr('abc', 'x')", None), ("regexp_substr('abc', 'b', 1, 1, '', 1)", "b"),
        ("regexp_substr('abc', 'b', 1, 1, '', 2)", None)]),
    function("regexp_split_to_array", "patterns", "The parts between matches",
        *(f"{params} -> text[] or error" for params in (_TEXTS, "text, text, text")),
        check=check_regex(2, "regexp_split_to_array"), examples=[
        ("regexp_split_to_array('hello  world', '\\s+')", "{hello,world}"),
        ("regexp_split_to_array('abc', '')", "{a,b,c}"),
        ("regexp_split_to_array('aXbxc', 'x', 'i')", "{a,b,c}"), ("regexp_split_to_array('', 'x')", '{""}')]),
    function("substring regex", "patterns", "The first group of the first match, or all of it; NULL if none",
        "text, text -> text or error", check=check_regex(), examples=[
        ("substring('foobar' FROM 'o(.)b')", "o"), ("substring('foobar', 'o.b')", "oob"),
        ("substring('foobar' FROM 'z')", None)]),
    function("similar to", "patterns", "Matches a pattern of SQL: `%`, `_`, `|`, `*`, `+`, `?`, `{m,n}`, `()`, `[]`",
        "text, text -> boolean or error", "text, text, text -> boolean or error", check=_check_similar, blanks=True,
        examples=[("'abc' SIMILAR TO 'abc'", "true"), ("'abc' SIMILAR TO 'a'", "false"),
        ("'abc' SIMILAR TO '%(b|d)%'", "true"), ("'abc' NOT SIMILAR TO '(b|c)%'", "true"),
        ("'a.c' SIMILAR TO 'a.c'", "true"), ("'a%' SIMILAR TO 'a#%' ESCAPE '#'", "true")]),
    function("substring similar", "patterns", "The part between the two marked by the escape character and a quote",
        "text, text, text -> text or error", check=_check_similar, examples=[
        ("substring('foobar' SIMILAR '%#\"o_b#\"%' ESCAPE '#')", "oob"),
        ("substring('foobar' FROM '#\"o_b#\"%' FOR '#')", None)]),
)  # fmt: skip
