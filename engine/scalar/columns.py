"""Converts a column of a batch to its table's type exactly, or refuses it and names the row and the value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import time
from decimal import Decimal, InvalidOperation
from numbers import Rational, Real
from types import NoneType
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from halfjoin.engine.scalar.arrow_types import arrow_type, of_period, storage
from halfjoin.engine.scalar.failures import Failed
from halfjoin.engine.scalar.interval_columns import interval_column
from halfjoin.engine.scalar.json_input import holds_json, json_text, texts_of
from halfjoin.engine.scalar.literals import array_of_constants
from halfjoin.engine.scalar.nested_arrays import uneven
from halfjoin.engine.scalar.plain_texts import plain_texts
from halfjoin.engine.scalar.precision import rounds, to_digits
from halfjoin.engine.scalar.python_values import is_string, listed, plain, too_fine
from halfjoin.engine.scalar.row_input import of_python
from halfjoin.engine.scalar.sound import DAYS, MICROS, Unsound, check_sound
from halfjoin.engine.scalar.values import valid
from halfjoin.engine.scalar.written_values import elements, lists_of_texts, parsed, parsed_each
from halfjoin.engine.updates.structs import struct_of
from halfjoin.engine.updates.updates import Mask
from halfjoin.errors import InvalidRow
from halfjoin.sql.types import FLOATS, INTEGERS, STRINGS, Kind, SqlType, all_digits, field_names, has_rows, innermost

_ZONE = r":\d\d.*(Z|[+-]\d\d(:?\d\d)?)$"  # after a time, as the end of a date looks like a zone
_DAY = r"^[^:]*Z$"
_FAR_TEXT = r"^\s*(\d{5,}-\d\d-\d\d\b.*|\d{4,}-\d\d-\d\d\b.*\sBC\s*)$"
_DATES = pa.date32()
_DAY_MICROS = 24 * 60 * 60 * 1_000_000
_MOST_REAL = 3.4028235e38
_UUID = r"(?i)^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"
_HEX = r"^\\x([0-9a-fA-F]{2})*$"
_LISTS = (pt.is_list, pt.is_large_list, pt.is_fixed_size_list, pt.is_list_view, pt.is_large_list_view)
_MOMENTS = frozenset((Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ))
_CHECKED = _MOMENTS.union((*STRINGS, *FLOATS, Kind.TIME, Kind.UUID, Kind.JSON, Kind.JSONB, Kind.ENUM, Kind.ARRAY,
                            Kind.RECORD, Kind.INTERVAL, Kind.NUMERIC))
# Arrow would look for the type of all that is in them, and ends the process if they are nested deep.
_NESTED = {list, tuple, dict}
_CAST_ERRORS = (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, OverflowError, ValueError, TypeError)


def convert(table: str, name: str, kind: SqlType, given: Any, *, leaving: bool = False) -> pa.Array:
    """Convert `given` (an Arrow array or a list of Python values) to one array of the type `kind` of the column `name`.

    Values are widened and rescaled if that loses nothing. Moments are rounded to the column's digits of the second.
    Texts are parsed as dates, times, numerics and UUIDs, and as what PostgreSQL writes for arrays, `{1,2}`, and for
    bytea, a backslash, an x and hexadecimal digits; for an array of json, `[1,2]`, too. There is no other conversion:
    a text does not become an integer, and a number is not rounded. Of a json or jsonb a text is JSON, and Python's
    other values stand for themselves. A float stands for the shortest decimal that reads back as the float: 0.1 fits a
    numeric(8,2), 0.125 does not. NaN is a number in columns of floats. In all other columns it means NULL, as in
    pandas; but a Decimal's NaN is not a valid numeric.
    What no SQL value is (`sound`) is refused, unless the rows are `leaving`: a table may have got it long ago.

    Raises:
        InvalidRow: names the table, the column, the row number and the value.
    """
    if isinstance(given, pa.Array) and given.type == arrow_type(kind) and not is_checked(kind):
        return given
    try:
        return _made(given, kind, sound=not leaving)
    except InvalidRow as problem:
        raise problem.with_(table=table, column=name) from None
    except _CAST_ERRORS:
        row = _first_bad(given, kind)
        value = _value(given[row]) if isinstance(given, pa.Array) else given[row]
        unsound = _unsound(given, row, kind)
        if unsound is not None:
            raise InvalidRow(unsound.reason, remedy=unsound.remedy, code=unsound.code, table=table, column=name,
                             row=row, value=value) from None  # fmt: skip
        period = of_period(given)
        outside = kind.kind in INTEGERS and isinstance(value, int) and not isinstance(value, bool) and period is None
        why = f"is out of range for {kind}" if outside else f"is not a valid {kind}"
        remedy = period or too_fine(given[row], kind) or _remedy(value, kind)
        raise InvalidRow(why, remedy=None if outside else remedy, table=table, column=name, row=row,
                         value=value) from None  # fmt: skip


def refuse_unsound(table: str, name: str, kind: SqlType, array: pa.Array, coming: Mask) -> None:
    """Check the values of the rows that come in a column that `convert` made for rows that are `leaving`, too.

    Raises:
        InvalidRow: as `convert`.
    """
    try:
        check_sound(array)
    except Unsound:
        convert(table, name, kind, pc.if_else(pa.array(coming), array, pa.scalar(None, array.type)))


def is_checked(kind: SqlType) -> bool:
    """Whether values of the right Arrow type may still be wrong, or are changed."""
    return kind.kind in _CHECKED or rounds(kind)


def ends_of(kind: SqlType) -> tuple[int, int] | None:
    """The least and the greatest value of a type of which values of the right Arrow type may be wrong, but are not
    changed; 0 and 0 for texts and for floats (of which -0 is), 0 and the digits for numerics. None: another type."""
    if kind.kind in FLOATS or (kind.kind in (Kind.TEXT, Kind.VARCHAR) and kind.precision is None):
        return 0, 0
    if kind.kind is Kind.NUMERIC and kind.precision is not None:
        return 0, kind.precision
    if kind.kind not in _MOMENTS or rounds(kind):
        return None
    return DAYS if kind.kind is Kind.DATE else MICROS


def _value(scalar: pa.Scalar) -> Any:
    """The Python value; or a number, for a time that is outside a day or a moment that Python cannot represent; or
    bytes, for a text that is not valid UTF-8; or Arrow's type, for rows and lists of such values or with a name twice.
    """
    try:
        return scalar.as_py() if not pt.is_time(scalar.type) else scalar.value
    except UnicodeDecodeError:
        return scalar.cast(pa.binary()).as_py() if not pt.is_nested(scalar.type) else None
    except (OverflowError, ValueError):
        return scalar.type if pt.is_nested(scalar.type) else scalar.value


def _unsound(given: Any, row: int, kind: SqlType) -> Unsound | None:
    """Why the value of a row is none of SQL; None if it is one of another type."""
    try:
        value = _array(_part(given, row, row + 1), kind)
        if is_string(value.type):
            check_sound(value.cast(pa.string()))
        _made(value, kind)
    except Unsound as problem:
        return problem
    except _CAST_ERRORS:
        pass
    return None


def _remedy(value: Any, kind: SqlType) -> str | None:
    """The remedy for a number that the conversion would round; None for other values."""
    if has_rows(kind):
        return f"give tuples or dicts of the fields {', '.join(field_names(innermost(kind)))}"
    if isinstance(value, time) and value.tzinfo is not None:
        return "a time has no time zone: leave it out with .replace(tzinfo=None), or give a timestamptz"
    if isinstance(value, bool | np.timedelta64) or not isinstance(value, Real | Decimal):  # NumPy's durations are Real
        return None
    if not (value.is_finite() if isinstance(value, Decimal) else value - value == 0):
        return "declare the column double precision" if kind.kind is Kind.NUMERIC else None
    if kind.kind is Kind.NUMERIC:
        try:
            fits = Decimal(str(value)).copy_abs() < 10 ** ((kind.precision or 0) - (kind.scale or 0))
        except InvalidOperation:  # the text of a Fraction is no decimal
            return "give a Decimal" if isinstance(value, Rational) else None
        if not fits:
            return None
        return f"round it to {kind.scale} digits after the point, or give the column more of them"
    if kind.kind is Kind.REAL and isinstance(value, float) and abs(value) < _MOST_REAL:
        return "round it to a real first, or declare the column double precision"
    if kind.kind in FLOATS and not isinstance(value, float):
        return "declare the column bigint or numeric, or round it to a float first"
    return None


def _first_bad(given: Any, kind: SqlType) -> int:
    """The first row that fails, by bisection."""
    low, high = 0, len(given)  # some row in [low, high) is bad
    while high - low > 1:
        middle = (low + high) // 2
        try:
            _made(_part(given, low, middle), kind)
            low = middle
        except _CAST_ERRORS:
            high = middle
    return low


def _part(given: Any, low: int, high: int) -> Any:
    return given.slice(low, high - low) if isinstance(given, pa.Array) else given[low:high]


def _made(given: Any, kind: SqlType, *, sound: bool = True) -> pa.Array:
    # Moments of the column's own type are wrong at most by their range.
    ready = kind.kind in _MOMENTS and isinstance(given, pa.Array) and given.type == arrow_type(kind)
    made = given if ready and not rounds(kind) else _rounded(_convert(_array(given, kind), kind), kind)
    if sound:
        check_sound(made)
    return made


def _array(given: Any, kind: SqlType) -> pa.Array:
    """The values as an Arrow array without a dictionary, texts as its plain ones: Arrow parses no others, and finds no
    patterns in views, which polars has. NaN becomes NULL, unless the column has floats."""
    if isinstance(given, pa.ChunkedArray):
        given = given.combine_chunks()
    if has_rows(kind) and not isinstance(given, pa.Array):
        return of_python(given, kind, _array)
    if holds_json(kind) and not _is_text(given):
        given = pa.array([json_text(elements(value, kind), kind) for value in _python_of(given)], arrow_type(kind))
    array = given if isinstance(given, pa.Array) else _of_python(given, kind)
    if isinstance(array, pa.ExtensionArray):
        array = storage(array)
    if pt.is_run_end_encoded(array.type):
        runs = pa.RunEndEncodedArray.from_arrays(array.run_ends, _decoded(array.values))
        array = pc.run_end_decode(runs.slice(array.offset, len(array)))
    if pt.is_dictionary(array.type):
        array = _decoded(array)
    if is_string(array.type):
        array = plain_texts(array, pa.string())
    if pt.is_decimal(array.type) and (array.type.bit_width < 128 or array.type.scale < 0):
        # Arrow refuses to cast decimals of 32 bits to bigint, and a text without an exponent to a scale below 0.
        digits, scale = array.type.precision, array.type.scale
        array = array.cast(pa.decimal256(min(76, digits - min(scale, 0)), max(scale, 0)))
    if pt.is_floating(array.type) and innermost(kind).kind not in FLOATS:
        array = pc.if_else(pc.is_nan(array), pa.scalar(None, array.type), array)
    return array


def _decoded(array: pa.Array) -> pa.Array:
    """An array without a dictionary, and no views: Arrow can neither decode dictionaries of them, which polars has, nor
    runs of either."""
    views = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}
    if pt.is_dictionary(array.type):
        if array.type.value_type in views:
            values = array.dictionary.cast(views[array.type.value_type])
            array = pa.DictionaryArray.from_arrays(array.indices, values)
        return array.dictionary_decode()
    return array.cast(views[array.type]) if array.type in views else array


def _python_of(given: Any) -> Any:
    """Values as Python's, maps as dicts. Raises ValueError: a map has a key twice."""
    try:
        return given.to_pylist(maps_as_pydicts="strict") if isinstance(given, pa.Array) else given
    except KeyError as problem:
        raise ValueError(str(problem)) from None


