"""The choice of the runner: this process for small batches, Spark for bulk and for DataFrames."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from halfjoin.engine.batch.runner import LOCAL, Checked, Runner
from halfjoin.engine.intake.rows import GivenRows, Submitted, submitted
from halfjoin.errors import HalfjoinError

if TYPE_CHECKING:
    from halfjoin.catalog.models import Table
    from halfjoin.engine.batch.runner import Output, Versioned
    from halfjoin.engine.spark.batches import FrameRows
    from halfjoin.engine.spark.runner import SparkRunner

Setting: TypeAlias = Literal["auto", "local", "spark"]

BULK = 5_000_000  # changed rows from which a Spark job is worth its start

# Rows of DataFrames up to which a batch is carried out in this process, if all that it looks up is in memory.
NEAR = 1_000_000

# Changed rows from which a job that scans files is worth more than looking each of them up there.
LOOKUPS = 100_000


def is_frame(rows: Any) -> bool:
    """Whether it is a Spark DataFrame, of a classic or a Connect session; does not import Spark."""
    return any(
        kind.__name__ == "DataFrame" and kind.__module__.startswith("pyspark.sql.") for kind in type(rows).__mro__
    )


@dataclass(slots=True)
class Runners:
    """The engine's setting, its Spark session (None: a local one, started when first needed), and the choice."""

    setting: Setting = "auto"
    session: Any = None
    staging: Path | None = None  # see `SparkRunner`
    _spark: SparkRunner | None = None

    def choose(self, rows: int, *, frame: bool = False, stored: Callable[[], int] = int) -> tuple[Runner, str]:
        """Who runs a change of so many rows (or a first fill from them), and why.

        Args:
            rows: of the change.
            frame: whether some came as a DataFrame, and stayed with Spark.
            stored: rows of the collections to be looked up that stay on disk, as memory does not take them.
        """
        if self.setting != "auto":
            chosen: Runner = LOCAL if self.setting == "local" else self.spark
            return chosen, f'the engine was made with runner="{self.setting}"'
        if frame:
            return self.spark, "rows came as a Spark DataFrame, many of them or to be looked up in files"
        if self.session is not None and LOOKUPS <= rows < BULK and rows < (there := stored()):
            return self.spark, f"{rows:,} changed rows, to be looked up in {there:,} rows that memory does not take"
        if rows < BULK:
            return LOCAL, f"{rows:,} changed rows; Spark takes over from {BULK:,}"
        if self.session is None:
            return LOCAL, f"{rows:,} changed rows, enough for Spark, but the engine has no Spark session"
        return self.spark, f"{rows:,} changed rows; Spark takes over from {BULK:,}"

    def brought_in(
        self, rows: Mapping[str, Checked], in_memory: Callable[[Iterable[str]], bool]
    ) -> Mapping[str, Checked]:
        """Checked rows, in this process if they are few enough and what they are looked up in is in its memory.

        Raises:
            InvalidRow: upserts with one key twice.
        """
        if self.setting != "auto" or all(isinstance(given, Submitted) for given in rows.values()):
            return rows
        if sum(given.length for given in rows.values()) > NEAR or not in_memory(rows):
            return rows
        return {name: given if isinstance(given, Submitted) else given.loaded() for name, given in rows.items()}

    def checked(
        self, batch: Mapping[str, Any], table: Callable[[str], Table], time: int, *, marked: bool
    ) -> dict[str, Checked]:
        """Rows of a batch, checked: those of Spark DataFrames by tasks, unless this process is to do everything.

        `time` is that of rows without one of their own; a fingerprint will be asked for if they are to be `marked`.

        Raises:
            UnknownName, InvalidRow, InvalidTime: as `rows.submitted`.
        """
        frames: dict[str, tuple[Table, Any, GivenRows]] = {}
        rows: dict[str, Checked] = {}
        for name, given in batch.items():
            meant = given if isinstance(given, GivenRows) else GivenRows(given, "plain")
            if is_frame(meant.data) and type(meant) is GivenRows:  # messages have columns of their source's
                from halfjoin.engine.spark.types import check_columns

                check_columns(name, meant.data.schema)
            if self.setting != "local" and is_frame(meant.data):
                frames[name] = table(name), meant.data, replace(meant, data=None)
            else:
                rows[name] = submitted(table(name), self.arrow(given))
        if frames:
            from halfjoin.engine.spark.batches import GivenFrame

            found = self.spark.checked([GivenFrame(*one) for one in frames.values()], time, marked=marked)
            rows |= dict(zip(frames, found, strict=True))
        return {name: rows[name] for name in batch}

    def arrow(self, rows: Any) -> Any:
        """Rows of a batch; those of a Spark DataFrame as an Arrow table, all else as it is."""
        if isinstance(rows, GivenRows):
            return replace(rows, data=self.arrow(rows.data), ordered=not is_frame(rows.data))
        if not is_frame(rows):
            return rows
        return rows.toArrow()

    def describe(self) -> str:
        """The rule, for EXPLAIN."""
        if self.setting != "auto":
            return f"{self.setting}, for every batch"
        bulk = f"from {BULK:,} changed rows" if self.session is not None else "never for other rows, without a session"
        if self.session is not None:
            bulk += f" ({LOOKUPS:,} where what they look up does not fit into memory)"
        frames = f"Spark DataFrames of more than {NEAR:,} rows, or that look up what is not in memory"
        return f"spark for {frames}, and {bulk}; else local"

    def runs_of(self, given: Sequence[FrameRows], lookup: Versioned, time: int) -> Mapping[str, Output]:
        """Runs of rows that Spark's tasks have checked, by the table's name; they check them against the keys, too."""
        return self.spark.runs_of(given, lookup, time)

    @property
    def spark(self) -> SparkRunner:
        """The Spark runner, with its session.

        Raises:
            HalfjoinError: the session that the engine was given has been stopped. One of its own is started again.
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
        """Let go of scratch files, as far as nobody else holds them. The session goes on."""
        self._spark = None
