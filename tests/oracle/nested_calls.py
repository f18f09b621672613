"""Random expressions of the whole function table, casts and forms of SQL, nested, over the table of extremes."""

from __future__ import annotations

from collections.abc import Callable

from halfjoin.sql.functions import Function, Overload
from tests.oracle.choice import Choices, chance
from tests.oracle.extremes import COLUMNS, literals
from tests.oracle.functions import callable_entries, operator_of, written

TYPES = tuple(COLUMNS)
_ELEMENTS = {f"{type}[]": type for type in ("integer", "text", "double precision", "date", "numeric", "jsonb")}
_NUMBERS = ("smallint", "integer", "bigint", "numeric", "real", "double precision")
_MOMENTS = ("date", "timestamp", "timestamptz")
_STRINGS = ("text", "varchar", "char")
_COMPARABLE = tuple(type for type in TYPES if type != "char")
_CASTS: dict[str, tuple[str, ...]] = {
    **{number: (*(other for other in _NUMBERS if other != number), "text", "text") for number in _NUMBERS},
    "boolean": ("integer", "text"), "text": ("boolean", "jsonb", "varchar"), "varchar": ("text",),
    "char": ("text",), "date": ("timestamp", "timestamptz", "text"), "time": ("interval", "text"),
    "timestamp": ("date", "time", "timestamptz", "text"), "timestamptz": ("date", "time", "timestamp", "text"),
    "interval": ("time", "text"), "uuid": ("text",), "json": ("text", "jsonb"),
    "jsonb": ("text", "json"), "mood": ("text",), "integer[]": ("text[]",),
    "text[]": (), "double precision[]": ("text[]", "integer[]"), "date[]": ("text[]",), "numeric[]": ("text[]",),
    "jsonb[]": ("text[]",), "bytea": (),
}  # fmt: skip
# Texts that are read as a type: each list has some that are wrong.
_READ: dict[str, tuple[str, ...]] = {
    "integer": ("' 12 '", "'-2147483648'", "'2147483648'", "'1.5'", "''", "'x'", "c_bigint::text"),
    "bigint": ("'9223372036854775807'", "'9223372036854775808'", "'+7'", "c_numeric::text"),
    "numeric": ("' 1.50 '", "'1e-3'", "'.5'", "'5.'", "'1e5'", "'--1'", "c_integer::text", "c_char"),
    "double precision": ("'nan'", "' -inf '", "'1e400'", "'1e-400'", "'.5e1'", "'0x1'", "c_numeric::text",
                         "c_real::text"),
    "real": ("'1e39'", "'1e-46'", "'3.4028235e38'", "c_double::text"),
    "boolean": ("'t'", "' YES '", "'of'", "'on'", "'o'", "'1'", "c_boolean::text"),
    "date": ("'2020-02-30'", "'Jan 8, 1999'", "'99-1-8'", "'20200101'", "'2020-366'", "'x'", "c_timestamp::text"),
    "time": ("'24:00'", "'25:00'", "'04:05 PM'", "'040506.7'", "c_time::text"),
    "timestamp": ("'2020-01-01 24:00'", "'2020-13-01'", "'epoch'", "'20011227T040506-08'", "c_timestamptz::text"),
    "timestamptz": ("'2024-01-31 10:00 America/New_York'", "'2024-01-31 10:00 PST'", "'2024-01-31 10:00+25'",
                    "c_timestamp::text"),
    "interval": ("'1-2'", "'1 day ago'", "'P1Y2M3DT4H5M6S'", "'1:2:3.7'", "'1.5 mons'", "'1 dy'", "c_interval::text"),
    "uuid": ("'{A0EEBC99-9C0B4EF8-BB6D6BB9-BD380A11}'", "'a0'", "c_uuid::text"),
    "json": ("'{\"b\": 1, \"b\" :1.50}'", "'{'", "'1e400'", "'\"\\u00e9\"'", "'[1,]'", "c_jsonb::text"),
    "jsonb": ("'{\"b\": 1, \"a\": 1.50}'", "'{'", "'1e400'", "'\"\\u00e9\"'", "c_jsonb::text"),
    "integer[]": ("'{1, 2 ,NULL}'", "'{1,2'", "'{1,x}'", "'{\"1\"}'", "c_integers::text"),
    "text[]": ("'{a,\"b c\",\\\"d}'", "'{a,,b}'", "'{NULL,null,\"NULL\"}'", "c_texts::text", "c_integers::text"),
    "mood": ("'ok'", "'okay'", "c_mood::text"), "bytea": ("'\\x0g'", "'\\xAb'", "'a\\\\\\001'", "c_bytea::text"),
}  # fmt: skip
_FIELDS = ("year", "month", "day", "hour", "minute", "second", "epoch", "dow", "doy", "week", "isoyear", "isodow",
           "quarter", "decade", "century", "millennium", "milliseconds", "microseconds", "julian")  # fmt: skip