def _is_text(given: Any) -> bool:
    """Whether it is an Arrow array that has texts, or lists of them, at most in a dictionary or in runs."""
    type = given.type if isinstance(given, pa.Array) else None
    while type is not None and (pt.is_dictionary(type) or pt.is_run_end_encoded(type) or _is_list(type)):
        type = type.value_type
    return type is not None and (pt.is_null(type) or isinstance(type, pa.BaseExtensionType) or is_string(type))


def _of_python(given: Sequence[Any], kind: SqlType) -> pa.Array:
    """Python values as an Arrow array, those of each type by themselves, as Arrow reads all as the type of the first:
    it drops the time of day of a datetime after a date, and refuses a float after a Decimal.

    Raises:
        As `_convert`.
    """
    if kind.element is not None:
        given = [listed(one) for one in given]
    if kind.element is not None and all(one is None or isinstance(one, (list, tuple)) for one in given):
        lists = given
        offsets = np.cumsum([0, *(0 if one is None else len(one) for one in lists)]).astype(np.int32)
        items = _array([item for one in lists for item in one or ()], kind.element)
        mask = pa.array([one is None for one in lists], pa.bool_())
        return pa.ListArray.from_arrays(pa.array(offsets), items, mask=mask)
    places: dict[type, list[int]] = {}
    types = set(map(type, given)) - {NoneType}
    if len(types) > 1:
        for row, value in enumerate(given):
            places.setdefault(type(value), []).append(row)
        places.pop(NoneType, None)
        made = [_convert(_array([given[row] for row in rows], kind), kind) for rows in places.values()]
        order = np.full(len(given), -1)
        order[np.concatenate([*places.values()])] = np.arange(sum(map(len, made)))
        return pa.concat_arrays(made).take(pa.array(order, mask=order < 0))
    if types & _NESTED:
        raise ValueError("the values are single ones")
    values, from_pandas = plain(given, *types), innermost(kind).kind not in FLOATS
    try:
        return pa.array(values, from_pandas=from_pandas)
    except OverflowError:  # integers of more than 64 bits
        return pa.array([Decimal(value) if isinstance(value, int) else value for value in values])


