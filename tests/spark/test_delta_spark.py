"""Spark's own Delta reader, with its JAR, reads the same rows from a warehouse and a sink's table as the engine.

It needs an environment with a Spark that `delta-spark` supports (`pip install 'halfjoin[test-delta]'`). It may
differ from the suite's environment. `HALFJOIN_DELTA_SPARK` is the path of its `python`.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.delta_spark import NOT_TO_BE_HAD


def test_what_the_engine_says_is_what_spark_reads(tmp_path: Path) -> None:
    python = os.environ.get("HALFJOIN_DELTA_SPARK") or (importlib.util.find_spec("delta") and sys.executable)
    if not python:
        pytest.skip("needs delta-spark: pip install 'halfjoin[test-delta]', or HALFJOIN_DELTA_SPARK=its/bin/python")
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    command = [python, "-W", "ignore", "-m", "tests.support.delta_spark", str(tmp_path / "w")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=root, env=environment)  # fmt: skip
    if done.returncode == NOT_TO_BE_HAD:
        pytest.skip(f"Delta's JAR could not be had: {done.stderr[-500:]}")
    assert done.returncode == 0, done.stderr[-4000:]
