"""Code uses a collection's parts through their methods, and never asks for their class."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pyarrow as pa

import halfjoin as hj
from halfjoin.engine.arrange.index import Footprint
from halfjoin.engine.arrange.keys import key_columns
from halfjoin.engine.arrange.run import Run, make_run
from halfjoin.engine.storage import parquet
from halfjoin.engine.storage.place import LocalPlace
from halfjoin.engine.storage.stored_run import StoredRun, stored
from halfjoin.engine.updates.updates import MINIMUM, Updates
from halfjoin.planner.plan import ArrangementKey
from halfjoin.sql.expr import Column
from halfjoin.sql.types import BIGINT

ENGINE = Path(hj.__path__[0]) / "engine"
KEY = ArrangementKey("c", (Column("k", BIGINT),))
UPDATES = Updates({"k": pa.array([1, 2, 1])}, np.array([4, 3, 9]), np.array([1, 1, -1]))


def _asked(tree: ast.AST, path: Path) -> list[str]:
    """The places where a file asks for the class of a part."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance"]
    named = [call for call in calls if {"Run", "StoredRun"} & {*ast.unparse(call.args[1]).split(" | ")}]
    return [f"{path.relative_to(ENGINE)}: {ast.unparse(call)}" for call in named]


def test_nobody_asks_for_the_class_of_a_part() -> None:
    files = [path for path in ENGINE.rglob("*.py") if path.name != "stored_run.py"]
    assert len(files) > 100
    assert [one for path in files for one in _asked(ast.parse(path.read_text()), path)] == []


def test_a_run_answers_as_the_same_rows_in_files(tmp_path: Path) -> None:
    place = LocalPlace(tmp_path)
    there = StoredRun(place, tuple(parquet.write(place, UPDATES, {"k": pa.int64()}, ())), {"k": pa.int64()})
    here, columns = make_run(UPDATES, 5), key_columns(KEY, {})
    assert (here.in_memory, there.in_memory) == (True, False)
    assert (stored(here), stored(there)) == (None, there)
    assert (here.loaded(5), here.earliest, here.latest) == ((here,), 3, 9)
    (read,) = there.loaded(5)
    assert isinstance(read, Run)
    assert read.updates.table(changes=True).equals(UPDATES.table(changes=True))
    assert (there.earliest, there.latest) == (MINIMUM, 9)  # none is below it
    for part in (here, there):
        assert part.footprint(KEY) == Footprint()
        part.build(KEY, columns)
    assert here.footprint(KEY) == Footprint(3, here.indexes[KEY].nbytes)
    assert StoredRun(place, there.files, there.schema, {KEY: there}).footprint(KEY)[2:] == there.stored
    for part in (here, there):
        part.drop(KEY)
        assert part.footprint(KEY) == Footprint()
