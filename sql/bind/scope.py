"""Which columns a name can mean at a place in a query. This module handles names only; `bind_from` builds relations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from halfjoin.errors import UnknownName, UnsupportedSQL
from halfjoin.sql.expr import Column, Expr, columns_of, substitute
from halfjoin.sql.relation import SortKey

_PLACES = ("ctid", "xmin", "xmax", "cmin", "cmax")  # PostgreSQL's columns of each row

ANY = "*"  # stands for each schema; none has this name
THERE = " is there"  # the hidden column of an item that may be missing (`presence`); no user writes this name


@dataclass(frozen=True, slots=True)
class Visible:
    """A column that is visible without a table's name; `table` is its table (the left one of a merged column)."""

    name: str
    expr: Expr
    table: str


@dataclass(frozen=True, slots=True)
class FromItem:
    """One item of FROM: its alias, and its columns by the names that they have in the query."""

    name: str
    columns: tuple[tuple[str, Column], ...]
    scalar: bool = False  # a function with one column: the alias alone means that column
    hidden: tuple[tuple[str, Column], ...] = ()  # columns that `*` leaves out; a name means them if no other has it
    order: tuple[SortKey, ...] = ()  # the order in which its rows come, if a query asks for it
    schema: str = ""  # of a table or view without an alias; ANY for what is in the place of one that was renamed

    def visible(self) -> tuple[Visible, ...]:
        """Its columns, as visible without the alias."""
        return tuple(Visible(name, column, self.name) for name, column in self.columns)


@dataclass(frozen=True, slots=True)
class Scope:
    """The sources of a FROM clause, and the columns visible without a table's name in the order of `*`.

    `rows`: of a query's groups, the scope of the rows that are grouped. `order`: that of the rows of a single item.
    """

    sources: tuple[FromItem, ...] = ()
    visible: tuple[Visible, ...] = ()
    rows: Scope | None = None
    order: tuple[SortKey, ...] = ()

    @staticmethod
    def of(source: FromItem) -> Scope:
        """The scope of one item."""
        return Scope((source,), source.visible(), order=source.order)

    def beside(self, other: Scope) -> Scope:
        """The sources of both scopes, as after a cross join."""
        if not self.sources and not self.visible:
            return other
        for source in other.sources:
            if any(source.name == one.name and (source.schema == one.schema or not source.schema or not one.schema)
                   for one in self.sources):  # fmt: skip
                raise UnsupportedSQL(f"table name {source.name} appears in FROM twice", code="42712",
                                     remedy=f"give one an alias: {source.name} AS {source.name}2")
        return Scope(self.sources + other.sources, self.visible + other.visible)

    def merged(self, other: Scope, columns: Iterable[Visible]) -> Scope:
        """Both scopes after JOIN ... USING: the merged columns come first and replace both sides' columns."""
        merged = tuple(columns)
        names = {column.name for column in merged}
        rest = tuple(column for column in self.visible + other.visible if column.name not in names)
        return Scope(self.beside(other).sources, merged + rest)

    def mapped(self, change: Mapping[str, Column]) -> Scope:
        """The same names for other columns: `change` maps old column names to new columns, and drops the others."""

        def renamed(columns: Iterable[tuple[str, Column]]) -> tuple[tuple[str, Column], ...]:
            return tuple((name, change[column.name]) for name, column in columns if column.name in change)

        sources = tuple(replace(source, columns=renamed(source.columns), hidden=renamed(source.hidden))
                        for source in self.sources)
        seen = tuple(replace(column, expr=substitute(column.expr, change)) for column in self.visible
                     if columns_of(column.expr) <= change.keys())
        return Scope(sources, seen)

    def with_hidden(self, columns: Mapping[FromItem, tuple[str, Column]]) -> Scope:
        """The scope with a hidden column in each of these sources."""
        return replace(self, sources=tuple(
            replace(source, hidden=(*source.hidden, columns[source])) if source in columns else source
            for source in self.sources))  # fmt: skip

    def nullable(self) -> Scope:
        """The same scope where all columns may be NULL, as those of the side of an outer join that may be missing."""
        columns = [column for source in self.sources for _, column in (*source.columns, *source.hidden)]
        return self.mapped({column.name: replace(column, nullable=True) for column in columns})

    def column(self, name: str) -> Expr | None:
        """The column of that name, None if no column has it; UnsupportedSQL if several have it."""
        found = [column for column in self.visible if column.name == name] or [
            Visible(name, column, one.name) for one in self.sources for own, column in one.hidden if own == name]
        if len(found) > 1:
            owners = " or ".join(dict.fromkeys(f"{column.table}.{name}" for column in found))
            raise UnsupportedSQL(f"column {name} is ambiguous: it could be {owners}", code="42702",
                                 remedy="write one of them" if " or " in owners else "give one an alias")
        return found[0].expr if found else None

    def source(self, name: str, schema: str | None = None) -> FromItem | None:
        """The source with that alias, None if none has it. `schema`: which it must have."""
        found = [one for one in self.sources if one.name == name and schema in (None, one.schema)]
        if len(found) > 1:
            raise UnsupportedSQL(f"table reference {name} is ambiguous", code="42P09",
                                 remedy=" or ".join(f"{one.schema}.{name}" for one in found))
        return found[0] if found else None


