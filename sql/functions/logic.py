"""Three-valued logic, CASE, and the functions that choose one of their arguments."""

from __future__ import annotations

from collections.abc import Sequence

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.expr import Call, Expr, Literal
from halfjoin.sql.functions.casting import cast, coerce, unify
from halfjoin.sql.functions.coercion import NUMBERS, common_type, comparison_type
from halfjoin.sql.functions.order import order_of, value_at
from halfjoin.sql.functions.signature import Function, Resolve, function
from halfjoin.sql.types import BOOLEAN, DOUBLE, FLOATS, INTEGERS, TEXT, UNKNOWN, Kind, SqlType


def _chain(name: str, args: Sequence[Expr]) -> Expr:
    """AND or OR of any number of arguments; nested calls of the same connector are flattened."""
    parts: list[Expr] = []
    for arg in args:
        if isinstance(arg, Call) and arg.function == name:
            parts.extend(arg.args)
        elif arg.type.kind not in (BOOLEAN.kind, UNKNOWN.kind):
            raise UnsupportedSQL(f"argument of {name.upper()} must be boolean, not {arg.type}")
        else:
            parts.append(coerce(arg, BOOLEAN))
    return parts[0] if len(parts) == 1 else Call(name, tuple(parts), BOOLEAN)


def _case(resolve: Resolve, args: Sequence[Expr]) -> Expr:
    """CASE with arguments (condition, value, ..., default); a missing default is NULL."""
    if len(args) % 2 == 0:
        args = (*args, Literal(None, UNKNOWN))
    default, *values = unify((args[-1], *args[1::2]))  # the default goes first: among texts the first type decides
    parts: list[Expr] = []
    for condition, value in zip(args[:-1:2], values, strict=True):
        if condition.type.kind not in (BOOLEAN.kind, UNKNOWN.kind):
            raise UnsupportedSQL(f"a condition of CASE must be boolean, not {condition.type}", wrong=True)
        parts += [coerce(condition, BOOLEAN), value]
    return Call("case", (*parts, default), default.type)


def _alternatives(name: str, args: Sequence[Expr]) -> Expr:
    if not args:
        raise UnsupportedSQL(f"{name.upper()} without arguments", remedy="give it at least one", code="42601")
    typed = unify(args)
    if name == "coalesce":
        return Call(name, typed, typed[0].type)
    order = tuple(map(order_of, typed))
    return value_at(Call(name, order, order[0].type), typed[0].type)


def _nullif(resolve: Resolve, args: Sequence[Expr]) -> Expr:
    """NULL if both arguments are equal, else the first, in the type of the comparison."""
    if len(args) != 2:
        raise UnsupportedSQL(f"NULLIF takes two arguments, not {len(args)}")
    first = cast(args[0], _compared([arg.type for arg in args]))
    return resolve("case", (resolve("=", args), Literal(None, first.type), first))


def _compared(types: list[SqlType]) -> SqlType:
    """The type of NULLIF: the first type, or a wider one if that is needed to compare with the second type."""
    first, second = types
    if all(type.kind in (Kind.UNKNOWN, Kind.VARCHAR, Kind.TEXT) for type in types):
        return TEXT
    if UNKNOWN in types:
        return common_type([second if first == UNKNOWN else first])
    families = [(*INTEGERS,), (Kind.NUMERIC,), (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ)]
    alike = first.kind is second.kind or any(first.kind in kinds and second.kind in kinds for kinds in families)
    if alike or (first.kind in FLOATS and second.kind in NUMBERS):
        return first
    wider = comparison_type(types)
    return DOUBLE if wider.kind in FLOATS else wider


def _test(name: str, doc: str, yes: str, no: str, null: str) -> Function:
    return function(name, "logic", doc, "boolean -> boolean", examples=[
        (f"true {name.upper()}", yes), (f"false {name.upper()}", no), (f"NULL {name.upper()}", null)])  # fmt: skip


LOGIC = (
    function("and", "logic", "All are true; false decides over NULL and errors", "boolean, boolean... -> boolean",
        special=lambda _, args: _chain("and", args), examples=[
        ("true AND NULL", None), ("false AND NULL", "false"), ("true AND true", "true"),
        ("false AND 1/0 = 1", "false")]),
    function("or", "logic", "Any is true; true decides over NULL and errors", "boolean, boolean... -> boolean",
        special=lambda _, args: _chain("or", args), examples=[
        ("true OR NULL", "true"), ("false OR NULL", None), ("false OR false", "false"), ("true OR 1/0 = 1", "true")]),
    function("not", "logic", "The opposite", "boolean -> boolean", examples=[
        ("NOT true", "false"), ("NOT NULL", None)]),
    function("is null", "logic", "Whether it is NULL", "any -> boolean", examples=[
        ("NULL IS NULL", "true"), ("1 IS NULL", "false")]),
    function("is not null", "logic", "Whether it is not NULL", "any -> boolean", examples=[
        ("NULL IS NOT NULL", "false"), ("1 IS NOT NULL", "true")]),
    _test("is true", "Whether it is true, and not NULL", "true", "false", "false"),
    _test("is not true", "Whether it is false or NULL", "false", "true", "true"),
    _test("is false", "Whether it is false, and not NULL", "false", "true", "false"),
    _test("is not false", "Whether it is true or NULL", "true", "false", "true"),
    _test("is unknown", "Whether it is NULL", "false", "false", "true"),
    _test("is not unknown", "Whether it is not NULL", "true", "true", "false"),
    function("case", "logic", "The value of the first condition that is true", "boolean, any... -> any", special=_case,
        examples=[
        ("CASE WHEN 1 < 2 THEN 'a' ELSE 'b' END", "a"), ("CASE WHEN NULL THEN 1 WHEN true THEN 2.5 END", "2.5"),
        ("CASE 3 WHEN 1 THEN 'x' WHEN 2 THEN 'y' END", None), ("CASE WHEN true THEN 1 ELSE 1/0 END", "1"),
        ("CASE WHEN 1/0 = 1 THEN 1 END", "ERROR: division by zero")]),
    function("coalesce", "logic", "The first argument that is not NULL", "any... -> any",
        special=lambda _, args: _alternatives("coalesce", args), examples=[
        ("coalesce(NULL, 2, 3)", "2"), ("coalesce(NULL, NULL)", None), ("coalesce(1, 1/0)", "1"),
        ("coalesce(NULL::int, 2.5)", "2.5")]),
    function("nullif", "logic", "NULL if both are equal, else the first", "any, any -> any", special=_nullif,
        examples=[("nullif(1, 1)", None), ("nullif(1, 2)", "1"), ("nullif(1, NULL)", "1"), ("nullif('a', 'b')", "a")]),
    function("greatest", "logic", "The greatest; ignores NULLs", "any... -> any",
        special=lambda _, args: _alternatives("greatest", args), evaluator="arrow, duckdb", examples=[
        ("greatest(1, 3, 2)", "3"), ("greatest(NULL, 1)", "1"), ("greatest(NULL, NULL)", None),
        ("greatest(1.5, 2)::double precision", "2"), ("greatest('B', 'a')", "a"),
        ("greatest('NaN'::double precision, 1)", "NaN")]),
    function("least", "logic", "The least; ignores NULLs", "any... -> any",
        special=lambda _, args: _alternatives("least", args), evaluator="arrow, duckdb", examples=[
        ("least(1, 3, 2)", "1"), ("least(NULL, 1)", "1"), ("least(1.5, 2)", "1.5"),
        ("least('NaN'::double precision, 1)", "1"), ("least(date '2024-02-01', date '2024-01-31')", "2024-01-31")]),
)  # fmt: skip
