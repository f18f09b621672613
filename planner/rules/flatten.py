"""Flatten a relation into a sum of joins: inline projections, and distribute joins over UNION ALL."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import product

from halfjoin.errors import UnsupportedSQL
from halfjoin.planner.block import Block, Blocks, Function, Input
from halfjoin.planner.linear import Explode
from halfjoin.planner.plan import InputKind
from halfjoin.planner.rules.flatten_sides import with_padded, with_present
from halfjoin.planner.rules.inline import inlined
from halfjoin.sql.expr import Call, Column, Expr, Literal
from halfjoin.sql.functions import fallible
from halfjoin.sql.relation import Filter, Join, Outer, Project, Relation, Scan, Semi, TableFunction, UnionAll, Values
from halfjoin.sql.types import BOOLEAN, INTEGER

MOST_BRANCHES = 1024


def flatten(relation: Relation) -> Blocks:
    """The joins whose rows add up to the rows of the relation.

    Raises:
        UnsupportedSQL: joins over UNION ALL would multiply to more than `MOST_BRANCHES` joins.
    """
    return tuple(_with_plain(block) for block in _blocks(relation))


def _with_plain(block: Block) -> Block:
    """The block with a plain input, from which others can be looked up."""
    if any(item.kind is InputKind.PLAIN for item in block.inputs):
        return block
    return replace(block, inputs=(_ONE_ROW, *block.inputs))


_ONE_ROW = Input("row", "=row", (), ((),))


def _blocks(relation: Relation) -> Blocks:
    match relation:
        case Scan(collection, alias, columns):
            return (Block((Input(alias, collection, columns),), (), (), _identity(columns)),)
        case Values():
            return _values(relation)
        case Join(inputs):
            parts = [_blocks(item) for item in inputs]
            count = 1
            for part in parts:
                count *= len(part)
            _limit(count)
            return tuple(_joined(choice) for choice in product(*parts))
        case TableFunction():
            return tuple(_with_function(block, relation) for block in _blocks(relation.input))
        case Filter(input, predicate):
            return tuple(
                replace(block, predicates=(*block.predicates, inlined(predicate, _meanings(block))))
                for block in _blocks(input)
            )
        case Project(input, items):
            return tuple(
                replace(block, outputs=_inlined(items, _meanings(block)))
                for block in _blocks(input)
            )
        case UnionAll(inputs, columns):
            return tuple(_renamed(block, columns) for item in inputs for block in _blocks(item))
        case Outer(left):
            return tuple(made for block in _blocks(left) for made in with_padded(block, relation))
        case Semi(input):
            return tuple(made for block in _blocks(input) for made in with_present(block, relation))
        case _:
            raise ValueError(f"{type(relation).__name__} is not a part of a join")  # it is cut out


def _limit(count: int) -> None:
    if count > MOST_BRANCHES:
        raise UnsupportedSQL(
            f"joins over UNION ALL make {count} joins here; at most {MOST_BRANCHES} are allowed",
            remedy="make the UNION ALL a materialized view of its own, and join that",
        )


def _inlined(items: tuple[tuple[Column, Expr], ...], meanings: Mapping[str, Expr]) -> tuple[tuple[Column, Expr], ...]:
    return tuple((column, inlined(expr, meanings)) for column, expr in items)


def _identity(columns: tuple[Column, ...]) -> tuple[tuple[Column, Expr], ...]:
    return tuple((column, column) for column in columns)


def _meanings(block: Block) -> Mapping[str, Expr]:
    return {column.name: expr for column, expr in block.outputs}


def _renamed(block: Block, columns: tuple[Column, ...]) -> Block:
    outputs = zip(columns, (expr for _, expr in block.outputs), strict=True)
    return replace(block, outputs=tuple(outputs))


def _joined(blocks: Blocks) -> Block:
    return Block(
        tuple(item for block in blocks for item in block.inputs),
        tuple(function for block in blocks for function in block.functions),
        tuple(predicate for block in blocks for predicate in block.predicates),
        tuple(output for block in blocks for output in block.outputs),
    )


def _with_function(block: Block, call: TableFunction) -> Block:
    meanings = _meanings(block)
    args = tuple(inlined(arg, meanings) for arg in call.args)
    function = Function(Explode(call.function, call.alias, args, call.outputs, call.ordinality, call.calls))
    outputs = block.outputs + _identity(function.columns)
    return replace(block, functions=(*block.functions, function), outputs=outputs)


def _values(values: Values) -> Blocks:
    """One row becomes its literals; several rows become a constant input."""
    if not values.rows:
        return ()
    if len(values.rows) == 1:
        return (Block((), (), (), tuple(zip(values.columns, values.rows[0], strict=True))),)
    if not any(fallible(cell) for row in values.rows for cell in row):
        item = Input(values.alias, f"={values.alias}", values.columns, values.rows)
        return (Block((item,), (), (), _identity(values.columns)),)
    # A cell that may fail is computed where its value is used, so it fails like any other expression.
    number = Column(f"{values.alias}.row", INTEGER, nullable=False)
    numbers = tuple(Literal(i, INTEGER) for i in range(1, len(values.rows) + 1))
    item = Input(values.alias, f"={values.alias}", (number,), tuple((literal,) for literal in numbers))
    outputs = []
    for position, column in enumerate(values.columns):
        args: list[Expr] = []
        for literal, row in zip(numbers[:-1], values.rows, strict=False):
            args += [Call("=", (number, literal), BOOLEAN), row[position]]
        outputs.append((column, Call("case", (*args, values.rows[-1][position]), column.type)))
    return (Block((item,), (), (), tuple(outputs)),)
