"""Attach each table function to the inputs whose columns its arguments read."""

from __future__ import annotations

from dataclasses import replace

from halfjoin.planner.block import Aliases, Block, Blocks, Function, inputs_of
from halfjoin.planner.plan import InputKind
from halfjoin.sql.expr import Call, columns_of


def attach_functions(blocks: Blocks) -> Blocks:
    """The same blocks with the inputs of every table function set.

    A function of constants runs on the plain input that an equality compares it with. Without such an equality it runs
    on the complete row, because it only multiplies rows.
    """
    return tuple(_attached(block) for block in blocks)


def _attached(block: Block) -> Block:
    functions: list[Function] = []
    plain = frozenset(item.alias for item in block.inputs if item.kind is InputKind.PLAIN)  # the complete row
    for function in block.functions:
        owners = replace(block, functions=tuple(functions)).owners
        inputs = frozenset[str]().union(*(inputs_of(arg, owners) for arg in function.step.args))
        functions.append(replace(function, inputs=inputs or _partner(block, function) or plain))
    return replace(block, functions=tuple(functions))


def _partner(block: Block, function: Function) -> Aliases:
    """The plain input that an equality compares the function's columns with; the first by name, if there are several.
    """
    made = {column.name for column in function.columns}
    plain = [item for item in block.inputs if item.kind is InputKind.PLAIN]
    bases = {column.name: item.alias for item in plain for column in item.columns}
    partners = set()
    for predicate in block.predicates:
        if isinstance(predicate, Call) and predicate.function == "=" and columns_of(predicate) & made:
            partners |= {bases[name] for name in columns_of(predicate) if name in bases}
    return frozenset(sorted(partners)[:1])
