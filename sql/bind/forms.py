"""Binds literals and expressions with special syntax (CASE, BETWEEN, EXTRACT, ...) to functions of the table."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from halfjoin.errors import UnknownName, UnsupportedSQL
from halfjoin.sql import functions
from halfjoin.sql.bind.named_types import cast_to_domain, resolved
from halfjoin.sql.bind.patterns import PATTERNS
from halfjoin.sql.bind.precision import interval, modified, precision_of
from halfjoin.sql.bind.reg_types import cast_system
from halfjoin.sql.bind.row_made import as_text
from halfjoin.sql.bind.row_values import compared_rows, row_of
from halfjoin.sql.bind.subscripts import subscript
from halfjoin.sql.expr import TRUE, Expr, Literal
from halfjoin.sql.functions.parameters import untyped
from halfjoin.sql.parse.collations import check_collation
from halfjoin.sql.parse.locate import only
from halfjoin.sql.parse.syntax import Given
from halfjoin.sql.parse.type_names import sql_type
from halfjoin.sql.system import plain
from halfjoin.sql.types import (
    BIGINT,
    BOOLEAN,
    BYTEA,
    FLOATS,
    INTEGER,
    INTEGERS,
    STRINGS,
    TEXT,
    UNKNOWN,
    WORKING_DIGITS,
    Kind,
    SqlType,
    array,
    has_rows,
    numeric,
)

if TYPE_CHECKING:
    from halfjoin.sql.bind.scalar import Scalars


def _literal(scalars: Scalars, node: exp.Literal) -> Expr:
    return untyped(node.name) if node.is_string else number(node.name)


def _given(scalars: Scalars, node: Given) -> Expr:
    return Literal(node.unseen, node.unseen.type)


def number(text: str) -> Literal:
    """A number literal, with PostgreSQL's type: the first of integer, bigint and numeric that can hold it."""
    try:
        if text.lstrip("-").isdigit() and len(text) <= WORKING_DIGITS:
            value = int(text)
            if -(2**63) <= value < 2**63:
                return Literal(value, INTEGER if -(2**31) <= value < 2**31 else BIGINT)
        decimal = Decimal(text)
        exponent = int(decimal.as_tuple().exponent)
        if exponent > 0 and decimal.adjusted() <= WORKING_DIGITS:  # beyond that, spelling out the zeros would take long
            decimal = Decimal(f"{decimal:f}")
    except ArithmeticError:
        raise UnsupportedSQL(f"{text} is not a number", wrong=True) from None
    shape = decimal.as_tuple()
    scale = -int(shape.exponent)
    precision = max(len(shape.digits), scale, decimal.adjusted() + 1, 1)
    if precision > WORKING_DIGITS:
        raise UnsupportedSQL(f"a number may have at most {WORKING_DIGITS} digits",
                             remedy="write it as double precision: '1e300'::double precision")
    return Literal(decimal, numeric(precision, scale))


def _string(scalars: Scalars, node: exp.Expr) -> Expr:
    return Literal(node.name, UNKNOWN)


def _joined_strings(scalars: Scalars, node: exp.Concat) -> Expr:
    return Literal("".join(part.name for part in node.expressions), UNKNOWN)


def _negative(scalars: Scalars, node: exp.Neg) -> Expr:
    written = _signed(node)
    if written is not None:
        return number(written)
    return functions.resolve("neg", (scalars.value(node.this),))


def _signed(node: exp.Expr) -> str | None:
    """The text of a number with any minus signs before it; PostgreSQL folds them before it gives the number a type."""
    match node.unnest():
        case exp.Neg(this=inner):
            written = _signed(inner)
            return None if written is None else written[1:] if written.startswith("-") else f"-{written}"
        case exp.Literal() as literal if not literal.is_string:
            return str(literal.name)
        case _:
            return None


def _between(scalars: Scalars, node: exp.Between) -> Expr:
    low, high = node.args["low"], node.args["high"]
    try:
        within = _within(node.this, low, high, scalars)
    except UnknownName:
        if _every_place(node.this, low, high):
            return TRUE
        raise
    return functions.resolve("or", (within, _within(node.this, high, low, scalars))) if node.args.get(
        "symmetric") else within


def _every_place(value: exp.Expr, low: exp.Expr, high: exp.Expr) -> bool:
    """Whether a condition asks for the rows between the first and the last place that PostgreSQL has (`ctid`), which
    are all rows. DuckDB's postgres extension reads a table so after it has inserted into it."""
    texts = tuple(bound.this.name for bound in (low, high) if isinstance(bound, exp.Cast))
    return isinstance(value, exp.Column) and value.name == "ctid" and texts == ("(0,0)", "(4294967295,0)")