_UNITS = ("microseconds", "milliseconds", "second", "minute", "hour", "day", "week", "month", "quarter", "year",
          "decade", "century", "millennium")  # fmt: skip
_ZONES = ("'UTC'", "'Europe/Berlin'", "'America/St_Johns'", "'+05:30'", "'PST'", "interval '-02:30'", "'Asia/Kolkata'",
          "'Australia/Lord_Howe'", "'Nowhere'")  # fmt: skip
_PATTERNS = ("'a%'", "'%b_'", "'_'", "'%'", "''", "'%\\%%'", "'é%'", "c_varchar", "'a\\'")
# What differs much where its arguments have other decimals than PostgreSQL's, as the results of other calls may have.
_SENSITIVE = frozenset(("gcd", "lcm", "%", "mod", "scale", "min_scale", "trim_scale"))
_MAKES_LONG = frozenset(("repeat", "lpad", "rpad", "array_fill"))
_PATHS = ("'$'", "'$.a'", "'$.a[*]'", "'strict $.b'", "'$[*] ? (@ > 1)'", "'$.a == 1'", "'$.a > $x'", "'.*'")
_WITH_PATH = frozenset(("jsonb_path_exists", "jsonb_path_match", "jsonb_path_query_array", "jsonb_path_query_first",
                        "@?", "@@"))  # fmt: skip
_DIGITS = frozenset(("round", "trunc"))  # PostgreSQL's number of decimals follows a number in a column
_SHOWN = ("text", "json", "jsonb", "text[]")
_ENTRIES = [entry for entry in callable_entries() if entry.name != "pi"]
_RETURNING = {type: [(entry, overload) for entry in _ENTRIES for overload in entry.overloads if overload.result == type]
              for type in TYPES}  # fmt: skip


def expression(choices: Choices) -> str:
    """A call of any function, or another form, over columns, constants and other expressions."""
    if chance(choices, 30):
        form = choices.one_of(FORMS)
        return form(choices, choices.one_of(TYPES), 2)
    entry = choices.one_of(_ENTRIES)
    return _call(choices, entry, choices.one_of(entry.overloads), 2)


def of_type(choices: Choices, type: str, depth: int) -> str:
    """An expression of a type: a column, a constant, a call, a form, or a cast of another type."""
    if depth and chance(choices, 40):
        nested = _RETURNING.get(type, [])
        if nested and chance(choices, 60):
            entry, overload = choices.one_of(nested)
            return _call(choices, entry, overload, depth - 1)
        sources = [other for other, targets in _CASTS.items() if type in targets]
        if type in _READ and chance(choices, 30):
            return f"({choices.one_of(_READ[type])})::{type}"
        if sources and chance(choices, 50):
            source = choices.one_of(sources)
            return f"({of_type(choices, source, 0 if source == 'numeric' else depth - 1)})::{type}"
        return choices.one_of(_SAME_TYPE)(choices, type, depth - 1)
    if type in COLUMNS and chance(choices, 70):
        return COLUMNS[type][0]
    return choices.one_of(literals(type))


