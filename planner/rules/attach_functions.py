"""Attach each table function to the inputs whose columns its arguments read."""

from __future__ import annotations

from dataclasses import replace

from halfjoin.planner.block import Aliases, Block, Blocks, Function, Input, inputs_of
from halfjoin.planner.fallibility import explode_fallible
from halfjoin.planner.plan import InputKind
from halfjoin.sql.expr import Call, columns_of
from halfjoin.sql.functions import fallible


def attach_functions(blocks: Blocks) -> Blocks:
    """The same blocks with the inputs of every table function set.

    A function of constants that an equality compares with a plain input is an input of its own: one row without
    columns, on which it runs. So its rows are looked up, or look others up, as the rows of VALUES. Where something that
    reads the two may fail, it runs on the input that it is compared with, since one row is the error then. Without such
    an equality it runs on the complete row, because it only multiplies rows.
    """
    return tuple(_apart(_attached(block)) for block in blocks)


def _attached(block: Block) -> Block:
    functions: list[Function] = []
    plain = frozenset(item.alias for item in block.inputs if item.kind is InputKind.PLAIN)  # the complete row
    for function in block.functions:
        owners = replace(block, functions=tuple(functions)).owners
        inputs = frozenset[str]().union(*(inputs_of(arg, owners) for arg in function.step.args))
        functions.append(replace(function, inputs=inputs or _partner(block, function) or plain))
    return replace(block, functions=tuple(functions))


def _apart(block: Block) -> Block:
    """The block with inputs for the functions of constants that are compared with a plain one."""
    risky = _risky(block) if block.functions else frozenset()
    inputs, functions = list(block.inputs), list[Function]()
    for function in block.functions:
        constant = not any(map(columns_of, function.step.args))
        if constant and function.inputs == _partner(block, function) and not function.inputs & risky:
            alias = f"{function.step.alias}#row"  # no alias of a relation
            inputs.append(Input(alias, f"={alias}", (), ((),)))
            function = replace(function, inputs=frozenset({alias}))
        functions.append(function)
    return block if len(inputs) == len(block.inputs) else replace(
        block, inputs=tuple(inputs), functions=tuple(functions))  # fmt: skip


def _risky(block: Block) -> Aliases:
    """The inputs that something reads which may fail before rows are complete."""
    probes = (match.probe for item in block.inputs for match in item.on)
    risky = [inputs_of(expr, block.owners) for expr in (*block.predicates, *probes) if fallible(expr)]
    risky += [function.inputs for function in block.functions if explode_fallible(function.step)]
    return frozenset[str]().union(*risky)


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
