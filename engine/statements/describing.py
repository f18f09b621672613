"""What a statement will answer, without running it: the types of its parameters and the columns of its rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from halfjoin.catalog.catalog import Catalog
from halfjoin.catalog.models import ColumnModel, Table
from halfjoin.catalog.system.known import identity
from halfjoin.engine.statements.explaining import PLAN
from halfjoin.engine.statements.scratch import SCRATCH
from halfjoin.errors import UnsupportedSQL
from halfjoin.nesting import bounded
from halfjoin.sql.bind.changes import bind_delete, bind_insert, bind_update
from halfjoin.sql.bind.conflicts import bind_do_update
from halfjoin.sql.bind.merging import bind_merge
from halfjoin.sql.bind.numbered_rows import bind_second, numbered_rows
from halfjoin.sql.bind.query import bind_query
from halfjoin.sql.bind.returning import bind_returning
from halfjoin.sql.bind.search_path import placed
from halfjoin.sql.bind.target import BoundChange
from halfjoin.sql.expr import Column
from halfjoin.sql.functions.parameters import inferring
from halfjoin.sql.oids import own_oid
from halfjoin.sql.origins import Told, origins
from halfjoin.sql.parse.locate import PUBLIC
from halfjoin.sql.parse.parse import executed, statement_of
from halfjoin.sql.parse.prepared import Prepared
from halfjoin.sql.prepared import Execute, Prepare
from halfjoin.sql.relation import Relation
from halfjoin.sql.statements import (
    Delete,
    Explain,
    Insert,
    Merge,
    Select,
    Show,
    Statement,
    Subscribe,
    Update,
    WithChanges,
)
from halfjoin.sql.types import TEXT, SqlType

_NONE: Mapping[str, Prepare] = MappingProxyType({})
_ROWS = "rows"  # the rows that RETURNING reads; nothing is looked up by the name


@dataclass(frozen=True)
class Described:
    """The types of `$1`, `$2`, ...; and the columns of the rows.

    `columns`: None for a statement without rows. They are empty for one whose columns only its answer tells, such as
    SHOW.
    """

    parameters: tuple[SqlType, ...]
    columns: tuple[Column, ...] | None


@bounded()
def describe(
    catalog: Catalog, prepared: Prepared, given: Mapping[int, SqlType], path: Sequence[str] = (PUBLIC,),
    kept: Mapping[str, Prepare] = _NONE,
) -> Described:
    """Describe a statement. `given`: the types of parameters that the client has set; the others are inferred from
    their places, and are text if no place tells. `kept`: the statements of PREPARE, by name.

    Raises:
        UnsupportedSQL, UnknownName: the statement is not valid.
    """
    catalog, count = catalog.aside(), max([*given, *prepared.parameters], default=0)
    with inferring() as found:
        tree = prepared.marked(given)
        if tuple(path) != (PUBLIC,):
            tree = placed(tree, catalog, path)
        statement, text = statement_of(tree, prepared.text), prepared.text
        if isinstance(statement, Execute) and (one := kept.get(statement.name)) is not None:
            statement, text = executed(one, statement.values), one.text
        columns = _columns(catalog, statement, text)
    types = found | dict(given)
    if prepared.rows is not None:  # of which one has told the types of all
        types = {number: types[first] for number, first in prepared.rows.first.items() if first in types} | types
    return Described(tuple(types.get(number, TEXT) for number in range(1, count + 1)), columns)


def _columns(catalog: Catalog, statement: Statement, sql: str) -> tuple[Column, ...] | None:
    match statement:
        case Select(query):
            halves = numbered_rows(query, catalog)
            bound = bind_query(query if halves is None else halves.first, catalog, sql)
            if halves is not None:
                bound = bind_second(halves, bound, catalog, sql, SCRATCH)
            return told(bound.relation, bound.names, catalog)
        case Insert():
            if statement.conflict is not None and statement.conflict.assignments is not None:
                bind_do_update(statement, catalog, sql, _ROWS)  # its parameters get their types from it, too
            return _returned(bind_insert(statement, catalog, sql))
        case Update():
            return _returned(bind_update(statement, catalog, sql))
        case Delete():
            return _returned(bind_delete(statement, catalog, sql))
        case Merge():
            return _returned(bind_merge(statement, catalog, sql))
        case WithChanges(parts, main):
            seen = catalog.copy()
            for name, part in parts:
                columns = _columns(seen, part, sql)
                if columns is not None:
                    models = tuple(ColumnModel(name=column.name, type=column.type) for column in columns)
                    seen.tables[name] = Table(name=name, columns=models)
            return _columns(seen, main, sql)
        case Explain(query=query) if query is not None:
            _columns(catalog, Select(query), sql)  # its parameters get their types from it
            return (Column(PLAN, TEXT),)
        case Explain(change=change) if change is not None:
            _columns(catalog, change, sql)
            return (Column(PLAN, TEXT),)
        case _ if shows(statement):
            return ()
    return None


def shows(statement: Statement) -> bool:
    """Whether the statement shows what it finds: it changes nothing, and its columns are known from its answer."""
    return isinstance(statement, Show | Explain | Subscribe)


def _returned(change: BoundChange) -> tuple[Column, ...] | None:
    if change.returning is None:
        return None
    found = bind_returning(change, _ROWS)
    return named(found.relation.columns[:-1], found.names)


def told(relation: Relation, names: tuple[str, ...], catalog: Catalog) -> tuple[Column, ...]:
    """The columns of a query under the names that the client sees, each with the column of a table that it is.

    One that is NOT NULL in its table and may be NULL here, by an outer join, is none: clients would ask the table.
    """
    found, made = origins(relation), list[Column]()
    for column, shown in zip(relation.columns, named(relation.columns, names), strict=False):
        origin = found.get(column.name)
        one = None if origin is None else (
            catalog.tables.get(origin.collection) or catalog.views.get(origin.collection))  # fmt: skip
        if origin is None or one is None or not one.id or (column.nullable and not origin.nullable):
            made.append(shown)
        else:
            number = [each.name for each in one.columns].index(origin.column) + 1
            made.append(Told(shown.name, shown.type, relation=own_oid(identity(one)), number=number))
    return tuple(made)


def named(columns: tuple[Column, ...], names: tuple[str, ...]) -> tuple[Column, ...]:
    """The first columns of a relation under the names that the client sees."""
    if len(columns) < len(names):
        raise UnsupportedSQL("the columns of this statement are not known before it runs")
    return tuple(Column(name, column.type) for column, name in zip(columns, names, strict=False))
