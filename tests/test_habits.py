"""Habits: the oldest versions are the bounds of pyproject.toml, doctests run, contributors' pages name what exists.

`make docs` (`HALFJOIN_UPDATE=1`) writes `.ci/oldest.txt` anew.
"""

from __future__ import annotations

import doctest
import importlib
import os
import re
import tomllib
from pathlib import Path

import pytest

from tests.support.pages import ROOT
from tests.test_readme import _exists

ROOMS = ("sql", "catalog", "planner", "engine")
FACE = ROOT / "halfjoin" / "collections"
PAGES = sorted(page for page in (ROOT / "docs" / "contributing").glob("*.md") if page.stem != "README")
WITH_EXAMPLES = sorted(
    ".".join(file.relative_to(ROOT).with_suffix("").parts).removeprefix("halfjoin.")
    for room in (*(ROOT / room for room in ROOMS), FACE) for file in room.rglob("*.py")
    if ">>> " in file.read_text() and "spark" not in file.parts
)  # fmt: skip
LAWS = {
    "planner.linear", "planner.plan", "engine.linear.temporal", "engine.linear.failures",
    "engine.arrange.merging", "engine.storage.journal",
}  # fmt: skip
EXTRAS = ("test", "test-postgres")  # what the job with the oldest versions installs


def test_the_oldest_versions_are_the_lower_bounds() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = [one for name in EXTRAS for one in project["optional-dependencies"][name]]
    lines = ["# Written by `make docs`: the lower bounds of pyproject.toml. A constraint for pip, on Python 3.11."]
    for requirement in (*project["dependencies"], *extras):
        found = re.fullmatch(r"([\w-]+)(?:\[[\w,]+\])?>=([\d.]+)(?:,.*)?", requirement)
        assert found, f"{requirement} has no lower bound"
        lines.append(f"{found[1]}=={found[2]}")
    oldest, path = "\n".join(lines) + "\n", ROOT / ".ci" / "oldest.txt"
    if "HALFJOIN_UPDATE" in os.environ:
        path.write_text(oldest)
    assert path.read_text() == oldest


def test_each_law_has_a_worked_example() -> None:
    assert set(WITH_EXAMPLES) >= LAWS


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_examples_in_docstrings_run(name: str) -> None:
    found = doctest.testmod(importlib.import_module(f"halfjoin.{name}"))
    assert found.attempted and not found.failed


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_contributors_pages_name_what_exists(page: Path) -> None:
    text = page.read_text()
    links = re.findall(r"\]\((?!https?://)([^)#]+)", text)
    assert links and not [link for link in links if not (page.parent / link).exists()]
    names = set(re.findall(rf"`((?:{'|'.join(ROOMS)})(?:\.\w+)+)`", text))
    assert len(names) > 5 and not sorted(name for name in names if not _exists(name))
    helpers = re.findall(r"`(tests(?:\.\w+)+)`", text)
    assert not [name for name in helpers if not (ROOT / f"{name.replace('.', '/')}.py").exists()]
    tests = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", text)
    assert len(tests) > 2
    assert not [test for file, test in tests if f"def {test}" not in (ROOT / file).read_text()]
