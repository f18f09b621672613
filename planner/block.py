"""The normal form of a view: a sum of blocks. A block is one join, its conditions, and the columns computed from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, TypeAlias

from halfjoin.planner.linear import Atom, Combination, Explode, Formula, Static
from halfjoin.planner.plan import InputKind
from halfjoin.sql.expr import Column, Expr, Literal, columns_of
from halfjoin.sql.functions import fallible

Row: TypeAlias = tuple[Expr, ...]
Aliases: TypeAlias = frozenset[str]


@dataclass(frozen=True, slots=True)
class Match:
    """A part of the key of an input that is not plain: `key` over its columns equals `probe` over other inputs'
    columns.

    `null_safe`: IS NOT DISTINCT FROM, so NULL matches NULL.
    """

    key: Expr
    probe: Expr
    null_safe: bool = False


@dataclass(frozen=True, slots=True)
class Input:
    """One input of a join: a collection under an alias. Its columns are named `alias.column`.

    `rows`: the rows of a constant; None for a table or materialized view. `made`: the table function of constants whose
    rows they are, where one row without columns is given. An input that is not plain is looked up by
    all of `on`, once the other inputs that `on` reads are bound. Its rows count only if the `conditions` over its own
    columns are true. Of the inputs that are not plain, only a padded one has columns that others can read. The join's
    predicates test its row or its `default` row, so no predicate becomes a condition or an equality.
    """

    alias: str
    collection: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...] | None = None
    kind: InputKind = InputKind.PLAIN
    on: tuple[Match, ...] = ()
    conditions: tuple[Expr, ...] = ()
    default: tuple[Literal, ...] = ()  # one for each column; empty means all NULL
    made: Explode | None = None

    @property
    def default_row(self) -> Mapping[str, Literal]:
        """The value of each column of a padded input in a row whose key is not there."""
        row = self.default or tuple(Literal(None, column.type) for column in self.columns)
        return {column.name: value for column, value in zip(self.columns, row, strict=True)}

    @property
    def constant(self) -> str | None:
        """The alias of constant rows; None for a table or materialized view."""
        return None if self.rows is None else self.alias

    def bare(self, name: str) -> str:
        """The name of the column `alias.column` in the collection."""
        return name[len(self.alias) + 1 :]


@dataclass(frozen=True, slots=True)
class Function:
    """A table function of the join. It runs on the rows of `inputs`."""

    step: Explode
    inputs: Aliases = frozenset()

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns that it adds."""
        return self.step.outputs + ((self.step.ordinality,) if self.step.ordinality else ())


@dataclass(frozen=True, slots=True)
class Equality:
    """Expressions that are all equal and not NULL. `null_safe`: two that are not distinct, so NULL equals NULL."""

    members: tuple[Expr, ...]
    null_safe: bool = False


@dataclass(frozen=True, slots=True)
class Known:
    """An expression with the properties that every step of every path needs, computed once."""

    expr: Expr
    columns: frozenset[str]
    inputs: Aliases
    fallible: bool


@dataclass(frozen=True)
class Block:
    """One join. Each combination of its inputs' rows that satisfies every condition makes a row, the `outputs`."""

    inputs: tuple[Input, ...]
    functions: tuple[Function, ...]
    predicates: tuple[Expr, ...]
    outputs: tuple[tuple[Column, Expr], ...]
    temporal: tuple[Formula, ...] = ()
    equalities: tuple[Equality, ...] = ()
    dares: ClassVar[bool] = False  # whether what may fail of several inputs finds a further one, as what is safe does

    @property
    def aliases(self) -> Aliases:
        """The aliases of all inputs."""
        return frozenset(item.alias for item in self.inputs)

    @cached_property
    def owners(self) -> Mapping[str, Aliases]:
        """For each column, the inputs that it is computed from."""
        owners = {column.name: frozenset({item.alias}) for item in self.inputs for column in item.columns}
        owners.update((column.name, function.inputs) for function in self.functions for column in function.columns)
        return owners

    @cached_property
    def conditions(self) -> tuple[Known, ...]:
        """The predicates."""
        return tuple(map(self._known, self.predicates))

    @cached_property
    def classes(self) -> tuple[tuple[Known, ...], ...]:
        """The members of each equality."""
        return tuple(tuple(map(self._known, equality.members)) for equality in self.equalities)

    @cached_property
    def probes(self) -> Mapping[str, tuple[Known, ...]]:
        """The probes of each input; a plain one has none."""
        return {item.alias: tuple(self._known(match.probe) for match in item.on) for item in self.inputs}

    @cached_property
    def early(self) -> Mapping[Column, Expr]:
        """The outputs that a path computes as soon as it can: they are no bare columns, and cannot fail."""
        return {
            column: expr for column, expr in self.outputs
            if not isinstance(expr, Column) and columns_of(expr) and not fallible(expr) and "." not in column.name
        }  # fmt: skip

    def _known(self, expr: Expr) -> Known:
        return Known(expr, columns_of(expr), inputs_of(expr, self.owners), fallible(expr))


@dataclass(frozen=True)
class Daring(Block):
    """A query's block, whose query is asked again if something fails for rows that are not complete."""

    dares: ClassVar[bool] = True


Blocks: TypeAlias = tuple[Block, ...]


def inputs_of(expr: Expr, owners: Mapping[str, Aliases]) -> Aliases:
    """The inputs that an expression reads."""
    return frozenset[str]().union(*(owners[name] for name in columns_of(expr)))


def expressions(formula: Formula) -> Iterator[Expr]:
    """The scalar expressions in a temporal formula."""
    match formula:
        case Atom(bound=expr) | Static(expr=expr):
            yield expr
        case Combination(args=args):
            for arg in args:
                yield from expressions(arg)
