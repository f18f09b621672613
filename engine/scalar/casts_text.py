"""Kernels of casts to text and from text. Texts have the form that PostgreSQL prints and reads."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfjoin.engine.scalar import decimals
from halfjoin.engine.scalar.arrow_types import arrow_type
from halfjoin.engine.scalar.duck import duck_kernel
from halfjoin.engine.scalar.failures import Failed
from halfjoin.engine.scalar.literals import array_of_constants
from halfjoin.engine.scalar.over_elements import over_elements
from halfjoin.engine.scalar.row_text import row_text
from halfjoin.engine.scalar.values import Datum, Kernel, any_true, call, fail_where, mask_of, on_arrays, raw
from halfjoin.engine.updates.intervals import fields
from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.expr import Call
from halfjoin.sql.functions.render import plain
from halfjoin.sql.functions.text_input import parse
from halfjoin.sql.types import FLOATS, INTEGERS, STRINGS, TEXT, Kind, SqlType

_SPACE = " \t\n\r\v\f"
_STRING = pa.string()
_not_zero = call("match_substring_regex", pc.MatchSubstringOptions("^[^e]*[1-9]"))
_no_plain_year = call("match_substring_regex", pc.MatchSubstringOptions("^(-|0000-|<)"))


def to_text(source: SqlType, target: SqlType) -> Kernel | None:
    """The kernel of a cast to a text type. It cuts texts to the type's length. None if the values do not change."""
    printed = None if source.kind in STRINGS else _PRINTERS.get(source.kind, _plain)(source)
    shorter = target.precision is not None and not (
        source.kind in STRINGS and source.precision is not None and source.precision <= target.precision)
    steps = [printed] if printed else []
    if shorter:
        steps.append(call("utf8_slice_codeunits", pc.SliceOptions(0, target.precision)))
    if (target.kind is Kind.CHAR and source.kind is not Kind.CHAR) or (target.kind is Kind.CHAR and shorter):
        steps.append(call("utf8_rtrim", pc.TrimOptions(" ")))
    if not steps:
        return None

    def run(datum: Datum) -> Datum:
        for step in steps:
            datum = step(datum)
        return datum

    return run


def _plain(_: SqlType) -> Kernel:
    return lambda a: a.cast(_STRING)


def _decimal_text(_: SqlType) -> Kernel:
    """Print decimals. Arrow prints small numbers with an exponent; print these digit by digit."""

    @on_arrays
    def run(a: Any) -> Datum:
        text = a.cast(_STRING)
        small = pc.match_substring(text, "E")
        if not any_true(small):
            return text
        return pc.if_else(small, _spelled(a, small), text)

    return run


def _spelled(a: Any, small: Any) -> Any:
    rows = mask_of(small)
    values = [f"{value:f}" if wanted else None for value, wanted in zip(a.to_pylist(), rows, strict=True)]
    return pa.array(values, _STRING)


def _float_text(source: SqlType) -> Kernel:
    """Print the shortest digits that read back the same, with an exponent below 1e-4 and from 1e15 (1e6 for real)."""
    high = 1e6 if source.kind is Kind.REAL else 1e15

    @on_arrays
    def run(a: Any) -> Datum:
        text = a.cast(_STRING)  # correct below 1e10, where Arrow's exponents begin
        values = raw(a)
        size = np.abs(values)
        odd = ~np.isfinite(values) | (size >= min(high, 1e10)) | ((size < 1e-4) & (size > 0))
        odd &= mask_of(a.is_valid())
        if not odd.any():
            return text
        whole = odd & (size < high) & (values == np.rint(values))
        if whole.any():
            odd &= ~whole
            digits = pa.array(np.where(whole, values, 0).astype(np.int64)).cast(_STRING)
            text = pc.if_else(pa.array(whole), digits, text)
        fixed = np.full(len(values), None, object)
        fixed[odd] = [_odd_float(value, high) for value in values[odd]]
        return pc.if_else(pa.array(odd), pa.array(fixed, _STRING), text)

    return run


def _odd_float(value: Any, high: float) -> str:
    """One number as text, with an exponent unless its absolute value is in `[1, high)`."""
    if np.isnan(value):
        return "NaN"
    if np.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    exact = Fraction(float(value))
    with np.errstate(over="ignore"):
        below, above = (np.nextafter(value, value.dtype.type(end)) for end in (-np.inf, np.inf))
    step = exact - Fraction(float(below)) if np.isfinite(below) else Fraction(float(above)) - exact
    least = exact - step / 2
    most = (exact + Fraction(float(above))) / 2 if np.isfinite(above) else exact + step / 2
    text = np.format_float_scientific(value, trim="-", exp_digits=2)
    digits = 1
    while not least < Fraction(text) < most:  # halfway between two numbers PostgreSQL prints more digits
        text = f"{float(value):.{digits}e}"
        digits += 1
    return f"{Decimal(text):f}" if 1 <= abs(exact) < high else text


