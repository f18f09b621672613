"""The engine is a facade: it holds the lock and calls the rooms below, which do the work."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import halfjoin as hj
from halfjoin.engine.storage.reader import Reader

ENGINE = Path(hj.__path__[0]) / "engine"
MOST = 8  # statements of a method, nested ones too, besides its docstring


def _methods() -> Iterator[ast.FunctionDef]:
    tree = ast.parse((ENGINE / "engine.py").read_text())
    (found,) = (node for node in tree.body if isinstance(node, ast.ClassDef))
    yield from (node for node in found.body if isinstance(node, ast.FunctionDef) and node.name != "__init__")


def test_no_method_of_the_engine_does_the_work_itself() -> None:
    sizes = {one.name: sum(isinstance(node, ast.stmt) for node in ast.walk(one)) - 2 for one in _methods()}
    assert {name: size for name, size in sizes.items() if size > MOST} == {}


def _assigned(path: Path) -> Iterator[str]:
    """The attributes of a state that a file assigns."""
    for node in ast.walk(ast.parse(path.read_text())):
        targets = node.targets if isinstance(node, ast.Assign) else []
        for one in (part for target in targets for part in ast.walk(target)):
            if isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Store) and ast.unparse(one.value) == "state":
                yield f"{path.relative_to(ENGINE)}: {ast.unparse(one)}"


def test_nobody_assigns_to_a_state_from_outside() -> None:
    files = [path for path in ENGINE.rglob("*.py") if path.parent.name != "batch"]
    assert len(files) > 100
    assert [one for path in files for one in _assigned(path)] == []


def test_a_reader_has_nothing_that_only_writers_need() -> None:
    writing = ("answered", "newest", "adopt", "make_room", "append", "define", "flush", "compact", "has_older_errors")
    assert [name for name in writing if hasattr(Reader, name)] == []


@pytest.mark.parametrize("change", [
    lambda engine: engine.apply({"t": [{"k": 2}]}),
    lambda engine: engine.advance(),
    lambda engine: engine.execute("INSERT INTO t VALUES (2)"),
    lambda engine: engine.execute("SET TIME = 0; INSERT INTO t VALUES (2)"),
    lambda engine: engine.execute("BEGIN; INSERT INTO t VALUES (2); COMMIT"),
    lambda engine: engine.execute("CREATE TABLE u (k int)"),
    lambda engine: engine.execute("DROP TABLE t"),
    lambda engine: engine.follow("t", "nowhere"),
    lambda engine: engine.register_table_function("f", lambda rows: rows, {"x": "int"}),
    lambda engine: engine.register_aggregate("f", ["int"], "int", lambda rows, counts: 1),
    lambda engine: engine.register_reduce("f", lambda rows: rows, {"x": "int"}),
])  # fmt: skip
def test_an_engine_that_reads_refuses_every_change(change: Callable[[hj.Engine], Any], tmp_path: Path) -> None:
    with hj.Engine(tmp_path / "w") as engine:
        engine.execute("CREATE TABLE t (k int)")
        engine.apply({"t": [{"k": 1}]})
    with hj.Engine(tmp_path / "w", read_only=True) as reader:
        with pytest.raises(hj.HalfjoinError, match="opened with read_only=True; open the warehouse without it"):
            change(reader)
        reader.flush()
        reader.compact()
        assert reader.read("t").to_pylist() == [{"k": 1}]
