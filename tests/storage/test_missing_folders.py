"""A folder that is missing in a closed warehouse: whoever needs it is told what to do, and that helps."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import halfjoin as hj

VIEW = "CREATE MATERIALIZED VIEW v AS SELECT g, count(*) AS n FROM t GROUP BY g"


@pytest.mark.parametrize("missing", ["views", "nodes"])
def test_a_view_that_lost_its_folder_is_created_again(tmp_path: Path, missing: str) -> None:
    with hj.Engine(tmp_path / "w", clock="own") as engine:
        engine.execute(f"CREATE TABLE t (k bigint, g bigint); {VIEW}")
        engine.apply({"t": [{"k": k, "g": k % 2} for k in range(5)]}, time=1)
        engine.flush()
    (folder,) = (tmp_path / "w" / missing).iterdir()
    shutil.rmtree(folder)
    with hj.Engine(tmp_path / "w") as engine:
        with pytest.raises(hj.StorageError, match=r"is missing: .* a view can also be dropped and created") as caught:
            engine.read("v") if missing == "views" else engine.apply({"t": [{"k": 5, "g": 1}]}, time=2)
        assert caught.value.path == str(folder)
        engine.execute(f"DROP MATERIALIZED VIEW v; {VIEW}")
        assert sorted(row["n"] for row in engine.read("v").to_pylist()) == [2, 3]
        engine.apply({"t": [{"k": 6, "g": 1}]}, time=3)
        assert sorted(row["n"] for row in engine.read("v").to_pylist()) == [3, 3]
