"""The manual as a web site: every page is in its navigation, and it builds without a warning."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.support.pages import ROOT
from tests.support.pictures import svg

LOADS = re.compile(r'<(script|img|iframe|link[^>]*rel="?(stylesheet|preload|icon|preconnect))[^>]*(src|href)="?https?:')
RECT = re.compile(r'<rect x="(-?\d+)" y="(-?\d+)" width="(\d+)" height="(\d+)"')
SITE = tomllib.loads((ROOT / "zensical.toml").read_text())["project"]


def test_every_page_is_in_the_navigation_once() -> None:
    pages = sorted(str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md"))
    assert sorted(_pages(SITE["nav"])) == pages


@pytest.mark.skipif(find_spec("zensical") is None, reason="no zensical: pip install '.[site]'")
def test_the_site_builds_without_a_warning_and_has_the_docstrings(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    for room in ("halfjoin", "tests"):
        (tmp_path / room).symlink_to(ROOT / room)
    shutil.copy(ROOT / "zensical.toml", tmp_path)
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict"]
    built = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    assert "griffe" not in built.stdout + built.stderr, built.stdout + built.stderr
    page = (tmp_path / "site" / "python.html").read_text()
    assert 'id="halfjoin.Engine.apply"' in page
    assert 'id="halfjoin.upserts"' in page
    built_pages = [found.read_text() for found in (tmp_path / "site").rglob("*.html")]
    for text in built_pages:  # scripts, styles, fonts and pictures come with the site; Mermaid's blocks would load one
        assert not LOADS.search(text) and 'class="mermaid"' not in text
    assert sum(text.count('<svg role="img"') for text in built_pages) == sum(
        page.read_text().count("```mermaid") for page in (ROOT / "docs").rglob("*.md"))  # fmt: skip


def test_a_picture_has_each_node_and_arrow_and_refuses_what_it_cannot_draw() -> None:
    text = svg('flowchart LR\n  a(["x #lt; 1"]) -- "on" --> b["two<br/>lines"]\n  a --> c[["v"]] -.-> b')
    parts = ("<rect", "marker-end", "stroke-dasharray", "x &lt; 1", ">lines<", ">on<")
    assert [text.count(part) for part in parts] == [3, 3, 1, 1, 1, 1]
    with pytest.raises(ValueError, match="cannot be drawn"):
        svg("flowchart LR\n  a ==> b")


@pytest.mark.parametrize("down", [False, True])
def test_no_two_nodes_of_a_picture_lie_on_each_other(down: bool) -> None:
    random = Random(3)
    for _ in range(20):
        some = [f"n{number}" for number in range(random.randint(2, 12))]
        edges = [f"  {a} --> {b}" for a, b in combinations(some, 2) if random.random() < 0.3]
        nodes = [f'  {name}["{name * 3}"]' for name in some]
        text = svg("\n".join(["flowchart TD" if down else "flowchart LR", *nodes, *edges]))
        boxes = [tuple(map(float, found)) for found in RECT.findall(text)]
        for (x, y, w, h), (x2, y2, w2, h2) in combinations(boxes, 2):
            assert x + w <= x2 or x2 + w2 <= x or y + h <= y2 or y2 + h2 <= y


def _pages(entry: Any) -> Iterator[str]:
    """The pages below an entry of the navigation."""
    if isinstance(entry, str):
        yield entry
    else:
        for inner in entry.values() if isinstance(entry, dict) else entry:
            yield from _pages(inner)
