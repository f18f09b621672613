"""PostgreSQL's catalog at one moment, for one who asks: columns, rows, and what functions say of numbers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from halfjoin.catalog.system.cluster import CLUSTER
from halfjoin.catalog.system.columns import system_tables
from halfjoin.catalog.system.information import INFORMATION_VIEWS
from halfjoin.catalog.system.known import Definitions, Known
from halfjoin.catalog.system.relations import RELATIONS, Row
from halfjoin.catalog.system.sequences import SEQUENCE_COLUMNS, sequence_row
from halfjoin.catalog.system.texts import numbers, serials, texts
from halfjoin.catalog.system.views import VIEWS
from halfjoin.sql.expr import Column
from halfjoin.sql.system import INFORMATION, OID, SEQUENCE, Asker
from halfjoin.sql.types import BIGINT, INTEGERS, Kind, SqlType

FILLED: Mapping[str, Callable[[Known], Iterable[Row]]] = {
    **{f"pg_catalog.{name}": rows for name, rows in (*RELATIONS.items(), *CLUSTER.items(), *VIEWS.items())},
    **{f"information_schema.{name}": rows for name, rows in INFORMATION_VIEWS.items()},
}
TABLEOID, XMIN = Column("tableoid", OID), Column("xmin", BIGINT)
CLASS = "pg_catalog.pg_class"
HIDDEN = (TABLEOID, XMIN)


class SystemCatalog:
    """The binder's `System` (`sql.system`), with the rows of its tables."""

    def __init__(self, catalog: Definitions, asker: Asker) -> None:
        self.asker = asker
        self._known = Known(catalog, asker)

    def columns(self, name: str) -> tuple[Column, ...] | None:
        """The columns of a table; None if there is none of that name."""
        if name.startswith(SEQUENCE):
            return SEQUENCE_COLUMNS if name.removeprefix(SEQUENCE) in self._known.catalog.sequences else None
        found = system_tables().get(name)
        return None if found is None else found.columns

    def hidden(self) -> tuple[Column, ...]:
        """The columns that each table has beside those of `*`."""
        return HIDDEN

    def names(self) -> tuple[str, ...]:
        """The names of all tables, with their schemas."""
        return tuple(system_tables())

    def texts(self, what: str) -> Mapping[int, str]:
        """What a function or a type says of an oid."""
        return texts(self._known, what)

    def serials(self) -> Mapping[str, str]:
        """The sequences that number columns, by the table's oid, a blank, and the column's name."""
        return serials(self._known)

    def numbers(self, type: str) -> Mapping[str, int]:
        """The oids by name."""
        return numbers(self._known, type)

    def rows(self, name: str, beside: Collection[str] = ()) -> dict[str, list[object]]:
        """The rows of a table, as the values of each column.

        `beside`: the tables that the query reads. PostgreSQL's information_schema has no materialized views. Ours has
        them for clients that look nowhere else (Grafana). A query that reads pg_class as well finds them there, and
        would have them twice (Metabase).
        """
        if name.startswith(SEQUENCE):
            return {column: [value] for column, value in sequence_row(self._known, name.removeprefix(SEQUENCE)).items()}
        rows = list(FILLED[name](self._known)) if name in FILLED else []
        if name.startswith(INFORMATION) and CLASS in beside:
            twice = {(one.schema, one.name) for one in self._known.relations if one.kind == "m"}
            rows = [row for row in rows if (row.get("table_schema"), row.get("table_name")) not in twice]
        table = system_tables()[name]
        absent = (lambda type: None) if name.startswith(INFORMATION) else _default  # its columns are NULL if not named
        named = set[str]().union(*rows)
        made = dict[str, list[object]]()
        for one in table.columns:
            value = absent(one.type)
            made[one.name] = [row.get(one.name, value) for row in rows] if one.name in named else [value] * len(rows)
        return made | {TABLEOID.name: [table.oid] * len(rows), XMIN.name: [1] * len(rows)}


def _default(type: SqlType) -> object:
    """What a column has that a row does not name."""
    if type.kind is Kind.BOOLEAN:
        return False
    if type.kind in INTEGERS:
        return 0
    return "" if type.named in ('"char"', "name") else None
