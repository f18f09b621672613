"""Kernels of strings. Arrow takes only constant positions, patterns and lengths. DuckDB takes columns of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfjoin.engine.scalar.arrays import element_at
from halfjoin.engine.scalar.bounds import Sizes, bounded, joined, lengths, sizes
from halfjoin.engine.scalar.duck import duck_kernel
from halfjoin.engine.scalar.each import Bad, each, of_each
from halfjoin.engine.scalar.letter_case import lower, upper
from halfjoin.engine.scalar.values import Datum, Kernel, call, fail_where, on_arrays
from halfjoin.sql.expr import Call, Literal
from halfjoin.sql.types import BIGINT, BYTEA, INTEGER, TEXT, VALUE_BYTES, Kind, SqlType
from halfjoin.sql.types import BOOLEAN as BOOL

Builder = Callable[[Call], Kernel]
_binary_length = call("binary_length")
_string_length = call("utf8_length")
_BLANK = pa.scalar(" ")
_NARROW = 1000  # the widest text that Arrow may pad: it reserves the whole width for every row
_join = call("binary_join_element_wise", pc.JoinOptions("emit_null"))
_join_known = call("binary_join_element_wise", pc.JoinOptions("replace", ""))


def constants(expr: Call, start: int) -> list[Any] | None:
    """The values of the arguments from `start` on. None if one is not a constant or is NULL."""
    values = [arg.value for arg in expr.args[start:] if isinstance(arg, Literal) and arg.value is not None]
    return values if len(values) == len(expr.args) - start else None


def _simple(name: str) -> Builder:
    kernel = call(name)
    return lambda _: kernel


def _first(kernel: Kernel) -> Kernel:
    """Make a kernel ignore all arguments but the first. The others are in its options."""
    return lambda a, *_: kernel(a)


def _either(known: Callable[[list[Any]], Kernel | None], template: str, type: SqlType) -> Builder:
    """Use Arrow if the arguments after the first are constants and `known` has a kernel for them; else use DuckDB."""

    def build(expr: Call) -> Kernel:
        values = constants(expr, 1)
        kernel = known(values) if values is not None else None
        if kernel is not None:
            return _first(kernel)
        return duck_kernel(template.replace("$n", f"${len(expr.args)}"), type)

    return build


def _length(expr: Call) -> Kernel:
    return _binary_length if expr.args[0].type.kind is Kind.BYTEA else _string_length


def _trim(name: str) -> Builder:
    def build(expr: Call) -> Kernel:
        if expr.type.kind is Kind.BYTEA:
            return each(getattr(bytes, name.replace("b", "").replace("trim", "strip")), pa.binary())
        characters = [" "] if len(expr.args) == 1 else constants(expr, 1)
        if characters is not None:
            return _first(call(f"utf8_{name.replace('btrim', 'trim')}", pc.TrimOptions(characters[0])))
        return duck_kernel(f"{name.replace('btrim', 'trim')}($1, $2)", TEXT)

    return build


def _slice(start: int, stop: int | None) -> Kernel:
    return call("utf8_slice_codeunits", pc.SliceOptions(start, stop))


def _substring(expr: Call) -> Kernel:
    """substring. Positions before the first character count towards the length."""
    if expr.type.kind is Kind.BYTEA:
        return each(_bytes_of, pa.binary())
    values = constants(expr, 1)
    if values is not None and (len(values) == 1 or values[1] >= 0):
        start = values[0] - 1
        stop = None if len(values) == 1 else max(start + values[1], 0)
        return _first(_slice(max(start, 0), stop))
    if len(expr.args) == 2:
        return duck_kernel("substring($1, CASE WHEN $2 < 1 THEN 1 ELSE $2 END, 4294967295)", TEXT)
    begin, end = "(CASE WHEN $2 < 1 THEN 1 ELSE $2 END)", "($2::BIGINT + $3)"  # not greatest(): it ignores NULLs
    cut = duck_kernel(f"substring($1, {begin}, CASE WHEN {end} < {begin} THEN 0 ELSE {end} - {begin} END)", TEXT)

    def run(a: Datum, start: Datum, length: Datum) -> Datum:
        negative = pc.and_(pc.less(length, 0), pc.and_(pc.is_valid(a), pc.is_valid(start)))
        fail_where(negative, "negative substring length not allowed")
        return cut(a, start, length)

    return run


def _bytes_of(data: bytes, start: int, length: int | None = None) -> bytes:
    if length is not None and length < 0:
        raise Bad("negative substring length not allowed")
    end = len(data) if length is None else max(start + length - 1, 0)
    return data[max(start - 1, 0) : end]


def _strpos(expr: Call) -> Kernel:
    """strpos: one more than the number of characters before the first occurrence."""
    values = constants(expr, 1)
    if values is None:
        return duck_kernel("strpos($1, $2)", INTEGER)
    if not values[0]:
        return lambda a, _: pc.if_else(pc.is_valid(a), pa.scalar(1, pa.int32()), pa.scalar(None, pa.int32()))
    split = call("split_pattern", pc.SplitPatternOptions(values[0], max_splits=1))
    zero, one = pa.scalar(0, pa.int32()), pa.scalar(1, pa.int32())

    @on_arrays
    def run(a: Any, _: Any) -> Datum:
        parts = split(a)
        before = pc.add(_string_length(element_at(parts, np.ones(len(a), np.int64))), one)
        return pc.if_else(pc.less(pc.list_value_length(parts), 2), zero, before)

    return run


def _replace(expr: Call) -> Kernel:
    values = constants(expr, 1)
    if values is None:
        return bounded(duck_kernel("replace($1, $2, $3)", TEXT), _replaced(duck_kernel(
            "CASE WHEN $2 = '' THEN 0 ELSE (strlen($1) - strlen(replace($1, $2, ''))) // strlen($2) END", BIGINT)))
    if not values[0]:
        return lambda a, *_: a
    found = _first(call("count_substring", pc.MatchSubstringOptions(values[0])))
    return bounded(_first(call("replace_substring", pc.ReplaceSubstringOptions(*values))), _replaced(found))


def _replaced(occurrences: Kernel) -> Callable[..., Sizes]:
    """A bound on the bytes of `replace`. The occurrences are counted only if a coarser bound is too large."""

    def size(a: Datum, source: Datum, target: Datum) -> Sizes:
        given, width = sizes(a), sizes(source)
        more = np.maximum(sizes(target) - width, 0)
        most: Sizes = given + given // np.maximum(width, 1) * more
        if int(most.sum()) <= VALUE_BYTES:
            return most
        exact: Sizes = given + lengths(occurrences(a, source, target)) * more
        return exact

    return size


def _split_part(expr: Call) -> Kernel:
    """split_part. Use Arrow if the delimiter and the number are constants, not empty and not 0; else use DuckDB."""
    values = constants(expr, 1)
    if values is not None and values[0] and values[1]:
        delimiter, number = values
        split = call("split_pattern", pc.SplitPatternOptions(delimiter))
        nothing = pa.scalar("")

        @on_arrays
        def known(a: Any, *_: Any) -> Datum:
            parts = split(a)
            lengths = pc.list_value_length(parts).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
            at = np.full(len(a), number) if number > 0 else lengths + 1 + number
            part = pc.coalesce(element_at(parts, at), nothing)
            return pc.if_else(pc.is_valid(a), part, pa.scalar(None, pa.string()))

        return known
    part = duck_kernel(
        "CASE WHEN $2 = '' THEN CASE WHEN $3 IN (1, -1) THEN $1 WHEN $1 IS NOT NULL AND $3 IS NOT NULL THEN '' END "
        "ELSE split_part($1, $2, $3) END", TEXT)  # fmt: skip

    def run(a: Datum, delimiter: Datum, n: Datum) -> Datum:
        given = pc.and_(pc.is_valid(a), pc.is_valid(delimiter))
        fail_where(pc.and_(pc.equal(n, 0), given), "field position must not be zero")
        return part(a, delimiter, n)

    return run


def _pad(side: str) -> Builder:
    """lpad and rpad. Arrow pads with one character only. Both cut long texts at the right."""
    filled = duck_kernel(
        f"CASE WHEN $2 <= 0 AND $3 IS NOT NULL AND $1 IS NOT NULL THEN '' WHEN $3 = '' THEN left($1, $2) "
        f"ELSE {side}pad($1, $2, $3) END", TEXT)  # fmt: skip

    def build(expr: Call) -> Kernel:
        return bounded(kernel(expr), _padded)

    def kernel(expr: Call) -> Kernel:
        values = constants(expr, 1)
        fill = " " if len(expr.args) == 2 else values[1] if values else None
        if values is not None and values[0] <= _NARROW and fill is not None and len(fill) == 1:
            width = max(values[0], 0)
            pad, cut = call(f"utf8_{side}pad", pc.PadOptions(width, fill)), _slice(0, width)
            return _first(lambda a: cut(pad(a)))
        if len(expr.args) == 2:
            return lambda a, n: filled(a, n, _BLANK)
        return filled

    return build


def _padded(a: Datum, width: Datum, fill: Datum = _BLANK) -> Sizes:
    """A bound on the bytes of texts that are padded to a width."""
    characters = lengths(_string_length(fill))
    each = np.where(characters > 0, np.minimum(sizes(fill) - characters + 1, 4), 0)
    size: Sizes = sizes(a) + np.maximum(lengths(width) - lengths(_string_length(a)), 0) * each
    return size


def _joined(expr: Call) -> Kernel:
    """`||`: NULL if an argument is NULL."""
    empty = pa.scalar(b"" if expr.type == BYTEA else "")
    return joined(lambda *data: _join(*data, empty))


def _concat(_: Call) -> Kernel:
    empty = pa.scalar("")
    return joined(lambda *data: _join_known(*data, empty), strict=False)


def _concat_ws(expr: Call) -> Kernel:
    """concat_ws: put the separator before each value that is not NULL, then cut off the first separator."""
    values = constants(Call("", expr.args[:1], TEXT), 0)
    if values is None:
        marks = ", ".join(f"${i}" for i in range(1, len(expr.args) + 1))
        kernel = duck_kernel(f"CASE WHEN $1 IS NOT NULL THEN concat_ws({marks}) END", TEXT)
        return joined(kernel, strict=False, times=len(expr.args))
    empty, cut = pa.scalar(""), _slice(len(values[0]), None)

    def run(separator: Datum, *data: Datum) -> Datum:
        return cut(_join_known(*(_join(separator, datum, empty) for datum in data), empty))

    return joined(run, strict=False, times=len(expr.args))


_LEAST = -(1 << 31)  # has no absolute value in 32 bits, so PostgreSQL drops no characters for it


def _right(values: list[Any]) -> Kernel:
    count = values[0]
    return _slice(0, None) if count == _LEAST else _slice(-count, None) if count else _slice(0, 0)


STRINGS: dict[str, Builder] = {
    "||": _joined,
    "length": _length,
    "octet_length": _simple("binary_length"),
    "lower": lambda _: lower,
    "upper": lambda _: upper,
    "btrim": _trim("btrim"),
    "ltrim": _trim("ltrim"),
    "rtrim": _trim("rtrim"),
    "substring": _substring,
    "strpos": _strpos,
    "byte position": of_each(lambda whole, part: whole.find(part) + 1, pa.int32()),
    "replace": _replace,
    "split_part": _split_part,
    "left": _either(lambda v: _slice(0, v[0]), "left($1, $2)", TEXT),
    "right": _either(_right, f"CASE WHEN $2 = {_LEAST} THEN $1 ELSE right($1, $2) END", TEXT),
    "lpad": _pad("l"),
    "rpad": _pad("r"),
    "starts_with": _either(
        lambda v: call("starts_with", pc.MatchSubstringOptions(v[0])), "starts_with($1, $2)", BOOL),
    "concat": _concat,
    "concat_ws": _concat_ws,
    "reverse": _simple("utf8_reverse"),
}
