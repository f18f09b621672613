"""Kernels of LIKE and regular expressions. A constant pattern is compiled together with the expression."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from halfjoin.engine.kernels import computing
from halfjoin.engine.scalar.arrays import list_of
from halfjoin.engine.scalar.arrow_types import arrow_type
from halfjoin.engine.scalar.bounds import Sizes, bounded, check, lengths, sizes
from halfjoin.engine.scalar.duck import duck_kernel
from halfjoin.engine.scalar.each import Bad, each
from halfjoin.engine.scalar.letter_case import lower
from halfjoin.engine.scalar.regexps import match, matches, replaced
from halfjoin.engine.scalar.values import Datum, Kernel, any_true, call, fail_where, on_arrays
from halfjoin.sql.expr import Call, Literal
from halfjoin.sql.functions.patterns import constant_pattern, escaped, like_pattern
from halfjoin.sql.functions.regex import replacement, to_re2
from halfjoin.sql.functions.regexps import on_re2
from halfjoin.sql.functions.table import ENTRIES
from halfjoin.sql.types import BOOLEAN, VALUE_BYTES

_duck_like = duck_kernel("$1 LIKE $2 ESCAPE '\\'", BOOLEAN)
_cut_off = call("match_substring_regex", pc.MatchSubstringOptions(r"(?s)^(?:[^\\]|\\.)*\\$"))


def _constant(expr: Call, position: int, default: str | None = None) -> str | None:
    """A constant text argument, or the default if it is left out. None for NULL."""
    if position >= len(expr.args):
        return default
    arg = expr.args[position]
    assert isinstance(arg, Literal)
    return None if arg.value is None else str(arg.value)


def _null(expr: Call) -> Kernel:
    result = pa.scalar(None, arrow_type(expr.type))
    return lambda *_: result


def _like(ignore_case: bool) -> Callable[[Call], Kernel]:
    """LIKE and ILIKE. ILIKE is LIKE on lower-case letters, letter by letter: `ſ` does not match s."""

    def build(expr: Call) -> Kernel:
        if not constant_pattern(expr.args):
            given: Kernel = _rewritten if len(expr.args) == 3 else lambda pattern: pattern
            if ignore_case:
                return lambda a, *pattern: _by_pattern(lower(a), lower(given(*pattern)))
            return lambda a, *pattern: _by_pattern(a, given(*pattern))
        pattern, escape = _constant(expr, 1), _constant(expr, 2, "\\")
        if pattern is None or escape is None:
            return _null(expr)
        pattern = like_pattern(pattern, escape)
        if not ignore_case:
            match = _matcher(pattern)
            return lambda a, *_: match(a)
        folded = _matcher(lower(pa.scalar(pattern)).as_py())
        return lambda a, *_: folded(lower(a))

    return build


def _matcher(pattern: str) -> Kernel:
    """LIKE with a pattern; a kernel finds parts with `%` between them faster than Arrow does."""
    match = call("match_like", pc.MatchSubstringOptions(pattern))
    first, *others = pattern.split("%")
    if not others or "_" in pattern or "\\" in pattern:
        return match
    parts = tuple(part.encode() for part in (first, *filter(None, others[:-1]), others[-1]))

    def run(a: Datum) -> Datum:
        found = computing.like(a, parts) if isinstance(a, pa.StringArray) else None
        return match(a) if found is None else found

    return run


def _escaped(pattern: str, escape: str) -> str:
    if len(escape) > 1:
        raise Bad("invalid escape string")
    return escaped(pattern, escape)


_rewritten = each(_escaped, pa.string())


@on_arrays
def _by_pattern(a: Any, patterns: Any) -> Datum:
    """LIKE with a column of patterns. One that ends with its escape character fails where the text reaches that end."""
    cut = _cut_off(patterns)
    if not any_true(cut):
        return _duck_like(a, patterns)
    codes = patterns.dictionary_encode()
    ends = pa.array([pattern and _reaching(pattern) for pattern in codes.dictionary.to_pylist()], pa.string())
    reached = pc.and_(cut, _duck_like(a, ends.take(codes.indices)))
    fail_where(reached, "LIKE pattern must not end with escape character")
    return pc.and_(pc.invert(cut), _duck_like(a, pc.if_else(cut, "", patterns)))


def _reaching(pattern: str) -> str:
    """The LIKE pattern of texts that reach the end of `pattern`, with a character left unless a `%` comes before."""
    head = re.fullmatch(r"((?:[^\\]|\\.)*?)(%[%_]*)?\\", pattern, re.DOTALL)
    if head is None:
        return ""
    return head[1] + "_" * max((head[2] or "").count("_"), 1) + "%"


def _match(flags: str, negated: bool) -> Callable[[Call], Kernel]:
    invert = call("invert")

    def build(expr: Call) -> Kernel:
        if not on_re2()(expr.args):
            slow = each(lambda text, pattern: matches(text, pattern, flags), pa.bool_())
            return (lambda *data: invert(slow(*data))) if negated else slow
        pattern = _constant(expr, 1)
        match = call("match_substring_regex", pc.MatchSubstringOptions(to_re2(pattern or "", flags).text))
        return (lambda a, _: invert(match(a))) if negated else lambda a, _: match(a)

    return build


def _regexp_replace(expr: Call) -> Kernel:
    """regexp_replace. RE2 runs it if the pattern and the flags are constant; the replacement may be a column."""
    if not ENTRIES["regexp_replace"].safe(expr.args):  # type: ignore[misc]
        return each(replaced, pa.string())
    pattern, flags = _constant(expr, 1) or "", _constant(expr, 3, "") or ""
    regex = to_re2(pattern, flags, spans=True)
    limit = None if regex.everywhere else 1
    if isinstance(expr.args[2], Literal):
        text = _constant(expr, 2)
        if text is None:
            return _null(expr)
        options = pc.ReplaceSubstringOptions(regex.text, replacement(text, regex.groups), max_replacements=limit)
        replace, size = call("replace_substring_regex", options), _replaced(regex.text, limit)
        return bounded(lambda a, *_: replace(a), lambda a, *_: size(a, text))

    @on_arrays
    def by_replacement(a: Any, _: Any, texts: Any, *__: Any) -> Datum:
        codes = texts.dictionary_encode()
        result = pa.nulls(len(a), pa.string())
        for i, text in enumerate(codes.dictionary.to_pylist()):  # one run per distinct replacement
            if text is None:
                continue
            options = pc.ReplaceSubstringOptions(regex.text, replacement(text, regex.groups), max_replacements=limit)
            mine = pc.equal(codes.indices, i)
            given = pc.if_else(mine, a, pa.scalar(None, pa.string()))
            check(size(given, text), len(a))
            result = pc.if_else(mine, call("replace_substring_regex", options)(given), result)
        return result

    size = _replaced(regex.text, limit)
    return by_replacement


def _replaced(pattern: str, limit: int | None) -> Callable[[Datum, str], Sizes]:
    """A bound on the bytes of the results, if a text replaces each match (at most `limit` matches).

    The matches are counted only if a coarser bound is too large. A reference to a group copies at most all the matches.
    """
    found = call("count_substring_regex", pc.MatchSubstringOptions(pattern))

    def size(a: Datum, text: str) -> Sizes:
        given, more = sizes(a), len(text.encode())
        copied: Sizes = given * (1 + text.count("\\"))
        most = copied + (given + 1 if limit is None else 1) * more
        if int(most.sum()) <= VALUE_BYTES:
            return most
        return copied + (lengths(found(a)) if limit is None else 1) * more

    return size


def _regexp_like(expr: Call) -> Kernel:
    if not on_re2(2)(expr.args):
        return each(matches, pa.bool_())
    found = call("match_substring_regex", pc.MatchSubstringOptions(
        to_re2(_constant(expr, 1) or "", _constant(expr, 2, "") or "").text))  # fmt: skip
    return lambda a, *_: found(a)


def _regexp_match(expr: Call) -> Kernel:
    regex = None
    if on_re2(2, spans=True)(expr.args):
        regex = to_re2(_constant(expr, 1) or "", _constant(expr, 2, "") or "", spans=True)
    if regex is None or regex.optional:
        return each(match, pa.list_(pa.string()))
    text = regex.text if regex.groups else f"(?P<g1>{regex.text})"
    extract = call("extract_regex", pc.ExtractRegexOptions(text))
    join = list_of(max(regex.groups, 1), arrow_type(expr.type))

    @on_arrays
    def run(a: Any, *_: Any) -> Datum:
        found = extract(a)  # NULL where nothing matches
        return pc.if_else(found.is_valid(), join(*found.flatten()), pa.scalar(None, arrow_type(expr.type)))

    return run


PATTERNS: dict[str, Callable[[Call], Kernel]] = {
    "like": _like(False),
    "ilike": _like(True),
    "~": _match("", False),
    "~*": _match("i", False),
    "!~": _match("", True),
    "!~*": _match("i", True),
    "regexp_replace": _regexp_replace,
    "regexp_match": _regexp_match,
    "regexp_like": _regexp_like,
}
