"""The programs that come with PostgreSQL, against the server."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tests.support.serving import Served, serving

WHERE = ("-h", "127.0.0.1", "-U", "halfjoin")


def run(server: Served, program: str, *options: str) -> str:
    """What a program prints, its messages included."""
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed: apt-get install postgresql")
    done = subprocess.run([program, *WHERE, "-p", str(server.port), *options, "halfjoin"], capture_output=True,
                          text=True, timeout=120, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout + done.stderr


@pytest.mark.parametrize("generates", ["g", "G"], ids=["client", "server"])
def test_pgbench_fills_its_tables_and_runs(generates: str) -> None:
    with serving() as server:
        found = run(server, "pgbench", "-i", "-I", f"dt{generates}vpf", "--foreign-keys")
        assert "pgbench_accounts: rows are not stored as in PostgreSQL; fillfactor changes nothing" in found
        for mode in ("simple", "extended", "prepared"):
            found = run(server, "pgbench", "-n", "-t", "5", "-M", mode)
            assert "number of transactions actually processed: 5/5" in found
        sums = server.engine.query("""
            SELECT (SELECT sum(abalance) FROM pgbench_accounts) AS accounts,
                   (SELECT sum(tbalance) FROM pgbench_tellers) AS tellers,
                   (SELECT sum(bbalance) FROM pgbench_branches) AS branches,
                   (SELECT sum(delta) FROM pgbench_history) AS history, (SELECT count(*) FROM pgbench_history) AS n
        """).to_pylist()[0]
    assert sums.pop("n") == 15
    assert len(set(sums.values())) == 1