def _clock_text(suffix: str) -> Callable[[SqlType], Kernel]:
    """Print dates and times, without trailing zeros in the fraction of the second."""
    plain_time = pa.timestamp("us")
    zeros, point = call("utf8_rtrim", pc.TrimOptions("0")), call("utf8_rtrim", pc.TrimOptions("."))

    def build(_: SqlType) -> Kernel:
        @on_arrays
        def run(a: Any) -> Datum:
            text = (a.cast(plain_time) if suffix else a).cast(_STRING)
            if pa.types.is_date(a.type):
                return _with_eras(a, text, "")
            text = point(zeros(text))
            if suffix:
                text = pc.binary_join_element_wise(text, suffix, "")
            return text if pa.types.is_time(a.type) else _with_eras(a, text, suffix)

        return run

    return build


def _with_eras(a: Any, text: Any, suffix: str) -> Any:
    """Correct the text of dates and timestamps: of years before year 1 (BC), and of values that Arrow cannot print."""
    odd = _no_plain_year(text)
    if not any_true(odd):
        return text
    rows = mask_of(odd)
    unit = "D" if pa.types.is_date(a.type) else "us"
    fixed = np.full(len(a), None, object)
    fixed[rows] = [_era(str(value), suffix) for value in raw(a)[rows].astype(f"datetime64[{unit}]")]
    return pc.if_else(odd, pa.array(fixed, _STRING), text)


def _era(iso: str, suffix: str) -> str:
    """Print an ISO date with an era: `-0001-02-03` is in the year 2 BC."""
    year, month, rest = iso.replace("T", " ").rsplit("-", 2)
    rest = (rest.rstrip("0").rstrip(".") if "." in rest else rest) + suffix
    return f"{1 - int(year):04}-{month}-{rest} BC" if int(year) < 1 else f"{year}-{month}-{rest}"


def _interval_text(source: SqlType) -> Kernel:
    @on_arrays
    def run(a: Any) -> Datum:
        months, days, micros = (part.tolist() for part in fields(a))
        given = mask_of(a.is_valid())
        rows = zip(months, days, micros, given, strict=True)
        return pa.array([plain((m, d, u), source) if ok else None for m, d, u, ok in rows], _STRING)

    return run


_needs_quotes = call("match_substring_regex", pc.MatchSubstringOptions(r'(?i)^(?:null)?$|[\s\v{},"\\]'))
_quoted_parts = call("replace_substring_regex", pc.ReplaceSubstringOptions(r'(["\\])', r"\\\1"))


def _array_text(source: SqlType) -> Kernel:
    """Print arrays: `{1,NULL,"a b"}`."""
    element = source.element
    assert element is not None
    printed = part_text(element)

    @on_arrays
    def run(a: Any) -> Datum:
        items = a.flatten()
        if len(items):
            texts = printed(items)
            texts = texts.cast(_STRING) if texts.type != _STRING else texts
        else:
            texts = pa.array([], _STRING)
        if element.kind is not Kind.ARRAY:
            quoted = pc.binary_join_element_wise('"', _quoted_parts(texts), '"', "")
            texts = pc.if_else(_needs_quotes(texts), quoted, texts)
        texts = pc.fill_null(texts, "NULL")
        counts = np.where(mask_of(a.is_valid()), raw(pc.list_value_length(a)), 0)
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        joined = pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets), texts), ",")
        return pc.if_else(a.is_valid(), pc.binary_join_element_wise("{", joined, "}", ""), pa.scalar(None, _STRING))

    return run


def part_text(type: SqlType) -> Kernel:
    """The printer of elements and members, as PostgreSQL's output functions write them. Casts to text may differ."""
    if type.kind is Kind.BOOLEAN:
        return lambda a: pc.if_else(a, "t", "f")
    if type.kind is Kind.CHAR and type.precision is not None:  # with its blanks
        return call("utf8_rpad", pc.PadOptions(type.precision, " "))
    return to_text(type, TEXT) or (lambda a: a)


