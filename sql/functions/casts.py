"""The function `fit`, which checks the length in an implicit cast to varchar(n) or char(n)."""

from __future__ import annotations

from halfjoin.sql.functions.signature import function

CASTS = (
    function("fit", "casts", "The text, if it is no longer than n; made by the binder where a value is stored",
             "text, integer -> text or error"),
    function("single row", "casts", "The value of a subquery, if it has at most one row; made by the binder, with the "
             "number of its rows", "any, bigint -> any or error"),
)  # fmt: skip
