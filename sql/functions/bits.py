"""Operators on the bits of integers."""

from __future__ import annotations

from collections.abc import Sequence

from halfjoin.sql.functions.signature import Function, function

_INTEGERS = ("smallint", "integer", "bigint")


def _of_two(name: str, doc: str, examples: Sequence[tuple[str, str | None]]) -> Function:
    return function(name, "arithmetic", doc, *(f"{type}, {type} -> {type}" for type in _INTEGERS), examples=examples)


def _shift(name: str, doc: str, examples: Sequence[tuple[str, str | None]]) -> Function:
    return function(name, "arithmetic", doc, *(f"{type}, integer -> {type}" for type in _INTEGERS), examples=examples)


BITS = (
    _of_two("&", "Bits that both have", [("91 & 15", "11"), ("5 & NULL", None)]),
    _of_two("|", "Bits that one has", [("32 | 3", "35")]),
    _of_two("#", "Bits that only one has", [("17 # 5", "20")]),
    function("bit not", "arithmetic", "All other bits", *(f"{type} -> {type}" for type in _INTEGERS), examples=[
        ("~ 1", "-2"), ("~ 5 + 1", "-7")]),
    _shift("<<", "Bits shifted left, by n modulo the width of the type", [
        ("1 << 4", "16"), ("1 << 33", "2"), ("1 << -1", "-2147483648"), ("1::bigint << 62", "4611686018427387904")]),
    _shift(">>", "Bits shifted right, by n modulo the width of the type", [
        ("8 >> 2", "2"), ("(-8) >> 1", "-4"), ("8::smallint >> 1", "4")]),
    function("bit_count", "strings", "Number of bits that are 1", "bytea -> bigint", examples=[
        ("bit_count('\\x1234'::bytea)", "5")]),
)  # fmt: skip
