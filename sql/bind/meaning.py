"""Tells which views an earlier version of halfjoin evaluated otherwise, so that their contents are computed anew.

A view's rows are kept from version to version, and a later change retracts them. It must retract what is there. So a
version that gives an expression another value or another type has a greater `MEANING`, and names the expression here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from sqlglot import exp

from halfjoin.sql.bind.reading import expressions
from halfjoin.sql.bind.row_parts import IS_THERE
from halfjoin.sql.bind.row_sequence import is_carried
from halfjoin.sql.bind.tables import names_of, references
from halfjoin.sql.expr import Call, Cast, Expr, Literal, walk
from halfjoin.sql.functions import always_null, fallible
from halfjoin.sql.functions.order import POSITION
from halfjoin.sql.parse.locate import PUBLIC
from halfjoin.sql.parse.parse import parse_query
from halfjoin.sql.relation import (
    Aggregate,
    AggregateCall,
    Join,
    Loop,
    Outer,
    Reduced,
    Relation,
    Semi,
    SortKey,
    TopK,
    Window,
    parts_inside,
)
from halfjoin.sql.schema import Schema
from halfjoin.sql.types import FLOATS, STRINGS, Kind, SqlType, all_digits, dimensions, parts_of

# 16: joins of several groups look up by the right one of results that are written alike, as sum(y) of each.
# 15: @>, <@ and && of arrays of intervals take intervals as equal that = takes as equal.
# 14: of tables with the same name in several schemas, a column whose schema is written is that schema's.
# 13: of equal intervals that look different, windows, loops and functions of arrays pick the one that groups pick.
# 12: aggregates of an enum's label that is written, as max('ok'::mood), give the label, not its place.
# 11: a row that is NULL is one key with a row that an outer join does not find.
# 10: the elements of arrays of char(n), and fields of rows, have their blanks in array_to_string, json and jsonb;
#    quote_literal and quote_nullable of a char(n) leave them out.
# 9: group 1 of a pattern without groups is its match, for regexp_substr and regexp_instr.
#    A `->` of json that fails does so also where the step after it is NULL. Zones such as +1: and +:30.
#    NOT r IS NULL of a row; rows whose members are rows, with IS NULL; texts too long for a field of a row fail.
# 8: bit_length of a char(n) does not count its blanks.
# 7: width_bucket just below a bound; date_trunc to a moment before 4714 BC is an error; zones that are rules, and MSK;
#    encodings other than UTF8. Quotients, roots and logarithms of numeric constants have their own decimals. Letters
#    and signs of all scripts have the classes of the C library, and letters newer than Unicode 15 no case.
#    A row that is a key of some grouping sets is NULL as a whole in the others, apart from its members that are keys.
# 6: texts of dates and timestamps before year 1 and after 9999 have values, and `timezone` and dates of such years;
#    to_char of NaN and infinities; back references in repeats; to_date by weeks and centuries; the variables of the
#    paths of @? and @@ are null; sums of moments and intervals whose months alone lead out of the calendar are errors;
#    a real is compared with several constants of IN as reals.
# 5: date_trunc to months, quarters and years beyond the year 32767; parse_ident of signs that are no letters.
# 4: `|/` is of double precision; letters in title case without regard to case; zones such as +05:30; TM in patterns;
#    sines of -0 degrees; width_bucket of dates, intervals, enums and jsonb; texts such as 0x1 and `{a\,b}`.
_SINCE_4 = frozenset({"sqrt", "~", "!~", "~*", "!~*", "regexp_replace", "regexp_match", "regexp_like", "regexp_count",
                      "regexp_instr", "regexp_substr", "regexp_split_to_array", "timezone", "make_timestamptz",
                      "to_char", "width_bucket", "convert_from", "convert_to",
                      "initcap", "upper", "lower", "ilike", "similar to", "substring regex", "substring similar",
                      "sind", "cotd", "date_trunc", "bit_length",
                      "jsonb_path_exists", "jsonb_path_match", "parse_ident", "quote_literal", "quote_nullable",
                      "format elements",
                      "to_date", "to_timestamp", "make_timestamp"})  # fmt: skip
_PRINT = frozenset({"array_to_string", "to_json", "to_jsonb"})
# 3: casts to fewer digits of the second, whose type now tells of them; DISTINCT jsonb come in PostgreSQL's order.
#    An operator with a NULL operand does not fail. The order of a subquery, of VALUES and of a call counts
#    (`row_sequence`). The type integer[][] was that of arrays of one dimension.
# 2: these numerics have the decimals of their own row, not 16; texts of moments may have more forms.
_QUOTIENTS = frozenset({"/", "power", "^", "sqrt", "exp", "ln", "log", "avg", "variance", "var_pop", "var_samp",
                        "stddev", "stddev_pop", "stddev_samp", "array_position", "right"})  # fmt: skip
_MOMENTS = (Kind.DATE, Kind.TIME, Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.INTERVAL)


_LAST_OF_VALUES = 16  # no later one gives an expression another value
_LAST_OF_COLUMNS = 14  # no later one finds another column for a name


def reads_otherwise(query: exp.Query, schema: Schema, sql: str, meaning: int) -> bool:
    """Whether a version with that `MEANING` may have read other columns than this one for a query of views: a column
    has a schema, and several things are called as its table."""
    if meaning >= _LAST_OF_COLUMNS:
        return False
    texts = [text for name in names_of(query, schema, sql) if (text := schema.plain_view(name)) is not None]
    every, called = (query, *map(parse_query, texts)), defaultdict[str, set[object]](set)
    for one in every:
        named = {id(table) for table in references(one)}
        for item in one.find_all(exp.Table, exp.Subquery, exp.UDTF):
            same = (item.text("db") or PUBLIC) if id(item) in named and not item.args.get("alias") else id(item)
            called[item.alias_or_name.lower()].add(same)
    return any(len(called[owner.lower()]) > 1 for one in every for column in _with_schemas(one)
               for owner in [column.table])  # fmt: skip


def without_schemas(text: str) -> str:
    """A query whose columns have no schemas before their tables, which versions before MEANING 14 did not look at.

    >>> without_schemas('SELECT s.t.k, s."t".* FROM t')
    'SELECT t.k, "t".* FROM t'
    """
    columns = _with_schemas(parse_query(text))
    for column in sorted(columns, key=lambda one: one.args["table"].meta["start"], reverse=True):
        first = column.args.get("catalog") or column.args["db"]
        text = text[: first.meta["start"]] + text[column.args["table"].meta["start"] :]
    return text


def _with_schemas(query: exp.Query) -> list[exp.Column]:
    return [column for column in query.find_all(exp.Column) if column.args.get("db") is not None]


def differs(relation: Relation, meaning: int) -> bool:
    """Whether a version with that `MEANING` may have given the relation other rows than this one."""
    if meaning >= _LAST_OF_VALUES:
        return False
    parts = list(parts_inside(relation))
    if _may_swap(parts):
        return True
    nodes = (node for part in parts for expr in expressions(part) for node in walk(expr))
    if meaning < 15 and any(map(_compares_sets, nodes)):
        return True
    if meaning >= 13:
        return False
    for part in parts:
        calls = part.calls if isinstance(part, Aggregate | Window) else ()
        if meaning < 2 and any(call.function in _QUOTIENTS for _, call in calls):
            return True
        if any(isinstance(call, AggregateCall) and _sorts_jsonb(call) for _, call in calls):
            return True
        if _picks_intervals(part):
            return True
        if any(column.name.endswith(IS_THERE) for column in part.columns):
            return True
        if any(is_carried(key.expr) for key in _orders(part)):
            return True
        if any(_differs(node, meaning) for expr in expressions(part) for node in walk(expr)):
            return True
    return False


def _orders(part: Relation) -> Iterator[SortKey]:
    """All keys by which a relation orders rows."""
    if isinstance(part, Window | TopK):
        yield from part.order
    if isinstance(part, Aggregate):
        for _, call in part.calls:
            yield from call.order


def _sorts_jsonb(call: AggregateCall) -> bool:
    return call.distinct and call.function == "array_agg" and call.args[0].type.kind is Kind.JSONB


def _picks_intervals(part: Relation) -> bool:
    """Whether it may give one of several equal intervals that look different, in a way of its own."""
    match part:
        case Loop(bindings=bindings):
            return any(_has(Kind.INTERVAL, column.type) for one in bindings for column in one.relation.columns)
        case Window(calls=calls) if any(
            call.function in ("min", "max") and _has(Kind.INTERVAL, call.type) for _, call in calls
        ):
            return True
        case Aggregate() | Window() | TopK():
            return any(_has_arrays_of_intervals(column.type) for column in part.columns)
        case _:
            return False


def _has_arrays_of_intervals(type: SqlType) -> bool:
    within = type.element is not None and _has(Kind.INTERVAL, type)
    return within or any(map(_has_arrays_of_intervals, parts_of(type)))


def _differs(node: Expr, meaning: int) -> bool:
    if isinstance(node, Cast | Literal) and dimensions(node.type) > 1:
        return True
    if isinstance(node, Literal) and node.type.kind is Kind.NUMERIC:
        return meaning < 7
    if isinstance(node, Cast):
        read = node.arg.type.kind in STRINGS
        return node.type != all_digits(node.type) or (
            read and node.type.kind in (*FLOATS, *_MOMENTS, Kind.ARRAY))
    if isinstance(node, Call) and node.function in ("+", "-") and node.type.kind in (Kind.TIMESTAMP, Kind.TIMESTAMPTZ):
        return True
    if isinstance(node, Call) and (_compares_floats(node) or _steps_into_json(node) or _prints_chars(node)):
        return True
    if isinstance(node, Call) and node.function == POSITION and isinstance(node.args[0], Literal):
        return True
    return isinstance(node, Call) and (
        always_null(node) or node.function in _SINCE_4 or (meaning < 2 and node.function in _QUOTIENTS))


def _may_swap(parts: Sequence[Relation]) -> bool:
    """Whether a join may look up by several values that may fail and that are written alike: what several groups keep,
    or casts that are not written."""
    nodes = [node for part in parts for expr in expressions(part) for node in walk(expr)]
    equalities = sum(isinstance(node, Call) and node.function in ("=", "is not distinct from")
                     and not any(isinstance(arg, Literal) for arg in node.args) for node in nodes)  # fmt: skip
    groups = sum(isinstance(part, Reduced) for part in parts)
    casts = {node for node in nodes if isinstance(node, Cast) and node.type.kind is Kind.NUMERIC and fallible(node)}
    joined = any(isinstance(part, Join | Outer | Semi) for part in parts)
    return joined and equalities > 1 and (groups > 1 or len(casts) > 1)


def _compares_sets(node: Expr) -> bool:
    """Whether it compares the elements of arrays of intervals."""
    return (isinstance(node, Call) and node.function in ("@>", "<@", "&&")
            and _has_arrays_of_intervals(node.args[0].type))  # fmt: skip


def _prints_chars(node: Call) -> bool:
    """Whether it may print the elements or fields of a value that are char(n)."""
    return node.function in _PRINT and any(_has(Kind.CHAR, part.type) for part in node.args)


def _has(kind: Kind, type: SqlType) -> bool:
    return type.kind is kind or any(_has(kind, part) for part in parts_of(type))


def _steps_into_json(node: Call) -> bool:
    return node.function in ("->", "->>") and node.args[0].type.kind is Kind.JSON


def _compares_floats(node: Call) -> bool:
    """Whether it may be IN over floats."""
    compared = [part for part in node.args if isinstance(part, Call) and part.function == "="]
    lists = [node] if node.function == "in" else compared if node.function == "or" else []
    return any(one.args[0].type.kind in FLOATS for one in lists)
