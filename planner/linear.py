"""Linear operators as data: a fused list of steps over named columns. The engine executes them.

Linear law. An operator is its logic `row -> {(row2, time2, diff2)}`; an update `(row, time, diff)` yields
`(row2, max(time, time2), diff * diff2)` for each. Filters, computed columns and projections have `time2` = the minimum
and `diff2 = 1`; a table function gives several rows, each with its own weight and time; a temporal filter gives the
times at which its formula turns true (+1) and false (-1). Two operators in a row are one.

A table function that makes `x` copies of `2x`, which are there from time `3x` until `4x`:

>>> def logic(x):
...     return [(2 * x, 3 * x, x), (2 * x, 4 * x, -x)]
>>> def linear(row, time, diff):
...     return [(row2, max(time, time2), diff * diff2) for row2, time2, diff2 in logic(row)]
>>> linear(5, 0, 1)
[(10, 15, 5), (10, 20, -5)]
>>> linear(5, 17, -1)  # the row goes at 17: so do the five copies, which would have gone at 20
[(10, 17, -5), (10, 20, 5)]

Wrong ways. With `time2` as the time, the deletion at 17 would take the copies away from time 15 on, which is closed
and has been read. With `time` as the time, they would be there before 15. With `diff2` as the diff, a row that comes
twice would give five copies, and a deletion would add five.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from halfjoin.sql.expr import Call, Column, Expr
from halfjoin.sql.relation import LockstepCall, call_of


@dataclass(frozen=True, slots=True)
class Filter:
    """Keep the rows for which every predicate is true; infallible ones come first and spare the others."""

    predicates: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Extend:
    """Add computed columns. All of them are computed from the columns before the step.

    `members`: the columns are members of equalities and have no name that a user gave. EXPLAIN shows their expressions.
    """

    items: tuple[tuple[Column, Expr], ...]
    members: bool = False


@dataclass(frozen=True, slots=True)
class Keep:
    """Keep only these columns, in this order."""

    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Explode:
    """Pair each row with each row that a table function gives for `args` (as `sql.relation.TableFunction`)."""

    function: str
    alias: str
    args: tuple[Expr, ...]
    outputs: tuple[Column, ...]
    ordinality: Column | None = None
    calls: tuple[LockstepCall, ...] = ()

    @property
    def functions(self) -> tuple[str, ...]:
        """The functions that it calls."""
        return tuple(call.function for call in self.calls) or (self.function,)

    @property
    def call(self) -> Call:
        """The call as an expression, to show it."""
        return call_of(self.function, self.args, self.calls)


@dataclass(frozen=True, slots=True)
class Atom:
    """`mz_now() op bound`. The bound has an integer, numeric, date or timestamp type (dates as ms since 1970)."""

    op: Literal["=", "<>", "<", "<=", ">", ">="]
    bound: Expr


@dataclass(frozen=True, slots=True)
class Static:
    """A boolean expression that does not depend on the time of the read."""

    expr: Expr


@dataclass(frozen=True, slots=True)
class Combination:
    """AND, OR (of one or more) or NOT (of one) of temporal formulas, in three-valued logic."""

    op: Literal["and", "or", "not"]
    args: tuple[Formula, ...]


Formula: TypeAlias = Atom | Static | Combination


@dataclass(frozen=True, slots=True)
class Temporal:
    """A temporal filter: the row is in at the times `t` for which the formula with `mz_now() = t` is true."""

    formula: Formula


Step: TypeAlias = Filter | Extend | Keep | Explode | Temporal


@dataclass(frozen=True, slots=True)
class Reports:
    """What tells failing rows apart: the branch of the view, and those columns of the row that the view reads.

    These are the same on every path and in every plan of the view, so an error goes when its row goes. A column that is
    missing where a row fails is missing for all rows that fail there.
    """

    branch: int
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Linear:
    """A fused linear operator.

    `reports`: rows for which an expression fails become updates of the view's error collection. None: they are dropped
    silently, because another path or stage reports them (see `planner.fallibility`).
    """

    steps: tuple[Step, ...] = ()
    reports: Reports | None = None
