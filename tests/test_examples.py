"""Every example runs and checks itself at its end."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
LIBRARY = {"recompute.py", "demo.py", "demo_page.py"}  # need generated data


@pytest.mark.parametrize("name", sorted(path.name for path in EXAMPLES.glob("*.py") if path.name not in LIBRARY))
def test_example(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    assert capsys.readouterr().out
