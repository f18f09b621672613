"""CREATE TABLE, VIEW, INDEX and SINK: from syntax trees to statements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from halfjoin.sql.definitions import (
    AlterAction,
    AlterTable,
    ColumnDef,
    Constraint,
    CreateIndex,
    CreateSink,
    CreateTable,
    CreateTableAs,
    CreateView,
    Like,
)
from halfjoin.sql.parse import commands, naming, syntax
from halfjoin.sql.parse.collations import check_collation
from halfjoin.sql.parse.constraints import column, constraints
from halfjoin.sql.parse.locate import as_query, catalog_name, name_of, only, refuse
from halfjoin.sql.parse.sourced import options_of
from halfjoin.sql.parse.times import constant_duration
from halfjoin.sql.prepared import Execute
from halfjoin.sql.statements import Statement
from halfjoin.sql.system import is_temporary
from halfjoin.sql.types import UNKNOWN

INCLUDED = ("defaults", "constraints", "generated", "identity", "indexes")  # what LIKE can include
# Of PostgreSQL's tables, besides those of autovacuum. Rows lie otherwise here, so they change nothing.
STORAGE_PARAMETERS = ("fillfactor", "toast_tuple_target", "parallel_workers", "vacuum_index_cleanup", "vacuum_truncate",
                      "log_autovacuum_min_duration", "user_catalog_table")
NAMED: dict[str, Callable[[exp.Create, str], Statement]] = {
    "TYPE": naming.create_type, "DOMAIN": naming.create_domain, "SCHEMA": naming.create_schema,
    "SEQUENCE": naming.create_sequence,
}  # fmt: skip
CREATABLE = "create a TABLE, VIEW, MATERIALIZED VIEW, INDEX, SINK, SOURCE, TYPE, DOMAIN, SCHEMA or SEQUENCE"


def create(node: exp.Create, text: str) -> Statement:
    """A CREATE statement; UnsupportedSQL for an unsupported kind or clause."""
    only(node, text, "CREATE", ("this", "kind", "expression", "exists", "replace", "properties", "unique",
                                "concurrently"))  # fmt: skip
    kind = node.args["kind"].upper()
    if kind not in ("INDEX", "SCHEMA"):
        check_dots(node.this.this if isinstance(node.this, exp.Schema) else node.this, text)
    if kind == "TABLE":
        return _table(node, text)
    if kind == "VIEW":
        return _view(node, text)
    if kind == "INDEX":
        return _index(node, text)
    if kind in NAMED:
        return NAMED[kind](node, text)
    raise refuse(node, text, f"CREATE {kind} is not supported", CREATABLE)


def create_sink(node: syntax.CreateSink, text: str) -> CreateSink:
    """A CREATE SINK statement."""
    check_dots(node.this, text)
    target, options = node.args.get("target"), node.args.get("options")
    names = table_name(node.this, text), table_name(node.args["source"], text)
    how = bool(node.args.get("exists")), bool(node.args.get("replace"))
    if target is None:
        return CreateSink(*names, "", *how, options=options_of(options or [], node, text))
    if not target.name:
        raise refuse(target, text, "a sink needs a path or URL in quotes", commands.SINK_SYNTAX)
    return CreateSink(*names, target.name, *how)


def check_dots(node: exp.Expr, text: str) -> None:
    """Refuse a new name with a dot: it would mean a name in a schema. Older versions let it be, and it keeps working.
    """
    for part in node.parts if isinstance(node, exp.Table) else [node]:
        if "." in name_of(part):
            raise refuse(node, text, f"the name {name_of(part)!r} has a dot, which stands between a schema and a name",
                         'choose another name, or write the schema apart: "s"."t"').with_(code="42602")  # fmt: skip


def table_name(node: exp.Expr, text: str, alias: bool = False) -> str:
    """The name of a table or view in the catalog."""
    name = catalog_name(node, text)
    only(node, text, "a name", ("this", "db", "alias") if alias else ("this", "db"))
    return name


@dataclass
class _Properties:
    """Whether a statement says MATERIALIZED and RECURSIVE, the history to retain, what ON COMMIT does (`delete` or
    `drop`), and the parameters of PostgreSQL's storage."""

    materialized: bool = False
    recursive: bool = False
    retain: int | None = None
    ended: str = ""
    ignored: tuple[str, ...] = ()


