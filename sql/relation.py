"""Bound relations: what a view means, independent of how the engine computes it.

Every relation lists its `columns`. A column's name is unique in the whole view (`alias.column`; the binder makes the
alias unique), so operators refer to columns by name and the planner can move them without renumbering.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from operator import is_not
from typing import Literal, TypeAlias

from halfjoin.sql.expr import Call, Column, Expr
from halfjoin.sql.types import BIGINT, SqlType


@dataclass(frozen=True, slots=True)
class Scan:
    """All rows of a table or materialized view. Column `alias.c` is the collection's column `c`."""

    collection: str
    alias: str
    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Values:
    """Constant rows. A SELECT without FROM reads one row without columns."""

    alias: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Expr, ...], ...]


@dataclass(frozen=True, slots=True)
class Join:
    """Every combination of the inputs' rows; join conditions are filters above it."""

    inputs: tuple[Relation, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        """The inputs' columns, in order."""
        return tuple(column for item in self.inputs for column in item.columns)


ROWS_FROM = "ROWS FROM"  # the function that calls several in lockstep


@dataclass(frozen=True, slots=True)
class LockstepCall:
    """One of the calls of ROWS FROM: its function, and how many of all arguments and outputs are its own."""

    function: str
    args: int
    outputs: int


@dataclass(frozen=True, slots=True)
class TableFunction:
    """Each input row, combined with every row that `function` returns for it; `args` read the input's columns.

    `calls`: of ROWS FROM. They run in lockstep: the n-th rows of all calls are one row, and a call that has no n-th row
    gives NULLs. `args` and `outputs` are those of all calls, in order.
    """

    input: Relation
    function: str
    alias: str
    args: tuple[Expr, ...]
    outputs: tuple[Column, ...]  # the function's columns; empty for repeat_row
    ordinality: Column | None = None  # bigint, 1 for the first row of each call
    calls: tuple[LockstepCall, ...] = ()

    @property
    def columns(self) -> tuple[Column, ...]:
        """The input's columns, the function's columns, then the ordinality."""
        return self.input.columns + self.outputs + ((self.ordinality,) if self.ordinality else ())


@dataclass(frozen=True, slots=True)
class Filter:
    """The rows for which the predicate is true; the predicate may contain mz_now()."""

    input: Relation
    predicate: Expr

    @property
    def columns(self) -> tuple[Column, ...]:
        """The input's columns."""
        return self.input.columns


@dataclass(frozen=True, slots=True)
class Project:
    """One output row for each input row, computed by expressions."""

    input: Relation
    items: tuple[tuple[Column, Expr], ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns that name the results."""
        return tuple(column for column, _ in self.items)


@dataclass(frozen=True, slots=True)
class UnionAll:
    """The rows of all inputs, with columns matched by position; the inputs have exactly the types of `columns`."""

    inputs: tuple[Relation, ...]
    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class SortKey:
    """One key of an order. NULLs come last unless `nulls_first`; PostgreSQL's default is first if descending."""

    expr: Expr
    descending: bool = False
    nulls_first: bool = False


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """A call of an aggregate over the rows of a group, with the type of its result.

    `condition`: only rows for which it is true count (FILTER). `order`: the order of the rows that the call sees (ORDER
    BY in the call, or WITHIN GROUP). `distinct`: equal arguments count once. `sums`: what the lift of a user's
    aggregate gives for each row (`sql.user_aggregate`).
    """

    function: str
    args: tuple[Expr, ...]
    type: SqlType
    distinct: bool = False
    condition: Expr | None = None
    order: tuple[SortKey, ...] = ()
    sums: tuple[tuple[str, SqlType], ...] = ()


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One row for each group of rows with equal keys (NULL equals NULL). Without keys there is exactly one group, even
    if there are no rows. Without calls it removes duplicates."""

    input: Relation
    keys: tuple[tuple[Column, Expr], ...]
    calls: tuple[tuple[Column, AggregateCall], ...] = ()

    @property
    def columns(self) -> tuple[Column, ...]:
        """The keys' columns, then the calls'."""
        return tuple(column for column, _ in self.keys) + tuple(column for column, _ in self.calls)


@dataclass(frozen=True, slots=True)
class Bound:
    """One end of a window's frame. `offset`: of PRECEDING or FOLLOWING, a constant; None: UNBOUNDED."""

    kind: Literal["preceding", "current row", "following"]
    offset: Expr | None = None


@dataclass(frozen=True, slots=True)
class Frame:
    """The rows around the current one that a window function sees. `exclude`: those of them it does not see."""

    unit: Literal["rows", "range", "groups"] = "range"
    start: Bound = Bound("preceding")
    end: Bound = Bound("current row")
    exclude: Literal["no others", "current row", "group", "ties"] = "no others"


@dataclass(frozen=True, slots=True)
class WindowCall:
    """A call of a window function or an aggregate over a frame, with the type of its result."""

    function: str
    args: tuple[Expr, ...]
    type: SqlType
    frame: Frame = Frame()
    condition: Expr | None = None
    ignore_nulls: bool = False


@dataclass(frozen=True, slots=True)
class Window:
    """Each input row with the results of window functions, computed over its partition in an order. Rows that tie are
    ordered by all their columns, so there is one answer."""

    input: Relation
    partition: tuple[Expr, ...]
    order: tuple[SortKey, ...]
    calls: tuple[tuple[Column, WindowCall], ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        """The input's columns, then the calls'."""
        return self.input.columns + tuple(column for column, _ in self.calls)


@dataclass(frozen=True, slots=True)
class TopK:
    """The first rows of each partition in an order, after `offset` rows; `limit` None: all that follow. Rows that tie
    are ordered by all their columns. `with_ties`: also the rows that tie with the last one."""

    input: Relation
    partition: tuple[Expr, ...]
    order: tuple[SortKey, ...]
    limit: int | None
    offset: int = 0
    with_ties: bool = False

    @property
    def columns(self) -> tuple[Column, ...]:
        """The input's columns."""
        return self.input.columns


@dataclass(frozen=True, slots=True)
class UserReduce:
    """The rows that the user's reduce `function` makes of each group of rows with equal keys (NULL equals NULL), beside
    the group's keys. Without keys all rows are one group. A group without rows is not there.

    `takes`: the columns that the function sees, by the names that they have for it. It sees the rows in the `order`;
    rows that tie are ordered by all these columns. `outputs`: the columns that it promises to return, and what they are
    called here.
    """

    input: Relation
    function: str
    keys: tuple[tuple[Column, Expr], ...]
    takes: tuple[tuple[str, Expr], ...]
    order: tuple[SortKey, ...]
    outputs: tuple[tuple[str, Column], ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        """The keys' columns, then the function's."""
        return tuple(column for column, _ in self.keys) + tuple(column for _, column in self.outputs)


@dataclass(frozen=True, slots=True)
class Outer:
    """LEFT JOIN (RIGHT is turned round), or FULL: the pairs for which `on` is true; each left row without a partner,
    with NULLs for the right columns; if `full`, each right row without a partner, too."""

    left: Relation
    right: Relation
    on: Expr
    full: bool = False

    @property
    def columns(self) -> tuple[Column, ...]:
        """Both sides' columns; those of a side that may be missing are nullable."""
        left = tuple(replace(c, nullable=True) for c in self.left.columns) if self.full else self.left.columns
        return left + tuple(replace(column, nullable=True) for column in self.right.columns)


@dataclass(frozen=True, slots=True)
class Semi:
    """The input's rows for which some row of `other` makes `on` true; if `anti`, those for which none does."""

    input: Relation
    other: Relation
    on: Expr
    anti: bool = False

    @property
    def columns(self) -> tuple[Column, ...]:
        """The input's columns."""
        return self.input.columns


@dataclass(frozen=True, slots=True)
class Fed:
    """Inside a loop, the rows of a binding: those of this round, or if `before`, those of the round before."""

    loop: str
    number: int  # which of the loop's bindings
    before: bool
    alias: str
    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Once:
    """Inside a loop, the input's rows in the first round only. The input reads no binding of that loop."""

    input: Relation

    @property
    def columns(self) -> tuple[Column, ...]:
        """The input's columns."""
        return self.input.columns


@dataclass(frozen=True, slots=True)
class Binding:
    """A name that a loop defines. In each round its rows are those of `relation`. `names`: of its columns, for people.
    """

    name: str
    names: tuple[str, ...]
    relation: Relation


@dataclass(frozen=True, slots=True)
class Loop:
    """The rows of a binding after the last round of a loop.

    The bindings begin empty, and are updated in sequence, round after round, until no round changes anything. They read
    each other by `Fed`. `limit`: at most so many rounds; a loop that would go on is an error if `strict`. A column
    more than the binding has is the round of each change: what goes in a later round has a negative count.
    """

    name: str  # unique in the view
    bindings: tuple[Binding, ...]
    limit: int
    strict: bool
    number: int  # which of the bindings
    columns: tuple[Column, ...]


READS_ITSELF = " of WITH RECURSIVE"  # ends the name of a loop that only adds rows

Relation: TypeAlias = (
    Scan | Values | Join | TableFunction | Filter | Project | UnionAll | Aggregate | Window | TopK | UserReduce | Outer
    | Semi | Fed | Loop | Once
)  # fmt: skip
Reduced: TypeAlias = Aggregate | Window | TopK | UserReduce  # functions of groups


def call_of(function: str, args: tuple[Expr, ...], calls: tuple[LockstepCall, ...]) -> Call:
    """The call of a table function as an expression, to show it: `ROWS FROM(unnest(t.a), unnest(t.b))`."""
    if not calls:
        return Call(function, args, BIGINT)
    shown, start = [], 0
    for one in calls:
        shown.append(Call(one.function, args[start : start + one.args], BIGINT))
        start += one.args
    return Call(function, tuple(shown), BIGINT)


def inputs_below(relation: Relation) -> tuple[Relation, ...]:
    """The relations that it reads directly."""
    match relation:
        case Scan() | Values() | Fed() | Loop():
            return ()
        case Join(inputs) | UnionAll(inputs):
            return inputs
        case Outer(left, right):
            return (left, right)
        case Semi(input, other):
            return (input, other)
        case _:
            return (relation.input,)


def every_part(relation: Relation) -> Iterator[Relation]:
    """The relation and all below it, the upper ones first."""
    yield relation
    for below in inputs_below(relation):
        yield from every_part(below)


def parts_inside(relation: Relation) -> Iterator[Relation]:
    """As `every_part`, with the parts of the loops in it."""
    for part in every_part(relation):
        yield part
        for binding in part.bindings if isinstance(part, Loop) else ():
            yield from parts_inside(binding.relation)


def fed_by(relation: Relation, loop: str) -> bool:
    """Whether a relation, or a loop in it, reads a loop's bindings."""
    return any(isinstance(part, Fed) and part.loop == loop for part in parts_inside(relation))


def with_inputs(relation: Relation, change: Callable[[Relation], Relation]) -> Relation:
    """The relation over changed inputs, which must have the same columns; itself if none changes."""
    before = inputs_below(relation)
    now = tuple(map(change, before))
    if not any(map(is_not, now, before)):
        return relation
    match relation:
        case Scan() | Values() | Fed() | Loop():
            return relation
        case Join():
            return Join(now)
        case UnionAll():
            return replace(relation, inputs=now)
        case Outer():
            return replace(relation, left=now[0], right=now[1])
        case Semi():
            return replace(relation, input=now[0], other=now[1])
        case _:
            return replace(relation, input=now[0])
