"""The functions of groups that a reduce computes: aggregates, windows, top-k, the user's own. They read columns of its
input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from halfjoin.planner.reach import Reach, reach_from_end, reach_of_all
from halfjoin.sql.expr import Column, Expr
from halfjoin.sql.relation import Frame, SortKey, WindowCall


@dataclass(frozen=True, slots=True)
class Sums:
    """What adds up: one number, or a few, for each group. `kind` is one of `sql.functions.aggregates.SUMS`.

    `args` are columns of the input. A row in which one of them is NULL adds nothing.
    """

    kept: ClassVar[bool] = False

    column: Column  # of the node's output; a bigint for a count, otherwise bytes
    kind: str
    args: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class KeptSums(Sums):
    """A sum whose only argument is such a sum of another reduce, of a query (`planner.reduces.key_first`)."""

    kept: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class Ordered:
    """A function of all rows of a group, one value for each group: min, max, array_agg, DISTINCT, the user's own.

    `args` are columns of the input, or constants; `order` has columns. `condition`: a boolean column; only rows where
    it is true count.
    """

    column: Column  # of the node's output
    function: str
    args: tuple[Expr, ...]
    distinct: bool = False
    order: tuple[SortKey, ...] = ()
    condition: Column | None = None


@dataclass(frozen=True, slots=True)
class Aggregates:
    """One output row for each group: the keys, the number of its rows, and the parts."""

    count: Column  # of the node's output; a bigint
    sums: tuple[Sums, ...] = ()
    ordered: tuple[Ordered, ...] = ()


@dataclass(frozen=True, slots=True)
class Running:
    """What adds up over a frame from the first row of a group, or to its last row."""

    sums: Sums
    frame: Frame


@dataclass(frozen=True, slots=True)
class Windows:
    """The rows of each group with the results of window functions, as in `sql.relation.Window`.

    `order`, the calls and the sums read columns of the input. If the window has a reach, it keeps `running` sums in
    place of the calls that they give results of, and all calls and sums that results continue from.
    """

    order: tuple[SortKey, ...]
    calls: tuple[tuple[Column, WindowCall], ...]
    running: tuple[Running, ...] = ()

    @property
    def reach(self) -> Reach | None:
        """How far a changed row reaches; None if all rows of a group must be looked up."""
        found = [reach_of_all((call for _, call in self.calls), ordered=bool(self.order)),
                 *(reach_from_end(sum.frame) for sum in self.running)]  # fmt: skip
        known = [one for one in found if one is not None]
        return Reach.all(known) if len(known) == len(found) else None

    @property
    def results(self) -> tuple[Column, ...]:
        """The columns of the output that follow the input's."""
        return (*(one.sums.column for one in self.running), *(column for column, _ in self.calls))

    def sums_over(self, kind: str, args: tuple[Column, ...], frame: Frame) -> Column | None:
        """The column of the sums over a frame, if they are kept."""
        wanted = kind, args, frame
        return next((one.sums.column for one in self.running
                     if (one.sums.kind, one.sums.args, one.frame) == wanted), None)  # fmt: skip

    def kept(self, call: WindowCall) -> Column:
        """The column of a call that is kept."""
        return next(column for column, one in self.calls if one == call)


@dataclass(frozen=True, slots=True)
class Top:
    """The first rows of each group in an order, as in `sql.relation.TopK`."""

    order: tuple[SortKey, ...]
    limit: int | None
    offset: int = 0
    with_ties: bool = False


@dataclass(frozen=True, slots=True)
class Own:
    """The rows that the user's reduce makes of each group, beside the group's keys, as in `sql.relation.UserReduce`.

    `takes`: columns of the input by their names for the function. `outputs`: columns of the node's output by the names
    that the function returns them under.
    """

    function: str
    takes: tuple[tuple[str, Column], ...]
    order: tuple[SortKey, ...]
    outputs: tuple[tuple[str, Column], ...]


OfGroups: TypeAlias = Aggregates | Windows | Top | Own
