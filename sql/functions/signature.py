"""The entries of the function table: a name, its overloads, and examples with PostgreSQL's answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, TypeAlias

from halfjoin.sql.expr import Expr
from halfjoin.sql.types import Kind, SqlType, array

ANY = "any"  # a parameter of any type; all ANY arguments of a call get one common type
ANY_ARRAY = "any[]"  # an array whose elements have the common type of ANY

NumericResult: TypeAlias = Callable[[Sequence[Expr]], SqlType]
Resolve: TypeAlias = Callable[[str, Sequence[Expr]], Expr]
Evaluator: TypeAlias = Literal["arrow", "arrow, duckdb"]
Special: TypeAlias = Callable[[Resolve, Sequence[Expr]], Expr]


@dataclass(frozen=True, slots=True)
class Overload:
    """The types of one variant. `variadic`: the last parameter may repeat; `fallible`: some values may fail."""

    params: tuple[str, ...]
    result: str
    variadic: bool = False
    fallible: bool = False

    def takes(self, count: int) -> bool:
        """Whether the overload accepts `count` arguments."""
        return count >= len(self.params) if self.variadic else count == len(self.params)

    def param(self, position: int) -> str:
        """The parameter type at a position, counted from 0."""
        return self.params[min(position, len(self.params) - 1)]


@dataclass(frozen=True, slots=True)
class Example:
    """SQL text and PostgreSQL's answer as text (None for NULL, `ERROR: ...` for a failure)."""

    sql: str
    answer: str | None


@dataclass(frozen=True, slots=True)
class Function:
    """One entry of the function table.

    `numeric` computes precision and scale if an overload's result is `numeric`.
    `special` replaces overload resolution for forms whose types follow other rules (CASE, IN, ...).
    `safe` recognizes calls of a fallible overload that cannot fail, such as division by a constant.
    `evaluator`: Arrow alone, or Arrow and, for arrays or for columns where a constant is usual, DuckDB.
    `check` refuses arguments that are wrong for every row, such as a malformed pattern.
    `blanks`: the padding of a char(n) counts in the first argument; other functions ignore it.
    """

    name: str
    category: str
    doc: str
    overloads: tuple[Overload, ...]
    examples: tuple[Example, ...] = ()
    evaluator: Evaluator = "arrow"
    numeric: NumericResult | None = None
    special: Special | None = None
    safe: Callable[[Sequence[Expr]], bool] | None = None
    check: Callable[[Sequence[Expr]], None] | None = None
    blanks: bool = False


def function(
    name: str,
    category: str,
    doc: str,
    *signatures: str,
    examples: Sequence[tuple[str, str | None]] = (),
    evaluator: Evaluator = "arrow",
    numeric: NumericResult | None = None,
    special: Special | None = None,
    safe: Callable[[Sequence[Expr]], bool] | None = None,
    check: Callable[[Sequence[Expr]], None] | None = None,
    blanks: bool = False,
) -> Function:
    """Build an entry from signatures such as `"text, integer... -> text or error"`."""
    overloads = tuple(parse_signature(text) for text in signatures)
    shown = tuple(Example(sql, answer) for sql, answer in examples)
    return Function(name, category, doc, overloads, shown, evaluator, numeric, special, safe, check, blanks)


def parse_signature(text: str) -> Overload:
    """Parse `a, b... -> c or error` to an Overload."""
    left, right = text.split("->")
    result, fails, _ = right.partition(" or error")
    params = [part.strip() for part in left.split(",") if part.strip()]
    variadic = bool(params) and params[-1].endswith("...")
    if variadic:
        params[-1] = params[-1].removesuffix("...")
    return Overload(tuple(params), result.strip(), variadic, bool(fails))


@cache
def type_named(name: str) -> SqlType:
    """The type for a name in a signature; numerics have no precision and scale."""
    if name.endswith("[]"):
        return array(type_named(name.removesuffix("[]")))
    return SqlType(Kind(name))
