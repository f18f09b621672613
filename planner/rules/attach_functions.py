"""Attach each table function to the inputs whose columns its arguments read."""

from __future__ import annotations

from dataclasses import replace

from halfjoin.planner.block import Aliases, Block, Blocks, Function, Input, inputs_of
from halfjoin.planner.fallibility import explode_fallible
from halfjoin.planner.plan import InputKind
from halfjoin.sql.expr import Call, Expr, columns_of
from halfjoin.sql.functions import fallible
from halfjoin.sql.functions.chance import draws


def attach_functions(blocks: Blocks) -> Blocks:
    """The same blocks with the inputs of every table function set.

    A function of constants that an equality compares with another input is an input of its own. So its rows are looked
    up, or look others up, as the rows of VALUES. Where it may fail, or something else that reads the two, it runs on
    the input that it is compared with, since only rows that are joined are errors then. Without such an equality it
    runs on the complete row, because it only multiplies rows.
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
    """The block with inputs for the functions of constants that are compared with another one."""
    inputs, functions = list(block.inputs), list[Function]()
    for function in block.functions:
        step = function.step
        constant = not any(map(columns_of, step.args))
        if not constant or not _is_asked(block, function) or function.inputs & _risky(block, function):
            functions.append(function)
        elif any(map(draws, step.args)):  # once, when the query is asked
            row = Input(f"{step.alias}#row", f"={step.alias}#row", (), ((),))  # no alias of a relation
            inputs.append(row)
            functions.append(replace(function, inputs=frozenset({row.alias})))
        else:
            inputs.append(Input(step.alias, f"={step.alias}", function.columns, ((),), made=step))
    if len(inputs) == len(block.inputs):
        return block
    held = {alias for function in functions if len(function.inputs) == 1 for alias in function.inputs}
    left = tuple(item for item in inputs if item.alias in held or not _is_bare(item))
    plain = frozenset(item.alias for item in left)
    return replace(block, inputs=left, functions=tuple(
        replace(function, inputs=function.inputs & plain) for function in functions))  # fmt: skip


def _is_bare(item: Input) -> bool:
    """Whether an input is one row without columns."""
    return item.rows == ((),) and item.made is None and not item.columns


def _is_asked(block: Block, function: Function) -> bool:
    """Whether an equality compares the function's columns with an input, or one that is not plain is looked up by them.
    """
    if function.inputs == _partner(block, function):
        return True
    made = {column.name for column in function.columns}
    asked = any(made & columns_of(match.probe) for item in block.inputs for match in item.on)
    return asked and all(_is_bare(item) for item in block.inputs if item.alias in function.inputs)


def _risky(block: Block, function: Function) -> Aliases:
    """The inputs that something reads which may fail, but for an equality with the function, before rows are complete.
    """
    made = {column.name for column in function.columns}
    predicates = [one for one in block.predicates if not (_is_equality(one) and columns_of(one) & made)]
    probes = [match.probe for item in block.inputs for match in item.on]
    risky = [inputs_of(expr, block.owners) for expr in (*predicates, *probes) if fallible(expr)]
    risky += [other.inputs for other in block.functions if explode_fallible(other.step)]
    return frozenset[str]().union(*risky)


def _is_equality(predicate: Expr) -> bool:
    return isinstance(predicate, Call) and predicate.function == "="


def _partner(block: Block, function: Function) -> Aliases:
    """The plain input that an equality compares the function's columns with; the first by name, if there are several.
    """
    made = {column.name for column in function.columns}
    plain = [item for item in block.inputs if item.kind is InputKind.PLAIN]
    bases = {column.name: item.alias for item in plain for column in item.columns}
    partners = set()
    for predicate in block.predicates:
        if _is_equality(predicate) and columns_of(predicate) & made:
            partners |= {bases[name] for name in columns_of(predicate) if name in bases}
    return frozenset(sorted(partners)[:1])
