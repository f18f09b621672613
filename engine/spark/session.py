"""Spark sessions: the user's, or a quiet local one started when first needed; and how to tell a DataFrame."""

from __future__ import annotations

import os
import re
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from halfjoin.sql.errors import DataError

# Nothing is logged: what goes wrong is raised, and Spark would tell it several times over. Without an appender, Spark
# takes the settings for none at all; the gateway's own level keeps it from raising the root's.
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
# How a task's DataError begins in the text of the failed job; what follows is the DataError's own.
DATA_ERROR = f"{DataError.__module__}.{DataError.__name__}: "


def start_session() -> Any:
    """The active session, or that of Spark's environment variable SPARK_REMOTE, or else a new local one.

    The local one uses all cores, and has no user interface, logs and progress bars.
    """
    with quiet():
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
            return (
                SparkSession.builder.master("local[*]")
                .appName("halfjoin")
                .config("spark.ui.enabled", False)
                .config("spark.ui.showConsoleProgress", False)
                .config("spark.sql.shuffle.partitions", 2 * (os.cpu_count() or 1))
                .config("spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile={settings}")
                .getOrCreate()
            )


@contextmanager
def quiet() -> Iterator[None]:
    """Without Spark's warning about the version of pandas, which nothing here uses."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas")
        yield


@contextmanager
def translated() -> Iterator[None]:
    """A DataError of a task as the DataError that it is, not as a failed Spark job."""
    from pyspark.errors import PySparkException

    try:
        yield
    except PySparkException as problem:
        found = re.search(re.escape(DATA_ERROR) + "(.+)", str(problem))
        if found is None:
            raise
        raise DataError(found.group(1)) from problem
