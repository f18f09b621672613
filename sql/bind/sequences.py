"""nextval, currval, lastval and setval, in a statement that computes them once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from sqlglot import exp

from halfjoin.errors import UnknownName
from halfjoin.sql import functions
from halfjoin.sql.expr import Expr, Literal
from halfjoin.sql.functions.parameters import is_inferring, is_parameter, untyped
from halfjoin.sql.parse.locate import PUBLIC
from halfjoin.sql.types import BIGINT, BOOLEAN, TEXT

if TYPE_CHECKING:
    from halfjoin.sql.bind.context import Context
    from halfjoin.sql.schema import Schema

NEXT = "nextval"
CALLS = (NEXT, "currval", "lastval", "setval")


def sequence_value(node: exp.Anonymous, once: bool, context: Context, value: Callable[[exp.Expr], Expr]) -> Expr:
    """A call of one of these functions as a constant. `once`: whether the statement computes it for no rows of tables.
    `value`: binds an argument.

    Raises:
        UnsupportedSQL: it is computed for rows, or there is no such number. UnknownName: there is no such sequence.
    """
    called, schema = node.name.lower(), context.schema
    if is_inferring() and any(_waits(part) for part in node.walk()):
        for part, type in zip(node.expressions, (TEXT, BIGINT, BOOLEAN), strict=False):
            functions.cast(value(part), type, explicit=True)  # a parameter gets its type from its place
        return Literal(None, BIGINT)
    name = "" if called == "lastval" and not node.expressions else argument(node) or of_column(node, schema)
    if name is None:
        raise context.refuse(node, f"{called} takes the name of a sequence", f"write {called}('name')")
    if called in (NEXT, "setval") and not once:
        raise context.refuse(node, f"{called} is not supported for rows here",
                             "write it in the SELECT list of the query, outside of CASE, COALESCE, AND, OR and "
                             "DISTINCT, or as a column of INSERT ... SELECT or UPDATE ... SET")
    with context.at(node):
        if called == NEXT:
            return Literal(schema.next_number(name)[0], BIGINT)
        if called == "setval":
            if (given := constants(node)) is None:
                raise context.refuse(node, "setval of what is computed stands alone in the SELECT list of a query",
                                     "write SELECT setval('q', max(id)) FROM t")
            schema.set_number(name, given[0], called=given[1])
            return Literal(given[0], BIGINT)
        found = schema.last_number(name)
    if found is None:
        what = f'currval of sequence "{name}"' if name else "lastval"
        error = context.refuse(node, f"{what} is not yet defined in this session", "call nextval first")
        raise error.with_(code="55000")
    return Literal(found, BIGINT)


def _waits(node: exp.Expr) -> bool:
    """Whether a node stands for a parameter whose value is not known yet."""
    return isinstance(node, exp.Null) or (isinstance(node, exp.Literal) and is_parameter(untyped(node.name)))


def constants(node: exp.Anonymous) -> tuple[int, bool] | None:
    """The number of setval(name, number [, called]), and whether it is given out; None if they are no constants."""
    if len(node.expressions) not in (2, 3):
        return None
    number, called = node.expressions[1], node.expressions[2] if len(node.expressions) > 2 else exp.true()
    value = number.this if isinstance(number, exp.Neg) else number
    if not isinstance(value, exp.Literal) or not value.name.isdigit() or not isinstance(called, exp.Boolean):
        return None
    return -int(value.name) if isinstance(number, exp.Neg) else int(value.name), bool(called.this)


def argument(node: exp.Anonymous) -> str | None:
    """The sequence that a call names: `nextval('q')` or `nextval('q'::regclass)`; None if it does not."""
    few = len(node.expressions) in ((2, 3) if node.name.lower() == "setval" else (1,))
    text = text_in(node.expressions[0]) if few else None
    return None if text is None else sequence_named(text.name)


def text_in(node: exp.Expr) -> exp.Literal | None:
    """The text that an argument is; None if it is none, or one that is not known yet."""
    while isinstance(node, exp.Cast) and node.to.sql().lower() in ("regclass", "text", "varchar"):
        node = node.this
    return node if isinstance(node, exp.Literal) and node.is_string and not _waits(node) else None


def of_column(node: exp.Anonymous, schema: Schema) -> str | None:
    """The sequence in `setval(pg_get_serial_sequence('t', 'id'), 5)`: the one that numbers a column; None for another
    argument."""
    given = node.expressions[0] if node.expressions else None
    if not isinstance(given, exp.Anonymous) or given.name.lower() != "pg_get_serial_sequence":
        return None
    table, column = map(text_in, given.expressions) if len(given.expressions) == 2 else (None, None)
    if table is None or column is None:
        return None
    return schema.sequence(sequence_named(table.name), column.name)[0] or None


def sequence_named(text: str) -> str:
    """The name of a sequence in the catalog, from the text that nextval takes: folded unless it is in quotes."""
    parts = exp.to_table(text, dialect="postgres").parts if text else []
    if not 0 < len(parts) < 3:
        raise UnknownName("sequence", text, (), code="42P01")
    names = [part.name if part.args.get("quoted") else part.name.lower() for part in parts]
    return ".".join(names[1:] if names[0] == PUBLIC else names)


def quoted(name: str) -> str:
    """The text of a sequence's name for nextval."""
    return ".".join('"' + part.replace('"', '""') + '"' for part in name.split(".", 1))
