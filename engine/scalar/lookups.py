"""Kernels of look-ups in constant lists, which functions over PostgreSQL's catalog are; and how a type shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfjoin.engine.scalar.values import Datum, Kernel, call, on_arrays
from halfjoin.sql.expr import Call, Literal
from halfjoin.sql.types import SECOND_DIGITS

_HEADER = 4  # bytes that PostgreSQL's modifiers count beside the length


def _list(expr: Call, place: int, type: Any) -> Any:
    found = expr.args[place]
    assert isinstance(found, Literal)
    return pa.array(found.value, type)


def _beside(keys: Any, values: Any) -> Kernel:
    """For each key the value at its place."""
    find: Any = call("index_in", pc.SetLookupOptions(value_set=keys, skip_nulls=True))

    @on_arrays
    def run(a: Any, *_: Any) -> Datum:
        return values.take(find(a))

    return run


def _text_of_number(expr: Call) -> Kernel:
    return _beside(_list(expr, 1, pa.int64()), _list(expr, 2, pa.string()))


def _texts_of_numbers(expr: Call) -> Kernel:
    find = _text_of_number(expr)

    @on_arrays
    def run(lists: Any, *_: Any) -> Datum:
        texts = pc.fill_null(find(lists.values), "???")
        joined = pc.binary_join(pa.ListArray.from_arrays(lists.offsets, texts), ", ")
        return pc.if_else(pc.is_valid(lists), joined, None)

    return run


def _number_of_text(expr: Call) -> Kernel:
    return _beside(_list(expr, 1, pa.string()), _list(expr, 2, pa.int64()))


def _text_of_part(expr: Call) -> Kernel:
    """The key is that of the thing times 65536, plus that of the part, as in `sql.system.System.texts`."""
    find = _beside(_list(expr, 2, pa.int64()), _list(expr, 3, pa.string()))
    return on_arrays(lambda a, b, *_: find(pc.add(pc.multiply(a, 1 << 16), b)))


def _text_of_named_part(expr: Call) -> Kernel:
    find = _beside(_list(expr, 2, pa.string()), _list(expr, 3, pa.string()))
    return on_arrays(lambda a, b, *_: find(pc.binary_join_element_wise(pc.cast(a, pa.string()), b, " ")))


def _type_with_modifier(expr: Call) -> Kernel:
    """`character varying` and 44 make `character varying(40)`. There are few different types, so each is made once."""

    @on_arrays
    def run(names: Any, sizes: Any) -> Datum:
        sizes = sizes.fill_null(-1)
        pairs = pa.StructArray.from_arrays([names, sizes], ["name", "size"])
        codes = pc.rank(pc.binary_join_element_wise(names.fill_null(""), pc.cast(sizes, pa.string()), "#"), "ascending",
                        tiebreaker="dense") if len(pairs) else pa.array([], pa.uint64())  # fmt: skip
        _, first, inverse = np.unique(codes.to_numpy(), return_index=True, return_inverse=True)
        made = [shown(one["name"], one["size"]) for one in pairs.take(pa.array(first)).to_pylist()]
        return pa.array(made, pa.string()).take(pa.array(inverse))

    return run


def shown(name: str | None, size: int) -> str | None:
    """A type's name as PostgreSQL's format_type writes it with a modifier; `???` for a number that no type has."""
    if name is None:
        return "???"
    bare, array = (name[:-2], "[]") if name.endswith("[]") else (name, "")
    word, _, zone = bare.partition(" ")
    size = size & 0xFFFF if word == "interval" and size > 0 else size  # the rest says which fields it has
    if word in ("timestamp", "time", "interval") and 0 <= size <= SECOND_DIGITS:
        return f"{word}({size}){zone and ' ' + zone}{array}"
    if size < _HEADER or bare not in ("numeric", "character varying", "character"):
        return name
    size -= _HEADER
    if bare == "numeric":
        return f"numeric({size >> 16},{size & 0xFFFF}){array}"
    return f"{bare}({size}){array}"


LOOKUPS: dict[str, Callable[[Call], Kernel]] = {
    "text of number": _text_of_number, "number of text": _number_of_text, "type with modifier": _type_with_modifier,
    "text of part": _text_of_part, "text of named part": _text_of_named_part,
    "texts of numbers": _texts_of_numbers,
}  # fmt: skip