def _call(choices: Choices, entry: Function, overload: Overload, depth: int) -> str:
    more = choices.integer(0, 2) if overload.variadic else 0
    if entry.name in _SENSITIVE and overload.result in ("numeric", "integer"):
        depth = 0
    anything = choices.one_of(tuple(_ELEMENTS.values())) if "any[]" in overload.params else choices.one_of(_COMPARABLE)
    types = [overload.param(i).replace("any", anything) for i in range(len(overload.params) + more)]
    if entry.name in _MAKES_LONG or (entry.name in _DIGITS and len(types) == 2):
        return written(entry.name, [_short(choices, type, "2" if entry.name in _DIGITS else "c_smallint % 30")
                                    for type in types])  # fmt: skip
    # (A nested numeric has the decimals of its type, PostgreSQL's those of its value. Its text would show that.)
    shown = overload.result in _SHOWN or "any" in overload.params
    depths = [0 if type == "numeric" and shown else depth for type in types]
    args = [of_type(choices, type, d) for type, d in zip(types, depths, strict=True)]
    if entry.name in _WITH_PATH:  # (PostgreSQL takes a text as a path only if it is a constant.)
        args[1] = choices.one_of(_PATHS)
    return written(operator_of(entry), args)


def _short(choices: Choices, type: str, most: str) -> str:
    """An argument that says how long a result is, or another that is not an expression."""
    return choices.one_of((most, "3", "12", "-1", "0")) if type == "integer" else of_type(choices, type, 0)


def _case(choices: Choices, type: str, depth: int) -> str:
    condition, other = _boolean(choices, depth), of_type(choices, type, depth)
    tail = choices.one_of(("", f" ELSE {of_type(choices, type, depth)}"))
    return f"CASE WHEN {condition} THEN {other}{tail} END"


def _simple_case(choices: Choices, type: str, depth: int) -> str:
    key = choices.one_of(_COMPARABLE)
    tested, first = of_type(choices, key, depth), of_type(choices, key, 0)
    return f"CASE {tested} WHEN {first} THEN {of_type(choices, type, depth)} ELSE {of_type(choices, type, 0)} END"


def _coalesce(choices: Choices, type: str, depth: int) -> str:
    name = choices.one_of(("coalesce", "coalesce", "nullif", "greatest", "least"))
    return f"{name}({of_type(choices, type, depth)}, {of_type(choices, type, depth)})"


def _element(choices: Choices, type: str, depth: int) -> str:
    if f"{type}[]" not in _ELEMENTS:
        return _coalesce(choices, type, depth)
    return f"({of_type(choices, f'{type}[]', depth)})[{of_type(choices, 'integer', 0)}]"


def _sliced(choices: Choices, type: str, depth: int) -> str:
    if type not in _ELEMENTS:
        return _case(choices, type, depth)
    low, high = choices.one_of(("", "1", "2", "c_smallint", "-1")), choices.one_of(("", "2", "3", "0", "c_integer"))
    low = low or (high and "1")  # (`[:c_integer]` would be a parameter.)
    return f"({of_type(choices, type, depth)})[{low}:{high}]"


_SAME_TYPE: tuple[Callable[[Choices, str, int], str], ...] = (_case, _simple_case, _coalesce, _element, _sliced)


