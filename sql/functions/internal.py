"""Internal functions: what `set_returning` calls, and the functions of chance, which only queries may call."""

from __future__ import annotations

from halfjoin.sql.functions.signature import function
from halfjoin.sql.functions.sum_results import INTERNAL
from halfjoin.sql.types import numeric

LENGTH = numeric(22, 0)  # of an interval's length in microseconds

SET_RETURNING = (
    function("matches", INTERNAL, "The groups of each match", "text, text -> text[][] or error",
             "text, text, text -> text[][] or error"),
    function("random", INTERNAL, "A random number from 0 up to 1", "-> double precision"),
    function("gen_random_uuid", INTERNAL, "A random UUID", "-> uuid"),
    function("limit rows", INTERNAL, "The number of LIMIT, which is not negative", "bigint -> bigint or error"),
    function("offset rows", INTERNAL, "The number of OFFSET, which is not negative", "bigint -> bigint or error"),
    function("length of interval", INTERNAL, "The microseconds of an interval, with 30 days in a month",
             "interval -> numeric", numeric=lambda _: LENGTH),
    function("not negative", INTERNAL, "The number, which is not negative", "bigint -> bigint or error"),
)  # fmt: skip