def find(scopes: tuple[Scope, ...], name: str, table: str | None, schema: str = "") -> Expr:
    """The column that a name means, searched from the innermost scope outward; UnknownName if no scope has it.

    UnsupportedSQL if it is a column of grouped rows, and not one of the groups.
    """
    if table is None:
        for scope in scopes:
            if (expr := scope.column(name)) is not None:
                return expr
            if scope.rows is not None and scope.rows.column(name) is not None:
                raise _ungrouped(name, scope.rows)
    for scope, source in named(scopes, table or name, schema):
        if table is not None and scope.rows is not None and all(
            name != known for known, _ in (*source.columns, *source.hidden)):
            find((scope.rows,), name, table, schema)
            raise _ungrouped(name, scope.rows, table)
        return _of_source(source, name) if table is not None else _whole(source)
    if table is not None:
        raise _no_table(scopes, table, schema)
    raise _unknown(name, name, dict.fromkeys(column.name for scope in scopes for column in scope.visible))


def find_star(scopes: tuple[Scope, ...], table: str, schema: str = "") -> tuple[tuple[str, Column], ...]:
    """The columns of `table.*`, searched from the innermost scope outward; raises as `find`."""
    for scope, source in named(scopes, table, schema):
        whole = next(named(() if scope.rows is None else (scope.rows,), table, schema), None)
        for name, _ in () if whole is None else whole[1].columns:
            find((scope,), name, table, schema)  # refused unless it is one of the groups
        return source.columns
    raise _no_table(scopes, table, schema)


def named(scopes: Iterable[Scope], name: str, schema: str) -> Iterator[tuple[Scope, FromItem]]:
    """The sources that a name means, from the innermost scope outward. With a schema, those of that schema come first;
    then those in the place of a table that was renamed."""
    for known in (schema, ANY) if schema else (None,):
        for scope in scopes:
            source = scope.source(name, known)
            if source is not None:
                yield scope, source


def _no_table(scopes: Iterable[Scope], table: str, schema: str) -> UnknownName:
    known = dict.fromkeys(source.name for scope in scopes for source in scope.sources)
    return UnknownName("table or alias", f"{schema}.{table}" if schema else table, known)


def _ungrouped(name: str, rows: Scope, table: str | None = None) -> UnsupportedSQL:
    table = table or next(column.table for column in rows.visible if column.name == name)
    return UnsupportedSQL(f'subquery uses ungrouped column "{table}.{name}" from outer query',
                          remedy="group by it, or write any_value(...) of it", wrong=True)


def _whole(source: FromItem) -> Column:
    """The value of a bare alias: the column of a function that has a single column."""
    if source.scalar:
        return source.columns[0][1]
    name = source.name
    raise UnsupportedSQL(f"{name} is a table, not a column",
                         remedy=f"write its columns, {name}.*, to_jsonb({name}) or {name}::text")


def _of_source(source: FromItem, name: str) -> Column:
    found = [column for known, column in source.columns if known == name]
    found = found or [column for known, column in source.hidden if known == name]
    if len(found) > 1:
        raise UnsupportedSQL(f"column {name} is ambiguous: {source.name} has two of that name",
                             remedy="give one an alias")
    if not found:
        raise _unknown(name, f"{source.name}.{name}", [f"{source.name}.{known}" for known, _ in source.columns])
    return found[0]


def _unknown(name: str, written: str, known: Iterable[str]) -> UnknownName:
    found = UnknownName("column", written, known)
    if name not in _PLACES:
        return found
    return found.with_(remedy="a row here has no place or transaction that a query could name; name rows by their key, "
                       "as in UPDATE t SET a = 1 WHERE id = 5")  # fmt: skip