def _properties(node: exp.Create, text: str) -> _Properties:
    materialized, recursive, retain, ended, ignored = False, False, None, "", list[str]()
    for item in node.args["properties"].expressions if node.args.get("properties") else ():
        if isinstance(item, exp.MaterializedProperty):
            materialized = True
        elif isinstance(item, syntax.Recursive):
            if node.kind != "VIEW":
                raise refuse(node, text, "only a view can be RECURSIVE", "write CREATE RECURSIVE VIEW v (a, b) AS ...")
            recursive = True
        elif isinstance(item, syntax.RetainHistory):
            retain = constant_duration(item.this, text)
        elif isinstance(item, exp.OnCommitProperty | syntax.OnCommitDrop):
            ended = "drop" if isinstance(item, syntax.OnCommitDrop) else "delete" if item.args.get("delete") else ""
            if not is_temporary(_made_name(node, text)):
                raise refuse(node, text, "ON COMMIT can only be used on temporary tables",
                             "leave it out, or CREATE TEMP TABLE").with_(code="42P16")
        elif isinstance(item, exp.Property) and is_storage_parameter(item.name):
            ignored.append(item.name)
        else:
            raise refuse(item if item.args else node, text, f"{item.sql('materialize')} is not supported",
                         "options: WITH (RETAIN HISTORY FOR '1 hour')")
    if retain is not None and is_temporary(_made_name(node, text)):
        raise refuse(node, text, "a temporary table has no history", "leave out RETAIN HISTORY")
    return _Properties(materialized, recursive, retain, ended, tuple(ignored))


def is_storage_parameter(name: str) -> bool:
    """Whether PostgreSQL has a parameter of that name for how it stores a table and cleans it up."""
    name = name.lower()
    return name in STORAGE_PARAMETERS or name.startswith("autovacuum_")


def _made_name(node: exp.Create, text: str) -> str:
    return table_name(node.this.this if isinstance(node.this, exp.Schema) else node.this, text)


def _table(node: exp.Create, text: str) -> CreateTable | CreateTableAs:
    if node.args.get("replace"):
        raise refuse(node, text, "CREATE OR REPLACE TABLE is not supported", "DROP TABLE first")
    if node.expression is not None:
        return _table_as(node, text)
    if not isinstance(node.this, exp.Schema):
        raise refuse(node, text, "a table needs columns", "write CREATE TABLE t (a integer, ...)")
    properties = _properties(node, text)
    columns: list[ColumnDef] = []
    found: list[Constraint] = []
    likes: list[Like] = []
    for item in node.this.expressions:
        if isinstance(item, exp.ColumnDef):
            made, beside = column(item, text)
            columns.append(made)
            found += beside
        elif isinstance(item, exp.LikeProperty):
            likes.append(_like(item, len(columns), text))
        else:
            found += constraints(item, text)
    keys = [one.columns for one in found if one.kind == "primary key"]
    if len(keys) > 1:
        raise refuse(node, text, "a table has one PRIMARY KEY", "write PRIMARY KEY (a, b) for one of two columns")
    key = keys[0] if keys else ()
    if not likes:
        _check_names(node, [column.name for column in columns], key, text)
    columns = [replace(column, not_null=column.not_null or column.name in key) for column in columns]
    return CreateTable(table_name(node.this.this, text), tuple(columns), tuple(found), properties.retain,
                       bool(node.args.get("exists")), tuple(likes), properties.ended, properties.ignored)


