"""The functions of groups that a reduce computes: aggregates, windows, top-k, the user's own. They read columns of its
input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from halfjoin.planner.reach import Reach, reach_of_all
from halfjoin.sql.expr import Column, Expr
from halfjoin.sql.relation import SortKey, WindowCall


@dataclass(frozen=True, slots=True)
class Sums:
    """What adds up: one number, or a few, for each group. `kind` is one of `sql.functions.aggregates.SUMS`.

    `args` are columns of the input. A row in which one of them is NULL adds nothing.
    """

    column: Column  # of the node's output; a bigint for a count, otherwise bytes
    kind: str
    args: tuple[Column, ...]


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
    """What adds up over the rows of a group from the first one to a row; with `peers`, to the last of its peers."""

    sums: Sums
    peers: bool


@dataclass(frozen=True, slots=True)
class Windows:
    """The rows of each group with the results of window functions, as in `sql.relation.Window`.

    `order`, the calls and the sums read columns of the input. If the window has a reach, it keeps `running` sums in
    place of the calls that they give results of; the first is the row's number if that is asked for.
    """

    order: tuple[SortKey, ...]
    calls: tuple[tuple[Column, WindowCall], ...]
    running: tuple[Running, ...] = ()

    @property
    def reach(self) -> Reach | None:
        """How far a changed row reaches; None if all rows of a group must be looked up."""
        rest = reach_of_all((call for _, call in self.calls), ordered=bool(self.order))
        sums = (Reach(peers=sum.peers, running=True) for sum in self.running)
        return None if rest is None else Reach.all([rest, *sums])

    @property
    def results(self) -> tuple[Column, ...]:
        """The columns of the output that follow the input's."""
        return (*(one.sums.column for one in self.running), *(column for column, _ in self.calls))

    @property
    def number(self) -> Column | None:
        """The column of the row's number in its group, if it is kept."""
        match self.running:
            case (Running(Sums(column, "count", ()), False), *_):
                return column
        return None


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
