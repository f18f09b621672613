"""`doctor`: what halfjoin finds on this machine and in a warehouse, and what to do about what is wrong."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer
from rich.console import Console
from rich.markup import escape

from halfjoin.cli.settings import read_settings, strange
from halfjoin.engine.engine import Engine
from halfjoin.engine.kernels import native
from halfjoin.errors import HalfjoinError
from halfjoin.version import VERSION

Finding: TypeAlias = tuple[Literal["ok", "note", "wrong"], str, str]  # how it is, what, in words
_LIBRARIES = ("sqlglot", "pyarrow", "deltalake", "numpy", "duckdb", "pydantic", "pyspark", "pandas")
_JAVA = 17
_FREE = 1 << 30  # bytes of disk


def doctor(
    warehouse: Annotated[str, typer.Argument(help="the folder or URL of a warehouse to look at")] = "",
) -> None:
    """Look for what is missing: Python, Java, libraries, disk, the warehouse. It exits with 1 if something is wrong."""
    console, wrong = Console(), False
    named, settings = _settings(warehouse)
    colours = {"ok": "green", "note": "yellow", "wrong": "red"}
    machine = (*_python(), *_kernels(), *_java(), *_libraries())
    for how, what, words in (*machine, *settings, *_disk(named), *_warehouse(named)):
        wrong |= how == "wrong"
        console.print(f"[{colours[how]}]{how:>5}[/]  {escape(what)}: {escape(words)}", soft_wrap=True, highlight=False)
    if wrong:
        raise typer.Exit(1)


def _python() -> Iterator[Finding]:
    yield "ok", "halfjoin", VERSION
    yield "ok", "Python", f"{platform.python_version()} at {sys.executable}"
    if sys.platform not in ("linux", "darwin"):
        yield "wrong", "system", f"{sys.platform}: halfjoin runs on Linux and macOS"
    workers = os.environ.get("PYSPARK_PYTHON")
    if workers and Path(workers).resolve() != Path(sys.executable).resolve():
        yield "note", "PYSPARK_PYTHON", f"{workers} is another Python than this: install halfjoin there, too"


def _kernels() -> Iterator[Finding]:
    if native.on:
        yield "ok", "native kernels", "in use"
    elif native.BUILT:
        yield "note", "native kernels", f"turned off by {native.VARIABLE}=0 in the environment"
    else:
        yield "note", "native kernels", (
            "not built: batches take longer, and nothing else differs; with a C compiler, install halfjoin anew"
        )


def _java() -> Iterator[Finding]:
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    remedy = f"install Java {_JAVA} or later, or set JAVA_HOME; only work on Spark needs it"
    if java is None or not shutil.which(java):
        yield "note", "Java", f"not found: {remedy}"
        return
    told = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(\d+)', told)
    if found is None or int(found[1]) < _JAVA:
        yield "wrong", "Java", f"{java} is version {found[1] if found else '?'}: {remedy}"
    else:
        yield "ok", "Java", f"{found[1]} at {java}"


def _libraries() -> Iterator[Finding]:
    for name in _LIBRARIES:
        try:
            yield "ok", name, version(name)
        except PackageNotFoundError:
            yield "wrong", name, f"not installed: pip install {name}"


def _settings(warehouse: str) -> tuple[str, list[Finding]]:
    """The warehouse to look at; and the settings, without secrets, each with the place that it comes from."""
    try:
        found = read_settings({"warehouse": warehouse})
    except HalfjoinError as error:
        return warehouse, [("wrong", "settings", str(error))]
    lines: list[Finding] = [("ok", f"setting {name}", f"{value} ({origin})") for name, value, origin in found.lines()]
    lines += [("note", name, f"is not a setting: did you mean {meant}?") for name, meant in strange()]
    return found.settings.warehouse or "", lines


def _disk(warehouse: str) -> Iterator[Finding]:
    if "://" in warehouse:
        return
    place = Path(warehouse or ".").resolve()
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    how: Literal["ok", "note"] = "ok" if free >= _FREE else "note"
    yield how, "disk", f"{free / 2**30:.1f} GiB free at {place}"
    if not os.access(place, os.W_OK):
        yield "note", "disk", f"{place} cannot be written by this user"


def _warehouse(warehouse: str) -> Iterator[Finding]:
    if not warehouse:
        return
    try:
        with Engine(warehouse, read_only=True) as engine:
            found = engine.stats()
    except HalfjoinError as error:
        yield "wrong", warehouse, str(error)
        return
    kinds = [one.kind for one in found.collections]
    counted = ((kinds.count(kind), kind) for kind in dict.fromkeys(kinds))
    counts = ", ".join(f"{count} {kind}{'s' * (count > 1)}" for count, kind in counted) or "empty"
    yield "ok", warehouse, f"{counts}; readable below time {found.upper}"
    for one in found.collections:
        if one.foreign:
            yield "wrong", one.name, one.foreign
        if one.errors:
            yield "note", one.name, f"{one.errors} rows fail: SELECT * FROM {one.name} says why"
