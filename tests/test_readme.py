"""The documents are true: parts that come from the program agree with it, and all names in them exist.

`HALFJOIN_UPDATE=1 pytest tests/test_readme.py` writes the parts that come from the program anew.
"""

from __future__ import annotations

import importlib
import os
import re
from functools import reduce
from pathlib import Path
from typing import Any

import pytest

from tests.support.pages import BLOCK, ROOT, fresh, pages

ROOM = r"(?:sql|catalog|planner|engine)"
ON_SPARK = [page for page in pages() if any(block[1] == "spark" for block in BLOCK.finditer((ROOT / page).read_text()))]
ARCHITECTURE = [page for page in pages() if page == "ARCHITECTURE.md" or page.startswith("docs/architecture/")]


@pytest.mark.parametrize("page", [page for page in pages() if page not in ON_SPARK])
def test_page_shows_what_the_program_prints(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _compare(page, tmp_path, monkeypatch)


@pytest.mark.parametrize("page", ON_SPARK)
def test_page_shows_what_spark_prints(
    page: str, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _compare(page, tmp_path, monkeypatch, spark)


def _compare(page: str, folder: Path, monkeypatch: pytest.MonkeyPatch, session: Any = None) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "100")
    now = fresh(page, session)
    if "HALFJOIN_UPDATE" in os.environ:
        (ROOT / page).write_text(now)
    assert (ROOT / page).read_text() == now, f"HALFJOIN_UPDATE=1 pytest {Path(__file__).name} writes it anew"
    assert "is not refused" not in now


@pytest.mark.parametrize("page", pages())
def test_links_of_a_page_lead_somewhere(page: str) -> None:
    broken = []
    for link in re.findall(r"\]\((?!https?://)([^)]+)\)", (ROOT / page).read_text()):
        path, _, heading = link.partition("#")
        target = (ROOT / page).parent / path if path else ROOT / page
        if not target.exists() or (heading and heading not in _headings(target)):
            broken.append(link)
    assert not broken


def test_every_page_is_in_a_table_of_contents() -> None:
    linked = {
        (ROOT / page).parent.joinpath(link).resolve()
        for page in pages() for link in re.findall(r"\]\(([^)#]+\.md)", (ROOT / page).read_text())
    }  # fmt: skip
    assert not [page for page in pages() if (ROOT / page).resolve() not in linked and Path(page).name != "README.md"]


def test_code_that_is_named_exists() -> None:
    text = "".join((ROOT / page).read_text() for page in ARCHITECTURE)
    names = {name for name in re.findall(rf"`({ROOM}(?:\.\w+)+)`", text) if not name.endswith(".py")}
    assert len(names) > 40
    assert not sorted(name for name in names if not _exists(name))


def test_tests_that_are_named_exist() -> None:
    text = "".join((ROOT / page).read_text() for page in pages())
    tests = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", text)
    assert tests
    assert not [test for file, test in tests if f"def {test}(" not in (ROOT / file).read_text()]


def _headings(page: Path) -> set[str]:
    """The anchors that GitHub gives a page's headings."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def _exists(name: str) -> bool:
    """Whether `room.module.attribute...` can be imported, or is a room that a diagram names. What needs a package that
    is not installed cannot be told, so it counts as there."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            module = importlib.import_module(".".join(("halfjoin", *parts[:length])))
        except ModuleNotFoundError as missing:
            if not (missing.name or "").startswith("halfjoin"):
                return True
            continue
        try:
            reduce(getattr, parts[length:], module)
        except AttributeError:
            continue
        return True
    return False
