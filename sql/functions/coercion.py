"""Which types can be cast to which, implicitly, by assignment or explicitly; and the common type of several."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.types import (
    DOUBLE,
    FLOATS,
    INTEGERS,
    SECONDS,
    STRINGS,
    TEXT,
    WORKING_DIGITS,
    Kind,
    SqlType,
    array,
    field_names,
)

NUMBERS = (Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT, Kind.NUMERIC, Kind.REAL, Kind.DOUBLE)  # narrow to wide
MOMENTS = (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ)  # narrow to wide

# The types that overload resolution prefers, one for each category.
PREFERRED = frozenset({Kind.BOOLEAN, Kind.DOUBLE, Kind.TEXT, Kind.TIMESTAMPTZ, Kind.INTERVAL})

_ASSIGNED = {
    (Kind.TIMESTAMP, Kind.DATE), (Kind.TIMESTAMP, Kind.TIME), (Kind.TIMESTAMPTZ, Kind.DATE),
    (Kind.TIMESTAMPTZ, Kind.TIMESTAMP), (Kind.TIMESTAMPTZ, Kind.TIME), (Kind.INTERVAL, Kind.TIME),
    (Kind.JSON, Kind.JSONB), (Kind.JSONB, Kind.JSON),
}  # fmt: skip
_EXPLICIT = {
    (Kind.INTEGER, Kind.BOOLEAN), (Kind.BOOLEAN, Kind.INTEGER),
    *((Kind.JSONB, kind) for kind in (*NUMBERS, Kind.BOOLEAN)),
}  # fmt: skip

# The most digits of the values of an integer type.
INTEGER_DIGITS = {Kind.SMALLINT: 5, Kind.INTEGER: 10, Kind.BIGINT: 19}


def category(type: SqlType) -> str:
    """The type's category; types of one category can have a common type."""
    if type.kind in NUMBERS:
        return "number"
    if type.kind in STRINGS:
        return "string"
    if type.kind in MOMENTS:
        return "moment"
    return str(type) if type.kind is Kind.ARRAY else f"{type.kind.value} {type.named}".strip()


def implicit(source: SqlType, target: SqlType) -> bool:
    """Whether an expression of `source` is implicitly cast to `target`."""
    a, b = source.kind, target.kind
    if a is Kind.UNKNOWN:
        return True
    if a is Kind.ARRAY or b is Kind.ARRAY:
        return a is b and source.element is not None and target.element is not None and (
            source.element == target.element or implicit(source.element, target.element))
    if a is Kind.RECORD or b is Kind.RECORD:
        return _each_field(implicit, source, target)
    for order in (NUMBERS, MOMENTS):
        if a in order:
            return b in order and order.index(a) <= order.index(b)
    if a in STRINGS:
        return b in STRINGS
    if a is Kind.ENUM:
        return source == target
    return a is b or (a, b) == (Kind.TIME, Kind.INTERVAL)


def assignable(source: SqlType, target: SqlType) -> bool:
    """Whether INSERT and UPDATE cast `source` to a column of `target`."""
    a, b = source.kind, target.kind
    if a is Kind.ARRAY and b is Kind.ARRAY and source.element and target.element:
        same = (source.element.kind is Kind.ARRAY) == (target.element.kind is Kind.ARRAY)
        return same and assignable(source.element, target.element)
    return implicit(source, target) or (a in NUMBERS and b in NUMBERS) or (a, b) in _ASSIGNED or (
        b in STRINGS and a not in (Kind.ARRAY, Kind.RECORD))


def castable(source: SqlType, target: SqlType) -> bool:
    """Whether an explicit cast `::target` of an expression of `source` is allowed."""
    a, b = source.kind, target.kind
    if a is Kind.ARRAY and b is Kind.ARRAY and source.element and target.element:
        same = (source.element.kind is Kind.ARRAY) == (target.element.kind is Kind.ARRAY)
        return same and castable(source.element, target.element)
    if a is Kind.RECORD and b is a:
        return _each_field(castable, source, target)
    return assignable(source, target) or (a, b) in _EXPLICIT or a in STRINGS or (
        a in (Kind.ARRAY, Kind.RECORD) and b in STRINGS)


def _each_field(allowed: Callable[[SqlType, SqlType], bool], source: SqlType, target: SqlType) -> bool:
    """Whether both are types of rows, whose members may be cast one by one."""
    return source.kind is target.kind and len(source.fields) == len(target.fields) and all(
        one == other or allowed(one, other)
        for (_, one), (_, other) in zip(source.fields, target.fields, strict=True))  # fmt: skip