def _boolean(choices: Choices, depth: int) -> str:
    """A condition; any type is tested."""
    type = choices.one_of(_COMPARABLE)
    left, right = of_type(choices, type, depth), of_type(choices, type, 0)
    form = choices.one_of(("compare", "compare", "null", "in", "between", "distinct", "like", "truth", "any", "logic"))
    negated = choices.one_of(("", "NOT "))
    if form == "null":
        return f"({left} IS {negated}NULL)"
    if form == "in":
        return f"({left} {negated}IN ({right}, {of_type(choices, type, 0)}))"
    if form == "between":
        word = choices.one_of(("BETWEEN", "BETWEEN", "BETWEEN SYMMETRIC"))
        return f"({left} {negated}{word} {right} AND {of_type(choices, type, 0)})"
    if form == "distinct":
        return f"({left} IS {negated}DISTINCT FROM {right})"
    if form == "like":
        text = of_type(choices, choices.one_of(_STRINGS), depth)
        word = choices.one_of(("LIKE", "ILIKE", "SIMILAR TO"))
        return f"({text} {negated}{word} {choices.one_of(_PATTERNS)})"
    if form == "truth":
        return f"({of_type(choices, 'boolean', depth)} IS {negated}{choices.one_of(('TRUE', 'FALSE', 'UNKNOWN'))})"
    if form == "any":
        array = choices.one_of(tuple(_ELEMENTS))
        return (f"({of_type(choices, _ELEMENTS[array], depth)} {choices.one_of(('=', '<>', '<', '>='))} "
                f"{choices.one_of(('ANY', 'ALL'))} ({of_type(choices, array, depth)}))")  # fmt: skip
    operator = choices.one_of(("=", "<>", "<", "<=", ">", ">="))
    if form == "logic":  # (No side fails. In halfjoin a side that decides does so whatever the other does.)
        word, left = choices.one_of(("AND", "OR")), of_type(choices, type, 0)
        return f"({negated}({left} {operator} {right}) {word} {of_type(choices, 'boolean', 0)})"
    if type in _NUMBERS:  # two types of numbers
        right = of_type(choices, choices.one_of(_NUMBERS), 0)
    elif type in _MOMENTS:
        right = of_type(choices, choices.one_of(_MOMENTS), 0)
    return f"({left} {operator} {right})"


def _test(choices: Choices, type: str, depth: int) -> str:
    return _boolean(choices, depth)


def _cast(choices: Choices, type: str, depth: int) -> str:
    targets = (*_CASTS[type], *(("varchar(3)", "char(3)") if type in _STRINGS else ()))
    targets += {"numeric": ("numeric(5,1)", "numeric(20,6)"), "interval": ("interval(1)",), "time": ("time(2)",),
                "timestamp": ("timestamp(0)", "timestamp(3)"), "timestamptz": ("timestamptz(1)",),
                "jsonb": ("integer", "numeric", "boolean", "double precision")}.get(type, ())  # fmt: skip
    return f"({of_type(choices, type, depth)})::{choices.one_of(targets or ('text',))}"


def _read(choices: Choices, type: str, depth: int) -> str:
    type = type if type in _READ else choices.one_of(tuple(_READ))
    return f"({choices.one_of((*_READ[type], of_type(choices, 'text', depth)))})::{type}"


def _extract(choices: Choices, type: str, depth: int) -> str:
    type = choices.one_of((*_MOMENTS, "time", "interval"))
    return f"extract({choices.one_of(_FIELDS)} FROM {of_type(choices, type, depth)})"


def _truncated(choices: Choices, type: str, depth: int) -> str:
    type = choices.one_of(("timestamp", "timestamptz", "interval", "date"))
    zone = f", {choices.one_of(_ZONES[:5])}" if type == "timestamptz" and chance(choices, 50) else ""
    return f"date_trunc('{choices.one_of(_UNITS)}', {of_type(choices, type, depth)}{zone})"


def _in_zone(choices: Choices, type: str, depth: int) -> str:
    type = choices.one_of(("timestamp", "timestamptz"))
    return f"(({of_type(choices, type, depth)}) AT TIME ZONE {choices.one_of(_ZONES)})"


FORMS: tuple[Callable[[Choices, str, int], str], ...] = (
    _case, _simple_case, _coalesce, _element, _sliced, _test, _test, _test, _cast, _cast, _cast, _read, _read, _extract,
    _truncated, _in_zone,
)  # fmt: skip
