"""Every example of the function table against PostgreSQL's answer, as constants and over columns with NULLs."""

from __future__ import annotations

import pytest

from halfjoin.engine.scalar import duck
from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.functions import TABLE, Example, documentation, fallible, render
from tests.support.scalar_sql import Columns, answer, compile, constant, expression, over_columns, same, shown

EXAMPLES = [pytest.param(example, id=f"{entry.name}: {example.sql}") for entry in TABLE for example in entry.examples]


@pytest.mark.parametrize("example", EXAMPLES)
def test_example(example: Example) -> None:
    try:
        expr = shown(expression(example.sql))
    except UnsupportedSQL as error:  # a constant that cannot be right is refused as the view is made
        assert example.answer is not None and example.answer.startswith("ERROR: "), error
        return
    assert same(answer(constant(expr), 0), example.answer)
    for first in (False, True):
        over = over_columns(expr, first)
        assert len(over.values) == 5
        for row in (0, 2, 4):
            assert same(answer(over, row), example.answer), row


@pytest.mark.parametrize("example", EXAMPLES)
def test_one_row_is_computed_as_many_are(example: Example) -> None:
    try:
        expr = shown(expression(example.sql))
    except UnsupportedSQL:
        return
    columns = Columns()
    compiled = compile(columns.of(expr))
    many = compiled.evaluate(columns.arrays, columns.rows)
    for row in range(columns.rows):
        alone = compiled.evaluate({name: array.slice(row, 1) for name, array in columns.arrays.items()}, 1)
        assert answer(alone, 0) == answer(many, row)


@pytest.mark.parametrize("example", EXAMPLES)
def test_what_cannot_fail_does_not(example: Example) -> None:
    try:
        expr = expression(example.sql)
    except UnsupportedSQL:
        return
    columns = Columns()
    over = columns.of(expr)
    if not fallible(over):
        assert compile(over).evaluate(columns.arrays, columns.rows).failures is None
    assert render(over)


ARROW_ALONE = [
    pytest.param(example, id=f"{entry.name}: {example.sql}")
    for entry in TABLE
    if entry.evaluator == "arrow"
    for example in entry.examples
]


@pytest.mark.parametrize("example", ARROW_ALONE)
def test_the_evaluator_is_the_one_named(example: Example, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise AssertionError("DuckDB was asked")

    try:
        expr = expression(example.sql)
    except UnsupportedSQL:
        return
    monkeypatch.setattr(duck, "_connection", refuse)
    over_columns(expr)
    over_columns(expr, first=True)


def test_every_function_is_documented_and_shown() -> None:
    text = documentation()
    for entry in TABLE:
        assert entry.doc and (entry.examples or entry.category == "casts"), entry.name
        shown = f"`{entry.name}`".replace("|", "\\|") in text
        assert shown != (entry.category == "casts"), entry.name
