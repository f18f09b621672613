"""From what a source's reader gives to the batches that the engine applies, and to parts of them."""

from __future__ import annotations

from collections.abc import Mapping, Sized
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from halfjoin.catalog.models import Table
from halfjoin.engine.feeds.debezium import debezium
from halfjoin.engine.feeds.source import Polled
from halfjoin.engine.intake.rows import GivenRows, Submitted, keyed
from halfjoin.engine.updates.updates import Ints, Mask
from halfjoin.errors import InvalidRow


@dataclass(frozen=True, slots=True)
class Keyed(GivenRows):
    """Upserts and deletions by key, in their order. `unnamed`: by column, the mask of the rows that do not name it."""

    unnamed: Mapping[str, Mask] = field(default_factory=dict)

    def checked(self, table: Table) -> Submitted:
        """The checked rows. Raises the errors of `submitted`."""
        if not table.primary_key:
            raise InvalidRow("the table has no PRIMARY KEY, so the source cannot find the rows to replace",
                             remedy="create the table with a PRIMARY KEY", table=table.name)  # fmt: skip
        return keyed(table, self.data, self.unnamed)


def batches_of(polled: Polled, chosen: Mapping[str, Ints] | None = None) -> dict[str, Any]:
    """The batch of what a reader gave, as `Writer.apply` takes it; of the `chosen` rows of each table only."""
    found: dict[str, Any] = {}
    for name, rows in polled.batches.items():
        if isinstance(rows, GivenRows):
            found[name] = rows if chosen is None else replace(rows, data=rows.data.take(pa.array(chosen[name])))
            continue
        unnamed = {column: np.asarray(mask) for column, mask in polled.unnamed.get(name, {}).items()}
        if chosen is not None and len(chosen[name]) < len(rows):
            rows = rows.take(pa.array(chosen[name]))
            unnamed = {column: mask[chosen[name]] for column, mask in unnamed.items()}
        match polled.mode:
            case "rows":
                found[name] = rows
            case "upserts":
                found[name] = Keyed(rows, "upserts", unnamed=unnamed)
            case "debezium":
                found[name] = debezium(rows)
    return found


def rows_of(polled: Polled) -> int:
    """How many rows there are, of all tables."""
    return sum(map(length, polled.batches.values()))


def length(rows: Any) -> int:
    """The number of rows of one table."""
    return len(rows if isinstance(rows, Sized) else rows.data)