def _rounded(array: pa.Array, kind: SqlType) -> pa.Array:
    """The values with the digits of the second that the type has."""
    try:
        return to_digits(kind)(array) if rounds(kind) else array
    except Failed as error:
        raise ValueError(error.message) from None


def _convert(array: pa.Array, kind: SqlType) -> pa.Array:
    wanted, source = arrow_type(kind), array.type
    text = is_string(source)
    if array.null_count == len(array):  # in pandas a column without values can have any type
        return pa.nulls(len(array), wanted)
    match kind.kind:
        case Kind.BOOLEAN:
            return _only(array, pt.is_boolean(source))
        case family if family in INTEGERS:
            exact = pt.is_integer(source) or pt.is_floating(source) or pt.is_decimal(source)
            return _only(array, exact).cast(wanted)
        case family if family in FLOATS:
            floats = array if source == wanted else _floats(array, wanted)
            return pc.add(floats, pa.scalar(0.0, wanted))  # -0.0 becomes 0.0, as they are the same row
        case Kind.NUMERIC:
            return _numeric(array, wanted, text)
        case family if family in STRINGS:
            array = _only(array, text)
            return _text(array if source == wanted else array.cast(wanted), kind)
        case Kind.UUID:
            return _uuid(array, text)
        case Kind.JSON | Kind.JSONB:
            return texts_of(kind.kind, _only(array, text).cast(pa.string()))
        case Kind.ENUM:
            texts = _only(array, text).cast(wanted)
            _refuse(pc.and_(texts.is_valid(), pc.invert(pc.is_in(texts, pa.array(kind.labels, wanted)))))
            return texts
        case Kind.BYTEA if text:
            _refuse(pc.invert(pc.match_substring_regex(array, _HEX)))
            return parsed_each(array, kind)
        case Kind.BYTEA:
            binary = (
                pt.is_binary(source)
                or pt.is_large_binary(source)
                or pt.is_fixed_size_binary(source)
                or pt.is_binary_view(source)
            )
            return plain_texts(_only(array, binary), wanted)
        case Kind.DATE:
            if text:
                return _dates_of_texts(array, kind)
            if not pt.is_timestamp(source):
                return _only(array, pt.is_date(source)).cast(wanted)
            moments = array.cast(pa.timestamp(source.unit))  # in UTC
            days = moments.cast(wanted)
            _refuse(pc.not_equal(days.cast(moments.type), moments))  # refuse to drop a time of day
            return days
        case Kind.TIME:
            if text:  # Arrow cannot cast text to a time
                array = pc.binary_join_element_wise("1970-01-01", array.cast(pa.string()), " ").cast(pa.timestamp("us"))
                return array.cast(wanted)
            times = _only(array, pt.is_time(source)).cast(wanted)
            since = times.view(pa.int64())
            _refuse(pc.or_(pc.less(since, 0), pc.greater_equal(since, _DAY_MICROS)))  # Arrow does not check this
            return times
        case Kind.TIMESTAMP | Kind.TIMESTAMPTZ:
            given = _only(array, text or pt.is_date(source) or pt.is_timestamp(source))
            return _timestamp(given, kind, text)
        case Kind.INTERVAL:
            return interval_column(array)
        case Kind.RECORD:
            return _rows(array, kind)
        case Kind.ARRAY if kind.element is not None:
            return _list(lists_of_texts(array, kind) if text else array, kind.element)
        case _:
            raise TypeError(f"no column can be {kind}")