def _row_printer(source: SqlType) -> Kernel:
    """Print rows: `(1,"a b",)`."""
    printers = [part_text(field) for _, field in source.fields]

    @on_arrays
    def run(rows: Any) -> Datum:
        texts = [printed(part).cast(_STRING) if len(rows) else pa.array([], _STRING)
                 for printed, part in zip(printers, rows.flatten(), strict=True)]  # fmt: skip
        made = row_text(*texts) if texts else pa.array(["()"] * len(rows), _STRING)
        return pc.if_else(rows.is_valid(), made, pa.scalar(None, _STRING))

    return run


_PRINTERS: dict[Kind, Callable[[SqlType], Kernel]] = {
    Kind.NUMERIC: _decimal_text,
    Kind.REAL: _float_text,
    Kind.DOUBLE: _float_text,
    Kind.DATE: _clock_text(""),
    Kind.TIMESTAMP: _clock_text(""),
    Kind.TIME: _clock_text(""),
    Kind.TIMESTAMPTZ: _clock_text("+00"),
    Kind.INTERVAL: _interval_text,
    Kind.ARRAY: _array_text,
    Kind.RECORD: _row_printer,
    Kind.BYTEA: lambda _: duck_kernel("'\\x' || lower(hex($1))", TEXT),
}


# Texts that Arrow reads exactly as PostgreSQL does. The parser of literals reads all other texts.
_SIMPLE: dict[Kind, str] = {
    **dict.fromkeys(INTEGERS, r"^-?[0-9]+$"),
    **dict.fromkeys(FLOATS, r"^-?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?$"),
    Kind.NUMERIC: r"^-?[0-9]{1,38}(\.[0-9]{1,38})?$",
    Kind.BOOLEAN: r"^(true|false)$",
    Kind.DATE: r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$",
    Kind.TIMESTAMP: r"^[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?$",
    Kind.UUID: r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$",
}


def from_text(target: SqlType) -> Kernel:
    """The kernel of a cast from text. If not all texts are simple, the parser of literals reads each distinct text."""
    type = arrow_type(target)
    simple = _SIMPLE.get(target.kind)
    pattern = call("match_substring_regex", pc.MatchSubstringOptions(simple)) if simple else None
    convert: Kernel = _simple_numeric(type) if target.kind is Kind.NUMERIC else lambda a: a.cast(type)

    @on_arrays
    def run(a: Any) -> Datum:
        if pattern is not None and pattern(a).false_count == 0:
            try:
                result = convert(a)
            except (pa.ArrowInvalid, Failed):
                return _parsed(a, target)
            if target.kind not in FLOATS or not _beyond_range(a, result):
                return result
        return _parsed(a, target)

    return run


def _beyond_range(texts: Any, values: Any) -> bool:
    """Whether a number is infinite, or is zero while its text is not."""
    size = np.abs(raw(values)[mask_of(texts.is_valid())])
    if not np.isfinite(size).all():
        return True
    return not size.all() and any_true(pc.and_(pc.equal(values, 0), _not_zero(texts)))


def _simple_numeric(type: Any) -> Kernel:
    wide = pa.decimal256(76, 38)
    resize = decimals.rescale(wide, type)
    return lambda a: resize(a.cast(wide))


def _parsed(texts: Any, target: SqlType) -> Any:
    """Parse each distinct text. The rows whose texts fail are reported together, each with its reason."""
    codes = texts.dictionary_encode()
    values, reasons = list[object](), dict[int, str]()
    for i, text in enumerate(codes.dictionary.to_pylist()):
        try:
            values.append(parse(text, target))
        except UnsupportedSQL as error:
            values.append(None)
            reasons[i] = error.reason
    if reasons:
        index = codes.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        mask = np.isin(index, list(reasons))
        messages = np.empty(int(mask.sum()), object)
        messages[:] = [reasons[number] for number in index[mask].tolist()]
        raise Failed(str(messages[0]), mask, messages=messages)
    return array_of_constants(values, target).take(codes.indices)


def _fit(expr: Call) -> Kernel:
    """Fit a text, or each one of an array, to the length of its type."""
    fit = fitted(expr.type)
    return lambda a, _: fit(a)


def fitted(type: SqlType) -> Kernel:
    """The kernel that fits texts, or arrays of texts, to a type. It fails for a text with more than blanks too much."""
    if type.element is not None:
        return over_elements(fitted(type.element), type)
    cut = call("utf8_slice_codeunits", pc.SliceOptions(0, type.precision))
    trim, size = call("utf8_rtrim", pc.TrimOptions(" ")), call("utf8_length")

    def run(a: Datum) -> Datum:
        bare = trim(a)
        fail_where(pc.greater(size(bare), type.precision), f"value too long for type {type}")
        return bare if type.kind is Kind.CHAR else cut(a)

    return run


FIT: dict[str, Callable[[Call], Kernel]] = {"fit": _fit}
