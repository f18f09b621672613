"""The aggregates: one table of them, with their argument and result types and PostgreSQL's answers.

Result types are PostgreSQL's. A numeric result has one scale for the whole column. A sum has the scale of its
argument. An average is a quotient. A variance is a quotient, too, and has at least
twice the decimals of its argument, up to 38; a standard deviation has as many as its variance.

PostgreSQL adds floats one after the other, and rounds each time. Here a sum of floats is exact, and rounded once, so
the order of the rows does not matter. For n values whose magnitudes add up to s, PostgreSQL's sum differs by at most
about n * 2^-53 * s.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.expr import Expr
from halfjoin.sql.functions.arithmetic import SIGNIFICANT, division_scale
from halfjoin.sql.functions.coercion import digits
from halfjoin.sql.functions.order import order_of
from halfjoin.sql.functions.signature import Function, function
from halfjoin.sql.types import STORED_DIGITS, WORKING_DIGITS, Kind, SqlType

_EXACT = ("smallint", "integer", "bigint", "numeric")
_BIGINT_DIGITS = 19
_PAIR = "double precision, double precision"


def _sum_type(args: Sequence[Expr]) -> SqlType:
    """The scale of the argument, and 38 digits; more only if an intermediate argument has more."""
    before, scale = digits(args[0].type)
    return SqlType(Kind.NUMERIC, STORED_DIGITS if before + scale <= STORED_DIGITS else WORKING_DIGITS, scale)


def _average_type(args: Sequence[Expr]) -> SqlType:
    """As many digits before the point as the argument: an average is between the least and the greatest value."""
    before, after = digits(args[0].type)
    scale = division_scale(before, after, (_BIGINT_DIGITS, 0))
    return SqlType(Kind.NUMERIC, min(before + scale, WORKING_DIGITS), scale)


def _spread_type(power: int) -> Callable[[Sequence[Expr]], SqlType]:
    """The type of a variance (power 2) or of its root (1)."""

    def of(args: Sequence[Expr]) -> SqlType:
        before, after = digits(args[0].type)
        room = power * before + 1
        least = max(SIGNIFICANT, min(2 * after, STORED_DIGITS))
        scale = max(least, min(division_scale(room, 2 * after, (2 * _BIGINT_DIGITS, 0)), STORED_DIGITS - room))
        return SqlType(Kind.NUMERIC, min(room + scale, WORKING_DIGITS), scale)

    return of


def _comparable(name: str) -> Callable[[Sequence[Expr]], None]:
    """Refuse the types for which PostgreSQL has no min and max."""
    instead = {Kind.BOOLEAN: f"use {'bool_and' if name == 'min' else 'bool_or'}", Kind.UUID: f"{name}(x::text)",
               Kind.JSON: f"{name}(x::text)", Kind.JSONB: f"{name}(x::text)"}

    def check(args: Sequence[Expr]) -> None:
        kind = args[0].type.kind
        if kind in instead:
            raise UnsupportedSQL(f"no function {name}({kind.value})", remedy=instead[kind], wrong=True)
        order_of(args[0])

    return check


def _rows(call: str, *rows: str, columns: str = "x") -> str:
    """The text of an example: a call over some rows."""
    return f"{call} FROM (VALUES {', '.join(f'({row})' for row in rows)}) AS t ({columns})"


_X = ("1::integer", "2", "NULL", "4")
_XY = ("1::double precision, 2::double precision", "2, 3", "4, 7", "5, NULL")


def _spread(name: str, doc: str, answer: str, *, root: bool) -> Function:
    return function(
        name, "aggregates", doc, *(f"{type} -> numeric or error" for type in _EXACT),
        "real -> double precision or error", "double precision -> double precision or error",
        numeric=_spread_type(1 if root else 2), examples=[(_rows(f"{name}(x)", *_X), answer)])  # fmt: skip


def _pairs(name: str, doc: str, answer: str, result: str = "double precision or error") -> Function:
    """A function of pairs (y, x); a row in which either is NULL does not count."""
    return function(name, "aggregates", doc, f"{_PAIR} -> {result}",
                    examples=[(_rows(f"{name}(y, x)", *_XY, columns="x, y"), answer)])  # fmt: skip


def _of_booleans(name: str, doc: str, answer: str) -> Function:
    return function(name, "aggregates", doc, "boolean -> boolean",
                    examples=[(_rows(f"{name}(x)", "true", "false", "NULL"), answer)])  # fmt: skip


def _of_bits(name: str, doc: str, answer: str) -> Function:
    return function(name, "aggregates", doc, "smallint -> smallint", "integer -> integer", "bigint -> bigint",
                    examples=[(_rows(f"{name}(x)", "12::integer", "10", "NULL"), answer)])  # fmt: skip


AGGREGATE_TABLE: tuple[Function, ...] = (
    function("count", "aggregates", "The number of rows; of those whose argument is not NULL", "-> bigint",
        "any -> bigint", examples=[(_rows("count(*)", *_X), "4"), (_rows("count(x)", *_X), "3")]),
    function("sum", "aggregates", "Sum; NULL if there is no value", "smallint -> bigint or error",
        "integer -> bigint or error", "bigint -> numeric", "numeric -> numeric or error", "real -> real or error",
        "double precision -> double precision or error", "interval -> interval or error", numeric=_sum_type, examples=[
        (_rows("sum(x)", *_X), "7"), (_rows("sum(x)", "1.50", "2.25"), "3.75"),
        (_rows("sum(x)", "NULL::integer", "NULL"), None),
        (_rows("sum(x)", "9223372036854775807", "1"), "9223372036854775808"),
        (_rows("sum(x)", "'1e308'::double precision", "'1e308'"), "ERROR: value out of range: overflow")]),
    function("avg", "aggregates", "Average; NULL if there is no value",
        *(f"{type} -> numeric or error" for type in _EXACT), "real -> double precision or error",
        "double precision -> double precision or error", "interval -> interval or error", numeric=_average_type,
        examples=[(_rows("avg(x)", *_X), "2.3333333333333333"), (_rows("avg(x)", "1::real", "2"), "1.5")]),
    function("min", "aggregates", "The least value", "any -> any", check=_comparable("min"), examples=[
        (_rows("min(x)", *_X), "1"), (_rows("min(x)", "'b'", "'a'"), "a")]),
    function("max", "aggregates", "The greatest value; NaN is greater than any other number", "any -> any",
        check=_comparable("max"), examples=[(_rows("max(x)", *_X), "4")]),
    _of_booleans("bool_and", "Whether all values are true", "false"),
    _of_booleans("bool_or", "Whether any value is true", "true"),
    _of_booleans("every", "Whether all values are true", "false"),
    _of_bits("bit_and", "The bits that all values have", "8"),
    _of_bits("bit_or", "The bits that any value has", "14"),
    _of_bits("bit_xor", "The bits that an odd number of values have", "6"),
    _spread("var_pop", "Variance of a population", "1.5555555555555556", root=False),
    _spread("var_samp", "Variance of a sample; NULL for one value", "2.3333333333333333", root=False),
    _spread("variance", "Variance of a sample; NULL for one value", "2.3333333333333333", root=False),
    _spread("stddev_pop", "Standard deviation of a population", "1.2472191289246472", root=True),
    _spread("stddev_samp", "Standard deviation of a sample; NULL for one value", "1.5275252316519467", root=True),
    _spread("stddev", "Standard deviation of a sample; NULL for one value", "1.5275252316519467", root=True),
    _pairs("covar_pop", "Covariance of a population", "2.6666666666666665"),
    _pairs("covar_samp", "Covariance of a sample", "4"),
    _pairs("corr", "Correlation", "0.9897433186107870"),
    _pairs("regr_count", "The number of pairs", "3", "bigint"),
    _pairs("regr_avgx", "Average of x", "2.3333333333333335"),
    _pairs("regr_avgy", "Average of y", "4"),
    _pairs("regr_sxx", "Sum of the squares of x minus its average", "4.666666666666667"),
    _pairs("regr_syy", "Sum of the squares of y minus its average", "14"),
    _pairs("regr_sxy", "Sum of the products of x and y, each minus its average", "8"),
    _pairs("regr_slope", "Slope of the line of least squares", "1.7142857142857142"),
    _pairs("regr_intercept", "Where that line meets x = 0", "0"),
    _pairs("regr_r2", "Square of the correlation", "0.9795918367346939"),
    function("any_value", "aggregates", "One of the values that are not NULL; here the least", "any -> any",
        examples=[(_rows("any_value(x)", "NULL", "'a'", "'a'"), "a")]),
    function("array_agg", "aggregates", "All values as an array, also NULLs", "any -> any[]",
        examples=[(_rows("array_agg(x ORDER BY x DESC)", *_X), "{NULL,4,2,1}")]),
    function("string_agg", "aggregates", "All texts, with a delimiter between them", "text, text -> text or error",
        "bytea, bytea -> bytea or error", examples=[
        (_rows("string_agg(x, ', ' ORDER BY x)", "'b'", "NULL", "'a'"), "a, b")]),
    function("jsonb_agg", "aggregates", "All values as an array of jsonb, also NULLs", "any -> jsonb or error",
        examples=[
        (_rows("jsonb_agg(x ORDER BY x)", "2", "1", "NULL"), "[1, 2, null]")]),
    function("jsonb_object_agg", "aggregates", "An object of keys and values; of equal keys the last counts",
        "any, any -> jsonb or error", examples=[
        (_rows("jsonb_object_agg(x, y ORDER BY x, y)", "'b', 3", "'a', 2", "'b', 1", columns="x, y"),
         '{"a": 2, "b": 3}')]),
    function("json_agg", "aggregates", "All values as an array of json, also NULLs", "any -> json or error",
        examples=[(_rows("json_agg(x ORDER BY x)", "2.50", "1", "NULL"), "[1, 2.50, null]"),
        (_rows("json_agg(ARRAY[x, 1] ORDER BY x)", "2", "1"), "[[1,1], \n [2,1]]")]),
    function("json_object_agg", "aggregates", "An object of keys and values; equal keys come as often",
        "any, any -> json or error", examples=[
        (_rows("json_object_agg(x, y ORDER BY x, y)", "'b', 3", "'a', 2", "'b', 1", columns="x, y"),
         '{ "a" : 2, "b" : 1, "b" : 3 }')]),
    function("mode", "aggregates", "The most frequent value; of several the first in the order", "any -> any",
        examples=[(_rows("mode() WITHIN GROUP (ORDER BY x)", "1", "2", "2", "1", "3"), "1")]),
    function("percentile_cont", "aggregates", "The value at a fraction of the order, interpolated",
        f"{_PAIR} -> double precision", "double precision[], double precision -> double precision[]",
        "double precision, interval -> interval or error", "double precision[], interval -> interval[] or error",
        examples=[
        (_rows("percentile_cont(0.5) WITHIN GROUP (ORDER BY x)", "1", "2", "4", "8"), "3"),
        (_rows("percentile_cont(0.25) WITHIN GROUP (ORDER BY x)", "interval '1 day'", "interval '3 days'"),
         "1 day 12:00:00")]),
    function("percentile_disc", "aggregates", "The first value at or after a fraction of the order",
        "double precision, any -> any", "double precision[], any -> any[]", examples=[
        (_rows("percentile_disc(0.5) WITHIN GROUP (ORDER BY x)", "1", "2", "4", "8"), "2")]),
)  # fmt: skip

AGGREGATES = frozenset(entry.name for entry in AGGREGATE_TABLE)
ENTRIES = {entry.name: entry for entry in AGGREGATE_TABLE}
