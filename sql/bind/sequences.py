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
    name = "" if called == "lastval" and not node.expressions else argument(node) or _of_column(node, context)
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
            return Literal(_set(node, name, context, value), BIGINT)
        found = schema.last_number(name)
    if found is None:
        what = f'currval of sequence "{name}"' if name else "lastval"
        error = context.refuse(node, f"{what} is not yet defined in this session", "call nextval first")
        raise error.with_(code="55000")
    return Literal(found, BIGINT)


def _waits(node: exp.Expr) -> bool:
    """Whether a node stands for a parameter whose value is not known yet."""
    return isinstance(node, exp.Null) or (isinstance(node, exp.Literal) and is_parameter(untyped(node.name)))


def _set(node: exp.Anonymous, name: str, context: Context, value: Callable[[exp.Expr], Expr]) -> int:
    """setval(name, number [, called])."""
    given = [part.unnest() for part in node.expressions[1:]]
    bound = [functions.cast(value(part), type) for part, type in zip(given, (BIGINT, BOOLEAN), strict=False)
             if isinstance(part, exp.Literal | exp.Neg | exp.Cast | exp.Boolean)]  # fmt: skip
    values = [part.value for part in bound if isinstance(part, Literal) and part.value is not None]
    if not values or len(values) < len(given):
        raise context.refuse(node, "setval takes a number and a boolean, written as constants",
                             "ask for the number first: SELECT max(id) FROM t")
    to = int(str(values[0]))
    context.schema.set_number(name, to, called=values[1:] != [False])
    return to


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


def _of_column(node: exp.Anonymous, context: Context) -> str | None:
    """The sequence in `setval(pg_get_serial_sequence('t', 'id'), 5)`: the one that numbers a column; None for another
    argument."""
    given = node.expressions[0] if node.expressions else None
    if not isinstance(given, exp.Anonymous) or given.name.lower() != "pg_get_serial_sequence":
        return None
    table, column = map(text_in, given.expressions) if len(given.expressions) == 2 else (None, None)
    if context.system is None or table is None or column is None:
        return None
    number = context.system.numbers("regclass").get(sequence_named(table.name))
    found = context.system.serials().get(f"{number} {column.name}")
    return None if found is None else sequence_named(found)


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
