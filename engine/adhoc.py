"""Queries: steps that the engine evaluates and DuckDB computes in turn, DuckDB shut off from files and the network."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import duckdb
import pyarrow as pa

from halfjoin.catalog.facts import Schema
from halfjoin.engine.collection import Collection
from halfjoin.engine.memory import Memory, machine_memory
from halfjoin.engine.run import make_run
from halfjoin.engine.scalar.arrow_types import arrow_type
from halfjoin.engine.state import State
from halfjoin.engine.updates import MINIMUM, Updates, constant
from halfjoin.sql.adhoc import SETTINGS, to_duckdb
from halfjoin.sql.adhoc_script import Evaluate, Made, Script
from halfjoin.sql.errors import DataError, UnknownName, UnsupportedSQL
from halfjoin.sql.relation import Relation
from halfjoin.sql.statements import Query

_LEAST = 1 << 26  # bytes without which DuckDB does little

# DuckDB's errors that are about the query, not about a row.
_REFUSALS = (duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException, duckdb.NotImplementedException,
             duckdb.PermissionException)


def run(script: Script, state: State, evaluate: Callable[[State, Relation], Updates]) -> pa.Table:
    """The rows of a query, step by step. `evaluate` gives a relation's rows; it sees the steps' tables as tables.

    Raises:
        DataError: an expression fails for a row.
    """
    scratch = replace(state, tables=dict(state.tables))
    with _connection(state.memory) as connection:
        for step in script.steps:
            if isinstance(step, Evaluate):
                columns = evaluate(scratch, step.relation).columns
            else:
                columns = _columns(_asked(connection, step.text), step.made)
            if step is not script.steps[-1]:
                scratch.tables[step.made.name] = _collection(step.made, columns)
                connection.register(step.made.name, pa.table(columns))
    return pa.Table.from_arrays(list(columns.values()), names=list(script.names))


def _asked(connection: Any, text: str) -> pa.Table:
    try:
        return connection.sql(text).to_arrow_table()
    except _REFUSALS as problem:
        raise UnsupportedSQL(_message(problem)) from problem
    except duckdb.OutOfMemoryException as problem:
        raise DataError("the query needs more memory than the engine may use: ask for fewer rows, or give the engine "
                        "more, Engine(memory=...)") from problem
    except duckdb.Error as problem:
        raise DataError(f"the query fails: {_message(problem)}") from problem


def _columns(table: pa.Table, made: Made) -> dict[str, pa.Array]:
    """DuckDB's columns as the step's, of exactly their types."""
    found = {}
    for column, values in zip(made.columns, table.columns, strict=True):
        try:
            found[column.name] = values.combine_chunks().cast(arrow_type(column.type))
        except pa.ArrowInvalid:
            raise DataError(f"the query fails: {column.type} out of range") from None
    return found


def _collection(made: Made, columns: Mapping[str, pa.Array]) -> Collection:
    """A step's table as a collection that has always been there."""
    schema = {column.name: arrow_type(column.type) for column in made.columns}
    length = len(next(iter(columns.values())))
    collection = Collection(made.name, schema, retain=1)
    collection.publish(make_run(Updates(dict(columns), constant(MINIMUM, length), constant(1, length)), 0))
    return collection


def run_in_duckdb(
    query: Query, schema: Schema, inputs: Mapping[str, pa.Table], refused: UnsupportedSQL, sql: str, memory: Memory
) -> pa.Table:
    """The rows of a query that cannot be split; `inputs` are the contents of the tables and views that it names.

    Raises:
        UnsupportedSQL: DuckDB does not take the query; then `refused` says why it could not be split either.
        UnknownName: it has a function that nobody knows.
        DataError: an expression fails for a row.
    """
    text = to_duckdb(query, schema, sql)
    with _connection(memory) as connection:
        for name, table in inputs.items():
            for names in (inputs, table.column_names):  # DuckDB takes names that differ in case for one
                if len({known.lower() for known in names}) < len(names):
                    raise UnsupportedSQL(f"names that differ only in case: {', '.join(sorted(names))}",
                                         instead=f"as a view: {refused.reason}")
            connection.register(name, table)
        try:
            return _asked(connection, text)
        except UnsupportedSQL as error:
            if isinstance(refused.__cause__, UnknownName) and isinstance(error.__cause__, duckdb.CatalogException):
                raise refused.__cause__ from error
            raise UnsupportedSQL(error.reason, instead=f"(as a view: {refused.reason})") from error


@contextmanager
def _connection(memory: Memory) -> Iterator[Any]:
    """A database of its own: within the engine's budget, or half of the machine's memory, and without files."""
    limit = max(memory.limit or machine_memory() // 2, _LEAST)
    config: dict[str, Any] = {"enable_external_access": False, "memory_limit": f"{limit}B", "temp_directory": ""}
    with duckdb.connect(":memory:", config=config) as connection:
        for setting in (*SETTINGS, "SET python_enable_replacements = false", "SET lock_configuration = true"):
            connection.execute(setting)
        yield connection


def _message(problem: duckdb.Error) -> str:
    """DuckDB's first line, without its remedies, which name its own settings and functions."""
    kind, _, text = str(problem).partition("\n")[0].partition(": ")
    if "division by zero" in text.lower():
        return "division by zero"
    return text or kind