def _within(value: exp.Expr, low: exp.Expr, high: exp.Expr, scalars: Scalars) -> Expr:
    return functions.resolve("and", (_compared(">=", value, low, scalars), _compared("<=", value, high, scalars)))


def _compared(name: str, left: exp.Expr, right: exp.Expr, scalars: Scalars) -> Expr:
    """A comparison of two values, or of two rows."""
    rows = compared_rows(name, left, right, scalars)
    return functions.resolve(name, (scalars.value(left), scalars.value(right))) if rows is None else rows


def _in(scalars: Scalars, node: exp.In) -> Expr:
    if not node.expressions:
        if node.args.get("field") is not None:
            raise scalars.context.wrong(node, "IN takes values in parentheses",
                                        "write IN (1, 2), or = ANY($1) with a list as the parameter")
        if node.args.get("query") is None:
            raise scalars.context.wrong(node, "IN needs at least one value", "write false instead of IN ()")
        raise scalars.context.unmaintained(node.args["query"], "IN (subquery) is",
                                           "join with the subquery in FROM, if it has no duplicates")
    rows = []
    for item in node.expressions:
        if (row := compared_rows("=", node.this, item, scalars)) is None:
            break
        rows.append(row)
    else:
        return functions.resolve("or", tuple(rows))
    return functions.resolve("in", (scalars.value(node.this), *scalars.values(node.expressions)))


def _case(scalars: Scalars, node: exp.Case) -> Expr:
    subject = scalars.value(node.this) if node.this and row_of(node.this, scalars) is None else None
    args: list[Expr] = []
    for branch in node.args["ifs"]:
        when = compared_rows("=", node.this, branch.this, scalars, records=True) if node.this else None
        if when is None:
            when = scalars.value(branch.this)
            when = functions.resolve("=", (subject, when)) if subject else when
        args += [when, scalars.value(branch.args["true"])]
    default = node.args.get("default")
    args.append(scalars.value(default) if default else Literal(None, UNKNOWN))
    return functions.resolve("case", args)


def _cast(scalars: Scalars, node: exp.Cast) -> Expr:
    only(node, scalars.context.sql, "a cast", ("this", "to"))
    if node.to.sql().lower() == "jsonpath":
        return _json_path(scalars, node)
    if (found := precision_of(node.to)) is not None:
        return modified(scalars.value(node.this), found)
    type, schema = sql_type(node.to, scalars.context.sql), scalars.context.schema
    domain = schema.domain(type.named) if type.kind is Kind.NAMED else None
    if domain is not None:
        return cast_to_domain(scalars.value(node.this), domain, schema)
    with scalars.context.at(node.to):
        type, system = _meant(type, scalars), scalars.context.system
    if has_rows(type):
        scalars.context.records.append(str(type))
    elif system is None and plain(type) != type:
        raise scalars.context.refuse(node, f"a view cannot cast to {type}, which only catalogs have",
                                     f"write {plain(type)}")
    if type.kind is Kind.TIME and node.this.sql("postgres").lower().startswith("current_time("):  # the zone is dropped
        node.set("this", exp.Anonymous(this="localtime", expressions=node.this.expressions))
    return _cast_to(scalars, node.this, type, system)


def _cast_to(scalars: Scalars, node: exp.Expr, type: SqlType, system: Any) -> Expr:
    if type.kind in STRINGS and (text := as_text(node, scalars)) is not None:
        return functions.cast(text, type, explicit=True)
    if type.kind in FLOATS and isinstance(node, exp.Literal):  # `1e300::float8` does not go through numeric
        return functions.cast(Literal(node.name, UNKNOWN), type, explicit=True)
    written = node.unnest()
    if isinstance(written, exp.Array) and type.element is not None:
        value = _elements(scalars, written, type, type.element, system)
    else:
        value = scalars.value(node)
    if value.type.kind is Kind.ARRAY and type.kind is not Kind.ARRAY and isinstance(node.parent, exp.Array):
        type = array(type)
    shown = None if system is None else cast_system(value, type, system)
    return functions.cast(value, type, explicit=True) if shown is None else shown


