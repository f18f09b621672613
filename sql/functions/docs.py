"""Prints the function table in Markdown."""

from __future__ import annotations

from halfjoin.sql.functions.signature import Function
from halfjoin.sql.functions.table import TABLE


def documentation() -> str:
    """One table row per function: name, argument and result types, meaning, evaluator, an example with its answer."""
    lines = ["| function | takes | meaning | evaluator | example |", "|---|---|---|---|---|"]
    lines += [_row(entry) for entry in TABLE if entry.category != "casts"]
    return "\n".join(lines)


def _row(entry: Function) -> str:
    takes = "<br>".join(
        f"{', '.join(o.params)}{'...' if o.variadic else ''} → {o.result}" for o in entry.overloads)
    example = ""
    if entry.examples:
        first = entry.examples[0]
        example = f"`{first.sql}` is `{'NULL' if first.answer is None else first.answer}`"
    cells = (f"`{entry.name}`", takes, entry.doc, entry.evaluator, example)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
