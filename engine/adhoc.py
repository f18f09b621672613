"""Queries that no view could be: DuckDB over the contents of the collections, shut off from files and the network."""

from __future__ import annotations

from collections.abc import Mapping

import duckdb
import pyarrow as pa

from halfjoin.catalog.facts import Schema
from halfjoin.sql.adhoc import SETTINGS, to_duckdb
from halfjoin.sql.errors import DataError, UnsupportedSQL
from halfjoin.sql.statements import Query


def run_in_duckdb(
    query: Query, schema: Schema, inputs: Mapping[str, pa.Table], refused: UnsupportedSQL, sql: str
) -> pa.Table:
    """The query's rows; `inputs` are the contents of the tables and views that it names.

    Raises:
        UnsupportedSQL: DuckDB does not take the query; then `refused` says why no view could be it either.
        DataError: an expression fails for a row.
    """
    text = to_duckdb(query, schema, sql)
    with duckdb.connect(":memory:", config={"enable_external_access": False}) as connection:
        for name, table in inputs.items():
            for names in (inputs, table.column_names):  # DuckDB takes names that differ in case for one
                if len({known.lower() for known in names}) < len(names):
                    raise UnsupportedSQL(f"names that differ only in case: {', '.join(sorted(names))}",
                                         instead=f"as a view: {refused.reason}")
            connection.register(name, table)
        for setting in (*SETTINGS, "SET python_enable_replacements = false", "SET lock_configuration = true"):
            connection.execute(setting)
        try:
            return connection.sql(text).to_arrow_table()
        except (duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException, duckdb.NotImplementedException,
                duckdb.PermissionException) as problem:
            raise UnsupportedSQL(f"{problem}".strip(), instead=f"(as a view: {refused.reason})") from problem
        except duckdb.Error as problem:
            raise DataError(f"the query fails: {problem}") from problem
