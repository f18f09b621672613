"""Tasks die midway, hosts are lost, attempts are overtaken: the batch has the same result as without failures."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.xdist_group("spark")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs two hosts, 127.0.0.2 and 127.0.0.3, and /proc")
def test_what_fails_in_a_cluster_changes_nothing(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    environment = {name: value for name, value in os.environ.items() if name != "SPARK_REMOTE"}
    done = subprocess.run([sys.executable, "-W", "ignore", "-m", "tests.support.failing_tasks", str(tmp_path)],
                          capture_output=True, text=True, cwd=root,
                          env={**environment, "PYTHONPATH": str(root)})  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
