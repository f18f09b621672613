"""The evaluator: exact arithmetic, which rows fail and why, the same answer in every batch."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfjoin.engine.scalar import Failures, arrow_type, compile, mask_of, merge, sql_type
from halfjoin.sql.expr import Column, Expr, Literal
from halfjoin.sql.functions import cast, resolve
from halfjoin.sql.types import (
    BIGINT,
    BOOLEAN,
    BYTEA,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    REAL,
    SMALLINT,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    UNKNOWN,
    SqlType,
    array,
    numeric,
)  # fmt: skip
from tests.support.quotients import quotient_decimals, rounded

EXACT = Context(prec=200, rounding=ROUND_HALF_UP)
BITS = {SMALLINT: 15, INTEGER: 31, BIGINT: 63}


def column(name: str, type: SqlType) -> Column:
    return Column(name, type)


def number(value: int) -> Literal:
    return Literal(value, INTEGER)


A, B = column("a", INTEGER), column("b", INTEGER)
DIVISION = resolve("/", (A, B))


def run(expr: Expr, **columns: list[object]) -> tuple[list[object], dict[int, str]]:
    types = {"a": INTEGER, "b": INTEGER, "s": TEXT}
    arrays = {name: pa.array(values, arrow_type(types[name])) for name, values in columns.items()}
    result = compile(expr).evaluate(arrays, len(next(iter(columns.values()))))
    failures = result.failures
    found = {} if failures is None else dict(zip(failures.rows.tolist(), failures.messages, strict=True))
    return result.values.to_pylist(), found


def test_failed_rows_are_null_and_named() -> None:
    assert run(DIVISION, a=[6, 1, None, 8], b=[2, 0, 0, None]) == ([3, None, None, None], {1: "division by zero"})


def test_a_failure_below_fails_the_call_with_the_first_reason() -> None:
    overflow = resolve("+", (A, number(1)))
    both = resolve("+", (DIVISION, overflow))
    _, found = run(both, a=[2**31 - 1, 2**31 - 1, 5], b=[0, 1, 1])
    assert found == {0: "division by zero", 1: "integer out of range"}


def test_two_reasons_in_one_batch() -> None:
    _, found = run(DIVISION, a=[1, -(2**31), 4], b=[0, -1, 2])
    assert found == {0: "division by zero", 1: "integer out of range"}


def test_failures_of_constants_are_failures_of_every_row() -> None:
    values, found = run(resolve("+", (A, resolve("/", (number(1), number(0))))), a=[1, 2])
    assert values == [None, None] and set(found) == {0, 1}


@pytest.mark.parametrize("swapped", [False, True])
def test_and_or_are_decided_by_either_side(swapped: bool) -> None:
    risky = resolve("=", (DIVISION, number(1)))
    for name, decisive in (("and", False), ("or", True)):
        parts = (Literal(decisive, BOOLEAN), risky)
        values, found = run(resolve(name, parts[::-1] if swapped else parts), a=[1, 1], b=[0, 1])
        assert values == [decisive, decisive] and not found
    for name, neutral in (("and", True), ("or", False), ("and", None), ("or", None)):
        parts = (Literal(neutral, BOOLEAN), risky)
        _, found = run(resolve(name, parts[::-1] if swapped else parts), a=[1, 1], b=[0, 1])
        assert found == {0: "division by zero"}


def test_case_evaluates_a_branch_for_the_rows_that_reach_it() -> None:
    guarded = resolve("case", (resolve("<>", (B, number(0))), DIVISION, number(-1)))
    assert run(guarded, a=[6, 1, None], b=[2, 0, 1]) == ([3, -1, None], {})
    unguarded = resolve("case", (resolve("=", (B, number(0))), DIVISION, number(-1)))
    assert run(unguarded, a=[6, 1, 3], b=[2, 0, None]) == ([-1, None, -1], {1: "division by zero"})


def test_case_fails_where_a_condition_that_is_reached_fails() -> None:
    expr = resolve("case", (resolve("is null", (A,)), number(0), resolve(">", (DIVISION, number(1))), A))
    assert run(expr, a=[None, 4, 4, 1], b=[0, 0, 2, 1]) == ([0, None, 4, None], {1: "division by zero"})


def test_coalesce_stops_at_the_first_value() -> None:
    assert run(resolve("coalesce", (A, DIVISION)), a=[1, None, None], b=[0, 0, 1]) == ([1, None, None], {})
    second = resolve("coalesce", (B, resolve("/", (A, number(0)))))
    assert run(second, a=[1, 1], b=[7, None]) == ([7, None], {1: "division by zero"})


def test_a_filter_is_false_where_null_or_failed() -> None:
    arrays = {"a": pa.array([4, 4, None, 1], pa.int32()), "b": pa.array([2, 0, 1, 1], pa.int32())}
    result = compile(resolve(">", (DIVISION, number(1)))).evaluate(arrays, 4)
    assert mask_of(result.values).tolist() == [True, False, False, False]
    assert result.failures is not None and result.failures.rows.tolist() == [1]


def test_the_text_that_fails_is_named_for_its_rows_only() -> None:
    texts = ["1", "x", None, "y", "x", " 7 ", "99999999999"]
    values, found = run(cast(column("s", TEXT), INTEGER, explicit=True), s=texts)
    assert values == [1, None, None, None, None, 7, None]
    assert found == {
        1: 'invalid input syntax for type integer: "x"', 3: 'invalid input syntax for type integer: "y"',
        4: 'invalid input syntax for type integer: "x"', 6: "integer out of range: 99999999999",
    }  # fmt: skip


def test_no_rows_and_no_columns() -> None:
    empty = pa.array([], pa.int32())
    assert compile(DIVISION).evaluate({"a": empty, "b": empty}, 0).values.to_pylist() == []
    assert compile(number(1)).evaluate({}, 3).values.to_pylist() == [1, 1, 1]


def test_compiled_once() -> None:
    assert compile(resolve("+", (A, B))) is compile(resolve("+", (A, B)))


def test_merge_keeps_the_first_reason() -> None:
    first, second = Failures.of(np.array([2, 5]), "x"), Failures.of(np.array([1, 2]), "y")
    merged = merge(first, second)
    assert merged is not None
    assert merged.rows.tolist() == [1, 2, 5] and merged.messages.tolist() == ["y", "x", "x"]


TYPES = [BOOLEAN, SMALLINT, INTEGER, BIGINT, REAL, DOUBLE, TEXT, BYTEA, DATE, TIME, TIMESTAMP, TIMESTAMPTZ, INTERVAL,
         numeric(15, 2), numeric(50, 20), array(INTEGER), array(numeric(5, 1))]  # fmt: skip


@pytest.mark.parametrize("type", TYPES, ids=str)
def test_types_there_and_back(type: SqlType) -> None:
    assert sql_type(arrow_type(type)) == type
    null = compile(Literal(None, type)).evaluate({}, 2)
    assert null.values.type == arrow_type(type) and null.values.null_count == 2


def test_narrow_arrow_types_take_the_next_sql_type() -> None:
    assert sql_type(pa.int8()) == SMALLINT and sql_type(pa.uint16()) == INTEGER and sql_type(pa.uint32()) == BIGINT
    assert sql_type(pa.large_string()) == TEXT and sql_type(pa.dictionary(pa.int32(), pa.string())) == TEXT
    assert sql_type(pa.uint64()) == numeric(20, 0)


def integers(type: SqlType) -> st.SearchStrategy[int | None]:
    limit = 1 << BITS[type]
    near = st.sampled_from([-limit, -limit + 1, -1, 0, 1, limit - 1])
    return st.none() | near | st.integers(-limit, limit - 1)


@given(st.data(), st.sampled_from(list(BITS)), st.sampled_from(["+", "-", "*", "/", "%"]))
def test_integers_are_pythons(data: st.DataObject, type: SqlType, operator: str) -> None:
    rows = data.draw(st.lists(st.tuples(integers(type), integers(type)), min_size=1, max_size=30))
    kind = arrow_type(type)
    arrays = {"a": pa.array([a for a, _ in rows], kind), "b": pa.array([b for _, b in rows], kind)}
    result = compile(resolve(operator, (column("a", type), column("b", type)))).evaluate(arrays, len(rows))
    limit = 1 << BITS[type]
    for i, (a, b) in enumerate(rows):
        failed = result.failures is not None and i in result.failures.rows
        if a is None or b is None:
            assert result.values[i].as_py() is None and not failed
        elif operator in "/%" and b == 0:
            assert failed
        else:
            exact = {"+": a + b, "-": a - b, "*": a * b}.get(operator)
            if exact is None:
                quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
                exact = quotient if operator == "/" else a - b * quotient
            assert failed == (not -limit <= exact < limit)
            assert failed or result.values[i].as_py() == exact


@st.composite
def numerics(draw: st.DrawFn) -> tuple[SqlType, list[Decimal | None]]:
    precision = draw(st.integers(1, 38))
    scale = draw(st.integers(0, precision))
    limit = 10**precision - 1
    whole = st.sampled_from([0, 1, -1, limit, -limit]) | st.integers(-limit, limit)
    values = draw(st.lists(st.none() | whole.map(lambda n: Decimal(n).scaleb(-scale, EXACT)), min_size=6, max_size=6))
    return numeric(precision, scale), values


@given(numerics(), numerics(), st.sampled_from(["+", "-", "*", "/", "%", "=", "<", ">="]))
def test_numerics_are_exact(
    left: tuple[SqlType, list[Decimal | None]], right: tuple[SqlType, list[Decimal | None]], operator: str
) -> None:
    expr = resolve(operator, (column("a", left[0]), column("b", right[0])))
    arrays = {"a": pa.array(left[1], arrow_type(left[0])), "b": pa.array(right[1], arrow_type(right[0]))}
    result = compile(expr).evaluate(arrays, 6)
    for i, (a, b) in enumerate(zip(left[1], right[1], strict=True)):
        failed = result.failures is not None and i in result.failures.rows
        got = result.values[i].as_py()
        if a is None or b is None:
            assert got is None and not failed
        elif operator in "/%" and b == 0:
            assert failed
        elif operator in ("=", "<", ">="):
            assert got == {"=": a == b, "<": a < b, ">=": a >= b}[operator]
        else:
            exact = {"+": EXACT.add, "-": EXACT.subtract, "*": EXACT.multiply, "/": EXACT.divide, "%": EXACT.remainder}
            scale = expr.type.scale or 0
            wanted = exact[operator](a, b).quantize(Decimal(1).scaleb(-scale), context=EXACT)
            if operator == "/":  # each row has PostgreSQL's decimals, as far as the column has them
                x, y = Fraction(a), Fraction(b)
                decimals = quotient_decimals(x, y, max(left[0].scale or 0, right[0].scale or 0))
                whole = rounded(x / y, min(decimals, scale)) * 10**scale
                wanted = Decimal(int(whole)).scaleb(-scale, EXACT)
            if failed:
                assert wanted.adjusted() >= (expr.type.precision or 0) - scale
            else:
                assert got == wanted


@given(numerics(), st.integers(1, 38), st.data())
def test_numerics_are_rounded_away_from_zero(
    values: tuple[SqlType, list[Decimal | None]], precision: int, data: st.DataObject
) -> None:
    target = numeric(precision, data.draw(st.integers(0, precision)))
    expr = cast(column("a", values[0]), target)
    result = compile(expr).evaluate({"a": pa.array(values[1], arrow_type(values[0]))}, 6)
    for i, value in enumerate(values[1]):
        failed = result.failures is not None and i in result.failures.rows
        if value is None:
            assert not failed and result.values[i].as_py() is None
            continue
        wanted = value.quantize(Decimal(1).scaleb(-(target.scale or 0)), context=EXACT)
        fits = wanted == 0 or wanted.adjusted() < precision - (target.scale or 0)
        assert failed != fits
        assert failed or result.values[i].as_py() == wanted


@given(st.lists(st.none() | st.floats() | st.sampled_from([0.5, 1.5, 2.5, -0.5, 2.0**31, -(2.0**31)]), min_size=1))
def test_floats_to_integers_round_to_even(values: list[float | None]) -> None:
    result = compile(cast(column("a", DOUBLE), INTEGER)).evaluate({"a": pa.array(values, pa.float64())}, len(values))
    for i, value in enumerate(values):
        failed = result.failures is not None and i in result.failures.rows
        fits = value is None or (abs(value) < 2**40 and -(2**31) <= round(value) < 2**31)
        assert failed != fits
        if not failed:
            assert result.values[i].as_py() == (None if value is None else round(value))


@given(st.lists(st.none() | st.floats(), min_size=1))
def test_floats_read_back_from_their_text(values: list[float | None]) -> None:
    there = compile(cast(column("a", DOUBLE), TEXT)).evaluate({"a": pa.array(values, pa.float64())}, len(values)).values
    back = compile(cast(column("s", TEXT), DOUBLE, explicit=True)).evaluate({"s": there}, len(values))
    assert back.failures is None
    assert repr(back.values.to_pylist()) == repr(values)


@given(st.lists(st.tuples(st.none() | st.floats(), st.none() | st.floats()), min_size=1, max_size=20))
def test_nan_is_equal_to_itself_and_above_all(rows: list[tuple[float | None, float | None]]) -> None:
    arrays = {"a": pa.array([a for a, _ in rows], pa.float64()), "b": pa.array([b for _, b in rows], pa.float64())}

    def key(value: float) -> tuple[bool, float]:
        return value != value, 0.0 if value != value else value

    for operator, test in (("=", lambda x, y: x == y), ("<", lambda x, y: x < y), (">=", lambda x, y: x >= y)):
        expr = resolve(operator, (column("a", DOUBLE), column("b", DOUBLE)))
        got = compile(expr).evaluate(arrays, len(rows)).values.to_pylist()
        assert got == [None if a is None or b is None else test(key(a), key(b)) for a, b in rows]


TEXTS = st.text(alphabet="aBé ,_%x1", max_size=8)
PER_ROW = [
    resolve("substring", (column("s", TEXT), column("a", INTEGER), number(3))),
    resolve("left", (column("s", TEXT), column("a", INTEGER))),
    resolve("lpad", (column("s", TEXT), column("b", INTEGER), Literal("xy", UNKNOWN))),
    resolve("split_part", (column("s", TEXT), Literal(",", UNKNOWN), column("a", INTEGER))),
    resolve("strpos", (column("s", TEXT), Literal("é", UNKNOWN))),
    resolve("regexp_replace", (column("s", TEXT), Literal("[a-z]+", UNKNOWN), Literal("<\\&>", UNKNOWN))),
    resolve("like", (column("s", TEXT), Literal("%\\_%", UNKNOWN))),
    resolve("/", (A, B)),
    cast(column("s", TEXT), INTEGER, explicit=True),
    cast(resolve("/", (A, B)), numeric(3, 1)),
    resolve("coalesce", (A, resolve("/", (number(1), B)))),
]


@given(st.data(), st.sampled_from(PER_ROW))
def test_a_row_has_one_answer_in_every_batch(data: st.DataObject, expr: Expr) -> None:
    """A row retracted alone must equal the row that was added among others."""
    small = st.none() | st.integers(-3, 9)
    rows = data.draw(st.lists(st.tuples(small, small, st.none() | TEXTS), min_size=1, max_size=12))
    arrays = {
        "a": pa.array([a for a, _, _ in rows], pa.int32()), "b": pa.array([b for _, b, _ in rows], pa.int32()),
        "s": pa.array([s for _, _, s in rows], pa.string()),
    }  # fmt: skip
    together = compile(expr).evaluate(arrays, len(rows))
    for i in range(len(rows)):
        alone = compile(expr).evaluate({name: array.slice(i, 1) for name, array in arrays.items()}, 1)
        assert alone.values[0].as_py() == together.values[i].as_py()
        assert (alone.failures is not None) == (together.failures is not None and i in together.failures.rows)
        if alone.failures is not None and together.failures is not None:
            assert alone.failures.messages[0] == together.failures.messages[list(together.failures.rows).index(i)]
