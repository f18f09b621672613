"""From text to arrays of text, and back."""

from __future__ import annotations

from collections.abc import Sequence

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.expr import Call, Expr, Literal
from halfjoin.sql.functions.casting import coerce
from halfjoin.sql.functions.padding import padded
from halfjoin.sql.functions.signature import Resolve, function
from halfjoin.sql.types import TEXT, Kind


def _array_to_string(resolve: Resolve, args: Sequence[Expr]) -> Expr:
    if len(args) not in (2, 3) or args[0].type.kind is not Kind.ARRAY:
        if len(args) in (2, 3) and isinstance(args[0], Literal) and args[0].value is None:
            return Literal(None, TEXT)
        raise UnsupportedSQL("array_to_string takes an array, a separator and a text for NULL", wrong=True)
    return Call("array_to_string", (padded(args[0]), *(coerce(arg, TEXT) for arg in args[1:])), TEXT)


TEXT_ARRAYS = (
    function("string_to_array", "arrays", "The parts between separators, characters if it is NULL; a text for NULL",
        "text, text -> text[]", "text, text, text -> text[]", examples=[
        ("string_to_array('a,b,,c', ',')", '{a,b,"",c}'), ("string_to_array('a,b,,c', ',', '')", "{a,b,NULL,c}"),
        ("string_to_array('abc', NULL)", "{a,b,c}"), ("string_to_array('abc', '')", "{abc}"),
        ("string_to_array('', ',')", "{}"), ("string_to_array(NULL, ',')", None),
        ("string_to_array('xx~~yy~~zz', '~~', 'yy')", "{xx,NULL,zz}")]),
    function("array_to_string", "arrays", "The elements with a separator between; a text for NULL",
        "any[], text -> text", "any[], text, text -> text", special=_array_to_string, examples=[
        ("array_to_string(ARRAY[1,2,NULL,4], ',')", "1,2,4"), ("array_to_string(ARRAY[1,NULL], ',', '*')", "1,*"),
        ("array_to_string(ARRAY['a',NULL], ',', NULL)", "a"), ("array_to_string('{}'::int[], ',')", ""),
        ("array_to_string(ARRAY[true,false], '-')", "t-f"),
        ("array_to_string('{a,b}'::char(2)[], ',')", "a ,b ")]),
)  # fmt: skip
