"""The documents say what is true: what comes from the program is compared with it, and what is named exists.

`HALFJOIN_UPDATE=1 pytest tests/test_readme.py` writes the parts that come from the program anew.
"""

from __future__ import annotations

import importlib
import os
import re
from functools import reduce
from pathlib import Path

import pytest

from tests.support.pages import ROOT, fresh

PAGES = ("README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md")
ROOM = r"(?:sql|catalog|planner|engine)"


@pytest.mark.parametrize("page", ["README.md", "ARCHITECTURE.md", "docs/functions.md"])
def test_what_comes_from_the_program_is_as_it_says_now(page: str) -> None:
    now = fresh(page)
    if "HALFJOIN_UPDATE" in os.environ:
        (ROOT / page).write_text(now)
    assert (ROOT / page).read_text() == now, f"HALFJOIN_UPDATE=1 pytest {Path(__file__).name} writes it anew"
    assert "is not refused" not in now


@pytest.mark.parametrize("page", PAGES)
def test_files_that_are_named_exist(page: str) -> None:
    links = re.findall(r"\]\((?!https?://)([^)#]+)", (ROOT / page).read_text())
    assert not [link for link in links if not (ROOT / link).exists()]


def test_code_and_tests_that_are_named_exist() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    names = {name for name in re.findall(rf"`({ROOM}(?:\.\w+)+)`", text) if not name.endswith(".py")}
    assert len(names) > 40
    assert not sorted(name for name in names if not _exists(name))
    tests = re.findall(r"`(tests/\w+\.py)::(\w+)`", text)
    assert tests and not [test for file, test in tests if f"def {test}(" not in (ROOT / file).read_text()]


def _exists(name: str) -> bool:
    """Whether `room.module.attribute...` can be imported."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            module = importlib.import_module(".".join(("halfjoin", *parts[:length])))
        except ModuleNotFoundError:
            continue
        try:
            reduce(getattr, parts[length:], module)
        except AttributeError:
            continue
        return True
    return False
