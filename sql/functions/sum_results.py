"""Internal functions: from the sums that are kept for a group to the value of an aggregate. No SQL can call them.

The first argument is the count of values; the result is NULL if it is 0. Then come the kept sums (`decompose`), and for
exact numbers the digits of the values before the point and after it.
"""

from __future__ import annotations

from collections.abc import Sequence

from halfjoin.sql.expr import Expr, Literal
from halfjoin.sql.functions.signature import Function, function

INTERNAL = "sums"  # the category of functions that only `decompose` calls
_BIGINT_DIGITS = 19


def _fits(args: Sequence[Expr]) -> bool:
    """Whether the sum of 2^63 such values has at most 38 digits, as it has for values of 19 digits."""
    known = [arg.value for arg in args[2:] if isinstance(arg, Literal) and isinstance(arg.value, int)]
    return len(known) == 2 and sum(known) <= _BIGINT_DIGITS


def _of_sums(names: Sequence[str], family: str, sums: int, doc: str) -> list[Function]:
    """Functions of a count, so many sums, and for integers the digits of the values."""
    exact = family == "integers"
    params = ", ".join(["bigint", *["bytea"] * sums, *["integer"] * (2 * exact)])
    result = "numeric" if exact else "double precision"
    return [function(f"{name} of {family}", INTERNAL, doc, f"{params} -> {result} or error") for name in names]


SUM_RESULTS: tuple[Function, ...] = (
    function("next round", INTERNAL, "The round after; it is far from the end of bigint", "bigint -> bigint"),
    function("sum of integers", INTERNAL, "Sum as bigint, or as numeric", "bigint, bytea -> bigint or error",
             "bigint, bytea, integer, integer -> numeric or error", safe=_fits),
    function("sum of floats", INTERNAL, "Sum, rounded once", "bigint, bytea -> double precision or error"),
    *(function(f"{name} of intervals", INTERNAL, "Sum, or sum divided by count", "bigint, bytea -> interval or error")
      for name in ("sum", "avg")),
    *_of_sums(["avg"], "integers", 1, "Sum divided by count"),
    *_of_sums(["avg"], "floats", 1, "Sum divided by count"),
    *(entry for family in ("integers", "floats")
      for entry in _of_sums(["var_pop", "var_samp", "stddev_pop", "stddev_samp"], family, 2,
                            "From the sums of values and of squares")),
    *_of_sums(["regr_sxx"], "pairs", 2, "From the sums of values and of squares"),
    *_of_sums(["covar_pop", "covar_samp", "regr_sxy"], "pairs", 3, "From the sums of x, y and x * y"),
    *_of_sums(["regr_slope", "regr_intercept"], "pairs", 4, "From the sums of x, y, x * x and x * y"),
    *_of_sums(["corr", "regr_r2"], "pairs", 5, "From the sums of x, y, x * x, y * y and x * y"),
    *(function(f"{name} of bits", INTERNAL, "From the counts of each bit", "bigint, bytea -> bigint")
      for name in ("bit_and", "bit_or", "bit_xor")),
)  # fmt: skip
