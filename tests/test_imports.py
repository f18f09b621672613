"""Imports: importing the package imports little, and Spark's workers import no more than they need."""

import subprocess
import sys

import pytest

import halfjoin as hj

HEAVY = ("deltalake", "duckdb", "pandas", "pydantic", "sqlglot")


@pytest.mark.parametrize(("module", "heavy"), [
    ("halfjoin", (*HEAVY, "numpy", "pyarrow")),
    ("halfjoin.engine.spark.tasks", ("deltalake", "duckdb", "pydantic", "sqlglot")),
    ("halfjoin.engine.spark.probing, halfjoin.engine.spark.writing", ("deltalake", "duckdb", "pydantic", "sqlglot")),
    ("halfjoin.engine.spark.batches, halfjoin.engine.spark.primary_keys", ("deltalake", "duckdb", "sqlglot")),
])  # fmt: skip
def test_importing_does_not_import(module, heavy):
    program = f"import sys, {module}; print(*(name for name in {heavy} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout.split() == []


def test_no_garbage_is_looked_for_while_the_engine_is_imported():
    program = ("import gc, halfjoin; seen = []; gc.callbacks.append(lambda *given: seen.append(given));"
               "halfjoin.Engine; gc.callbacks.clear(); print(len(seen), gc.isenabled())")  # fmt: skip
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["0", "True"]


def test_public_names_are_there_when_used():
    assert all(getattr(hj, name).__name__ == name for name in hj.__all__)
    assert set(dir(hj)) == {*hj.__all__, "__version__"}
    with pytest.raises(AttributeError, match="has no attribute 'Motor'"):
        hj.Motor  # noqa: B018  the look-up is what is tested
