"""The Spark runner through Spark Connect: it does not need a session in this process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.xdist_group("spark")


def test_through_a_connect_server() -> None:
    for module in ("grpc", "grpc_status"):
        pytest.importorskip(module, reason="needs Spark Connect's client: pip install 'halfjoin[test-connect]'")
    root = Path(__file__).parents[2]
    environment = {name: value for name, value in os.environ.items() if name != "SPARK_REMOTE"}
    environment["PYTHONPATH"] = str(root)  # the server's workers import the tests' daemon
    command = [sys.executable, "-W", "ignore", "-m", "tests.support.spark_connect"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=root, env=environment)
    assert done.returncode == 0, done.stderr[-4000:]
