"""PostgreSQL's words for rows that violate a constraint. Programs read the constraint and the columns out of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from halfjoin.errors import HalfjoinError, InvalidRow
from halfjoin.sql.functions.render import plain
from halfjoin.sql.parse.locate import PUBLIC
from halfjoin.sql.types import TEXT

_OTHER = re.compile(r" is (?:not in|still referenced from) (\S+)$")  # where the key of a foreign key is, or is not


def table_at_fault(problem: InvalidRow) -> tuple[str, str]:
    """The schema and the name of the table; empty if no table is at fault."""
    schema, _, table = (problem.table or "").rpartition(".")
    return (schema or PUBLIC) if table else "", table


def violation(problem: HalfjoinError, message: str) -> dict[str, str]:
    """The fields of an error in PostgreSQL's words. The engine's `message` is the detail where PostgreSQL's is other.

    Empty for another error.
    """
    if not isinstance(problem, InvalidRow) or not problem.table or not (problem.constraint or problem.column):
        return {}
    table, name = table_at_fault(problem)[1], problem.constraint
    foreign, found = f'violates foreign key constraint "{name}"', _OTHER.search(problem.reason)
    held, other = _held(problem.key), "" if found is None else found[1].rpartition(".")[2]
    match problem.sqlstate:
        case "23505":
            return {"M": f'duplicate key value violates unique constraint "{name}"',
                    "D": f"{held} already exists." if held else message,
                    "H": "ON CONFLICT says what to do with such a row"}  # fmt: skip
        case "23503" if "still referenced" in problem.reason:
            return {"M": f'update or delete on table "{table}" {foreign} on table "{other}"',
                    "D": f'{held} is still referenced from table "{other}".'}  # fmt: skip
        case "23503":
            return {"M": f'insert or update on table "{table}" {foreign}',
                    "D": f'{held} is not present in table "{other}".' if other else message}  # fmt: skip
        case "23514" if problem.column is None:
            return {"M": f'new row for relation "{table}" violates check constraint "{name}"', "D": message}
        case "23502":
            return {"M": f'null value in column "{problem.column}" of relation "{table}" violates not-null constraint',
                    "D": message}  # fmt: skip
    return {}


def _held(key: Mapping[str, Any] | None) -> str:
    """A key with its values as PostgreSQL prints them; empty if it is not known."""
    if not key:
        return ""
    values = ("t" if value is True else "f" if value is False else plain(value, TEXT) for value in key.values())
    return f"Key ({', '.join(key)})=({', '.join(values)})"
