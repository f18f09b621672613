"""The manual as a web site: every page is in its navigation, and it builds without a warning."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.support.pages import ROOT

SITE = tomllib.loads((ROOT / "zensical.toml").read_text())["project"]


def test_every_page_is_in_the_navigation_once() -> None:
    pages = sorted(str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md"))
    assert sorted(_pages(SITE["nav"])) == pages


@pytest.mark.skipif(find_spec("zensical") is None, reason="no zensical: pip install '.[site]'")
def test_the_site_builds_without_a_warning_and_has_the_docstrings(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    (tmp_path / "halfjoin").symlink_to(ROOT / "halfjoin")
    shutil.copy(ROOT / "zensical.toml", tmp_path)
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict"]
    built = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    assert "griffe" not in built.stdout + built.stderr, built.stdout + built.stderr
    page = (tmp_path / "site" / "python.html").read_text()
    assert 'id="halfjoin.Engine.apply"' in page
    assert 'id="halfjoin.upserts"' in page


def _pages(entry: Any) -> Iterator[str]:
    """The pages below an entry of the navigation."""
    if isinstance(entry, str):
        yield entry
    else:
        for inner in entry.values() if isinstance(entry, dict) else entry:
            yield from _pages(inner)