def _elements(scalars: Scalars, node: exp.Array, type: SqlType, element: SqlType, system: Any) -> Expr:
    """The array of `ARRAY[...]::type`. As in PostgreSQL each element is cast, so the elements need no common type."""
    if not node.expressions:
        return Literal([], type)
    inner = type if element.element is None else element
    return functions.resolve("array", [
        _cast_to(scalars, item, inner if isinstance(item, exp.Array) else element, system) for item in node.expressions
    ])  # fmt: skip


def _meant(type: SqlType, scalars: Scalars) -> SqlType:
    """The type of a cast. In a query the name of a table is that of its rows."""
    schema = scalars.context.schema
    own = type.kind is Kind.NAMED and schema.named_type(type.named) is None
    columns = schema.columns(type.named) if own else None
    if columns is not None and scalars.context.now is None:
        raise UnsupportedSQL(f"a view cannot cast to the rows of {type}, whose columns may change",
                             remedy="CREATE TYPE ... AS (...), and cast to it; or write jsonb_to_record(j) AS x (...)")
    if columns is not None:
        return SqlType(Kind.RECORD, named=type.named, fields=tuple((one.name, one.type) for one in columns))
    return resolved(type, schema)


def _json_path(scalars: Scalars, node: exp.Cast) -> Expr:
    """`'$.a'::jsonpath`: the text, as the argument of a function or an operator that reads it as a path."""
    around = node.parent
    called = around.name.lower() if isinstance(around, exp.Anonymous) else ""
    if not called.startswith("jsonb_path_") and not isinstance(around, exp.JSONBPathExists | exp.MatchAgainst):
        raise scalars.context.refuse(node, "a value of type jsonpath is not supported",
                                     "write it where jsonb_path_query and its kin take it, or as text")  # fmt: skip
    return scalars.value(node.this)


def _extract(scalars: Scalars, node: exp.Extract) -> Expr:
    unit = Literal(node.this.name.lower(), TEXT)
    return functions.resolve("extract", (unit, scalars.value(node.expression)))


def _position(scalars: Scalars, node: exp.StrPosition) -> Expr:
    args = scalars.values([node.this, node.args["substr"]])
    return functions.resolve("byte position" if any(arg.type == BYTEA for arg in args) else "strpos", args)


def _substring(scalars: Scalars, node: exp.Substring) -> Expr:
    start, length = node.args.get("start"), node.args.get("length")
    args = [scalars.value(node.this), scalars.value(start) if start else Literal(1, INTEGER)]
    if length is not None:
        args.append(scalars.value(length))
    places = args[0].type == BYTEA or args[-1].type.kind in INTEGERS  # then an untyped constant is a place, too
    if args[1].type.kind in STRINGS or (args[1].type == UNKNOWN and not places):
        return functions.resolve("substring regex" if length is None else "substring similar", args)
    return functions.resolve("substring", args)


def _trim(scalars: Scalars, node: exp.Trim) -> Expr:
    only(node, scalars.context.sql, "TRIM", ("this", "expression", "position"))
    name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(node.text("position").upper(), "btrim")
    return functions.resolve(name, scalars.values([node.this, *filter(None, [node.args.get("expression")])]))


def _at_time_zone(scalars: Scalars, node: exp.AtTimeZone) -> Expr:
    return functions.resolve("timezone", (scalars.value(node.args["zone"]), scalars.value(node.this)))


def _collate(scalars: Scalars, node: exp.Collate) -> Expr:
    value = scalars.value(node.this)
    check_collation(node.expression, value.type, scalars.context.sql)
    return value


def _array(scalars: Scalars, node: exp.Array) -> Expr:
    if not node.expressions:
        raise scalars.context.refuse(node, "an empty array has no type", "write a cast: ARRAY[]::integer[]")
    return functions.resolve("array", scalars.values(node.expressions))


FORMS: dict[type, Callable[[Scalars, Any], Expr]] = {
    exp.Literal: _literal,
    Given: _given,
    exp.RawString: _string,
    exp.Concat: _joined_strings,
    exp.Null: lambda scalars, node: Literal(None, UNKNOWN),
    exp.Boolean: lambda scalars, node: Literal(bool(node.this), BOOLEAN),
    exp.Neg: _negative,
    exp.Between: _between,
    exp.In: _in,
    **PATTERNS,
    exp.Case: _case,
    exp.Cast: _cast,
    exp.Interval: lambda scalars, node: interval(scalars.context, node),
    exp.Extract: _extract,
    exp.StrPosition: _position,
    exp.Substring: _substring,
    exp.Trim: _trim,
    exp.AtTimeZone: _at_time_zone,
    exp.Collate: _collate,
    exp.Bracket: subscript,
    exp.Array: _array,
}
