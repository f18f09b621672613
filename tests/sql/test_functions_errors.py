"""The overload that a call means, the casts of its arguments, and the messages of wrong calls."""

from __future__ import annotations

from decimal import Decimal

import pytest

from halfjoin import Engine
from halfjoin.errors import HalfjoinError, UnknownName, UnsupportedSQL
from halfjoin.sql.expr import Call, Cast, Column, Expr, Literal
from halfjoin.sql.functions import cast, common_type, fallible, render, resolve
from halfjoin.sql.functions.regex import to_re2
from halfjoin.sql.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    REAL,
    SMALLINT,
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    UNKNOWN,
    Kind,
    SqlType,
    array,
    numeric,
)  # fmt: skip

VARCHAR = SqlType(Kind.VARCHAR, 10)


def col(type: SqlType, name: str = "x") -> Column:
    return Column(name, type)


def text(value: str | None) -> Literal:
    return Literal(value, UNKNOWN)


def refusal(name: str, *args: Expr) -> str:
    with pytest.raises((UnsupportedSQL, UnknownName)) as error:
        resolve(name, args)
    return str(error.value)


@pytest.mark.parametrize(
    ("name", "args", "types", "result"),
    [
        ("+", (SMALLINT, INTEGER), (INTEGER, INTEGER), INTEGER),
        ("+", (INTEGER, BIGINT), (BIGINT, BIGINT), BIGINT),
        ("+", (REAL, INTEGER), (DOUBLE, DOUBLE), DOUBLE),
        ("+", (REAL, REAL), (REAL, REAL), REAL),
        ("+", (INTEGER, numeric(5, 2)), (numeric(10, 0), numeric(5, 2)), numeric(13, 2)),
        ("*", (numeric(15, 2), numeric(15, 2)), (numeric(15, 2), numeric(15, 2)), numeric(31, 4)),
        ("/", (numeric(15, 2), numeric(15, 2)), (numeric(15, 2), numeric(15, 2)), numeric(35, 20)),
        ("*", (numeric(38, 10), numeric(38, 10)), (numeric(38, 10), numeric(38, 10)), numeric(76, 20)),
        ("+", (DATE, INTEGER), (DATE, INTEGER), DATE),
        ("+", (DATE, INTERVAL), (DATE, INTERVAL), TIMESTAMP),
        ("-", (DATE, DATE), (DATE, DATE), INTEGER),
        ("-", (DATE, TIMESTAMP), (TIMESTAMP, TIMESTAMP), INTERVAL),
        ("-", (TIMESTAMP, TIMESTAMPTZ), (TIMESTAMPTZ, TIMESTAMPTZ), INTERVAL),
        ("=", (DATE, TIMESTAMP), (TIMESTAMP, TIMESTAMP), BOOLEAN),
        ("=", (REAL, INTEGER), (DOUBLE, DOUBLE), BOOLEAN),
        ("=", (VARCHAR, TEXT), (VARCHAR, TEXT), BOOLEAN),
        ("=", (numeric(5, 2), numeric(9, 4)), (numeric(5, 2), numeric(9, 4)), BOOLEAN),
        ("abs", (SMALLINT,), (SMALLINT,), SMALLINT),
        ("round", (INTEGER,), (DOUBLE,), DOUBLE),
        ("sqrt", (BIGINT,), (DOUBLE,), DOUBLE),
        ("length", (VARCHAR,), (VARCHAR,), INTEGER),
        ("array_append", (array(INTEGER), BIGINT), (array(BIGINT), BIGINT), array(BIGINT)),
    ],
)
def test_overloads(name: str, args: tuple[SqlType, ...], types: tuple[SqlType, ...], result: SqlType) -> None:
    call = resolve(name, tuple(col(type, f"x{i}") for i, type in enumerate(args)))
    assert isinstance(call, Call)
    assert tuple(arg.type for arg in call.args) == types
    assert call.type == result


@pytest.mark.parametrize(
    ("type", "literal", "value"),
    [
        (INTEGER, "5", 5), (DOUBLE, "1.5", 1.5), (numeric(5, 2), "1.005", Decimal("1.005")), (BOOLEAN, "yes", True),
        (INTERVAL, "1 day", (0, 1, 0)), (VARCHAR, "a", "a"),
    ],
)  # fmt: skip
def test_a_literal_takes_the_type_of_the_other_side(type: SqlType, literal: str, value: object) -> None:
    call = resolve("=", (col(type), text(literal)))
    assert isinstance(call, Call)
    other = call.args[1].args[0] if isinstance(call.args[1], Call) else call.args[1]  # an interval in its length
    assert isinstance(other, Literal)
    assert other.value == value


