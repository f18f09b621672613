"""A small Spark cluster whose tasks die midway, in a separate process: two hosts with one executor each.

`python -m tests.support.failing_tasks FOLDER`. In every job the first task that has written a file fails: the test
kills its Python process or its executor, or makes it so slow that another attempt overtakes it. A batch's changes, and
the files that it leaves, must be as if nothing had happened.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, Literal, TypeAlias

import pyspark

import halfjoin as hj
from halfjoin.engine.spark import batches, flow, primary_keys, probing, runner, runners, writing
from tests.oracle.rows import bag, updates
from tests.support.ports import kept_port
from tests.support.small_jobs import FORKED, INTERPRETED, JAVA

How: TypeAlias = Literal["worker", "slow", "executor"]
WAYS: tuple[How, ...] = ("worker", "slow", "executor")

_PATIENCE = 120  # seconds: what takes longer never happens
_SPARK = Path(pyspark.__file__).parent
_SQL = """
    CREATE TABLE a (k bigint PRIMARY KEY, x bigint);
    CREATE TABLE b (k bigint, y bigint);
    CREATE MATERIALIZED VIEW v AS SELECT a.k, b.y / a.x AS q FROM a, b WHERE a.k = b.k
"""


@dataclass(frozen=True, slots=True)
class Failing:
    """A task with one attempt that fails after it has written a file. The file `note` says that it has failed."""

    task: Callable[[Any], Iterator[Any]]
    how: How
    note: Path

    def __call__(self, given: Any) -> Iterator[Any]:
        """The function for `mapInArrow`."""
        for answer in self.task(given):
            if answer.column("name")[0].is_valid and self._first():
                self._fail()
            yield answer

    def _first(self) -> bool:
        try:
            self.note.touch(exist_ok=False)
        except FileExistsError:
            return False
        return True

    def _fail(self) -> None:
        if self.how == "worker":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.how == "executor":
            stat = Path(f"/proc/{os.getppid()}/stat").read_text()  # of the daemon that the executor has started
            os.kill(int(stat.rpartition(")")[2].split()[1]), signal.SIGKILL)
        time.sleep(_PATIENCE)  # until it is ended, since another attempt was quicker
        raise AssertionError("nobody has overtaken this attempt")


def main(folder: Path) -> None:
    """Run a history here and on the local runner. The ways in which a task fails take turns."""
    runner.FEW = runners.NEAR = 0
    primary_keys.CHECKED_ROWS, probing.SHARE_ROWS = 50, 1  # several tasks a job: only those are overtaken
    answers, numbers = writing.answers, count()
    notes = folder / "notes"
    notes.mkdir(parents=True)

    def failing(*kinds: tuple[Any, Any], **hints: Any) -> Any:
        number = next(numbers)
        note = notes / str(number)
        found = answers(*((frame, Failing(task, WAYS[number % len(WAYS)], note)) for frame, task in kinds), **hints)
        assert note.exists() or not any(one.files for one in found), "no attempt has failed"
        return found

    writing.answers = batches.answers = primary_keys.answers = flow.answers = failing
    with _session(folder) as session:
        _history(session, folder / "w")
    assert len(list(notes.iterdir())) >= 2 * len(WAYS), "too few jobs"
    gc.collect()  # what a batch answered holds files for as long as it is there
    left = [path for path in (folder / "w" / "staging").rglob("*") if path.is_file()]
    assert not left, left


def _history(session: Any, folder: Path) -> None:
    with hj.Engine(folder, spark=session) as engine, hj.Engine() as local:
        for one in (engine, local):
            one.execute(_SQL)
        for number, (name, meaning, sql) in enumerate(_BATCHES, 1):
            frame = session.sql(sql).repartition(4)
            applied = engine.apply({name: meaning(frame)}, time=number)
            expected = local.apply({name: meaning(frame.toArrow())}, time=number)
            assert applied.runner == "spark"
            assert Counter(updates(applied.diffs["v"])) == Counter(updates(expected.diffs["v"])), number
        engine.flush()
        for name in ("a", "b", "v"):
            assert bag(engine.read(name)) == bag(local.read(name)), name
    for table in (folder / "tables" / "a", folder / "tables" / "b", folder / "views" / "v"):
        assert {path.name for path in table.glob("*.parquet")} <= _ever_in(table), table


def _ever_in(table: Path) -> set[str]:
    """The files of all versions of a Delta table."""
    actions = [json.loads(line) for log in table.glob("_delta_log/*.json") for line in log.read_text().splitlines()]
    return {action["add"]["path"] for action in actions if "add" in action}


def _plain(rows: Any) -> Any:
    return rows


_BATCHES: tuple[tuple[str, Callable[[Any], Any], str], ...] = (
    ("a", _plain, "SELECT id AS k, id % 5 AS x FROM range(400)"),
    ("b", _plain, "SELECT id % 300 AS k, id AS y FROM range(900)"),  # some of which are divided by zero, until
    ("a", hj.upserts, "SELECT 5 * id AS k, 7L AS x FROM range(80)"),
    ("b", hj.deletes, "SELECT id % 300 AS k, id AS y FROM range(500)"),
)


@contextmanager
def _session(folder: Path) -> Iterator[Any]:
    """A session of a cluster of two hosts, because Spark never repeats a slow task on the same host."""
    from pyspark.sql import SparkSession

    folder.mkdir(parents=True, exist_ok=True)
    port = kept_port()
    master = f"spark://127.0.0.1:{port}"
    memory = ("--cores", "1", "--memory", "700m", "--work-dir", str(folder / "work"))
    web = ("--webui-port", "0")
    parts = [("master.Master", "--port", str(port), "--host", "127.0.0.1", *web)]
    parts += [("worker.Worker", "--host", f"127.0.0.{number}", *web, *memory, master) for number in (2, 3)]
    environment = {**os.environ, "SPARK_HOME": str(_SPARK), "PYSPARK_PYTHON": sys.executable,
                   "SPARK_DAEMON_JAVA_OPTS": JAVA}  # fmt: skip
    with (folder / "cluster.log").open("wb") as log:
        started = [
            subprocess.Popen([_SPARK / "bin" / "spark-class", f"org.apache.spark.deploy.{name}", *rest],
                             stdout=log, stderr=log, env=environment) for name, *rest in parts
        ]  # fmt: skip
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings: dict[str, object] = {
        "spark.ui.enabled": False, "spark.ui.showConsoleProgress": False, "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1", "spark.executor.memory": "500m",
        "spark.executor.extraJavaOptions": JAVA,
        "spark.executorEnv.PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        # Several tasks, however few the rows:
        "spark.sql.shuffle.partitions": 4, "spark.sql.adaptive.enabled": False,
        "spark.speculation": True, "spark.speculation.quantile": 0.5, "spark.speculation.interval": "50ms",
        **INTERPRETED, **FORKED,
    }  # fmt: skip
    session = None
    try:
        builder = SparkSession.builder.master(master)
        for name, value in settings.items():
            builder = builder.config(name, value)  # type: ignore[arg-type]
        session = builder.getOrCreate()
        yield session
    finally:
        if session is not None:
            session.stop()
        for process in started:
            process.kill()
            process.wait()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
