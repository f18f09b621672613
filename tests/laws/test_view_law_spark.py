"""The view law against a second independent engine: Spark SQL evaluates the hand-written views."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import sqlglot

import halfjoin as hj
from tests.oracle.choice import Seeded
from tests.oracle.rows import bag
from tests.oracle.schema import BY_NAME, TABLES
from tests.oracle.streams import Advance, Apply, tame_batches
from tests.oracle.written import IN_SPARK, VIEWS

END = 40


@pytest.fixture(scope="module")
def engine() -> Any:
    """An engine with random rows and every view. Some views are made before the rows, others are filled."""
    with hj.Engine() as engine:
        for table in TABLES:
            engine.execute(table.ddl)
        for number, step in enumerate([*tame_batches(Seeded(11), 16, upper=1), Advance(END)]):
            if number in (0, 10):
                for name, sql in enumerate(VIEWS.values()):
                    if name % 2 == (number == 10):
                        engine.execute(f"CREATE MATERIALIZED VIEW v{name} AS {sql}")
            if isinstance(step, Apply):
                engine.apply({table: BY_NAME[table].arrow(rows) for table, rows in step.updates.items()})
            else:
                engine.advance(to=step.to)
        yield engine


@pytest.fixture(autouse=True)
def _utc(spark: Any) -> Iterator[None]:
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    yield
    spark.conf.set("spark.sql.session.timeZone", zone)


@pytest.mark.parametrize("name", VIEWS)
def test_view_law_for(engine: hj.Engine, spark: Any, name: str) -> None:
    number = list(VIEWS).index(name)
    time = number * 7 % 20 + 5
    for table in TABLES:
        rows = engine.read(table.name, as_of=time)
        spark.createDataFrame(rows).createOrReplaceTempView(table.name)
    text = IN_SPARK.get(name) or sqlglot.transpile(VIEWS[name], read="postgres", write="spark")[0]
    answer = spark.sql(text.replace("MZ_NOW()", f"{time}L")).toArrow()
    found = bag(engine.read(f"v{number}", as_of=time))
    assert found == bag(answer)