def _is_list(type: pa.DataType) -> bool:
    return any(test(type) for test in _LISTS)


def _refuse(bad: pa.Array) -> None:
    if pc.any(bad, min_count=0).as_py():
        raise ValueError("a value would be another one")


def _only(array: pa.Array, allowed: bool) -> pa.Array:
    if not allowed:
        raise TypeError("not of a type that is converted")
    return array


def _floats(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Convert numbers of another type to floats: exactly, or from a decimal to a float that prints as that decimal."""
    if pt.is_integer(array.type):
        _refuse(_wide(array, 53 if pt.is_float64(wanted) else 24))
        return array.cast(wanted, safe=False)
    if pt.is_decimal(array.type):
        floats = array.cast(pa.string()).cast(wanted)
        _refuse(pc.not_equal(floats.cast(pa.string()).cast(array.type), array))
        return floats
    floats = _only(array, pt.is_floating(array.type)).cast(wanted, safe=False)
    if pt.is_float32(wanted) and pt.is_float64(array.type):
        changed = pc.and_(pc.not_equal(floats.cast(array.type), array), pc.invert(pc.is_nan(array)))
        before, after = array.filter(changed).cast(pa.string()), floats.filter(changed).cast(pa.string())
        _refuse(pc.not_equal(before, after))
    return floats


def _wide(array: pa.Array, digits: int) -> pa.Array:
    """Whether each integer has more binary `digits`, without its trailing zeros."""
    numbers = pc.fill_null(array, 0).to_numpy(zero_copy_only=False)
    numbers = numbers if numbers.dtype == np.uint64 else numbers.astype(np.int64)
    odd = numbers // np.maximum(numbers & (~numbers + numbers.dtype.type(1)), 1)
    return pa.array(odd > 2**digits) if numbers.dtype == np.uint64 else pa.array(np.abs(odd) > 2**digits)


def _numeric(array: pa.Array, wanted: pa.DataType, text: bool) -> pa.Array:
    source = array.type
    if pt.is_floating(source):
        array = (array.cast(pa.float32()) if pt.is_float16(source) else array).cast(pa.string())
    elif pt.is_integer(source):
        array = array.cast(pa.decimal256(20 + wanted.scale, wanted.scale))  # any int64 fits
    elif not text and not pt.is_decimal(source):
        raise TypeError("not a number")
    return array.cast(wanted)


def _text(array: pa.Array, kind: SqlType) -> pa.Array:
    if kind.kind is Kind.CHAR:  # trailing blanks of a char(n) have no meaning
        array = pc.utf8_rtrim(array, " ")
    if kind.precision is not None and len(array):
        longest = pc.max(pc.utf8_length(array)).as_py()
        if longest is not None and longest > kind.precision:
            raise ValueError("too long")
    return array


def _uuid(array: pa.Array, text: bool) -> pa.Array:
    if pt.is_fixed_size_binary(array.type) and array.type.byte_width == 16:
        return pa.array([None if value is None else str(UUID(bytes=value)) for value in array.to_pylist()], pa.string())
    array = _only(array, text).cast(pa.string())
    if not pc.all(pc.match_substring_regex(array, _UUID), min_count=0).as_py():
        raise ValueError("not a UUID")
    return pc.ascii_lower(array)


def _dates_of_texts(texts: pa.Array, kind: SqlType) -> pa.Array:
    far = _far(texts)
    return texts.cast(arrow_type(kind)) if far is None else _mixed(texts, far, kind, lambda near: near.cast(_DATES))


def _far(texts: pa.Array) -> Any | None:
    """Which texts are of years before 1 or after 9999, which Arrow does not read; None if none is."""
    found = pc.fill_null(pc.match_substring_regex(texts, _FAR_TEXT), False)
    return found if pc.any(found, min_count=0).as_py() else None


def _mixed(texts: pa.Array, far: Any, kind: SqlType, near: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """Texts that Arrow reads, and `far` ones that the parser of literals reads."""
    values = [parsed(text, kind) for text in texts.filter(far).to_pylist()]
    rest = near(pc.if_else(far, pa.scalar(None, texts.type), texts))
    return pc.replace_with_mask(rest, far, array_of_constants(values, kind))


def _timestamp(array: pa.Array, kind: SqlType, text: bool) -> pa.Array:
    """Convert texts, dates and timestamps to timestamps. A value without a zone is in UTC."""
    wanted = arrow_type(kind)
    if text:
        far = _far(array)
        if far is not None:
            return _mixed(array, far, all_digits(kind), lambda near: _timestamp(near, kind, text=True))
        zoned = pc.fill_null(pc.match_substring_regex(array, _ZONE), False)
        array = pc.if_else(zoned, array, pc.binary_join_element_wise(array, "Z", ""))
        array = pc.if_else(pc.match_substring_regex(array, _DAY), pc.replace_substring(array, "Z", " 00:00Z"), array)
        array = array.cast(pa.timestamp("us", "UTC"))
    if pt.is_timestamp(array.type):
        array = array.cast(pa.timestamp("us", array.type.tz))
        return array.cast(pa.timestamp("us", "UTC")).cast(wanted) if array.type.tz else array.cast(wanted)
    return array.cast(pa.timestamp("us")).cast(wanted)



def _rows(array: pa.Array, kind: SqlType) -> pa.Array:
    """Convert rows member by member. Their fields go by their names. A text is JSON."""
    if pt.is_string(array.type):
        array = of_python(array.to_pylist(), kind, _array)
    source, wanted = array.type, arrow_type(kind)
    names = [field.name for field in source] if pt.is_struct(source) else None
    if names is None or sorted(names) != sorted(field_names(kind)):
        raise TypeError("not rows of these fields")
    parts = array.flatten()
    members = [_rounded(_convert(_array(parts[names.index(name)], type), type), type)
               for name, (_, type) in zip(field_names(kind), kind.fields, strict=True)]  # fmt: skip
    return struct_of(wanted, members, ~valid(array), len(array))


def _list(array: pa.Array, element: SqlType) -> pa.Array:
    if not _is_list(array.type):
        raise TypeError("not an array")
    # Arrow's casts of list views lose elements; both functions below take lists of all kinds.
    values = _rounded(_convert(_array(array.flatten(), element), element), element)
    lengths = pc.fill_null(pc.list_value_length(array), 0)
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths).cast(pa.int32())])
    made = pa.ListArray.from_arrays(offsets, values, mask=array.is_null())
    if element.kind is not Kind.ARRAY:
        return made
    differ, empty, whole = uneven(made)
    if differ.any() or (empty & (pc.list_value_length(whole).fill_null(0).to_numpy() > 0)).any():
        raise ValueError("parts of different lengths")
    return whole
