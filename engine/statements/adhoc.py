"""Queries: steps that the engine evaluates and DuckDB computes in turn, DuckDB shut off from files and the network."""

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

_LEAST = 1 << 26  # bytes without which DuckDB does little

# DuckDB's errors that are about the query, not about a row.
_REFUSALS = (duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException, duckdb.NotImplementedException,
             duckdb.PermissionException)


def run(script: Script, state: State, evaluate: Callable[[State, Relation], Updates]) -> pa.Table:
    """The rows of a query, step by step. `evaluate` gives a relation's rows; it sees the steps' tables as tables.

    Raises:
        DataError: an expression fails for a row, or a query that reads itself does not end.
    """
    scratch = replace(state, tables=dict(state.tables))
    with interruptible(), _connection(state.memory) as connection:
        steps = _Steps(scratch, evaluate, connection)
        columns = [steps.carry_out(step) for step in script.steps][-1]
    return pa.Table.from_arrays(list(columns.values()), names=list(script.names))


@dataclass
class _Steps:
    """Carries steps out, each over the tables that those before it have made."""

    scratch: State
    evaluate: Callable[[State, Relation], Updates]
    connection: Any
    waiting: dict[str, pa.Table] = field(default_factory=dict)  # tables that DuckDB has not been asked about yet

    def carry_out(self, step: Step) -> dict[str, pa.Array]:
        """One step: the columns of its table, which is there for those after it."""
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
        """What DuckDB makes of tables that were made before."""
        for name in [name for name in self.waiting if f'"{name}"' in text]:
            self.connection.register(name, self.waiting.pop(name))
        return _columns(_asked(self.connection, text), made)

    def _repeated(self, loop: Loop) -> dict[str, pa.Array]:
        """All rows that a query finds that reads itself, round by round."""
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
                        f"{MOST_FOUND:,} rows", remedy="write a condition that ends it")


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


@contextmanager
def _connection(memory: Memory) -> Iterator[Any]:
    """A database of its own: within the engine's budget, or half of the machine's memory, and without files."""
    limit = max(memory.limit or machine_memory() // 2, _LEAST)
    config: dict[str, Any] = {"enable_external_access": False, "memory_limit": f"{limit}B", "temp_directory": ""}
    with duckdb.connect(":memory:", config=config) as connection:
        for setting in ("TimeZone = 'UTC'", "python_enable_replacements = false", "lock_configuration = true"):
            connection.execute(f"SET {setting}")
        yield connection


def _message(problem: duckdb.Error) -> str:
    """DuckDB's first line, without its remedies, which name its own settings and functions."""
    kind, _, text = str(problem).partition("\n")[0].partition(": ")
    if "division by zero" in text.lower():
        return "division by zero"
    return text or kind
