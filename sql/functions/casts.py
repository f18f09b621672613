"""Functions that the binder calls; SQL text cannot."""

from __future__ import annotations

from halfjoin.sql.functions.signature import function

CASTS = (
    function("fit", "casts", "The text, if it is no longer than n; made by the binder where a value is stored",
             "text, integer -> text or error"),
    function("single row", "casts", "The value of a subquery, if it has at most one row; made by the binder, with the "
             "number of its rows", "any, bigint -> any or error"),
    function("order text", "casts", "A text that orders as the value does; made by the binder for SEARCH",
             "any -> text"),
)  # fmt: skip
