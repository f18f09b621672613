"""Runs the program beside this file that solves the problems of `graphs` with differential-dataflow, in Rust."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

FOLDER = Path(__file__).parent / "differential"


def differential(edges: int, nodes: int, largest: int) -> dict[tuple[str, str], float] | None:
    """The milliseconds of a fill and of each batch, by problem and size; None without cargo, which compiles it."""
    cargo = shutil.which("cargo")
    if cargo is None:
        return None
    command = [cargo, "run", "--release", "--quiet", "--", str(edges), str(nodes), str(largest)]
    told = subprocess.run(command, cwd=FOLDER, check=True, capture_output=True, text=True).stdout
    lines = (line.split("\t") for line in told.splitlines())
    return {(problem, size): float(ms) for problem, size, ms in lines}
