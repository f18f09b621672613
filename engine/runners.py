"""Who carries out a plan: this process, or Spark. Both take the same plan and give the same answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

import pyarrow as pa

from halfjoin.engine.dataflow import Dataflow, Lookup
from halfjoin.engine.rows import Rows
from halfjoin.engine.run import Part
from halfjoin.engine.updates import Updates
from halfjoin.planner.plan import ArrangementKey

if TYPE_CHECKING:
    from halfjoin.engine.spark.runner import SparkRunner

Setting: TypeAlias = Literal["auto", "local", "spark"]

BULK = 5_000_000  # changed rows from which a Spark job is worth its start


def is_frame(rows: Any) -> bool:
    """Whether it is a Spark DataFrame, of a classic or a Connect session; does not import Spark."""
    return any(
        kind.__name__ == "DataFrame" and kind.__module__.startswith("pyspark.sql.") for kind in type(rows).__mro__
    )


def holds_frame(rows: Any) -> bool:
    """Whether rows of a batch are a Spark DataFrame, or inserts, deletes or upserts of one."""
    return is_frame(rows.data if isinstance(rows, Rows) else rows)


class Held(Protocol):
    """What is known of the collections: columns, updates, distinct keys of an arrangement (None: not known)."""

    def schema(self, name: str) -> Mapping[str, pa.DataType]: ...  # noqa: D102
    def rows(self, collection: str) -> int: ...  # noqa: D102
    def distinct(self, key: ArrangementKey) -> int | None: ...  # noqa: D102


class Runner(Protocol):
    """Carries out the plan of one view; `Dataflow` says what the results are."""

    name: str

    def changes(
        self, flow: Dataflow, held: Held, staged: Mapping[str, Part], lookup: Lookup
    ) -> tuple[Updates, Updates]:
        """The view's output and error updates for a batch's staged runs, both consolidated."""

    def fill(self, flow: Dataflow, held: Held, lookup: Lookup) -> Iterable[tuple[Updates, Updates]]:
        """The view's whole history so far, in parts that memory holds."""


class _Local:
    """This process, on Arrow batches."""

    name = "local"

    def changes(
        self, flow: Dataflow, held: Held, staged: Mapping[str, Part], lookup: Lookup
    ) -> tuple[Updates, Updates]:
        return flow.changes(staged, lookup)

    def fill(self, flow: Dataflow, held: Held, lookup: Lookup) -> Iterable[tuple[Updates, Updates]]:
        return flow.fill(lookup)


LOCAL: Runner = _Local()


@dataclass(slots=True)
class Runners:
    """The engine's setting, its Spark session (None: a local one, started when first needed), and the choice."""

    setting: Setting = "auto"
    session: Any = None
    _spark: SparkRunner | None = None

    def choose(self, rows: int, *, frame: bool = False) -> tuple[Runner, str]:
        """Who runs a change of so many rows (or a first fill from them), and why; `frame`: it came as a DataFrame."""
        if self.setting != "auto":
            chosen: Runner = LOCAL if self.setting == "local" else self.spark
            return chosen, f'the engine was made with runner="{self.setting}"'
        if frame:
            return self.spark, "rows came as a Spark DataFrame"
        if rows < BULK:
            return LOCAL, f"{rows:,} changed rows; Spark takes over from {BULK:,}"
        if self.session is None:
            return LOCAL, f"{rows:,} changed rows, enough for Spark, but the engine has no Spark session"
        return self.spark, f"{rows:,} changed rows; Spark takes over from {BULK:,}"

    def arrow(self, rows: Any) -> Any:
        """Rows of a batch; those of a Spark DataFrame as an Arrow table, all else as it is."""
        if isinstance(rows, Rows):
            return replace(rows, data=self.arrow(rows.data), ordered=not is_frame(rows.data))
        if not is_frame(rows):
            return rows
        return rows.toArrow() if self.setting == "local" else self.spark.rows(rows)

    def describe(self) -> str:
        """The rule, for EXPLAIN."""
        if self.setting != "auto":
            return f"{self.setting}, for every batch"
        bulk = f"from {BULK:,} changed rows" if self.session is not None else "never for other rows, without a session"
        return f"spark for Spark DataFrames and {bulk}; else local"

    @property
    def spark(self) -> SparkRunner:
        """The Spark runner, with its session."""
        if self._spark is None:
            from halfjoin.engine.spark.runner import SparkRunner

            self._spark = SparkRunner(self.session)
        return self._spark

    def close(self) -> None:
        """Let go of scratch files. The session goes on."""
        if self._spark is not None:
            self._spark.files.close()
