"""The part of `Engine` that takes the user's own functions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from halfjoin.engine.batch.state import State
from halfjoin.engine.batch.writer import Writer
from halfjoin.engine.statements.register import register_reduce, register_table_function
from halfjoin.engine.statements.register_aggregate import register_aggregate
from halfjoin.engine.system.exclusive import exclusive


class Registering(ABC):
    """Registers functions. A warehouse keeps their names and types, not the functions."""

    _state: State
    _writer: Writer | None

    @abstractmethod
    def _check_open(self) -> None:
        """Refuse calls of a closed engine."""

    @exclusive
    def register_table_function(
        self, name: str, function: Callable[[pa.RecordBatch], pa.RecordBatch], returns: Mapping[str, str], *,
        version: str | None = None,
    ) -> None:  # fmt: skip
        """Register a function for use in FROM: the general linear operator.

        Args:
            name: its name in SQL, in lower case.
            function: takes a RecordBatch of its arguments (columns `0`, `1`, ...). It returns one with the columns of
                `returns`, `__row` (the argument row that a result belongs to) and optionally `__time` (the earliest
                time of the result, int64) and `__diff` (its weight, int64). It must be deterministic.
            returns: SQL types by column.
            version: tells the function from others of its name. Without it, its code does: a warehouse that is opened
                again takes no other code as long as views keep what the old one has returned.

        Raises:
            HalfjoinError: the name, the types or the function are not valid.
            Conflict: another function has that name, or it has other code than the one that views keep answers of.
        """
        self._check_open()
        register_table_function(self._state, self._writer, name, function, returns, version)

    @exclusive
    def register_reduce(
        self, name: str, function: Callable[[pa.RecordBatch], pa.RecordBatch], returns: Mapping[str, str], *,
        vectorised: bool = False, version: str | None = None,
    ) -> None:  # fmt: skip
        """Register a function of the groups of a table, for use in FROM: the general reduce.

        SQL calls it as `FROM name(TABLE t PARTITION BY k ORDER BY x) AS r`. Its columns `r.*` are those of `returns`.
        The partition's columns can be named as well (`r.k`), unless `returns` has one of that name. Without PARTITION
        BY, all rows are one group. The function is called anew for each group that changes, never for an empty one. It
        must be deterministic. If it raises, or returns something else than it promised, that is a data error of the
        group, which goes when the group changes.

        Args:
            name: its name in SQL, in lower case.
            function: takes a RecordBatch of a group's distinct rows: the columns of the partition, the table's other
                columns, and `__diff` (how often the row is there, int64). The rows are in the order of ORDER BY; those
                that tie, in the order of these columns. It returns a RecordBatch with the columns of `returns` and
                optionally `__diff` (int64, 1 if it is left out).
            returns: SQL types by column.
            vectorised: the function takes many groups at once. Their rows follow each other, with the number of the
                group in `__group` (int64, from 0). It returns `__group`, too, in any order.
            version: as of `register_table_function`.

        Raises:
            HalfjoinError: the name, the columns or the function are not valid.
            Conflict: there is another function of that name, or the warehouse knows the reduce with other columns, or
                with other code.

        Examples:
            >>> import pyarrow as pa
            >>> import halfjoin as hj
            >>> def runs(rows):  # numbers that follow each other
            ...     found = []
            ...     for x in rows["x"].to_pylist():
            ...         if not found or x > found[-1]["high"] + 1:
            ...             found.append({"low": x, "high": x})
            ...         found[-1]["high"] = x
            ...     return pa.RecordBatch.from_pylist(found)
            >>> engine = hj.Engine(clock="own")
            >>> engine.execute("CREATE TABLE t (k text, x bigint)")
            >>> engine.register_reduce("runs", runs, returns={"low": "bigint", "high": "bigint"})
            >>> query = "SELECT r.k, r.* FROM runs(TABLE t PARTITION BY k ORDER BY x) AS r"
            >>> engine.execute(f"CREATE MATERIALIZED VIEW v AS {query}")
            >>> applied = engine.apply({"t": [{"k": "a", "x": x} for x in (1, 2, 3, 7)]}, time=1)
            >>> applied = engine.apply({"t": [{"k": "a", "x": 2, "__diff": -1}]}, time=2)
            >>> for row in applied.diffs["v"].sort_by([("__diff", "ascending"), ("low", "ascending")]).to_pylist():
            ...     print(row)
            {'k': 'a', 'low': 1, 'high': 3, '__time': 2, '__diff': -1}
            {'k': 'a', 'low': 1, 'high': 1, '__time': 2, '__diff': 1}
            {'k': 'a', 'low': 3, 'high': 3, '__time': 2, '__diff': 1}
        """
        self._check_open()
        register_reduce(self._state, self._writer, name, function, returns, version, vectorised=vectorised)

    @exclusive
    def register_aggregate(
        self, name: str, takes: Sequence[str], returns: str, function: Callable[..., Any] | None = None, *,
        lift: Callable[..., Mapping[str, Any]] | None = None, result: Callable[..., Any] | None = None,
        version: str | None = None,
    ) -> None:  # fmt: skip
        """Register an aggregate for use in views. It adds up (`lift` and `result`), or sees a whole group (`function`).

        A row in which an argument is NULL does not count. Over no rows the value is NULL, and no function is called.
        All functions must be deterministic. If one raises, that is a data error of the rows, or the group, it got.

        Args:
            name: its name in SQL, in lower case.
            takes: the SQL types of its arguments.
            returns: the SQL type of its value.
            function: takes a RecordBatch of the distinct argument rows of one group (columns `0`, `1`, ...) and their
                counts (a numpy array of int64); returns the value. The rows are in the order of the call's ORDER BY,
                or else of the arguments. If an ORDER BY puts other rows between equal ones, those come more than once.
            lift: takes an Arrow array for each argument; returns a dict of columns (numpy or Arrow arrays of integers
                or floats, one value for each row). They are added up for each group, exactly.
            result: takes a numpy array (int64 or float64) for each column of the lift, by name, with the sums of many
                groups; returns an array of their values.
            version: as of `register_table_function`.

        Raises:
            HalfjoinError: the name, the types or the functions are not valid.
            Conflict: there is another function of that name, or the warehouse knows the aggregate with other types.
        """
        self._check_open()
        register_aggregate(self._state, self._writer, name, takes, returns, function, lift, result, version)