def test_what_no_overload_takes_is_refused_with_what_would_be() -> None:
    assert refusal("lower", col(INTEGER)) == "no function lower(integer); lower takes (text)"
    assert refusal("+", col(BOOLEAN), col(INTEGER)).startswith("no operator boolean + integer; + takes (smallint, ")
    assert refusal("=", col(TEXT), col(INTEGER)) == "no operator text = integer; cast one to the other's type"
    assert "did you mean lower" in refusal("lowre", col(TEXT))
    assert refusal("+", text(None), text(None)).startswith("+(unknown, unknown) is not unique; cast")


def test_volatile_functions_are_refused_naming_mz_now() -> None:
    for name in ("now", "current_timestamp", "current_date", "clock_timestamp"):
        assert "mz_now()" in refusal(name)
    assert "every call" in refusal("random")
    with pytest.raises(UnsupportedSQL, match="mz_now"):
        cast(text("now"), TIMESTAMP)


@pytest.mark.parametrize(
    ("literal", "type", "reason"),
    [
        ("abc", INTEGER, 'invalid input syntax for type integer: "abc"'),
        ("3000000000", INTEGER, "integer out of range"),
        ("1e400", DOUBLE, "out of range"),
        ("12345.678", numeric(5, 2), "numeric field overflow"),
        ("2023-02-29", DATE, 'date/time field value out of range: "2023-02-29"'),
        ("x", BOOLEAN, "invalid input syntax for type boolean"),
        ("{1,x}", array(INTEGER), 'invalid input syntax for type integer: "x"'),
        ("[1]", array(INTEGER), "malformed array literal"),
        ("too long for it", VARCHAR, "value too long for type varchar(10)"),
    ],
)
def test_bad_literals(literal: str, type: SqlType, reason: str) -> None:
    with pytest.raises(UnsupportedSQL) as error:
        cast(text(literal), type)
    assert reason in str(error.value)


def test_casts_by_themselves_and_on_demand() -> None:
    assert cast(col(BIGINT), INTEGER) == Cast(col(BIGINT), INTEGER)
    assert cast(text("too long for it"), VARCHAR, explicit=True) == Literal("too long f", VARCHAR)
    with pytest.raises(UnsupportedSQL, match=r"cannot cast type text to integer; write a cast"):
        cast(col(TEXT), INTEGER)
    with pytest.raises(UnsupportedSQL, match=r"cannot cast type date to integer$"):
        cast(col(DATE), INTEGER, explicit=True)


@pytest.mark.parametrize(
    ("types", "wanted"),
    [
        ([INTEGER, BIGINT], BIGINT), ([INTEGER, numeric(5, 2)], numeric(12, 2)), ([REAL, INTEGER], REAL),
        ([DOUBLE, numeric(5, 2)], DOUBLE), ([UNKNOWN, DATE], DATE), ([UNKNOWN, UNKNOWN], TEXT),
        ([VARCHAR, TEXT], SqlType(Kind.VARCHAR)), ([TEXT, VARCHAR], TEXT),
        ([VARCHAR, VARCHAR], VARCHAR), ([VARCHAR, UNKNOWN], SqlType(Kind.VARCHAR)), ([DATE, TIMESTAMPTZ], TIMESTAMPTZ),
        ([array(INTEGER), array(BIGINT)], array(BIGINT)), ([numeric(38, 0), numeric(38, 10)], numeric(48, 10)),
    ],
)  # fmt: skip
def test_common_types(types: list[SqlType], wanted: SqlType) -> None:
    assert common_type(types) == wanted


def test_types_without_a_common_one() -> None:
    with pytest.raises(UnsupportedSQL, match="types integer and text cannot be matched"):
        common_type([INTEGER, TEXT])


@pytest.mark.parametrize(
    ("expr", "fails"),
    [
        (resolve("+", (col(INTEGER), Literal(1, INTEGER))), True),
        (resolve("*", (col(numeric(15, 2)), col(numeric(15, 2)))), False),
        (resolve("*", (col(numeric(38, 10)), col(numeric(38, 10)))), True),
        (resolve("/", (col(INTEGER), Literal(2, INTEGER))), False),
        (resolve("/", (col(INTEGER), Literal(0, INTEGER))), True),
        (resolve("/", (col(INTEGER), Literal(-1, INTEGER))), True),
        (resolve("/", (col(DOUBLE), Literal(2.0, DOUBLE))), True),
        (resolve("=", (col(INTEGER), col(BIGINT, "y"))), False),
        (resolve("||", (col(SqlType(Kind.VARCHAR, 10)), col(INTEGER))), False),
        (resolve("||", (col(TEXT), col(INTEGER))), True),
        (resolve("lower", (col(TEXT),)), False),
        (cast(col(TEXT), INTEGER, explicit=True), True),
        (cast(col(INTEGER), BIGINT), False),
        (cast(col(BIGINT), INTEGER), True),
        (cast(col(numeric(5, 0)), INTEGER), False),
        (cast(col(numeric(5, 2)), numeric(4, 1)), True),
        (cast(col(numeric(5, 2)), numeric(5, 1)), False),
        (cast(col(INTEGER), TEXT), False),
        (resolve("is null", (resolve("/", (Literal(1, INTEGER), col(INTEGER))),)), True),
    ],
    ids=lambda value: render(value) if not isinstance(value, bool) else str(value),
)
def test_fallible(expr: Expr, fails: bool) -> None:
    assert fallible(expr) is fails


