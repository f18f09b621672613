"""The pipelines of the examples: what they send is taken, again and again; with Airflow or Dagster, they load."""

from __future__ import annotations

import runpy
import sys
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.support.serving import serving

FOLDER = Path(__file__).parents[2] / "examples" / "orchestration"


@pytest.mark.parametrize("autocommit", [False, True], ids=["transaction", "autocommit"])
def test_the_statements_can_be_repeated(autocommit: bool) -> None:
    pytest.importorskip("psycopg")
    told = runpy.run_path(str(FOLDER / "statements.py"))
    with serving() as served:
        for day, amount in (("2024-01-01", "12.50"), ("2024-01-02", "7"), ("2024-01-02", "7.25")):
            with served.psycopg(autocommit=autocommit) as connection:
                for statement in told["DEFINE"]:
                    connection.execute(statement)
                connection.execute(told["LOAD"], {"day": day, "shop": "Bern", "amount": amount})
            with served.psycopg(autocommit=autocommit) as connection:
                assert connection.execute(told["CHECK"]).fetchone() == (True,)
        assert served.engine.read("totals").to_pylist() == [{"shop": "Bern", "total": Decimal("19.75")}]


@pytest.mark.parametrize(("file", "package"), [("airflow_dag.py", "airflow"), ("dagster_assets.py", "dagster")])
def test_a_pipeline_is_valid(file: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compile((FOLDER / file).read_text(), file, "exec")
    if find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    monkeypatch.setattr(sys, "path", [str(FOLDER), *sys.path])
    assert runpy.run_path(str(FOLDER / file))
