"""Choose the runner: this process for small batches, Spark for large ones and for DataFrames."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import pyarrow as pa

from halfjoin.engine.batch.runner import LOCAL, Checked, Runner
from halfjoin.engine.intake.rows import GivenRows, Submitted, submitted
from halfjoin.errors import HalfjoinError, InvalidRow

if TYPE_CHECKING:
    from halfjoin.catalog.models import Table
    from halfjoin.engine.batch.runner import Output, Versioned
    from halfjoin.engine.spark.batches import FrameRows
    from halfjoin.engine.spark.runner import SparkRunner

Setting: TypeAlias = Literal["auto", "local", "spark"]

BULK = 5_000_000  # changed rows from which a Spark job pays for its start

# Up to so many rows of DataFrames, this process runs a batch, if all that it looks up is in memory.
NEAR = 1_000_000

# From so many changed rows on, a job that scans files is faster than a lookup per row in them.
LOOKUPS = 100_000


def is_frame(rows: Any) -> bool:
    """Whether `rows` is a Spark DataFrame, of a classic or a Connect session. Does not import Spark."""
    return not isinstance(rows, pa.Table | list | dict) and any(
        kind.__name__ == "DataFrame" and kind.__module__.startswith("pyspark.sql.") for kind in type(rows).__mro__
    )


@dataclass(slots=True)
class Runners:
    """Chooses the runner by the engine's setting. `session` None: a local Spark session, started when first needed."""

    setting: Setting = "auto"
    session: Any = None
    staging: Path | None = None  # see `SparkRunner`
    _spark: SparkRunner | None = None

    def choose(self, rows: int, *, frame: bool = False, stored: Callable[[], int] = int) -> tuple[Runner, str]:
        """The runner of a change of so many rows, or of a first fill from so many rows, and the reason.

        Args:
            rows: the number of changed rows.
            frame: whether some rows came as a DataFrame, and stayed with Spark.
            stored: counts the rows of the looked-up collections that stay on disk because they do not fit into memory.
        """
        if self.setting != "auto":
            chosen: Runner = LOCAL if self.setting == "local" else self.spark
            return chosen, f'the engine was made with runner="{self.setting}"'
        if frame:
            return self.spark, "rows came as a Spark DataFrame, which is large or needs lookups in files"
        if self.session is not None and LOOKUPS <= rows < BULK and rows < (there := stored()):
            return self.spark, f"{rows:,} changed rows, with lookups in {there:,} rows that do not fit into memory"
        if rows < BULK:
            return LOCAL, f"{rows:,} changed rows; Spark takes over from {BULK:,}"
        if self.session is None:
            return LOCAL, f"{rows:,} changed rows, enough for Spark, but the engine has no Spark session"
        return self.spark, f"{rows:,} changed rows; Spark takes over from {BULK:,}"

    def brought_in(
        self, rows: Mapping[str, Checked], in_memory: Callable[[Iterable[str]], bool]
    ) -> Mapping[str, Checked]:
        """The checked rows, loaded into this process if they are few and the collections to look up are in memory.

        Raises:
            InvalidRow: upserts have a key twice.
        """
        frames = [given for given in rows.values() if not isinstance(given, Submitted)]
        if self.setting != "auto" or not frames:
            return rows
        if sum(given.length for given in rows.values()) > NEAR or not in_memory(rows):
            return rows
        return {name: given if isinstance(given, Submitted) else given.loaded() for name, given in rows.items()}

    def checked(
        self, batch: Mapping[str, Any], table: Callable[[str], Table], held: Callable[[str], int], time: int, *,
        marked: bool,
    ) -> dict[str, Checked]:  # fmt: skip
        """The checked rows of a batch. Tasks check rows of Spark DataFrames, unless this process is to do everything.

        `held` counts the rows of a table. `time` is for rows without a time of their own. `marked`: whether the caller
        will ask for a fingerprint.

        Raises:
            UnknownName, InvalidRow, InvalidTime: as `rows.submitted`.
        """
        frames: dict[str, tuple[Table, Any, GivenRows, int]] = {}
        rows: dict[str, Checked] = {}
        for name, given in batch.items():
            if type(given) is pa.Table:  # the common case
                rows[name] = submitted(table(name), given)
                continue
            meant = given if isinstance(given, GivenRows) else GivenRows(given, "plain")
            if is_frame(meant.data) and type(meant) is GivenRows:  # messages have the columns of their source
                from halfjoin.engine.spark.types import check_columns

                if meant.data.isStreaming:
                    raise InvalidRow("a streaming DataFrame has no rows by itself", table=name,
                                     remedy="write frame.writeStream.foreachBatch("
                                     f"engine.sink({name!r})).start()")  # fmt: skip
                check_columns(name, meant.data.schema)
            if self.setting != "local" and is_frame(meant.data) and not table(name).constrained:
                to = table(name)
                frames[name] = to, meant.data, replace(meant, data=None), held(to.name)
            else:
                rows[name] = submitted(table(name), self.arrow(given))
        if frames:
            from halfjoin.engine.spark.batches import GivenFrame

            found = self.spark.checked([GivenFrame(*one) for one in frames.values()], time, marked=marked)
            rows |= dict(zip(frames, found, strict=True))
        return {name: rows[name] for name in batch} if len(batch) > 1 else rows

    def arrow(self, rows: Any) -> Any:
        """The rows of a batch: those of a Spark DataFrame as an Arrow table, others unchanged."""
        if isinstance(rows, GivenRows):
            return replace(rows, data=self.arrow(rows.data), ordered=not is_frame(rows.data))
        if not is_frame(rows):
            return rows
        from halfjoin.engine.spark.session import stopping
        from halfjoin.engine.spark.types import for_arrow

        with stopping(rows.sparkSession):
            return for_arrow(rows).toArrow()

    def describe(self) -> str:
        """The rule, for EXPLAIN."""
        if self.setting != "auto":
            return f"{self.setting}, for every batch"
        bulk = f"from {BULK:,} changed rows" if self.session is not None else "never for other rows, without a session"
        if self.session is not None:
            bulk += f" ({LOOKUPS:,} if the rows that they look up do not fit into memory)"
        frames = f"Spark DataFrames of more than {NEAR:,} rows, or that look up rows outside memory"
        return f"spark for {frames}, and {bulk}; else local"

    def runs_of(self, given: Sequence[FrameRows], lookup: Versioned, time: int) -> Mapping[str, Output]:
        """The runs of rows that Spark's tasks have checked, by table. Tasks also check them against tables' keys."""
        return self.spark.runs_of(given, lookup, time)

    @property
    def spark(self) -> SparkRunner:
        """The Spark runner, with its session.

        Raises:
            HalfjoinError: the session that the user gave the engine was stopped. A local session is started again.
        """
        if self._spark is not None and self._spark.stopped:
            if self.session is not None:
                raise HalfjoinError(
                    "the engine's Spark session was stopped",
                    remedy="close the engine, and open it with one that runs: Engine(..., spark=session)",
                )
            self._spark = None
        if self._spark is None:
            from halfjoin.engine.spark.runner import SparkRunner

            self._spark = SparkRunner(self.session, self.staging)
        return self._spark

    def close(self) -> None:
        """Release the scratch files; those that nobody else holds are removed. The session keeps running."""
        self._spark = None
