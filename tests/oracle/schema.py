"""The three small tables that random views read. They have few values, so that joins match, NULLs and duplicates."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal

import pyarrow as pa

from tests.oracle.choice import Choices


@dataclass(frozen=True)
class Column:
    """A column: its SQL type as declared, and the grammar's kind of it."""

    name: str
    kind: str  # "int", "numeric", "text", "date", "timestamp", "array"
    sql: str
    arrow: pa.DataType
    nullable: bool = True


@dataclass(frozen=True)
class Table:
    """A table; `key` names the columns of its PRIMARY KEY."""

    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...] = ()

    @property
    def ddl(self) -> str:
        """CREATE TABLE, as halfjoin and PostgreSQL read it."""
        parts = [f"{column.name} {column.sql}{'' if column.nullable else ' NOT NULL'}" for column in self.columns]
        if self.key:
            parts.append(f"PRIMARY KEY ({', '.join(self.key)})")
        return f"CREATE TABLE {self.name} ({', '.join(parts)})"

    def arrow(self, updates: list[tuple[tuple[object, ...], int, int]]) -> pa.Table:
        """Updates (row, time, diff) as a batch with `__time` and `__diff`."""
        arrays = [pa.array([row[i] for row, _, _ in updates], c.arrow) for i, c in enumerate(self.columns)]
        arrays += [pa.array([u[1] for u in updates], pa.int64()), pa.array([u[2] for u in updates], pa.int64())]
        return pa.table(arrays, names=[*(c.name for c in self.columns), "__time", "__diff"])


def _epoch_ms(ms: int) -> dt.datetime:
    return dt.datetime(1970, 1, 1) + dt.timedelta(milliseconds=ms)


VALUES: dict[str, list[object]] = {
    "int": [1, 2, 3, 1, 2, 1, 2, 0, -1, 4, None],
    "time": [3, 0, 1, 2, 2, 5, 8, 9, 13, 20, None],
    "numeric": [Decimal("1.00"), Decimal("2.50"), Decimal("3.00"), Decimal("-0.75"), Decimal("7.25"), None],
    "text": ["a", "b", "a", "ab", "", "B", None],
    "date": [dt.date(1970, 1, 1), dt.date(2020, 2, 28), dt.date(2020, 3, 1), None],
    "timestamp": [_epoch_ms(4), _epoch_ms(0), _epoch_ms(7), _epoch_ms(11), dt.datetime(1969, 12, 31), None],
    "array": [(1,), (1, 2), (), (3, None, 3), None],
}


def _column(name: str, kind: str, sql: str, arrow: pa.DataType, nullable: bool = True) -> Column:
    return Column(name, kind, sql, arrow, nullable)


TABLES = (
    Table("a", (
        _column("k", "int", "integer", pa.int32(), nullable=False),
        _column("x", "int", "integer", pa.int32()),
        _column("s", "text", "text", pa.string()),
        _column("p", "numeric", "numeric(6,2)", pa.decimal128(6, 2)),
    ), key=("k",)),
    Table("b", (
        _column("x", "int", "integer", pa.int32()),
        _column("y", "int", "bigint", pa.int64()),
        _column("s", "text", "varchar(8)", pa.string()),
        _column("d", "date", "date", pa.date32()),
    )),
    Table("c", (
        _column("y", "int", "integer", pa.int32()),
        _column("lo", "int", "integer", pa.int32()),
        _column("hi", "int", "bigint", pa.int64()),
        _column("ts", "timestamp", "timestamp", pa.timestamp("us")),
        _column("r", "array", "integer[]", pa.list_(pa.int32())),
    )),
)  # fmt: skip

BY_NAME = {table.name: table for table in TABLES}


def random_row(choices: Choices, table: Table) -> tuple[object, ...]:
    """One row of the table's domain."""
    return tuple(_value(choices, column) for column in table.columns)


def _value(choices: Choices, column: Column) -> object:
    values = VALUES["time" if column.name in ("lo", "hi") else column.kind]
    return choices.one_of(values if column.nullable else [v for v in values if v is not None])
