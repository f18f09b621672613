"""Standard error while Java starts: one of Java's warnings is left out, nothing else."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import subprocess, sys, threading
from halfjoin.engine.spark.stderr import without_warning
say = "exec 1>&2; echo first; echo WARNING: Using incubator modules: x; echo WARNING: other; sleep 0.2; echo later"
with without_warning():
    child = subprocess.Popen(["sh", "-c", say])
    passing = next(thread for thread in threading.enumerate() if thread.name == "halfjoin-stderr")
print("ours", file=sys.stderr, flush=True)
child.wait()
passing.join()
"""


def test_all_but_the_warning_is_passed_on() -> None:
    said = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True).stderr
    assert sorted(said.splitlines()) == ["WARNING: other", "first", "later", "ours"]
