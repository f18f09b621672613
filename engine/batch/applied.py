"""The outcome that `Engine.apply` returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from halfjoin.engine.arrange.changes import changes_of, size
from halfjoin.engine.batch.clock import Clock, shown
from halfjoin.engine.display.changes import changes_html
from halfjoin.engine.display.html import note, piece
from halfjoin.errors import Conflict, UnknownName


@dataclass(frozen=True, slots=True)
class Applied:
    """The outcome of a batch.

    `time`: the time of rows without one of their own. `upper`: times below it are closed now. `runner`: who ran the
    batch; `reason`: why. `seconds`: how long it took. `diffs`: for each materialized view the changes that this batch
    closed, consolidated, with the view's columns, `__time` and `__diff`; the table of an unchanged view is empty.
    Changes that Spark's tasks left in files are read on each access; `dataframe` does not collect them. If a warehouse
    answers a repeated batch id, views created after the batch, or without history from that time, are left out.
    `errors`: the views that cannot be read at some time that this batch closed, because an expression fails for a row,
    with the error that a read raises at the first such time. Their `diffs` hold the rows that do not fail.
    `clock`: what the times mean, `wall` or `own`.
    """

    time: int
    upper: int
    runner: str
    seconds: float
    diffs: Mapping[str, pa.Table]
    reason: str = ""
    frames: Callable[[str], Any] | None = field(default=None, repr=False, compare=False)
    errors: Mapping[str, str] = field(default_factory=dict)
    clock: Clock | None = field(default=None, repr=False, compare=False)

    def after(self, seconds: float) -> Applied:
        """The same outcome, with another duration. It costs a tenth of `dataclasses.replace`."""
        return Applied(self.time, self.upper, self.runner, seconds, self.diffs, self.reason, self.frames,
                       self.errors, self.clock)  # fmt: skip

    def __reduce__(self) -> tuple[type[Applied], tuple[Any, ...]]:
        """A copy, also in another process, has its changes in memory and no engine."""
        return Applied, (self.time, self.upper, self.runner, self.seconds, dict(self.diffs), self.reason, None,
                         dict(self.errors), self.clock)  # fmt: skip

    def dataframe(self, view: str) -> Any:
        """A view's changes in `diffs` as a Spark DataFrame, not collected. A time of day is text.

        Raises:
            UnknownName: `diffs` does not have that view.
            Conflict: this is a copy.
        """
        if view not in self.diffs:
            raise UnknownName("view", view, self.diffs)
        if self.frames is None:
            raise Conflict("a copy of an outcome has no DataFrames", remedy=f"take the table diffs[{view!r}]")
        return self.frames(view)

    def __repr__(self) -> str:
        head = f"time={self.time}, upper={self.upper}, runner={self.runner!r}, seconds={self.seconds:.6f}"
        changes = changes_of(self.diffs).items()
        errors = f", errors={dict(self.errors)!r}" if self.errors else ""
        return f"Applied({head}, diffs={{{', '.join(f'{view}: {size(found)}' for view, found in changes)}}}{errors})"

    def _repr_html_(self) -> str:
        """What notebooks show."""
        upper = shown(self.upper, self.clock)
        said = f"upper {upper}, {self.seconds * 1000:.1f} ms, {self.runner}: {self.reason}"
        changes = changes_html(changes_of(self.diffs), self.errors)
        return piece(f"batch at time {shown(self.time, self.clock)}", note(said), changes)