def same_values(source: SqlType, target: SqlType) -> bool:
    """Whether every value of `source` is already one of `target`, so that it needs no Cast."""
    if source.kind in STRINGS and target.kind in STRINGS:
        return target.precision is None and (target.kind is not Kind.CHAR or source.kind is Kind.CHAR)
    if source.kind is Kind.NUMERIC and target.kind is Kind.NUMERIC:
        return target.precision is None or source == target
    if source.kind is Kind.ARRAY and target.kind is Kind.ARRAY and source.element and target.element:
        return same_values(source.element, target.element)
    if Kind.RECORD in (source.kind, target.kind):
        return field_names(source) == field_names(target) and _each_field(same_values, source, target)
    if source.kind is target.kind and source.kind in SECONDS:
        return target.precision is None or (source.precision is not None and source.precision <= target.precision)
    own = source.kind is Kind.ENUM
    return source == target or (source.kind is target.kind and not own and bool(source.named or target.named))


def as_numeric(type: SqlType) -> SqlType:
    """The numeric type that holds every value of an integer or numeric type."""
    if type.kind in INTEGERS:
        return SqlType(Kind.NUMERIC, INTEGER_DIGITS[type.kind], 0)
    return type


def digits(type: SqlType) -> tuple[int, int]:
    """The digits before and after the point of an integer or numeric type."""
    exact = as_numeric(type)
    precision, scale = exact.precision or 0, exact.scale or 0
    return precision - scale, scale


def common_type(types: Iterable[SqlType]) -> SqlType:
    """The common type of the branches of CASE, COALESCE, UNION, VALUES, IN; text if all are untyped literals.

    Among text types, the first decides. A literal may be longer than another branch's varchar(n), so the common type
    has a length, or digits of the second, only if all types are equal.
    """
    types = list(types)
    known = [type for type in types if type.kind is not Kind.UNKNOWN]
    if not known:
        return TEXT
    if all(type.kind is Kind.RECORD for type in known):
        return _common_record(known)
    if all(type.kind is Kind.ARRAY for type in known):
        return array(common_type(type.element for type in known if type.element is not None))
    chosen = known[0]
    for type in known[1:]:
        if category(type) != category(chosen):
            raise UnsupportedSQL(f"types {chosen} and {type} cannot be matched", remedy="cast one to the other's type",
                                 wrong=True, argument=types.index(type))
        if implicit(chosen, type) and not implicit(type, chosen):
            chosen = type
    if chosen.kind is Kind.NUMERIC:
        return _wide_enough([type for type in known if type.kind not in FLOATS])
    if chosen.kind in (*STRINGS, *SECONDS):
        if all(type == chosen for type in types):
            return chosen
        return SqlType(chosen.kind)
    return chosen


def _common_record(types: Sequence[SqlType]) -> SqlType:
    """The common type of rows: that of each member, under the first row's names."""
    first = types[0]
    if any(len(type.fields) != len(first.fields) for type in types):
        raise UnsupportedSQL("rows of different numbers of columns have no common type",
                             remedy="add NULLs to the shorter")
    fields = tuple((name, common_type(type.fields[place][1] for type in types))
                   for place, (name, _) in enumerate(first.fields))  # fmt: skip
    made = replace(first, fields=fields)
    return made if all(type.named == made.named for type in types) else replace(made, named="")


def comparison_type(types: Sequence[SqlType]) -> SqlType:
    """The type in which values are compared.

    As `common_type`, but a real and another kind of number are compared in double precision. Among text types, text
    wins over the others, and char(n), which ignores trailing blanks, wins over varchar.
    """
    chosen = common_type(types)
    if chosen.kind in STRINGS:
        kinds = {type.kind for type in types}
        return SqlType(Kind.CHAR) if Kind.CHAR in kinds and Kind.TEXT not in kinds else TEXT
    if chosen.kind is Kind.REAL and any(type.kind not in (Kind.REAL, Kind.UNKNOWN) for type in types):
        return DOUBLE
    return chosen


def _wide_enough(types: Sequence[SqlType]) -> SqlType:
    """The smallest numeric type that holds every value of these types, up to 76 digits."""
    before, after = zip(*(digits(type) for type in types), strict=True)
    scale = max(after)
    return SqlType(Kind.NUMERIC, min(max(before) + scale, WORKING_DIGITS), scale)
