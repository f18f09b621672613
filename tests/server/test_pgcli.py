"""pgcli against the server, in a terminal: rows, `\\d`, and names that it completes.

`HALFJOIN_PGCLI` names a Python that has it (`pip install pgcli pexpect`), which needs versions of its own.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.serving import serving

PYTHON = os.environ.get("HALFJOIN_PGCLI", "")
PROGRAM = r"""
import os, pexpect, sys
port, folder = sys.argv[1:]
client = pexpect.spawn(
    f"{os.path.dirname(sys.executable)}/pgcli",
    ["--pgclirc", f"{folder}/config", "-h", "127.0.0.1", "-p", port, "-U", "halfjoin", "-d", "halfjoin"],
    env={**os.environ, "PAGER": "cat", "TERM": "xterm", "HOME": folder}, encoding="utf-8", timeout=60,
    dimensions=(50, 200))
for sent, shown in [
    ("", ":halfjoin>"),
    ("SELECT id * 10 AS tenfold FROM customers;\r", "tenfold"), ("", "SELECT 2"),
    ("\\d customers\r", "customers_pkey"),
    ("\\dm\r", "per_name"),
    ("SELECT * FROM cust", "customers"),
]:
    client.send(sent)
    client.expect(shown)
"""


@pytest.mark.skipif(not PYTHON, reason="HALFJOIN_PGCLI names no Python with pgcli and pexpect")
def test_pgcli_shows_rows_and_definitions_and_completes(tmp_path: Path) -> None:
    with serving() as server:
        server.engine.execute("""
            CREATE TABLE customers (id integer PRIMARY KEY, name text);
            CREATE MATERIALIZED VIEW per_name AS SELECT name, count(*) AS n FROM customers GROUP BY name;
            INSERT INTO customers VALUES (1, 'a'), (2, 'b');
        """)
        command = [PYTHON, "-c", PROGRAM, str(server.port), str(tmp_path)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
