"""A PostgreSQL server for tests of SQL's meaning, on a free port of loopback. Tests skip if there is none."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

# Debian's package, and what is on the path elsewhere.
_BINARIES = ("/usr/lib/postgresql/*/bin", "/usr/local/pgsql/bin")
_SETTINGS = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", "timezone=UTC", "jit=off",
             "listen_addresses=127.0.0.1", "statement_timeout=20000")


@pytest.fixture(scope="session")
def postgres() -> Iterator[Any]:
    """A connection to an empty database (C collation, UTC), in autocommit."""
    psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed: pip install '.[test-postgres]'")
    binaries = _binaries()
    if binaries is None:
        pytest.skip("there is no PostgreSQL server: apt-get install postgresql")
    user = "postgres" if os.geteuid() == 0 else None  # the server refuses to run as root
    if user is not None and not _exists(user):
        pytest.skip("PostgreSQL does not run as root, and there is no user postgres")
    folder = Path(tempfile.mkdtemp(prefix="halfjoin-postgres-"))
    data, port = folder / "data", _free_port()
    environment = {**os.environ, "LC_ALL": "C", "TZ": "UTC"}

    def run(*command: str) -> None:
        subprocess.run(command, user=user, env=environment, cwd=folder, check=True, stdout=subprocess.DEVNULL,
                       timeout=120)

    try:
        if user is not None:
            shutil.chown(folder, user)
        run(str(binaries / "initdb"), "-D", str(data), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C",
            "--no-sync")
        settings = (*_SETTINGS, f"port={port}", f"unix_socket_directories={folder}")
        options = " ".join(f"-c {setting}" for setting in settings)
        run(str(binaries / "pg_ctl"), "-D", str(data), "-l", str(folder / "log"), "-w", "-o", options, "start")
        try:
            with psycopg.connect(host="127.0.0.1", port=port, user="postgres", dbname="postgres",
                                 autocommit=True) as connection:
                yield connection
        finally:
            run(str(binaries / "pg_ctl"), "-D", str(data), "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _binaries() -> Path | None:
    """The folder with the newest version's initdb."""
    found = [path for pattern in _BINARIES for path in Path("/").glob(pattern[1:]) if (path / "initdb").exists()]
    if found:
        return max(found, key=lambda path: [int(part) for part in path.parent.name.split(".") if part.isdigit()])
    on_path = shutil.which("initdb")
    return Path(on_path).parent if on_path else None


def _exists(user: str) -> bool:
    try:
        pwd.getpwnam(user)
    except KeyError:
        return False
    return True


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
