"""Chooses the columns that tell failing rows of a join apart: columns that the view reads, the same on every path and
in every plan."""

from __future__ import annotations

from halfjoin.planner.block import Block, Input, expressions
from halfjoin.sql.expr import Column, columns_of


def of_complete_rows(block: Block) -> frozenset[str]:
    """The columns for what fails on complete rows. Of columns that are equal, one is enough."""
    read = _read(block)
    for known in block.equalities:
        columns = {member.name for member in known.members if isinstance(member, Column)}
        if columns and not columns & read:
            read |= {min(columns)}
    return read


def of_input(block: Block, item: Input) -> frozenset[str]:
    """The columns for what fails on rows of one input alone."""
    members = [columns_of(member) for known in block.equalities for member in known.members]
    members += map(columns_of, (*item.conditions, *(match.key for match in item.on)))
    owners, alone = block.owners, frozenset({item.alias})
    return frozenset(name for name in _read(block).union(*members) if owners[name] == alone)


def _read(block: Block) -> frozenset[str]:
    """All columns that the view reads, without those that it only compares for equality; and the columns that table
    functions add."""
    exprs = [*block.predicates, *(expr for _, expr in block.outputs)]
    exprs += [expr for formula in block.temporal for expr in expressions(formula)]
    exprs += [match.probe for item in block.inputs for match in item.on]
    exprs += [arg for function in block.functions for arg in function.step.args]
    exprs += [member for known in block.equalities for member in known.members if not isinstance(member, Column)]
    made = (column.name for function in block.functions for column in function.columns)
    return frozenset(made).union(*map(columns_of, exprs))
