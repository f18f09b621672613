"""Dagster: a day's rows as a partitioned asset, the maintained view below it, and a check, through psycopg.

It needs dagster and psycopg, and `halfjoin serve` at the address that HALFJOIN_URL names, such as
postgresql://halfjoin@127.0.0.1:6875/halfjoin. Put `statements.py` beside it. (Dagster looks at annotations, so they
are not postponed.)
"""

import dagster as dg
import psycopg
from statements import CHECK, DEFINE, LOAD


class Halfjoin(dg.ConfigurableResource):
    """Where the server is."""

    url: str

    def connect(self) -> psycopg.Connection:
        """A connection whose `with` block is one batch."""
        return psycopg.connect(self.url)


@dg.asset(partitions_def=dg.DailyPartitionsDefinition(start_date="2024-01-01"))
def sales(context: dg.AssetExecutionContext, halfjoin: Halfjoin) -> None:
    """The sales of a day."""
    with halfjoin.connect() as connection:
        for statement in DEFINE:
            connection.execute(statement)
        connection.execute(LOAD, {"day": context.partition_key, "shop": "Bern", "amount": "12.50"})


totals = dg.AssetSpec("totals", deps=[sales], description="The view of all days; halfjoin keeps it up to date.")


@dg.asset_check(asset="sales")
def no_total_is_negative(halfjoin: Halfjoin) -> dg.AssetCheckResult:
    """What must hold of the view."""
    with halfjoin.connect() as connection:
        row = connection.execute(CHECK).fetchone()
    return dg.AssetCheckResult(passed=row is not None and bool(row[0]))


defs = dg.Definitions(
    assets=[sales, totals],
    asset_checks=[no_total_is_negative],
    resources={"halfjoin": Halfjoin(url=dg.EnvVar("HALFJOIN_URL"))},
)
