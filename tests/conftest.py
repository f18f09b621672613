"""How many examples a run tries, the folders of tests, and Spark's session.

Everyday runs try the same examples, `HALFJOIN_ONE_IN=1` more of the same, and `HALFJOIN_FUZZ=n` n new ones per test.
"""

from __future__ import annotations

import gc
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.support.seeds import left_out, some
from tests.support.small_jobs import FORKED, INTERPRETED, JAVA

pytest.register_assert_rewrite("tests.support.postgres")  # a plugin, from which tests import names as well

_SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]

settings.register_profile("everyday", max_examples=some(30), derandomize=True, deadline=None, database=None,
                          suppress_health_check=_SLOW)  # fmt: skip
settings.register_profile("fuzz", max_examples=int(os.environ.get("HALFJOIN_FUZZ", "1000")), deadline=None,
                          print_blob=True, suppress_health_check=_SLOW)  # fmt: skip
settings.load_profile("fuzz" if "HALFJOIN_FUZZ" in os.environ else "everyday")

os.environ.setdefault("SPARK_SUBMIT_OPTS", JAVA)  # also of the processes that tests start
# Each Python process, and each of Spark's workers, would search all installed packages for plugins.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
# Containers often forbid bytecode. Then each worker, and each process that a test starts, compiles all that it imports.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def _in_memory() -> None:
    """Put the folders of tests into memory, if there is enough: no test cuts the power, so none needs a disk."""
    memory, enough = Path("/dev/shm"), 4 << 30
    if "TMPDIR" not in os.environ and os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > enough:
        os.environ["TMPDIR"] = str(memory)  # also of the processes that tests start
        tempfile.tempdir = None  # asked for anew


_in_memory()


def pytest_itemcollected(item: pytest.Item) -> None:
    """One process has Spark's session: no other starts a second one for a test."""
    if "spark" in getattr(item, "fixturenames", ()):
        item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave seeds to a whole run, unless somebody names the tests to run by their parameters."""
    if any("[" in argument for argument in config.args):
        return
    if left := set(left_out(items)):
        config.hook.pytest_deselected(items=list(left))
        items[:] = [item for item in items if item not in left]


def pytest_collection_finish() -> None:
    """Keep the thousands of tests out of the garbage collector's sight."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """Say how a process with tests has ended, if it died: by which signal, or with which status."""
    if error:
        print(f"\n{node.gateway.id} has ended with {node.gateway._io.popen.wait(60)}")


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """One quiet session for all Spark tests: small data, so few partitions, and no code compiled for a few rows."""
    from halfjoin.engine.spark import runners
    from halfjoin.engine.spark.session import start_session

    runners.NEAR = 0  # frames go to Spark, however few their rows are
    with pytest.MonkeyPatch.context() as patch:
        forked = (f"-D{name}={value}" for name, value in FORKED.items())
        patch.setenv("SPARK_SUBMIT_OPTS", " ".join((os.environ["SPARK_SUBMIT_OPTS"], *forked)))
        patch.setenv("PYTHONPATH", str(Path(__file__).parents[1]), prepend=os.pathsep)
        session = start_session()
    session.conf.set("spark.sql.shuffle.partitions", "1")
    for name, value in INTERPRETED.items():
        session.conf.set(name, value)
    yield session
    session.stop()
