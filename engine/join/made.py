"""What paths have made of a view, checked against its bounds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow as pa

from halfjoin.engine.join.too_large import TooLarge
from halfjoin.engine.linear.failures import NO_ERRORS
from halfjoin.engine.linear.failures import SCHEMA as ERROR_SCHEMA
from halfjoin.engine.linear.heavy import in_limbs, split
from halfjoin.engine.updates import limits
from halfjoin.engine.updates.consolidate import consolidate
from halfjoin.engine.updates.updates import Updates, concat, empty, is_wide

_STEPS = 8  # the rows that a batch makes of a view are added up whenever they have grown by this part of a bound


class Made:
    """The updates that paths have made and `given` has not returned yet, checked against a view's bounds.

    Rows that cancel do not count. The rows are added up whenever they have grown by a part of a bound. This is a few
    times the work of adding up once, and takes memory for little more than the bound. `gathered`: returned updates stay
    in memory, so they count too; equal ones need not be added up.
    """

    def __init__(self, schema: Mapping[str, pa.DataType], *, gathered: bool = False) -> None:
        self._schema, self._gathered = schema, gathered
        self._outputs: list[Updates] = []
        self.errors: list[Updates] = []
        self.rows = self.bytes = 0  # of the updates that are not returned yet
        self._given_rows = self._given_bytes = 0
        self._let_in()

    def take(self, part: Updates) -> None:
        """Add a part of the view's output. A row whose weight does not fit an int64 becomes an error.

        Raises:
            TooLarge: the output is larger than a bound; a wrong join condition can make this many rows.
        """
        if is_wide(part.diff):
            part, heavy = split(part.select(self._schema))
            self.errors.append(heavy)
        self._outputs.append(part)
        self.rows += len(part.time)
        self.bytes += part.nbytes
        if self.rows > self._due_rows or self.bytes > self._due_bytes:
            self._add_up()

    def given(self) -> tuple[Updates, Updates]:
        """Return and forget the output and error updates so far, both consolidated unless `gathered`."""
        errors = _sum(map(in_limbs, self.errors), ERROR_SCHEMA) if self.errors else NO_ERRORS
        found = self._output(), errors
        self._given_rows += len(found[0].time)
        self._given_bytes += self.bytes if self._gathered else 0
        self._outputs, self.rows, self.bytes = [], 0, 0
        self.errors.clear()
        self._let_in()
        return found

    def _output(self) -> Updates:
        if not self._gathered:
            return _sum(self._outputs, self._schema)
        return concat([part.select(self._schema) for part in self._outputs] or [empty(self._schema)])

    def _let_in(self) -> None:
        """Set how many rows and bytes may gather before they are added up."""
        rows, size = limits.MOST_ROWS - self._given_rows, limits.MOST_BYTES - self._given_bytes
        self._due_rows = rows if rows < limits.MOST_ROWS // _STEPS else limits.MOST_ROWS // _STEPS
        self._due_bytes = size if size < limits.MOST_BYTES // _STEPS else limits.MOST_BYTES // _STEPS

    def _add_up(self) -> None:
        whole = _sum(self._outputs, self._schema)
        self._outputs, self.rows, self.bytes = [whole], len(whole), whole.nbytes
        if self._given_rows + self.rows > limits.MOST_ROWS:
            raise TooLarge(f"more than {limits.MOST_ROWS:,} rows")
        if self._given_bytes + self.bytes > limits.MOST_BYTES:
            raise TooLarge(f"more than {limits.MOST_BYTES:,} bytes of rows")
        self._due_rows = self.rows + limits.MOST_ROWS // _STEPS
        self._due_bytes = self.bytes + limits.MOST_BYTES // _STEPS


def _sum(parts: Iterable[Updates], schema: Mapping[str, pa.DataType]) -> Updates:
    chosen = [part.select(schema) for part in parts]
    return consolidate(concat(chosen)) if chosen else empty(schema)
