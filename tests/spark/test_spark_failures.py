"""Tasks die midway, hosts are lost, attempts are overtaken: the batch has the same result as without failures."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from time import sleep
from typing import Any

import pyarrow as pa
import pytest

from halfjoin.engine.spark.session import stopping

pytestmark = pytest.mark.xdist_group("spark")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs two hosts, 127.0.0.2 and 127.0.0.3, and /proc")
def test_what_fails_in_a_cluster_changes_nothing(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    environment = {name: value for name, value in os.environ.items() if name != "SPARK_REMOTE"}
    done = subprocess.run([sys.executable, "-W", "ignore", "-m", "tests.support.failing_tasks", str(tmp_path)],
                          capture_output=True, text=True, cwd=root,
                          env={**environment, "PYTHONPATH": str(root)})  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]


def _waiting(file: Path, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    while not file.exists():
        sleep(0.05)
    yield from batches


def test_what_ctrl_c_ends_does_not_go_on(spark: Any, tmp_path: Path) -> None:
    """The job of an interrupted call held the cores until it was done."""
    from pyspark import InheritableThread

    ends, go = [], tmp_path / "go"

    def job() -> None:
        try:
            spark.range(1).mapInArrow(partial(_waiting, go), "id bigint").collect()
            ends.append("done")
        except Exception:
            ends.append("stopped")

    with pytest.raises(KeyboardInterrupt), stopping(spark):
        thread = InheritableThread(target=job)
        thread.start()
        while not spark.sparkContext.statusTracker().getActiveJobsIds():
            sleep(0.05)
        raise KeyboardInterrupt
    thread.join(60)
    go.touch()
    thread.join()
    assert ends == ["stopped"]
