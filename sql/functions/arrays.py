"""Functions of arrays; indexes start at 1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.expr import Call, Expr, Literal
from halfjoin.sql.functions.casting import cast, coerce, unify
from halfjoin.sql.functions.coercion import common_type, comparison_type
from halfjoin.sql.functions.nested_arrays import MOST, lengths, shaped
from halfjoin.sql.functions.order import ORDERING, constant_order_of, order_of
from halfjoin.sql.functions.signature import Resolve, Special, function
from halfjoin.sql.types import BOOLEAN, Kind, SqlType, array, dimensions


def _array(resolve: Resolve, args: Sequence[Expr]) -> Expr:
    if not args:
        raise UnsupportedSQL("an empty ARRAY has no type", remedy="write '{}'::integer[] or another type")
    items = unify(args)
    type = items[0].type
    if dimensions(type) >= MOST:
        raise UnsupportedSQL(f"an array has at most {MOST} dimensions", code="54000")
    if type.kind is Kind.ARRAY:
        if all(isinstance(item, Literal) for item in items):
            return _of_constants([item.value for item in items if isinstance(item, Literal)], array(type))
        return shaped(Call("array", items, array(type)), "array")
    if all(isinstance(item, Literal) for item in items):
        return Literal([item.value for item in items if isinstance(item, Literal)], array(type))
    return Call("array", items, array(type))


def _of_constants(values: list[Any], type: SqlType) -> Literal:
    """An array of constant arrays. All of them may be empty or NULL, which makes an empty array, or none."""
    given = [value for value in values if value]
    if given and (len(given) < len(values) or len({str(lengths(value)) for value in given}) > 1):
        raise UnsupportedSQL("multidimensional arrays must have array expressions with matching dimensions",
                             code="2202E")  # fmt: skip
    return Literal(given, type)


def _compared(name: str) -> Special:
    """A comparison of a value with each element of an array; both are cast to a common type."""

    def special(resolve: Resolve, args: Sequence[Expr]) -> Expr:
        value, items = args
        if items.type.kind is Kind.UNKNOWN:
            items = cast(items, array(common_type([value.type])))
        if items.type.element is None:
            raise UnsupportedSQL(f"{name.upper()} of {items.type}", remedy="give an array", code="42809")
        type = comparison_type([value.type, items.type.element])
        if type.kind is Kind.NUMERIC:
            type = common_type([value.type, items.type.element])
        value, items = coerce(value, type), coerce(items, array(type))
        if name.split()[0] in ORDERING:
            value, items = constant_order_of(value), _orders_of(resolve, items)
        return Call(name, (value, items), BOOLEAN)

    return special


def _orders_of(resolve: Resolve, items: Expr) -> Expr:
    """What orders the elements of an array. Of enums and jsonb it is known for those that are written or constant."""
    element = items.type.element
    assert element is not None
    if element.kind not in (Kind.ENUM, Kind.JSONB):
        return order_of(items)
    if isinstance(items, Call) and items.function == "array":
        return resolve("array", [constant_order_of(item) for item in items.args])
    if isinstance(items, Literal):
        values = items.value if isinstance(items.value, list) else []
        orders = [constant_order_of(Literal(value, element)) for value in values]
        none = replace(items, type=array(constant_order_of(Literal(None, element)).type))
        return resolve("array", orders) if orders else none
    return order_of(items)


_ANY: tuple[tuple[str, str, list[tuple[str, str | None]]], ...] = (
    ("=", "equals", [
        ("2 = ANY(ARRAY[1,2])", "true"), ("3 = ANY(ARRAY[1,NULL])", None), ("3 = ANY(ARRAY[1,2])", "false"),
        ("1 = ANY('{}'::int[])", "false"), ("NULL = ANY('{}'::int[])", "false"), ("1 = ANY(ARRAY[1,NULL])", "true"),
        ("1.0 = ANY(ARRAY[1,2])", "true")]),
    ("<>", "differs from", [("1 <> ANY(ARRAY[1,2])", "true"), ("1 <> ANY(ARRAY[1,NULL])", None)]),
    ("<", "is less than", [("1 < ANY(ARRAY[1,2])", "true"), ("'b' < ANY(ARRAY['a',NULL])", None)]),
    ("<=", "is at most", [("2 <= ANY(ARRAY[1,2])", "true"), ("1 <= ANY(NULL::int[])", None)]),
    (">", "is greater than", [("2 > ANY(ARRAY[1.5,2.5])", "true"), ("1 > ANY('{}'::int[])", "false")]),
    (">=", "is at least", [("1 >= ANY(ARRAY[2,3])", "false"), ("2 >= ANY(ARRAY[NULL,2])", "true")]),
)
_ALL: tuple[tuple[str, str, list[tuple[str, str | None]]], ...] = (
    ("=", "equals", [
        ("1 = ALL(ARRAY[1,1])", "true"), ("1 = ALL(ARRAY[1,NULL])", None), ("1 = ALL('{}'::int[])", "true")]),
    ("<>", "differs from", [
        ("2 <> ALL(ARRAY[1,2])", "false"), ("3 <> ALL(ARRAY[1,NULL])", None), ("3 <> ALL(ARRAY[1,2])", "true")]),
    ("<", "is less than", [("1 < ALL(ARRAY[2,3])", "true"), ("3 < ALL(ARRAY[2,NULL])", "false")]),
    ("<=", "is at most", [("2 <= ALL(ARRAY[2,NULL])", None), ("2 <= ALL(ARRAY[2,3])", "true")]),
    (">", "is greater than", [("'b' > ALL(ARRAY['a','B'])", "true"), ("1 > ALL(NULL::int[])", None)]),
    (">=", "is at least", [("1 >= ALL(ARRAY[1,2])", "false"), ("2.5 >= ALL(ARRAY[1,2])", "true")]),
)

ARRAYS = (
    function("array", "arrays", "An array of its arguments", "any... -> any[]", special=_array, examples=[
        ("ARRAY[1, 2, NULL]", "{1,2,NULL}"), ("ARRAY['a', 'b']", "{a,b}"),
        ("ARRAY[[1, 2], [3, 4]]", "{{1,2},{3,4}}")]),
    function("[]", "arrays", "The element at an index; NULL outside", "any[], integer -> any", examples=[
        ("(ARRAY[10, 20])[2]", "20"), ("(ARRAY[10, 20])[3]", None), ("(ARRAY[10, 20])[0]", None),
        ("(ARRAY['x', NULL])[2]", None), ("('{{1,2},{3,4}}'::int[])[2][1]", "3")]),
    function("cardinality", "arrays", "Number of elements in all dimensions", "any[] -> integer", examples=[
        ("cardinality(ARRAY[1,2])", "2"), ("cardinality('{}'::int[])", "0")]),
    *(function(f"{name} any", "arrays", f"Whether it {says} an element", "any, any[] -> boolean",
               special=_compared(f"{name} any"), examples=examples) for name, says, examples in _ANY),
    *(function(f"{name} all", "arrays", f"Whether it {says} every element", "any, any[] -> boolean",
               special=_compared(f"{name} all"), examples=examples) for name, says, examples in _ALL),
    function("array_append", "arrays", "Appends an element", "any[], any -> any[]", examples=[
        ("array_append(ARRAY[1,2], 3)", "{1,2,3}"), ("array_append(ARRAY[1], NULL)", "{1,NULL}"),
        ("array_append(NULL, 1)", "{1}")]),
    function("array_prepend", "arrays", "Prepends an element", "any, any[] -> any[]", examples=[
        ("array_prepend(1, ARRAY[2,3])", "{1,2,3}")]),
    function("array_cat", "arrays", "Concatenates two arrays; also ||", "any[], any[] -> any[]", examples=[
        ("array_cat(ARRAY[1,2], ARRAY[3])", "{1,2,3}"), ("array_cat(ARRAY[1], NULL)", "{1}"),
        ("ARRAY[1] || ARRAY[2]", "{1,2}"), ("ARRAY[1] || 2", "{1,2}"), ("0 || ARRAY[1]", "{0,1}"),
        ("ARRAY[[1,2]] || ARRAY[3,4]", "{{1,2},{3,4}}")]),
)  # fmt: skip