def test_rendered_with_no_more_parentheses_than_needed() -> None:
    a, b, c = (resolve(">", (col(INTEGER, name), Literal(1, INTEGER))) for name in "abc")
    x, y, z = (col(INTEGER, name) for name in "xyz")
    assert render(resolve("and", (a, resolve("or", (b, c))))) == "a > 1 AND (b > 1 OR c > 1)"
    assert render(resolve("or", (resolve("and", (a, b)), c))) == "a > 1 AND b > 1 OR c > 1"
    assert render(resolve("not", (resolve("and", (a, b)),))) == "NOT (a > 1 AND b > 1)"
    assert render(resolve("-", (x, resolve("-", (y, z))))) == "x - (y - z)"
    assert render(resolve("-", (resolve("-", (x, y)), z))) == "x - y - z"
    assert render(resolve("*", (resolve("+", (x, y)), z))) == "(x + y) * z"
    assert render(resolve("neg", (resolve("+", (x, y)),))) == "-(x + y)"
    assert render(resolve("^", (Literal(-2, INTEGER), x))) == "-2.0 ^ x::double precision"  # minus binds tighter
    assert render(resolve("=", (x, col(BIGINT, "t.big")))) == "x = t.big"
    assert render(cast(resolve("+", (x, y)), TEXT, explicit=True)) == "(x + y)::text"
    assert render(resolve("=", (col(TEXT, "t.s"), text("it's")))) == "t.s = 'it''s'"
    assert render(resolve("<", (col(DATE, "o.When"), text("2024-01-05")))) == 'o."When" < date \'2024-01-05\''
    assert render(resolve("in", (x, Literal(1, INTEGER), Literal(2, INTEGER)))) == "x IN (1, 2)"
    assert render(resolve("is null", (resolve("=", (x, y)),))) == "(x = y) IS NULL"


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(?=a)", "lookaround"), (r"(a)\1", "back references"), (r"\yword", "word boundaries"),
        (r"(a\1)", "a back reference to no group"),
        (r"\bword", "backspace"),
        ("a**", "a repeat of a repeat"), ("(a", "a ( without )"), ("a)", "an unmatched )"), ("[a", "a [ without ]"),
        ("a{2,1}", "repetition count"), ("*a", "nothing to repeat"), ("[[.a.]]", "collating"), ("[b-a]", "a range"),
    ],
)  # fmt: skip
def test_regular_expressions_that_are_refused(pattern: str, reason: str) -> None:
    with pytest.raises(UnsupportedSQL) as error:
        to_re2(pattern)
    assert reason in str(error.value)


@pytest.mark.parametrize(("call", "code"), [
    ("'a' ~ '['", "2201B"), ("'a' ~ 'a**'", "2201B"), ("'a' ~ '(a)+\\1'", "0A000"), ("'a' ~ '[[=a=]]'", "0A000"),
    ("regexp_like('a', 'a', 'z')", "22023"), ("regexp_like('a', 'a', 'b')", "0A000"),
    ("regexp_like('a', 'a', 'e')", "0A000"), ("regexp_like('a', 'a', 'g')", "22023"),
    ("'a' SIMILAR TO 'a' ESCAPE 'xx'", "22025"), ("'a' LIKE 'a' ESCAPE 'xx'", "22025"),
    ("extract(doy FROM interval '1 day')", "0A000"), ("extract(foo FROM interval '1 day')", "22023"),
    ("date_trunc('week', interval '1 day')", "0A000"), ("date_trunc('dow', timestamp '2024-01-01')", "22023"),
    ("to_date('2024 07', 'YYYY IW')", "22007"), ("to_char('NaN'::float8, '999th')", "22P02"),
])  # fmt: skip
def test_an_error_has_its_sqlstate(call: str, code: str) -> None:
    with pytest.raises(HalfjoinError) as error:
        Engine().query(f"SELECT {call}")
    assert error.value.sqlstate == code


@pytest.mark.parametrize("pattern", ["a|ab", "a*?b+", "a*(aab)?", "(ab)*a"])
def test_expressions_whose_extent_depends_on_the_engine(pattern: str) -> None:
    to_re2(pattern)
    with pytest.raises(UnsupportedSQL, match="longest match"):
        to_re2(pattern, spans=True)
