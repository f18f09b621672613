"""`POST /batch`: changed rows of any tables as JSON, exactly once by an idempotency key."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from halfjoin.cli import json_values
from halfjoin.engine.arrange.changes import changes_of
from halfjoin.engine.engine import Engine
from halfjoin.engine.intake.rows import deletes, inserts, upserts
from halfjoin.errors import HalfjoinError, InvalidRow

_MEANINGS = {"rows": lambda rows: rows, "inserts": inserts, "deletes": deletes, "upserts": upserts}


def apply(engine: Engine, body: bytes, key: str | None) -> dict[str, Any]:
    """Apply a batch: `{"table": [{"column": value, ...}, ...], ...}`.

    Instead of a list, a table may have `{"inserts": [...]}`, `{"deletes": [...]}` or `{"upserts": [...]}`. Rows may
    have `__diff` and `__time`. A number with a point keeps all its digits.

    Args:
        engine: what gets the batch.
        body: the JSON text.
        key: the batch's id. A second batch with the same key and content gets the first one's answer; None: none.

    Returns:
        `time`, `upper`, and in `changed` how many rows changed in each view (None: they are in files).

    Raises:
        HalfjoinError: nothing of the batch is kept.
    """
    try:
        given = json_values.loads(body)
    except ValueError as error:
        raise InvalidRow(f"the body is not JSON: {error}") from None
    if not isinstance(given, dict):
        raise InvalidRow("the body is not an object", remedy='send {"table": [{"column": 1}]}')
    made = engine.apply({name: _rows(name, rows) for name, rows in given.items()}, batch_id=key)
    return {"time": made.time, "upper": made.upper,
            "changed": {view: found.num_rows if isinstance(found, pa.Table) else None
                        for view, found in changes_of(made.diffs).items()}}  # fmt: skip


def _rows(table: str, given: Any) -> Any:
    meaning, rows = "rows", given
    if isinstance(given, dict):
        if len(given) != 1 or (meaning := next(iter(given))) not in _MEANINGS:
            raise InvalidRow(f"expected a list of rows, or one of {', '.join(_MEANINGS)}", table=table)
        rows = given[meaning]
    if not isinstance(rows, list):
        raise InvalidRow(f"expected a list of rows, not {type(rows).__name__}", table=table)
    return _MEANINGS[meaning]([json_values.row(row) if isinstance(row, dict) else row for row in rows])


def refusal(error: HalfjoinError) -> dict[str, Any]:
    """An error as JSON, with PostgreSQL's SQLSTATE."""
    return {"error": f"{type(error).__name__}: {error}", "sqlstate": error.sqlstate}
