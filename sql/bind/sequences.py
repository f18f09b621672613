"""nextval, currval, lastval and setval, in a statement that computes them once."""

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
CALLS = (NEXT, "currval", "lastval", "setval")


def sequence_value(node: exp.Anonymous, once: bool, context: Context) -> Expr:
    """A call of one of these functions as a constant. `once`: whether the statement computes it for no rows of tables.

    Raises:
        UnsupportedSQL: it is computed for rows, or there is no such number. UnknownName: there is no such sequence.
    """
    called, schema = node.name.lower(), context.schema
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
            return Literal(_set(node, name, context), BIGINT)
        found = schema.last_number(name)
    if found is None:
        what = f'currval of sequence "{name}"' if name else "lastval"
        error = context.refuse(node, f"{what} is not yet defined in this session", "call nextval first")
        raise error.with_(code="55000")
    return Literal(found, BIGINT)


def _set(node: exp.Anonymous, name: str, context: Context) -> int:
    """setval(name, number [, called])."""
    number, called = node.expressions[1], node.expressions[2] if len(node.expressions) > 2 else exp.true()
    value = number.this if isinstance(number, exp.Neg) else number
    if not isinstance(value, exp.Literal) or not value.name.isdigit() or not isinstance(called, exp.Boolean):
        raise context.refuse(node, "setval takes a number and a boolean, written as constants",
                             "ask for the number first: SELECT max(id) FROM t")
    to = -int(value.name) if isinstance(number, exp.Neg) else int(value.name)
    context.schema.set_number(name, to, called=bool(called.this))
    return to


def argument(node: exp.Anonymous) -> str | None:
    """The sequence that a call names: `nextval('q')` or `nextval('q'::regclass)`; None if it does not."""
    few = len(node.expressions) in ((2, 3) if node.name.lower() == "setval" else (1,))
    given = node.expressions[0] if few else None
    if isinstance(given, exp.Cast) and given.to.sql().lower() in ("regclass", "text"):
        given = given.this
    return sequence_named(given.name) if isinstance(given, exp.Literal) and given.is_string else None


def _of_column(node: exp.Anonymous, context: Context) -> str | None:
    """The sequence in `setval(pg_get_serial_sequence('t', 'id'), 5)`: the one that numbers a column; None for another
    argument."""
    given = node.expressions[0] if node.expressions else None
    if not isinstance(given, exp.Anonymous) or given.name.lower() != "pg_get_serial_sequence":
        return None
    parts = given.expressions
    if context.system is None or len(parts) != 2 or not all(isinstance(p, exp.Literal) and p.is_string for p in parts):
        return None
    table = context.system.numbers("regclass").get(sequence_named(parts[0].name))
    found = context.system.serials().get(f"{table} {parts[1].name}")
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