def _table_as(node: exp.Create, text: str) -> CreateTableAs:
    query, data, names = as_query(node.expression), True, node.this
    if isinstance(query, syntax.Execute):
        query = Execute(name_of(query.this), tuple(query.expressions))
    elif not isinstance(query, exp.Query):
        raise refuse(node, text, "CREATE TABLE AS needs a query", "write CREATE TABLE t AS SELECT ...")
    if node.args.get("properties"):
        kept = []
        for item in node.args["properties"].expressions:
            if isinstance(item, exp.WithDataProperty):
                data = not item.args.get("no")
            else:
                kept.append(item)
        node.args["properties"].set("expressions", kept)
    properties = _properties(node, text)
    columns = tuple(name_of(column) for column in names.expressions) if isinstance(names, exp.Schema) else ()
    return CreateTableAs(table_name(names.this if isinstance(names, exp.Schema) else names, text), columns, query,
                         properties.retain, bool(node.args.get("exists")), data, properties.ended, properties.ignored)


def _like(node: exp.LikeProperty, place: int, text: str) -> Like:
    including: set[str] = set()
    for option in node.expressions:
        what = str(option.args["value"].name).lower()
        named = set(INCLUDED) if what == "all" else {what}
        including = including | named if str(option.this).upper() == "INCLUDING" else including - named
    return Like(table_name(node.this, text), frozenset(including), place)


def _check_names(node: exp.Expr, names: list[str], key: tuple[str, ...], text: str) -> None:
    for name in names:
        if names.count(name) > 1:
            raise refuse(node, text, f"column {name} is named twice")
        if name.lower() in ("__time", "__diff"):  # other tools ignore case
            raise refuse(node, text, f"{name} is the name of an update's own column", "give the column another name")
    for name in key:
        if name not in names:
            raise refuse(node, text, f"PRIMARY KEY names column {name}, which the table does not have").with_(
                code="42703")
    if not names:
        raise refuse(node, text, "a table needs columns", "write CREATE TABLE t (a integer, ...)")


def _view(node: exp.Create, text: str) -> CreateView:
    query = as_query(node.expression) if node.expression else None
    if not isinstance(query, exp.Query):
        raise refuse(node, text, "a view needs a query", "write CREATE MATERIALIZED VIEW v AS SELECT ...")
    properties = _properties(node, text)
    schema = node.this
    names: tuple[str, ...] = ()
    if isinstance(schema, exp.Schema):
        names = tuple(name_of(column) for column in schema.expressions)
        schema = schema.this
    if properties.retain is not None and not properties.materialized:
        raise refuse(node, text, "RETAIN HISTORY is not supported for a plain view, which holds no history",
                     "write CREATE MATERIALIZED VIEW, or retain the history of the tables it reads")
    name, written = table_name(schema, text), node.expression.meta["text"]
    if properties.recursive:
        if not names:
            raise refuse(node, text, "a recursive view needs the names of its columns",
                         "write CREATE RECURSIVE VIEW v (a, b) AS ...")  # fmt: skip
        query, written = _recursive(query, written, node.this)
    elif names:
        query, written = _renamed(query, written, node.this)
    return CreateView(name, query, written, names, properties.materialized, properties.retain,
                      bool(node.args.get("exists")), bool(node.args.get("replace")),
                      (*properties.ignored, *(["WITH NO DATA"] if node.expression.meta.get("no_data") else [])))


def _renamed(query: exp.Query, text: str, schema: exp.Schema) -> tuple[exp.Query, str]:
    """The query and its text, both with the view's column list applied."""
    alias = exp.TableAlias(this=schema.this.this.copy(), columns=[column.copy() for column in schema.expressions])
    outer = exp.Select(expressions=[exp.Star()], from_=exp.From(this=exp.Subquery(this=query, alias=alias)))
    return outer, f"SELECT * FROM ({text}) AS {alias.sql('materialize')}"


