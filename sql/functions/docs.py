"""Prints the tables of functions, aggregates and window functions in Markdown."""

from __future__ import annotations

from halfjoin.sql.functions.aggregate_table import AGGREGATE_TABLE
from halfjoin.sql.functions.signature import Function
from halfjoin.sql.functions.table import TABLE
from halfjoin.sql.functions.window_functions import WINDOW_FUNCTIONS


def documented() -> tuple[Function, ...]:
    """All that a user can call: scalar functions, aggregates, window functions."""
    return (*(entry for entry in TABLE if entry.category != "casts"), *AGGREGATE_TABLE, *WINDOW_FUNCTIONS.values())


def documentation() -> str:
    """One table row per function: name, argument and result types, meaning, evaluator, an example with its answer."""
    lines = ["| function | takes | meaning | evaluator | example |", "|---|---|---|---|---|"]
    return "\n".join([*lines, *map(_row, documented())])


def _row(entry: Function) -> str:
    takes = "<br>".join(
        f"{', '.join(o.params)}{'...' if o.variadic else ''} → {o.result}" for o in entry.overloads)
    example = ""
    if entry.examples:
        first = entry.examples[0]
        example = f"`{first.sql}` is `{'NULL' if first.answer is None else first.answer}`"
    cells = (f"`{entry.name}`", takes, entry.doc, entry.evaluator, example)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
