"""Settings of Spark for jobs of a few rows, which take less time than to get ready for them."""

from __future__ import annotations

# JVMs live for a few jobs: the second compiler and parallel collectors cost more than they bring.
JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

# To compile an expression or a stage takes longer than to interpret it for a few rows.
INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}

FORKED = {"spark.python.daemon.module": "tests.support.spark_daemon"}
