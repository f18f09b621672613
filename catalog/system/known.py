"""What exists, as PostgreSQL numbers and names it: schemas, relations, types and constraints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from halfjoin.catalog.models import Check, ColumnModel, ForeignKey, Index, Sequence, Table, View
from halfjoin.catalog.system.columns import system_tables
from halfjoin.catalog.system.defaults import default_text
from halfjoin.catalog.system.types import TypeRow, built_in, own_types, row_type
from halfjoin.sql.named import Domain
from halfjoin.sql.oids import own_oid, pg_type
from halfjoin.sql.system import INFORMATION, PG_CATALOG, Asker
from halfjoin.sql.types import SqlType

PUBLIC = "public"
BUILT_IN_SCHEMAS = {PG_CATALOG: 11, PUBLIC: 2200, INFORMATION: 12000}
ROLE = 10  # everything is owned by the one role that there is


class Definitions(Protocol):
    """The parts of the catalog that PostgreSQL's tables show."""

    tables: dict[str, Table]
    views: dict[str, View]
    indexes: dict[str, Index]
    schemas: tuple[str, ...]
    enums: dict[str, SqlType]
    domains: dict[str, Domain]
    sequences: dict[str, Sequence]
    numbers: dict[str, int]
    comments: dict[str, str]
    functions: dict[str, tuple[tuple[str, SqlType], ...]]


@dataclass(frozen=True, slots=True)
class Key:
    """An index: of a PRIMARY KEY or UNIQUE constraint, or of CREATE INDEX. `keys`: columns or expressions as text."""

    table: str
    keys: tuple[str, ...]
    unique: bool = False
    primary: bool = False
    constraint: bool = False


@dataclass(frozen=True, slots=True)
class Relation:
    """A row of pg_class. `kind`: r table, v view, m materialized view, i index, S sequence."""

    oid: int
    schema: str
    name: str
    kind: str
    item: Table | View | Key | Sequence
    columns: tuple[ColumnModel, ...] = ()
    comment: str = ""


@dataclass(frozen=True, slots=True)
class Constraint:
    """A row of pg_constraint. `kind`: p primary key, u unique, f foreign key, c check. It is of a table or a domain."""

    oid: int
    name: str
    kind: str
    table: Relation | None
    columns: tuple[str, ...] = ()
    check: Check | None = None
    key: ForeignKey | None = None
    domain: TypeRow | None = None

    @property
    def comment(self) -> str:
        """The comment on it; empty if there is none."""
        item = None if self.table is None else self.table.item
        return item.constraint_comments.get(self.name, "") if isinstance(item, Table) else ""


