"""nextval: the next number of a sequence, in a statement that computes it once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from halfjoin.errors import UnknownName
from halfjoin.sql.expr import Expr, Literal
from halfjoin.sql.parse.locate import PUBLIC
from halfjoin.sql.types import BIGINT, STRINGS, Kind

if TYPE_CHECKING:
    from halfjoin.sql.bind.context import Context

NEXT = "nextval"


def next_value(args: tuple[Expr, ...], node: exp.Expr, once: bool, context: Context) -> Expr:
    """nextval(name) as a constant. `once`: whether the statement computes it for no rows of tables.

    Raises:
        UnsupportedSQL: it is computed for rows. UnknownName: there is no such sequence.
    """
    name = args[0] if len(args) == 1 else None
    if not isinstance(name, Literal) or name.type.kind not in (*STRINGS, Kind.UNKNOWN) or name.value is None:
        raise context.refuse(node, "nextval takes the name of a sequence", "write nextval('name')")
    if not once:
        raise context.refuse(node, "nextval is not supported for the rows of a query",
                             "leave the column out in INSERT ... SELECT: DEFAULT nextval('name') numbers the rows")
    with context.at(node):
        return Literal(context.schema.next_number(sequence_named(str(name.value)))[0], BIGINT)


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