def _recursive(query: exp.Query, text: str, schema: exp.Schema) -> tuple[exp.Query, str]:
    """What CREATE RECURSIVE VIEW stands for, and its text: WITH RECURSIVE v (a) AS (query) SELECT a FROM v."""
    alias = exp.TableAlias(this=schema.this.this.copy(), columns=[column.copy() for column in schema.expressions])
    named = exp.With(expressions=[exp.CTE(this=query, alias=alias)], recursive=True)
    read = exp.Select(expressions=[exp.Column(this=column.copy()) for column in schema.expressions],
                      from_=exp.From(this=exp.Table(this=schema.this.this.copy())))  # fmt: skip
    shown = read.sql("materialize")
    read.set("with_", named)
    return read, f"WITH RECURSIVE {alias.sql('materialize')} AS ({text}) {shown}"


def _index(node: exp.Create, text: str) -> CreateIndex | AlterTable:
    index = node.this
    if index.this is not None:
        check_dots(index.this, text)
    params = index.args.get("params") or exp.IndexParameters()
    only(index, text, "CREATE INDEX", ("this", "table", "params"))
    only(params, text, "CREATE INDEX", ("columns", "using", "include", "where", "with_storage", "tablespace"))
    using, where, include = params.args.get("using"), params.args.get("where"), params.args.get("include") or ()
    if using is not None and using.name.lower() not in ("btree", "hash"):
        raise refuse(index, text, f"an index looks up equal keys, which {using.name.lower()} is not for",
                     "leave out USING, or write USING btree")
    keys, ordered, opclass = [], False, False
    for item in params.args.get("columns") or ():
        key = item.this if isinstance(item, exp.Ordered) else item
        ordered = ordered or bool(item.args.get("desc")) or bool(item.args.get("nulls_first"))
        opclass = opclass or isinstance(key, exp.Opclass)
        keys.append((key.this if isinstance(key, exp.Opclass) else key).unnest())
    if not keys:
        raise refuse(index, text, "an index needs keys", "write CREATE INDEX ON t (a)")
    if node.args.get("unique"):
        if where is not None:
            raise refuse(where, text, "a unique index over some of the rows is not supported",
                         "a view can count the rows of each key: SELECT a, count(*) FROM t WHERE ... GROUP BY a")
        return _unique_index(node, keys, text)
    name = index.args.get("this")
    said = {"WHERE": where, "INCLUDE": include, "an order": ordered, "an operator class": opclass,
            "WITH": params.args.get("with_storage"), "a TABLESPACE": params.args.get("tablespace"),
            "CONCURRENTLY": node.args.get("concurrently")}  # fmt: skip
    named = (*(exp.Column(this=column) for column in include), *(() if where is None else (where.this,)))
    return CreateIndex(name and name_of(name), table_name(index.args["table"], text), tuple(keys), node.meta["text"],
                       bool(node.args.get("exists")), tuple(what for what, given in said.items() if given), named)


def _unique_index(node: exp.Create, keys: Sequence[exp.Expr], text: str) -> AlterTable:
    """CREATE UNIQUE INDEX: a UNIQUE constraint with the index's name."""
    for key in keys:
        if isinstance(key, exp.Collate):
            check_collation(key.expression, UNKNOWN, text)
    keys = [key.this if isinstance(key, exp.Collate) else key for key in keys]
    if not all(isinstance(key, exp.Column) and not key.table for key in keys):
        raise refuse(node, text, "a unique index over an expression is not supported", "name columns")
    table, columns = table_name(node.this.args["table"], text), tuple(name_of(key) for key in keys)
    name = node.this.args.get("this")
    named = name_of(name) if name else "_".join((table.rpartition(".")[2], *columns, "idx"))
    made = Constraint("unique", named, columns, index=True)
    return AlterTable(table, (AlterAction("add constraint", constraint=made, lenient=bool(node.args.get("exists"))),))
