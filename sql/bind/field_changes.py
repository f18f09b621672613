"""`UPDATE t SET r.a = 1, a[2] = 3, j['b'] = '4'`: a value with others in some of its fields and elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from halfjoin.errors import UnknownName
from halfjoin.sql import functions
from halfjoin.sql.bind.subscripts import bounds_of, json_step, one_of
from halfjoin.sql.expr import TRUE, Call, Expr, Literal
from halfjoin.sql.functions.nested_arrays import flat, nested, type_of_text
from halfjoin.sql.functions.record_values import is_record, members, record
from halfjoin.sql.parse.locate import name_of
from halfjoin.sql.parse.syntax import FieldChange
from halfjoin.sql.types import BOOLEAN, INTEGER, INTEGERS, JSONB, TEXT, Kind, array, dimensions, innermost

if TYPE_CHECKING:
    from halfjoin.sql.bind.scalar import Scalars


def changed_fields(scalars: Scalars, node: FieldChange) -> Expr:
    """The value of a column after the assignments to its fields and elements, in their order.

    Of a row that is not there, the other fields are NULL; an array that is NULL has no elements.

    Raises:
        UnsupportedSQL: the column holds no such values, or the new value has another type.
        UnknownName: no row has such a field.
    """
    value = scalars.value(node.this)
    for change in node.expressions:
        path = change.this.expressions
        with scalars.context.at(path[0]):
            value = _changed(scalars, node, value, path, scalars.value(change.expression))
    return value


def _changed(scalars: Scalars, node: FieldChange, value: Expr, path: Sequence[exp.Expr], new: Expr) -> Expr:
    if not path:
        return _of_element(scalars, node, value, new)
    if isinstance(path[0], exp.Tuple):
        return _with_elements(scalars, node, value, path, new)
    name = name_of(path[0])
    if not is_record(value):
        raise scalars.context.wrong(
            node, f'cannot assign to field "{name}" of column "{name_of(node.this)}" because its type {value.type} '
                  "is not a composite type").with_(code="42804")
    names = [known for known, _ in value.type.fields]
    if name not in names:
        raise UnknownName("field", name, names, code="42703")
    place, parts = names.index(name), list(members(value))
    parts[place] = (_changed(scalars, node, parts[place], path[1:], new) if path[1:]
                    else functions.cast(new, parts[place].type))  # fmt: skip
    return record(names, parts, TRUE, value.type.named)


def _with_elements(scalars: Scalars, node: FieldChange, value: Expr, path: Sequence[exp.Expr], new: Expr) -> Expr:
    """The value with a new one at the subscripts with which the path begins."""
    count = next((n for n, step in enumerate(path) if not isinstance(step, exp.Tuple)), len(path))
    written, rest = [one_of(scalars, step) for step in path[:count]], path[count:]
    if value.type.kind is Kind.JSONB:
        steps = [json_step(scalars, one) for one in written]
        typed = _changed(scalars, node, Literal(None, JSONB), rest, new)
        number = Literal(steps[0].type.kind in INTEGERS, BOOLEAN)
        keys = Call("array", tuple(functions.cast(step, TEXT) for step in steps), array(TEXT))
        return Call("with part", (value, typed, number, keys), JSONB)
    if value.type.kind is not Kind.ARRAY:
        raise scalars.context.wrong(node, f"cannot subscript type {value.type} because it does not support "
                                    "subscripting").with_(code="42804")  # fmt: skip
    if any(isinstance(one, exp.Slice) for one in written):
        return _with_slice(scalars, node, value, written, rest, new)
    if len(written) != dimensions(value.type):
        raise _wrong_number(scalars, node, value, len(written))
    subscripts = tuple(functions.cast(scalars.value(one), INTEGER) for one in written)
    old = Literal(None, innermost(value.type)) if not rest else value
    for step in subscripts if rest else ():
        old = functions.resolve("[]", (old, step))
    made = _changed(scalars, node, old, rest, new)
    return Call("with element", (value, made, *subscripts), value.type)


def _with_slice(scalars: Scalars, node: FieldChange, value: Expr, written: Sequence[exp.Expr],
                rest: Sequence[exp.Expr], new: Expr) -> Expr:  # fmt: skip
    if rest or len(written) > dimensions(value.type):
        raise _wrong_number(scalars, node, value, len(written))
    bounds = bounds_of(scalars, written)
    marks = "".join("0" if bound is None else "1" for bound in bounds)
    given = [Literal(1, INTEGER) if bound is None else bound for bound in bounds]
    own = nested(innermost(value.type), dimensions(new.type) or 1)  # the source's elements count, not its shape
    if isinstance(new, Literal) and new.type.kind is Kind.UNKNOWN:
        own = type_of_text(str(new.value), own)
    return Call("with slice", (value, flat(functions.cast(new, own)), Literal(marks, TEXT), *given), value.type)


def _of_element(scalars: Scalars, node: FieldChange, old: Expr, new: Expr) -> Expr:
    """A value as an element takes it."""
    if old.type.kind is Kind.JSONB and new.type.kind not in (Kind.JSONB, Kind.JSON, Kind.UNKNOWN):
        error = scalars.context.wrong(
            node, f'subscripted assignment to "{name_of(node.this)}" requires type jsonb but expression is of type '
                  f"{new.type}", "write to_jsonb(...)")
        raise error.with_(code="42804")
    return functions.cast(new, old.type)


def _wrong_number(scalars: Scalars, node: FieldChange, value: Expr, count: int) -> Exception:
    return scalars.context.wrong(
        node, f"wrong number of array subscripts: {count} for {value.type}, which has {dimensions(value.type)}"
    ).with_(code="2202E")
