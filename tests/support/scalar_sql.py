"""Evaluate scalar expressions in tests: from SQL text to values, as constants and over columns."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from decimal import Decimal

import pyarrow as pa

from halfjoin.engine.scalar import Result, arrow_type, compile
from halfjoin.engine.scalar.literals import scalar_of
from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.expr import Call, Cast, Column, Expr, Literal
from halfjoin.sql.functions import cast
from halfjoin.sql.relation import Project
from halfjoin.sql.types import TEXT, Kind
from tests.support.front import bound

# Arguments that the table asks to be constants, by position.
CONSTANT = {
    "like": (1, 2), "ilike": (1, 2), "~": (1,), "~*": (1,), "!~": (1,), "!~*": (1,), "regexp_replace": (1, 3),
    "regexp_match": (1, 2), "date_trunc": (0,), "extract": (0,), "to_char": (1,), "to_number": (1,),
    "round": (1,), "trunc": (1,),
    "to_json": (1,), "json object": (0, 1), "array_length": (1,), "fit": (1,),
    "cut interval": (1,), "in": tuple(range(1, 20)),
}  # fmt: skip


def expression(sql: str) -> Expr:
    """The bound expression of `SELECT <sql>`."""
    relation = bound(f"SELECT {sql} AS x")
    assert isinstance(relation, Project)
    return relation.items[0][1]


@dataclass
class Columns:
    """Replaces constants by columns c0, c1, ... that have them in every other row and NULL in between.

    `first`: replace only constants in the first argument of a call, so that kernels for constant arguments get arrays.
    """

    first: bool = False
    arrays: dict[str, pa.Array] = field(default_factory=dict)
    rows: int = 5

    def of(self, expr: Expr) -> Expr:
        match expr:
            case Literal():
                name = f"c{len(self.arrays)}"
                value, null = scalar_of(expr), pa.scalar(None, arrow_type(expr.type))
                pieces = [pa.repeat(value if row % 2 == 0 else null, 1) for row in range(self.rows)]
                self.arrays[name] = pa.concat_arrays(pieces)
                return Column(name, expr.type)
            case Cast(arg=arg):
                return replace(expr, arg=self.of(arg))
            case Call(function=function, args=args):
                fixed = CONSTANT.get(function, ())
                if self.first and 0 not in fixed:
                    fixed = tuple(range(1, len(args)))
                return replace(expr, args=tuple(arg if i in fixed else self.of(arg) for i, arg in enumerate(args)))
            case _:
                return expr


def constant(expr: Expr) -> Result:
    return compile(expr).evaluate({}, 1)


def over_columns(expr: Expr, first: bool = False) -> Result:
    columns = Columns(first)
    compiled = compile(columns.of(expr))
    return compiled.evaluate(columns.arrays, columns.rows)


def shown(expr: Expr) -> Expr:
    """The expression cast to text, unless it is an array."""
    return expr if expr.type.kind is Kind.ARRAY else cast(expr, TEXT, explicit=True)


def text_of(value: object) -> str | None:
    """A value as text, with an array as PostgreSQL prints it."""
    if isinstance(value, list):
        return "{" + ",".join(_item(item) for item in value) + "}"
    assert value is None or isinstance(value, str)
    return value


def _item(item: object) -> str:
    if isinstance(item, list):
        return str(text_of(item))
    text = "NULL" if item is None else str(item)
    if item is None or re.fullmatch(r"[^\s,{}\"\\]+", text):
        return text
    return '"' + re.sub(r'(["\\])', r"\\\1", text) + '"'


def answer(result: Result, row: int) -> str | None:
    """The text of one row, or `ERROR: reason`."""
    if result.failures is not None and row in result.failures.rows:
        return f"ERROR: {result.failures.messages[list(result.failures.rows).index(row)]}"
    return text_of(result.values[row].as_py())


def same(got: str | None, wanted: str | None) -> bool:
    """Whether two texts are equal. Numerics with different decimals are compared after rounding to the fewer."""
    if got == wanted or got is None or wanted is None or "ERROR" in got + wanted:
        return got == wanted
    try:
        a, b = Decimal(got), Decimal(wanted)
    except ArithmeticError:
        return False
    if not (a.is_finite() and b.is_finite()):
        return False
    places = min(-int(a.as_tuple().exponent), -int(b.as_tuple().exponent))
    return places >= 10 and abs(a - b) <= Decimal(1).scaleb(-places) / 2


def wrong(sql: str, wanted: str | None) -> list[str | None]:
    """The answers that differ from the wanted one, as a constant and over columns. A refusal is one answer."""
    try:
        expr = shown(expression(sql))
    except UnsupportedSQL as error:
        return [] if wanted and wanted.startswith("ERROR") else [str(error)]
    over = [over_columns(expr, first) for first in (False, True)]
    got = [answer(constant(expr), 0), *(answer(result, row) for result in over for row in (0, 2, 4))]
    failed = wanted is not None and wanted.startswith("ERROR")
    return [text for text in got if not (text or "").startswith("ERROR") if failed or not same(text, wanted)] + [
        text for text in got if (text or "").startswith("ERROR") and not failed]
