"""Internal functions that only `set_returning` calls. No SQL can call them."""

from __future__ import annotations

from halfjoin.sql.functions.signature import function
from halfjoin.sql.functions.sum_results import INTERNAL

SET_RETURNING = (
    function("matches", INTERNAL, "The groups of each match", "text, text -> text[][] or error",
             "text, text, text -> text[][] or error"),
    function("not negative", INTERNAL, "The number, which is not negative", "bigint -> bigint or error"),
)  # fmt: skip
