"""Standard error while Java starts: one of Java's warnings is left out, nothing else."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import os, subprocess, threading
from halfjoin.engine.spark.stderr import without_warning
say = "exec 1>&2; echo first; echo WARNING: Using incubator modules: x; echo WARNING: other; sleep 0.2; echo later"
with without_warning():
    child = subprocess.Popen(["sh", "-c", say])
    passing = next(thread for thread in threading.enumerate() if thread.name == "halfjoin-stderr")
os.write(2, b"ours\\n")  # in one call: others write at the same time, and print may take two
child.wait()
passing.join()
"""


def test_all_but_the_warning_is_passed_on() -> None:
    said = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True).stderr
    assert sorted(said.splitlines()) == ["WARNING: other", "first", "later", "ours"]
