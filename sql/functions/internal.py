"""Internal functions: what other functions are made of, and those of chance, which only queries may call."""

from __future__ import annotations

from halfjoin.sql.functions.signature import function
from halfjoin.sql.functions.sum_results import INTERNAL

SET_RETURNING = (
    function("matches", INTERNAL, "The groups of each match", "text, text -> text[][] or error",
             "text, text, text -> text[][] or error"),
    function("format elements", INTERNAL, "format with VARIADIC", "text, text[] -> text or error"),
    function("random", INTERNAL, "A random number from 0 up to 1", "-> double precision"),
    function("gen_random_uuid", INTERNAL, "A random UUID", "-> uuid"),
    function("not negative", INTERNAL, "The number, which is not negative", "bigint -> bigint or error"),
)  # fmt: skip
