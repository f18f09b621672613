"""A PostgreSQL server for tests of SQL's meaning, on a free port of loopback. Tests skip if there is none.

No test sees what another left: `postgres` is emptied before each, and a module that fills tables once for all its tests
takes a database of its own.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import count
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from tests.support.ports import kept_port

# Debian's package, and what is on the path elsewhere.
_BINARIES = ("/usr/lib/postgresql/*/bin", "/usr/local/pgsql/bin")
_SETTINGS = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", "timezone=UTC", "jit=off",
             "listen_addresses=127.0.0.1", "statement_timeout=20000", "wal_level=logical", "max_replication_slots=30")


Database: TypeAlias = Callable[..., AbstractContextManager[Any]]


@pytest.fixture
def postgres(_everyday: Any) -> Any:
    """A connection to an empty database (C collation, UTC), in autocommit."""
    _everyday.rollback()
    _everyday.execute("DISCARD ALL")  # settings, temporary tables
    _everyday.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    return _everyday


@pytest.fixture(scope="module")
def postgres_of_module(postgres_server: Database) -> Iterator[Any]:
    """As `postgres`, kept for all tests of a module."""
    with postgres_server() as connection:
        yield connection


@pytest.fixture(scope="session")
def _everyday(postgres_server: Database) -> Iterator[Any]:
    with postgres_server() as connection:
        yield connection


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Database]:
    """What makes a new database, with the options of CREATE DATABASE, and a connection to it."""
    psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed: pip install '.[test-postgres]'")
    binaries = _binaries()
    if binaries is None:
        pytest.skip("there is no PostgreSQL server: apt-get install postgresql")
    user = "postgres" if os.geteuid() == 0 else None  # the server refuses to run as root
    if user is not None and not _exists(user):
        pytest.skip("PostgreSQL does not run as root, and there is no user postgres")
    folder = Path(tempfile.mkdtemp(prefix="halfjoin-postgres-"))
    data, port = folder / "data", kept_port()
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
            names = (f"test{number}" for number in count())

            def connected(database: str) -> Any:
                return psycopg.connect(host="127.0.0.1", port=port, user="postgres", dbname=database, autocommit=True)

            @contextmanager
            def database(options: str = "") -> Iterator[Any]:
                name = next(names)
                with connected("postgres") as server:
                    server.execute(f"CREATE DATABASE {name} {options}")
                with connected(name) as connection:
                    yield connection

            yield database
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
