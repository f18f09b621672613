"""PostgreSQL's JDBC driver against the server. `HALFJOIN_PGJDBC` names its JAR; Java runs the program's source."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.server.test_drivers import DDL
from tests.support.serving import serving

JAR = os.environ.get("HALFJOIN_PGJDBC", "")
ROW = ("row 1099511627776 2.25 -1234.500 2 [0, -1] 1999-01-02 2020-01-02T03:04:05.000006 2020-01-02T03:04:05.000006Z"
       " true [1, null, 3] 00000000-0000-0000-0000-000000000007")  # fmt: skip


@pytest.mark.skipif(not (JAR and shutil.which("javac")), reason="HALFJOIN_PGJDBC names no JAR of the driver, or no JDK")
def test_a_program_over_jdbc() -> None:
    with serving() as server:
        server.engine.execute(f"{DDL}; CREATE MATERIALIZED VIEW many AS SELECT count(*) AS n FROM ty")
        url = f"jdbc:postgresql://127.0.0.1:{server.port}/halfjoin?user=halfjoin"
        program = Path(__file__).parent / "jdbc" / "Uses.java"
        command = ["java", "-Duser.timezone=UTC", "-cp", JAR, str(program), url]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    assert said[0] == "product PostgreSQL"
    assert said[1] == "tables [ty_pkey:INDEX, many:MATERIALIZED VIEW, ty:TABLE]"
    assert "i:int4, s:int2, b:int8, r:float4, d:float8, n:numeric, t:text, v:varchar, c:bpchar" in said[2]
    assert said[3:6] == ["keys [i]", "schemas [public]", "indexes [i]"]
    assert said[6] == "inserted 1"
    assert said[7:15] == [ROW] * 8
    assert said[15:] == ["batch 300", "rows 301", "error 23505", "error 42703", "count 301", "done"]
