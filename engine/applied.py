"""What `Engine.apply` answers."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Applied:
    """The outcome of a batch.

    `time`: that of its rows which had none of their own. `upper`: times below it are closed now. `runner`: who ran it,
    and `reason` why. `seconds`: how long it took. `diffs`: for each materialized view its changes that this batch closed, as the view's
    columns, `__time` and `__diff`, consolidated; a view that did not change has a table of no rows.
    """

    time: int
    upper: int
    runner: str
    seconds: float
    diffs: dict[str, pa.Table]
    reason: str = ""
