"""The dbt project of the examples, through dbt-postgres, against a server: HALFJOIN_DBT is the path of a dbt to run."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.support.serving import Served, serving

PROJECT = Path(__file__).parents[2] / "examples" / "dbt"
DBT = os.environ.get("HALFJOIN_DBT")


def dbt(served: Served, folder: Path, *command: str) -> None:
    """Run dbt; it must succeed."""
    told = {**os.environ, "HALFJOIN_PORT": str(served.port), "DBT_SEND_ANONYMOUS_USAGE_STATS": "false",
            "DBT_TARGET_PATH": str(folder / "target"), "DBT_LOG_PATH": str(folder / "logs")}  # fmt: skip
    done = subprocess.run([str(DBT), *command, "--project-dir", str(PROJECT), "--profiles-dir", str(PROJECT)], env=told,
                          capture_output=True, text=True, timeout=300, check=False)  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]


@pytest.mark.skipif(DBT is None, reason="no dbt: HALFJOIN_DBT is not the path of one, as .ci/run sets it")
def test_the_project_runs_again_and_fully_and_keeps_its_views(tmp_path: Path) -> None:
    with serving() as served:
        for command in (["debug"], ["seed"], ["run"], ["test"]):
            dbt(served, tmp_path, *command)
        numbers = "SELECT oid FROM pg_class WHERE relname IN ('totals', 'big') ORDER BY oid"
        first = served.engine.query(numbers)
        served.engine.execute("INSERT INTO orders VALUES (4, 'Grace', 100)")
        dbt(served, tmp_path, "run")
        assert served.engine.query(numbers) == first  # the views are kept, and have followed without dbt
        assert sorted(row["customer"] for row in served.engine.read("big").to_pylist()) == ["Ada", "Grace"]
        dbt(served, tmp_path, "run", "--full-refresh")
        assert served.engine.query(numbers) != first
        dbt(served, tmp_path, "test")
        assert json.loads((tmp_path / "target" / "run_results.json").read_text())["results"]


def test_the_statements_of_a_second_run_are_taken() -> None:
    """What dbt-postgres sends for a materialized view: it needs no dbt to be tried."""
    pytest.importorskip("psycopg")
    with serving() as served, served.psycopg() as connection:
        connection.execute('CREATE TABLE "halfjoin"."public"."orders" (id integer, customer text, amount numeric)')
        select = 'SELECT customer, sum(amount) AS total FROM "halfjoin"."public"."orders" GROUP BY customer'
        create = f'create materialized view if not exists "halfjoin"."public"."totals" as {select};'
        connection.execute(f"begin; {create} commit")
        refreshed = connection.execute('refresh materialized view "halfjoin"."public"."totals"')
        assert refreshed.statusmessage == "REFRESH MATERIALIZED VIEW"
        connection.execute("begin")
        connection.execute(f'create materialized view if not exists "halfjoin"."public"."totals__dbt_tmp" as {select}')
        connection.execute('alter materialized view "halfjoin"."public"."totals" rename to "totals__dbt_backup"')
        connection.execute('alter materialized view "halfjoin"."public"."totals__dbt_tmp" rename to "totals"')
        connection.execute("commit")
        connection.execute('drop materialized view if exists "halfjoin"."public"."totals__dbt_backup" cascade')
        assert connection.execute("SELECT matviewname FROM pg_matviews").fetchall() == [("totals",)]
