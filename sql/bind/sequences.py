"""nextval: the next number of a sequence, in a statement that computes it once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from halfjoin.errors import UnknownName
from halfjoin.sql.expr import Expr, Literal
from halfjoin.sql.parse.locate import PUBLIC
from halfjoin.sql.types import BIGINT

if TYPE_CHECKING:
    from halfjoin.sql.bind.context import Context

NEXT = "nextval"


def next_value(node: exp.Anonymous, once: bool, context: Context) -> Expr:
    """nextval(name) as a constant. `once`: whether the statement computes it for no rows of tables.

    Raises:
        UnsupportedSQL: it is computed for rows. UnknownName: there is no such sequence.
    """
    name = argument(node)
    if name is None:
        raise context.refuse(node, "nextval takes the name of a sequence", "write nextval('name')")
    if not once:
        raise context.refuse(node, "nextval is not supported for the rows of a query",
                             "leave the column out in INSERT ... SELECT: DEFAULT nextval('name') numbers the rows")
    with context.at(node):
        return Literal(context.schema.next_number(name)[0], BIGINT)


def argument(node: exp.Anonymous) -> str | None:
    """The sequence that a call names: `nextval('q')` or `nextval('q'::regclass)`; None if it does not."""
    given = node.expressions[0] if len(node.expressions) == 1 else None
    if isinstance(given, exp.Cast) and given.to.sql().lower() in ("regclass", "text"):
        given = given.this
    return sequence_named(given.name) if isinstance(given, exp.Literal) and given.is_string else None


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
