"""Shows how a plan was made: the normal form after each rule that changed it."""

from __future__ import annotations

from collections.abc import Iterator

from halfjoin.planner.block import Block, Blocks
from halfjoin.planner.explain.steps import call_text, formula_expr
from halfjoin.planner.names import collection_name, input_name
from halfjoin.sql.functions import render


def trace_text(rules: tuple[tuple[str, Blocks], ...]) -> str:
    """The blocks after each rule, under the rule's name; `planner.plan_view.trace` gives them."""
    lines: list[str] = []
    before: Blocks | None = None
    for rule, blocks in rules:
        if blocks != before:
            lines += [f"{rule}:", *(f"  {line}" for block in blocks for line in _block(block))]
            lines += [] if blocks else ["  nothing is left"]
        before = blocks
    return "\n".join(lines)


def _block(block: Block) -> Iterator[str]:
    inputs = (
        name if name == input_name(item.alias, name) else f"{name} AS {item.alias}"
        for item in block.inputs for name in [collection_name(item.collection, item.constant)]
    )  # fmt: skip
    yield "join " + ", ".join(inputs)
    for function in block.functions:
        beside = f" beside {', '.join(sorted(function.inputs))}" if function.inputs else ""
        yield f"  function {call_text(function.step)}{beside}"
    for predicate in block.predicates:
        yield f"  where {render(predicate)}"
    for formula in block.temporal:
        yield f"  while {render(formula_expr(formula))}"
    for equality in block.equalities:
        operator = " IS NOT DISTINCT FROM " if equality.null_safe else " = "
        yield f"  equal {operator.join(map(render, equality.members))}"
    yield "  give " + ", ".join(f"{column.name} = {render(expr)}" for column, expr in block.outputs)
