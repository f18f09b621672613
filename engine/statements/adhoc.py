"""Runs queries in steps, some in the engine and some in DuckDB, which cannot reach files or the network."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import duckdb
import pyarrow as pa

from halfjoin.engine.arrange.collection import Collection
from halfjoin.engine.arrange.memory import Memory
from halfjoin.engine.arrange.run import make_run
from halfjoin.engine.batch.state import State
from halfjoin.engine.scalar.arrow_types import arrow_type
from halfjoin.engine.scalar.duck import interruptible
from halfjoin.engine.system.machine import machine_memory
from halfjoin.engine.updates.updates import MINIMUM, Updates, constant
from halfjoin.errors import DataError, UnsupportedSQL
from halfjoin.sql.adhoc.script import Compute, Evaluate, Loop, Made, Script, Step
from halfjoin.sql.relation import Relation

MOST_ROUNDS = 5_000
MOST_FOUND = 10_000_000

_LEAST = 1 << 26  # bytes; DuckDB can do little with less

# DuckDB's errors about the query, not about a row.
_REFUSALS = (duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException, duckdb.NotImplementedException,
             duckdb.PermissionException)


def run(script: Script, state: State, evaluate: Callable[[State, Relation], Updates]) -> pa.Table:
    """Run a query step by step, and return its rows. `evaluate` computes a relation over tables and earlier steps.

    Raises:
        DataError: an expression fails for a row, or a recursive query does not end.
    """
    scratch = replace(state, tables=dict(state.tables))
    with interruptible(), _connection(state.memory) as connection:
        steps = _Steps(scratch, evaluate, connection)
        columns = [steps.carry_out(step) for step in script.steps][-1]
    return pa.Table.from_arrays(list(columns.values()), names=list(script.names))


@dataclass
class _Steps:
    """Carries out steps, each over the tables that the steps before it made."""

    scratch: State
    evaluate: Callable[[State, Relation], Updates]
    connection: Any
    waiting: dict[str, pa.Table] = field(default_factory=dict)  # tables that are not registered with DuckDB yet

    def carry_out(self, step: Step) -> dict[str, pa.Array]:
        """Carry out one step, keep its table for the later ones, and return the table's columns."""
        match step:
            case Evaluate(relation=relation):
                columns = self.evaluate(self.scratch, relation).columns
            case Compute(text=text):
                columns = self._computed(text, step.made)
            case Loop():
                columns = self._repeated(step)
        return self._there(step.made, columns)

    def _there(self, made: Made, columns: dict[str, pa.Array]) -> dict[str, pa.Array]:
        self.scratch.tables[made.name] = _collection(made, columns)
        self.waiting[made.name] = pa.table(columns)
        return columns

    def _computed(self, text: str, made: Made) -> dict[str, pa.Array]:
        """The result of a text that DuckDB runs over earlier tables."""
        for name in [name for name in self.waiting if f'"{name}"' in text]:
            self.connection.register(name, self.waiting.pop(name))
        return _columns(_asked(self.connection, text), made)

    def _repeated(self, loop: Loop) -> dict[str, pa.Array]:
        """All rows of a recursive query, round by round."""
        listed = ", ".join(column.name for column in loop.made.columns)
        word = "DISTINCT " if loop.distinct else ""
        found = self._computed(f'SELECT {word}{listed} FROM "{loop.first.name}"', loop.made)
        every = [pa.table(found)]
        for _ in range(MOST_ROUNDS):
            if not every[-1].num_rows:
                return _columns(pa.concat_tables(every), loop.made)
            if sum(table.num_rows for table in every) > MOST_FOUND:
                break
            self._there(loop.working, found)
            found = [self.carry_out(step) for step in loop.round][-1]
            if loop.distinct:
                self.waiting[loop.made.name] = pa.concat_tables(every)
                last = loop.round[-1].made.name
                found = self._computed(f'SELECT {listed} FROM "{last}" EXCEPT SELECT {listed} FROM "{loop.made.name}"',
                                       loop.made)
            every.append(pa.table(found))
        raise DataError(f"WITH RECURSIVE does not end: it took more than {MOST_ROUNDS:,} rounds, or found more than "
                        f"{MOST_FOUND:,} rows", remedy="add a condition that ends it")


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
    """DuckDB's columns, cast to exactly the types of the step's columns."""
    found = {}
    for column, values in zip(made.columns, table.columns, strict=True):
        try:
            found[column.name] = values.combine_chunks().cast(arrow_type(column.type))
        except pa.ArrowInvalid:
            raise DataError(f"the query fails: {column.type} out of range") from None
    return found


def _collection(made: Made, columns: Mapping[str, pa.Array]) -> Collection:
    """A step's table as a collection with all rows at the least time."""
    schema = {column.name: arrow_type(column.type) for column in made.columns}
    length = len(next(iter(columns.values())))
    collection = Collection(made.name, schema, retain=1)
    collection.publish(make_run(Updates(dict(columns), constant(MINIMUM, length), constant(1, length)), 0))
    return collection


@contextmanager
def _connection(memory: Memory) -> Iterator[Any]:
    """A new DuckDB database without files, limited to the engine's memory budget or half of the machine's memory."""
    limit = max(memory.limit or machine_memory() // 2, _LEAST)
    config: dict[str, Any] = {"enable_external_access": False, "memory_limit": f"{limit}B", "temp_directory": ""}
    with duckdb.connect(":memory:", config=config) as connection:
        for setting in ("TimeZone = 'UTC'", "python_enable_replacements = false", "lock_configuration = true"):
            connection.execute(f"SET {setting}")
        yield connection


def _message(problem: duckdb.Error) -> str:
    """The first line of DuckDB's text, without remedies: those name settings and functions of DuckDB."""
    kind, _, text = str(problem).partition("\n")[0].partition(": ")
    if "division by zero" in text.lower():
        return "division by zero"
    return text or kind
