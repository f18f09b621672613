"""Types of the user's: what a name means, and casts to domains, whose conditions the value must meet."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from halfjoin.errors import UnknownName, UnsupportedSQL
from halfjoin.sql import functions
from halfjoin.sql.expr import Call, Column, Expr, Literal, substitute
from halfjoin.sql.named import Domain
from halfjoin.sql.parse.type_names import ELSEWHERE
from halfjoin.sql.types import BOOLEAN, TEXT, Kind, SqlType

if TYPE_CHECKING:
    from halfjoin.sql.schema import Schema

VALUE = "value"  # the name of the value in a domain's conditions


def resolved(type: SqlType, schema: Schema) -> SqlType:
    """The type, with what its name means; of a domain it is the type below.

    Raises:
        UnknownName: there is no type of that name.
    """
    if type.element is not None:
        if type.element.kind is Kind.NAMED and schema.domain(type.element.named) is not None:
            raise UnsupportedSQL(f"arrays of the domain {type.element} are not supported", remedy="name its base type")
        return replace(type, element=resolved(type.element, schema))
    if type.kind is not Kind.NAMED:
        return type
    found = schema.named_type(type.named)
    if found is None:
        nearest = ELSEWHERE.get(type.named)
        raise UnknownName("type", type.named, (), remedy=nearest and f"write {nearest}")
    return found


def rowless_type(type: SqlType, schema: Schema, what: str) -> SqlType:
    """The type of what holds no rows; raises as `resolved`."""
    found = resolved(type, schema)
    if found.kind is Kind.RECORD:
        raise UnsupportedSQL(f"{what} of the row type {found} is not supported",
                             remedy="name the type of each field, or write jsonb")
    return found


def composite(name: str, fields: Iterable[tuple[str, SqlType]], schema: Schema) -> SqlType:
    """The type of CREATE TYPE ... AS (...)."""
    made = []
    for field, type in fields:
        if type.kind is Kind.NAMED and schema.domain(type.named) is not None:
            raise UnsupportedSQL(f"a field of the domain {type} is not supported", remedy="name its base type")
        made.append((field, resolved(type, schema)))
    return SqlType(Kind.RECORD, named=name, fields=tuple(made))


def cast_to_domain(value: Expr, domain: Domain, schema: Schema) -> Expr:
    """`value::domain`: the value in the type below the domain. It fails if the value does not meet the conditions."""
    made = functions.cast(value, domain.type, explicit=True)
    if domain.not_null:
        given = functions.resolve("is not null", (made,))
        made = _checked(made, given, f"domain {domain.name} does not allow null values")
    for name, text in domain.checks:
        held = substitute(condition(text, domain.type, schema), {VALUE: made})
        made = _checked(made, held, violation(domain, name))
    return made


def violation(domain: Domain, check: str) -> str:
    """What is wrong with a value that does not meet a condition."""
    return f'value for domain {domain.name} violates check constraint "{check}"'


def condition(text: str, type: SqlType, schema: Schema) -> Expr:
    """A condition of a domain over the column VALUE."""
    from halfjoin.sql.bind.constraints import bind_check  # binds expressions, which hold casts

    return bind_check(text, [Column(VALUE, type)], schema, "")


def _checked(value: Expr, held: Expr, message: str) -> Expr:
    return Call("checked", (value, functions.cast(held, BOOLEAN), Literal(message, TEXT)), value.type)
