"""sqlglot's compiled modules, where they are installed: they are not loaded, or the error says what to do."""

from __future__ import annotations

import importlib.machinery
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import sqlglot

ASKS = """
import halfjoin as hj
with hj.Engine() as engine:
    engine.execute("CREATE TABLE t (a bigint)")
    print(engine.execute("SELECT count(*) AS n FROM t").to_pylist())
"""


@pytest.fixture
def compiled(tmp_path: Path) -> Path:
    """A copy of sqlglot with modules beside the sources that cannot be loaded."""
    (source,) = sqlglot.__path__
    shutil.copytree(source, tmp_path / "sqlglot", ignore=shutil.ignore_patterns("__pycache__", "dialects/*.pyc"))
    for name in ("parser", "generator", "parsers/postgres"):
        (tmp_path / "sqlglot" / f"{name}{importlib.machinery.EXTENSION_SUFFIXES[0]}").write_bytes(b"")
    return tmp_path


def run(place: Path, code: str) -> subprocess.CompletedProcess[str]:
    start = f"import sys; sys.path.insert(0, {str(place)!r})\n"
    return subprocess.run([sys.executable, "-c", start + code], capture_output=True, text=True, check=False)


def test_compiled_modules_are_not_loaded(compiled: Path) -> None:
    assert "ImportError" in run(compiled, "import sqlglot").stderr  # they would be
    done = run(compiled, ASKS)
    assert done.stdout.strip() == "[{'n': 0}]", done.stderr


def test_compiled_modules_that_are_loaded_are_refused(compiled: Path) -> None:
    loaded = (f"import types; sys.modules['sqlglot.parser'] = module = types.ModuleType('sqlglot.parser')\n"
              f"module.__file__ = 'parser{importlib.machinery.EXTENSION_SUFFIXES[0]}'\n")  # fmt: skip
    done = run(compiled, loaded + ASKS)
    assert "import halfjoin before sqlglot, or run `pip uninstall sqlglotc`" in done.stderr.splitlines()[-1]
