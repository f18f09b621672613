"""Spark sessions: the user's, or a quiet local one that starts when first needed."""

from __future__ import annotations

import os
import re
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa

from halfjoin.engine.spark.stderr import without_warning
from halfjoin.engine.spark.task_errors import unpacked
from halfjoin.errors import HalfjoinError

# Log nothing: errors are raised, and Spark would log each several times. Without an appender, Spark ignores these
# settings; the gateway's own level keeps it from raising the root's.
_LOG4J = """\
rootLogger.level = off
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = off
"""
# What Spark says if the workers' Python differs from the driver's.
_OTHER_PYTHON = (
    r"No module named '(?:halfjoin|numpy|pyarrow|pyspark|duckdb|pydantic|sqlglot|cloudpickle)[\w.]*'",
    r"\[PYTHON_VERSION_MISMATCH\][^.]*\.\d+[^.]*\.\d+", r'Cannot run program "[^"]*python[^"]*"',
    r"PyArrow [^\n]*must be installed", r"cannot import name '\w+' from 'halfjoin[\w.]*'",
)


def start_session(cores: int | None = None) -> Any:
    """The active session, or that of Spark's environment variable SPARK_REMOTE, or else a new local one.

    The local one uses so many cores (None: all), and has no user interface, logs or progress bars.

    Raises:
        HalfjoinError: Java, which a local session needs, is missing.
    """
    with quiet():
        from pyspark.errors import PySparkRuntimeError
        from pyspark.sql import SparkSession

        active = SparkSession.getActiveSession()
        if active is not None:
            return active
        if "SPARK_REMOTE" in os.environ:
            return SparkSession.builder.getOrCreate()
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        with tempfile.TemporaryDirectory(prefix="halfjoin-") as folder:
            settings = Path(folder) / "log4j2.properties"
            settings.write_text(_LOG4J)
            builder = (
                SparkSession.builder.master(f"local[{cores or '*'}]")
                .appName("halfjoin")
                .config("spark.ui.enabled", False)
                .config("spark.ui.showConsoleProgress", False)
                .config("spark.sql.shuffle.partitions", 2 * (cores or os.cpu_count() or 1))
                .config("spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile={settings}")
            )
            try:
                with without_warning():
                    return builder.getOrCreate()
            except (PySparkRuntimeError, FileNotFoundError) as problem:
                raise HalfjoinError(
                    "a local Spark session could not be started, most likely because Java is missing",
                    remedy="install it (17 or later) and set JAVA_HOME, give the engine a session of your own, or use "
                    'Engine(runner="local")',
                ) from problem


def is_stopped(session: Any) -> bool:
    """Whether a session can no longer answer."""
    if hasattr(session, "is_stopped"):  # Spark Connect
        return bool(session.is_stopped)
    try:
        return not session.sparkContext.defaultParallelism
    except Exception:  # of Python or of Java, whichever notices
        return True


def sees(session: Any, folder: Path) -> bool:
    """Whether Spark's tasks see a folder of this machine, and its files, under its path. Creates it if possible."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        made = tempfile.NamedTemporaryFile(prefix="seen-", dir=folder)  # noqa: SIM115
    except OSError:  # a reader may not write there
        return False
    with made as file, quiet(), translated(session):
        asked = session.range(1).mapInArrow(partial(_found, file.name), "found boolean")
        return bool(asked.collect()[0].found)


def _found(path: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _ in batches:
        yield pa.RecordBatch.from_pydict({"found": [Path(path).is_file()]})


@contextmanager
def quiet() -> Iterator[None]:
    """Suppress Spark's warning about the version of pandas, which nothing here uses."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas")
        yield


@contextmanager
def stopping(session: Any) -> Iterator[None]:
    """Stop the jobs that begin within if Ctrl-C ends them. Spark leaves them running, and later jobs wait for them:
    its own handler of Ctrl-C asks Java over the connection on which this process waits for the job.

    Raises:
        HalfjoinError: somebody has stopped the session.
    """
    connect = hasattr(session, "is_stopped")
    tag, jobs = f"halfjoin-{uuid4().hex}", session if connect else session.sparkContext
    add, remove = (jobs.addTag, jobs.removeTag) if connect else (jobs.addJobTag, jobs.removeJobTag)
    try:
        add(tag)
        yield
    except KeyboardInterrupt:
        (jobs.interruptTag if connect else jobs.cancelJobsWithTag)(tag)
        raise
    except Exception as problem:
        if not is_stopped(session):
            raise
        raise HalfjoinError("the Spark session was stopped",
                            remedy="start one, and make the DataFrame anew in it") from problem  # fmt: skip
    finally:
        with suppress(AttributeError):  # of a session that was stopped nothing is left
            remove(tag)


@contextmanager
def translated(session: Any) -> Iterator[None]:
    """Raise an error of ours from a task as itself, not as a failed Spark job with Java's texts. Ctrl-C stops the jobs.

    Raises:
        HalfjoinError: the tasks' Python lacks our packages, or differs from this one.
    """
    from pyspark.errors import PySparkException

    try:
        with stopping(session):
            yield
    except PySparkException as problem:
        text = str(problem)
        if (ours := unpacked(text)) is not None:
            raise ours from None
        wrong = next((match.group(0) for pattern in _OTHER_PYTHON if (match := re.search(pattern, text))), None)
        if wrong is None:
            raise
        raise HalfjoinError(
            f"the Python of Spark's tasks is not this one ({wrong})",
            remedy=f"set PYSPARK_PYTHON={sys.executable} in the environment before the session starts, or install the "
            "same Python and packages where the tasks run",
        ) from None
