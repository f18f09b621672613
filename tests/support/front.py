"""A schema from CREATE statements, for tests of the SQL front."""

from __future__ import annotations

from halfjoin.sql.bind.bind import bind
from halfjoin.sql.bind.describe import describe
from halfjoin.sql.definitions import CreateTable, CreateView
from halfjoin.sql.expr import Column
from halfjoin.sql.parse.parse import parse
from halfjoin.sql.relation import Relation
from halfjoin.sql.statements import Select
from halfjoin.sql.types import BIGINT, DOUBLE, TEXT, SqlType
from halfjoin.sql.user_aggregate import UserAggregate

TABLES = """
CREATE TABLE t (a integer PRIMARY KEY, b bigint, s text, d date, ts timestamp, n numeric(10,2), arr integer[],
                ok boolean);
CREATE TABLE u (a integer, c bigint, x double precision);
CREATE TABLE w (c bigint, z text);
CREATE TABLE "Odd" ("Name" text, "select" integer);
CREATE VIEW pv AS SELECT a, b + 1 AS b1 FROM t WHERE a > 0;
CREATE VIEW named (k, l) AS SELECT a, a FROM u
"""


class FakeSchema:
    """The names of a few CREATE statements and of the user's table functions `pulse` and `pair`, his aggregates
    `geo_mean`, which adds up, and `longest`, and his reduce `spans`."""

    def __init__(self, sql: str = TABLES) -> None:
        self._tables: dict[str, tuple[Column, ...]] = {}
        self._keys: dict[str, tuple[str, ...]] = {}
        self._views: dict[str, str] = {}
        for statement in parse(sql):
            if isinstance(statement, CreateTable):
                columns = (Column(column.name, column.type, not column.not_null) for column in statement.columns)
                self._tables[statement.name] = tuple(columns)
                self._keys[statement.name] = statement.primary_key
            elif isinstance(statement, CreateView):
                self._views[statement.name] = statement.text

    def columns(self, collection: str) -> tuple[Column, ...] | None:
        return self._tables.get(collection)

    def identifying(self, collection: str) -> tuple[tuple[str, ...], ...]:
        return (self.primary_key(collection),) if self.primary_key(collection) else ()

    def primary_key(self, collection: str) -> tuple[str, ...]:
        return self._keys.get(collection, ())

    def default(self, table: str, column: str) -> str | None:
        return None

    def named_type(self, name: str) -> SqlType | None:
        return None

    def domain(self, name: str) -> None:
        return None

    def sequence(self, table: str, column: str) -> tuple[str, bool]:
        return "", False

    def serial(self, table: str, column: str) -> bool:
        return False

    def next_number(self, sequence: str, count: int = 1) -> range:
        return range(1, count + 1)

    def generated(self, table: str) -> tuple[str, ...]:
        return ()

    def keys(self, table: str) -> dict[str, tuple[str, ...]]:
        key = self._keys.get(table, ())
        return {f"{table}_pkey": key} if key else {}

    def system(self) -> None:
        return None

    def plain_view(self, name: str) -> str | None:
        return self._views.get(name)

    def names(self) -> tuple[str, ...]:
        return (*self._tables, *self._views)

    def table_function(self, name: str) -> tuple[tuple[str, SqlType], ...] | None:
        return {"pulse": (("y", BIGINT),), "pair": (("p", BIGINT), ("q", TEXT))}.get(name)

    def table_functions(self) -> tuple[str, ...]:
        return ("pulse", "pair")

    def reduce(self, name: str) -> tuple[tuple[str, SqlType], ...] | None:
        return {"spans": (("low", BIGINT), ("high", BIGINT))}.get(name)

    def reduces(self) -> tuple[str, ...]:
        return ("spans",)

    def aggregate(self, name: str) -> UserAggregate | None:
        adding = UserAggregate("geo_mean", (DOUBLE,), DOUBLE, (("n", BIGINT), ("s", DOUBLE)))
        return {"geo_mean": adding, "longest": UserAggregate("longest", (TEXT,), TEXT)}.get(name)


SCHEMA = FakeSchema()


def bound(sql: str) -> Relation:
    """The relation of a query."""
    (statement,) = parse(sql)
    assert isinstance(statement, Select)
    return bind(statement.query, SCHEMA, sql)


def shown(sql: str) -> str:
    """The relation as text."""
    return describe(bound(sql))


def outputs(sql: str) -> list[str]:
    """Names and types of a query's columns."""
    return [f"{column.name} {column.type}" for column in bound(sql).columns]