@dataclass
class Known:
    """The catalog's definitions, numbered, for one who asks."""

    catalog: Definitions
    asker: Asker

    @cached_property
    def schemas(self) -> Mapping[str, int]:
        """The number of each schema."""
        return BUILT_IN_SCHEMAS | {name: own_oid(f"schema {name}") for name in self.catalog.schemas}

    def split(self, name: str) -> tuple[str, str]:
        """The schema and the bare name of a name in the catalog."""
        schema, dot, own = name.partition(".")
        return (schema, own) if dot and schema in self.catalog.schemas else (PUBLIC, name)

    def visible(self, schema: str) -> bool:
        """Whether what a schema holds can be named without it."""
        return schema == PG_CATALOG or schema in self.asker.path

    def shown(self, schema: str, name: str) -> str:
        """A name as SQL text, with the schema if it is needed."""
        return identifier(name) if self.visible(schema) else f"{identifier(schema)}.{identifier(name)}"

    @cached_property
    def relations(self) -> tuple[Relation, ...]:
        """The user's tables, views, indexes and sequences."""
        made: list[Relation] = []
        taken: set[int] = set()
        for identity, one in self._relations():
            oid = own_oid(identity)
            while oid in taken:
                oid += 1
            taken.add(oid)
            made.append(Relation(oid, *one))
        return tuple(made)

    def _relations(self) -> Iterator[tuple[str, tuple[str, str, str, Table | View | Key | Sequence,
                                                      tuple[ColumnModel, ...], str]]]:  # fmt: skip
        """Each with what its number is made of."""
        for table in self.catalog.tables.values():
            yield identity(table), (*self.split(table.name), "r", table, table.columns, table.comment)
        for view in self.catalog.views.values():
            kind = "m" if view.materialized else "v"
            yield identity(view), (*self.split(view.name), kind, view, view.columns, view.comment)
        for schema, name, key, comment in self._keys():
            yield f"index {schema}.{name}", (schema, name, "i", key, (), comment)
        for one in self.catalog.sequences.values():
            yield f"sequence {one.first_id or one.id or one.name}", (*self.split(one.name), "S", one, (), one.comment)

    def _keys(self) -> Iterator[tuple[str, str, Key, str]]:
        for table in self.catalog.tables.values():
            schema, _ = self.split(table.name)
            indexes = {one.name for one in table.unique if one.index}
            for number, (name, columns) in enumerate(table.keys.items()):
                primary = number == 0 and bool(table.primary_key)
                yield schema, self.split(name)[1], Key(table.name, columns, True, primary, name not in indexes), ""
        for index in self.catalog.indexes.values():
            yield self.split(index.collection)[0], self.split(index.name)[1], Key(
                index.collection, index.keys), index.comment

    @cached_property
    def by_name(self) -> Mapping[str, Relation]:
        """Tables and views by their names in the catalog."""
        return {one.item.name: one for one in self.relations if isinstance(one.item, Table | View)}

    @cached_property
    def types(self) -> tuple[TypeRow, ...]:
        """All types: built in, then the user's, then those of the rows of tables and views."""
        shown = {name: self.shown(*self.split(name)) for name in (*self.catalog.enums, *self.catalog.domains)}
        enums = ((*self.split(name), type) for name, type in self.catalog.enums.items())
        domains = ((*self.split(name), domain) for name, domain in self.catalog.domains.items())
        tables = (row for one in self.relations if isinstance(one.item, Table | View)
                  for row in row_type(one.oid, one.schema, one.name, self.shown(one.schema, one.name)))  # fmt: skip
        return (*built_in(), *own_types(enums, domains, shown), *tables)

    @cached_property
    def type_by_oid(self) -> Mapping[int, TypeRow]:
        """The types by number."""
        return {one.oid: one for one in self.types}

    def type_of(self, column: ColumnModel) -> int:
        """The number of a column's type."""
        return own_oid(column.domain.name) if column.domain is not None else pg_type(column.type).oid

    def default(self, column: ColumnModel) -> str | None:
        """The DEFAULT of a column; that of a serial is the next number of its sequence."""
        if not column.serial or not column.sequence:
            title = self.type_by_oid[pg_type(column.type).oid].title
            return None if column.default is None else default_text(column.default, column.type, title)
        name = self.shown(*self.split(column.sequence)).replace("'", "''")
        return f"nextval('{name}'::regclass)"

    def last_value(self, one: Sequence) -> int | None:
        """The last number that a sequence gave out; None before the first."""
        following = self.catalog.numbers.get(one.id, one.next)
        return None if following == one.start else following - one.step

    @cached_property
    def constraints(self) -> tuple[Constraint, ...]:
        """The constraints of tables and of domains."""
        made: list[Constraint] = []
        taken: set[int] = set()
        for identity, one in self._constraints():
            oid = own_oid(f"constraint {identity} {one.name}")
            while oid in taken:
                oid += 1
            taken.add(oid)
            made.append(Constraint(oid, one.name, one.kind, one.table, one.columns, one.check, one.key, one.domain))
        return tuple(made)

    def _constraints(self) -> Iterator[tuple[str, Constraint]]:
        for table in self.catalog.tables.values():
            of, indexes = self.by_name[table.name], {one.name for one in table.unique if one.index}
            for number, (name, columns) in enumerate(table.keys.items()):
                if name not in indexes:
                    kind = "p" if number == 0 and table.primary_key else "u"
                    yield table.name, Constraint(0, name, kind, of, columns)
            for check in table.checks:
                yield table.name, Constraint(0, check.name, "c", of, check=check)
            for key in table.foreign_keys:
                yield table.name, Constraint(0, key.name, "f", of, key.columns, key=key)
        for type in self.types:
            for name, text in type.domain.checks if type.domain is not None else ():
                yield f"domain {type.name}", Constraint(0, name, "c", None, check=Check(name=name, text=text),
                                                        domain=type)

    def index_of(self, constraint: Constraint) -> Relation | None:
        """The index of a PRIMARY KEY or UNIQUE constraint; of a foreign key, that of the columns it refers to."""
        if constraint.table is None or constraint.kind == "c":
            return None
        table, columns = constraint.table.item, constraint.columns
        if constraint.key is not None:
            table, columns = self.catalog.tables[constraint.key.table], constraint.key.references
        assert isinstance(table, Table)
        return next((one for one, keys in self._unique.get(table.name, ())
                     if (one.name == constraint.name if constraint.key is None
                         else sorted(keys) == sorted(columns))), None)  # fmt: skip

    @cached_property
    def _unique(self) -> Mapping[str, list[tuple[Relation, tuple[str, ...]]]]:
        """The indexes of keys, with the keys, by their tables."""
        found: dict[str, list[tuple[Relation, tuple[str, ...]]]] = {}
        for one in self.relations:
            if isinstance(one.item, Key) and one.item.unique:
                found.setdefault(one.item.table, []).append((one, one.item.keys))
        return found

    def system_relations(self) -> Iterable[tuple[int, str, str, str]]:
        """Number, schema, name and kind of the tables of PostgreSQL's catalog."""
        for one in system_tables().values():
            schema, _, name = one.name.partition(".")
            yield one.oid, schema, name, one.kind


def identity(one: Table | View) -> str:
    """What the number of a table or view is made of."""
    if isinstance(one, Table):
        return f"table {one.id or one.name}"
    return f"view {one.first_id or one.id or one.name}"


def numbers_of(columns: Iterable[str], item: Relation) -> list[int]:
    """The numbers of columns in their table, from 1; 0 for an expression."""
    names = [column.name for column in item.columns]
    return [names.index(name) + 1 if name in names else 0 for name in columns]


def identifier(name: str) -> str:
    """A name as SQL text, in quotes if it needs them."""
    plain = name.isascii() and name.replace("_", "a").isalnum() and name == name.lower() and not name[:1].isdigit()
    return name if plain and name not in WORDS else '"' + name.replace('"', '""') + '"'


WORDS = frozenset({
    "all", "analyse", "analyze", "and", "any", "array", "as", "asc", "asymmetric", "both", "case", "cast", "check",
    "collate", "column", "constraint", "create", "current_catalog", "current_date", "current_role", "current_time",
    "current_timestamp", "current_user", "default", "deferrable", "desc", "distinct", "do", "else", "end", "except",
    "false", "fetch", "for", "foreign", "from", "grant", "group", "having", "in", "initially", "intersect", "into",
    "lateral", "leading", "limit", "localtime", "localtimestamp", "not", "null", "offset", "on", "only", "or",
    "order", "placing", "primary", "references", "returning", "select", "session_user", "some", "symmetric",
    "table", "then", "to", "trailing", "true", "union", "unique", "user", "using", "variadic", "when", "where",
    "window", "with",
})  # fmt: skip
