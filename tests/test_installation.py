"""The installation builds the kernels where Python has a stable interface for them, and goes on where it has none."""

from __future__ import annotations

import runpy
import sys
import sysconfig
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("without_a_lock", [None, 0, 1])
def test_only_a_python_with_a_stable_interface_builds_kernels(
    monkeypatch: pytest.MonkeyPatch, without_a_lock: int | None
) -> None:
    """setuptools refuses the stable interface on a Python without the global lock, so nothing could be installed."""
    given: list[dict[str, Any]] = []
    stub = SimpleNamespace(Extension=lambda *args, **named: (args, named), setup=lambda **named: given.append(named))
    monkeypatch.setitem(sys.modules, "setuptools", stub)
    monkeypatch.setattr(sysconfig, "get_config_var", lambda name: {"Py_GIL_DISABLED": without_a_lock}[name])
    monkeypatch.chdir(ROOT)
    runpy.run_path("setup.py", run_name="__main__")
    [settings] = given
    if without_a_lock:
        assert settings == {}
        return
    [(args, named)] = settings["ext_modules"]
    assert {Path(file).name for file in args[1]} == {file.name for file in ROOT.glob("engine/kernels/*.c")} != set()
    assert named["optional"] and named["py_limited_api"]
    assert settings["options"] == {"bdist_wheel": {"py_limited_api": "cp311"}}
