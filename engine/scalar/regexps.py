"""Kernels of regular expressions that RE2 does not run: they match each distinct text with `regex_match`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

import pyarrow as pa

from halfjoin.engine.scalar.bounds import LONG
from halfjoin.engine.scalar.each import Bad, of_each
from halfjoin.engine.scalar.regex_match import Expression, Span, compiled
from halfjoin.engine.scalar.values import Kernel
from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.expr import Call
from halfjoin.sql.functions.similar import similar_pattern
from halfjoin.sql.types import VALUE_BYTES

_REFERENCE = re.compile(r"\\([1-9&\\])")


def expression(pattern: str, flags: str = "", name: str = "") -> Expression:
    """The compiled expression. `name`: the function, if it does not take flag g.

    Raises:
        Bad: the expression is malformed, or has what the matcher lacks.
    """
    try:
        found = compiled(pattern, flags)
    except UnsupportedSQL as error:
        raise Bad(f"invalid regular expression: {error.reason}") from None
    if name and found.everywhere:
        raise Bad(f'{name}() does not support the "global" option')
    return found


def matches(text: str, pattern: str, flags: str = "") -> bool:
    """Whether it matches anywhere."""
    return expression(pattern, flags, "regexp_like").matches(text)


def replaced(text: str, pattern: str, by: str, *more: Any) -> str:
    """regexp_replace: with flags, or with a start, the number of the match (0: all), and flags."""
    flags, start, number = "", 1, None
    if more and isinstance(more[0], str):
        flags = more[0]
        if flags[:1].isdigit():
            raise Bad(f'invalid regular expression option: "{flags[0]}"')
    elif more:
        start, number, flags = more[0], more[1] if len(more) > 1 else 1, more[2] if len(more) > 2 else ""
        _at_least(1, start=start)
        _at_least(0, n=number)
    found = expression(pattern, flags)
    if number is None or len(more) == 1:
        number = 0 if found.everywhere else 1
    out, done, size = [], 0, 0
    for i, spans in enumerate(found.all(text, start - 1), 1):
        if number and i < number:
            continue
        span = spans[0]
        assert span is not None
        put = _filled(by, text, spans)
        out += [text[done : span[0]], put]
        size += len(put)
        if size > VALUE_BYTES:
            raise Bad(LONG)
        done = span[1]
        if number:
            break
    return "".join([*out, text[done:]])


def _filled(by: str, text: str, spans: list[Span | None]) -> str:
    """A replacement with what `\\1`, `\\&` and `\\\\` in it mean."""

    def meant(name: re.Match[str]) -> str:
        if name[1] == "\\":
            return name[1]
        number = 0 if name[1] == "&" else int(name[1])
        return cut(text, spans[number]) or "" if number < len(spans) else ""

    return _REFERENCE.sub(meant, by)


def cut(text: str, span: Span | None) -> str | None:
    """The text of a span."""
    return None if span is None else text[span[0] : span[1]]


def groups_of(text: str, spans: list[Span | None]) -> list[str | None]:
    """The groups of a match, or the match if there are none."""
    return [cut(text, span) for span in (spans[1:] or spans)]


def match(text: str, pattern: str, flags: str = "") -> list[str | None] | None:
    """regexp_match."""
    found = next(expression(pattern, flags, "regexp_match").all(text), None)
    return None if found is None else groups_of(text, found)


def _count(text: str, pattern: str, start: int = 1, flags: str = "") -> int:
    _at_least(1, start=start)
    return sum(1 for _ in expression(pattern, flags, "regexp_count").all(text, start - 1))


def _nth(name: str, text: str, pattern: str, start: int, number: int, flags: str) -> list[Span | None]:
    """The spans of the nth match; none if there is no such match."""
    _at_least(1, start=start)
    _at_least(1, n=number)
    found = expression(pattern, flags, name).all(text, start - 1)
    return next(islice(found, number - 1, None), [])


def _instr(
    text: str, pattern: str, start: int = 1, number: int = 1, end: int = 0, flags: str = "", group: int = 0
) -> int:
    if end not in (0, 1):
        raise Bad(f'invalid value for parameter "endoption": {end}')
    _at_least(0, subexpr=group)
    spans = _nth("regexp_instr", text, pattern, start, number, flags)
    span = _part(spans, group)
    return 0 if span is None else span[end] + 1


def _substr(text: str, pattern: str, start: int = 1, number: int = 1, flags: str = "", group: int = 0) -> str | None:
    _at_least(0, subexpr=group)
    spans = _nth("regexp_substr", text, pattern, start, number, flags)
    return cut(text, _part(spans, group))


def _part(spans: Sequence[Span | None], group: int) -> Span | None:
    """The span of a part of a match; None if there is no such part. A pattern without groups has one part: the
    match."""
    if len(spans) == 1 and group == 1:
        return spans[0]
    return spans[group] if group < len(spans) else None


def _at_least(least: int, **given: int) -> None:
    for name, value in given.items():
        if value < least:
            raise Bad(f'invalid value for parameter "{name}": {value}')


def split(text: str, pattern: str, flags: str = "") -> list[str]:
    """The parts between matches. A match of nothing splits only between two characters."""
    return list(_parts(text, expression(pattern, flags, "regexp_split_to_array")))


def _parts(text: str, found: Expression) -> Iterator[str]:
    done = 0
    for spans in found.all(text):
        span = spans[0]
        assert span is not None
        if span[0] < len(text) and span[1] > done:
            yield text[done : span[0]]
            done = span[1]
    yield text[done:]


def _substring(text: str, pattern: str) -> str | None:
    found = match(text, pattern)
    return None if found is None else found[0]


def _similar(text: str, pattern: str, escape: str = "\\") -> bool:
    return matches(text, _translated(pattern, escape))


def _substring_similar(text: str, pattern: str, escape: str) -> str | None:
    return _substring(text, _translated(pattern, escape))


def _translated(pattern: str, escape: str) -> str:
    try:
        return similar_pattern(pattern, escape)
    except UnsupportedSQL as error:
        raise Bad(error.reason) from None


def _matches(text: str, pattern: str, flags: str = "") -> list[list[str | None]]:
    """The groups of the first match, or of all matches with flag g."""
    found = expression(pattern, flags)
    return [groups_of(text, spans) for spans in islice(found.all(text), None if found.everywhere else 1)]


def _not_negative(number: int) -> int:
    if number < 0:
        raise Bad(f"repeat_row_non_negative got {number}")
    return number


REGEXPS: dict[str, Callable[[Call], Kernel]] = {
    "regexp_count": of_each(_count, pa.int32()),
    "regexp_instr": of_each(_instr, pa.int32()),
    "regexp_substr": of_each(_substr, pa.string()),
    "regexp_split_to_array": of_each(split, pa.list_(pa.string())),
    "substring regex": of_each(_substring, pa.string()),
    "substring similar": of_each(_substring_similar, pa.string()),
    "matches": of_each(_matches, pa.list_(pa.list_(pa.string()))),
    "not negative": of_each(_not_negative, pa.int64()),
    "similar to": of_each(_similar, pa.bool_()),
}
