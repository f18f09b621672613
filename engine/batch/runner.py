"""The runner's protocol: this process or Spark carries out a plan. Both take the same plan and give the same answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import pyarrow as pa

from halfjoin.catalog.models import Table
from halfjoin.engine.arrange.changes import StoredChanges
from halfjoin.engine.arrange.part import Part
from halfjoin.engine.batch.flows import Flow
from halfjoin.engine.intake.fingerprint import Partial
from halfjoin.engine.intake.rows import Submitted
from halfjoin.engine.join.closing import Closing
from halfjoin.engine.loop.steps import HERE, Steps
from halfjoin.engine.updates.updates import Updates
from halfjoin.planner.plan import ArrangementKey, Version

Output: TypeAlias = "Updates | Part"  # a runner's output: in memory, perhaps with an index, or in files of tasks


class Held(Protocol):
    """Facts about the collections: columns, updates, distinct keys of an arrangement (None: not known)."""

    def schema(self, name: str) -> Mapping[str, pa.DataType]: ...  # noqa: D102
    def rows(self, collection: str) -> int: ...  # noqa: D102
    def distinct(self, key: ArrangementKey) -> int | None: ...  # noqa: D102


class Versioned(Protocol):
    """A collection's parts before or after a batch, as `dataflow.RunsOf`; `as_files` gives them without loading."""

    @property
    def closing(self) -> Closing:
        """What the batch closes."""

    def __call__(self, name: str, version: Version) -> Sequence[Part]: ...  # noqa: D102

    def as_files(self, name: str, version: Version) -> Sequence[Part]:
        """The parts; those in files stay there."""

    def since(self, name: str) -> int:
        """The least time at which a collection can be read. Earlier times may be moved up to it."""

    def closing_in_files(self, name: str) -> StoredChanges:
        """A collection's updates that the batch closes; those of a job stay in its files."""


class Runner(Protocol):
    """Carries out the plan of one view; `Dataflow` says what the results are."""

    name: str

    def changes(
        self, flow: Flow, held: Held, staged: Mapping[str, Part], lookup: Versioned, title: str
    ) -> tuple[Output, Output]:
        """The view's output and error updates for a batch's staged runs, both consolidated.

        `title` names the view for people.
        """

    def fill(
        self, flow: Flow, held: Held, lookup: Versioned, since: int, title: str
    ) -> Iterable[tuple[Output, Output]]:
        """The view's whole history so far, in parts that fit in memory; those in files have no times below `since`."""

    def steps(self, held: Held) -> Steps:
        """Who carries out the rounds of loops."""


class _Local:
    """This process, on Arrow batches."""

    name = "local"

    def changes(
        self, flow: Flow, held: Held, staged: Mapping[str, Part], lookup: Versioned, title: str
    ) -> tuple[Output, Output]:
        return flow.changes(staged, lookup, lookup.closing)

    def fill(
        self, flow: Flow, held: Held, lookup: Versioned, since: int, title: str
    ) -> Iterable[tuple[Output, Output]]:
        return flow.fill(lookup, lookup.closing.after)

    def steps(self, held: Held) -> Steps:
        return HERE


LOCAL: Runner = _Local()


class Filed(Protocol):
    """Checked rows of a table, in files that tasks wrote. `part`: their fingerprint; the rest is as in `Submitted`."""

    @property
    def table(self) -> Table: ...  # noqa: D102
    @property
    def part(self) -> Partial: ...  # noqa: D102
    @property
    def timed(self) -> bool: ...  # noqa: D102
    @property
    def first(self) -> int: ...  # noqa: D102
    @property
    def last(self) -> int: ...  # noqa: D102
    @property
    def length(self) -> int: ...  # noqa: D102

    def loaded(self) -> Submitted:
        """The rows, read into this process."""


Checked: TypeAlias = "Submitted | Filed"


class Tasks(Protocol):
    """Makes runs of rows that are in files."""

    def runs_of(self, given: Sequence[Any], lookup: Versioned, time: int) -> Mapping[str, Output]:
        """A run of each table's updates by the table's name, checked against the primary key."""
