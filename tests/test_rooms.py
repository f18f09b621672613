"""The rooms of the code: their imports have an order, and no room imports what it must not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.rooms import Graph, House, direct, house, order, report

STORES = {"deltalake", "duckdb", "pyarrow", "pyspark"}
KNOWN = {
    "sql.bind",  # a SELECT contains others, so what reads its parts reads SELECTs
    "engine.batch", "engine.intake",  # for types only
}  # fmt: skip


@pytest.fixture(scope="module")
def here() -> House:
    return house()


def test_rooms_import_downwards_only(here: House) -> None:
    assert report(here) == ""


@pytest.mark.parametrize(("rooms", "libraries"), [
    ("sql", STORES), ("catalog", STORES), ("planner", STORES), ("engine", {"sqlglot"}),
])  # fmt: skip
def test_no_room_knows_what_it_must_not(rooms: str, libraries: set[str], here: House) -> None:
    assert here.outside(libraries, rooms) == []


def test_files_of_a_room_import_each_other_one_way(here: House) -> None:
    assert set(here.file_circles()) <= KNOWN


IMPORTS = {
    "at the top": "from halfjoin.engine.batch import stage\n",
    "in a function": "def run():\n    from halfjoin.engine.batch.stage import Staged\n",
    "for types": "import typing\nif typing.TYPE_CHECKING:\n    from halfjoin.engine.batch.stage import Staged\n",
    "relative": "from ..batch import stage\n",
    "whole": "import halfjoin.engine.batch.stage\n",
}


@pytest.mark.parametrize("upwards", IMPORTS.values(), ids=IMPORTS.keys())
def test_a_circle_is_told_with_its_imports(upwards: str, tmp_path: Path) -> None:
    files = {
        "engine/__init__.py": "", "engine/batch/__init__.py": "", "engine/join/__init__.py": "",
        "engine/batch/stage.py": "from halfjoin.engine.join.half_join import lookup\n",
        "engine/join/half_join.py": "",
    }  # fmt: skip
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert report(house(tmp_path)) == ""

    (tmp_path / "engine/join/half_join.py").write_text(upwards)
    told = report(house(tmp_path))
    assert told.startswith("circle of rooms: engine.batch, engine.join")
    assert f"engine/join/half_join.py:{upwards.count(chr(10))} imports halfjoin.engine.batch.stage" in told


def test_order_and_direct_imports() -> None:
    graph: Graph = {"low": set(), "top": {"middle", "low"}, "middle": {"low"}}
    assert order(graph) == ["top", "middle", "low"]
    assert direct(graph) == {"top": {"middle"}, "middle": {"low"}, "low": set()}
    with pytest.raises(ValueError, match="circles"):
        order({"a": {"b"}, "b": {"a"}})
