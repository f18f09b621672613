"""CREATE TABLE, VIEW, INDEX and SINK: from syntax trees to statements."""

from __future__ import annotations

from sqlglot import exp

from halfjoin.sql.parse import dialect, syntax
from halfjoin.sql.parse.locate import as_query, name_of, only, refuse, written
from halfjoin.sql.parse.times import constant_duration
from halfjoin.sql.parse.type_names import stored_type
from halfjoin.sql.statements import ColumnDef, CreateIndex, CreateSink, CreateTable, CreateView, Statement

CONSTRAINTS: dict[type[exp.Expr], tuple[str, str]] = {
    exp.UniqueColumnConstraint: ("UNIQUE", "only a PRIMARY KEY is checked"),
    exp.UniqueKeyProperty: ("UNIQUE", "only a PRIMARY KEY is checked"),
    exp.CheckColumnConstraint: ("CHECK", "filter the rows in a view"),
    exp.Check: ("CHECK", "filter the rows in a view"),
    exp.DefaultColumnConstraint: ("DEFAULT", "write the value in every row"),
    exp.Reference: ("REFERENCES", "leave it out: a join with the other table ignores rows without a match"),
    exp.ForeignKey: ("FOREIGN KEY", "leave it out: a join with the other table ignores rows without a match"),
    exp.GeneratedAsIdentityColumnConstraint: ("GENERATED", "write the value in every row"),
    exp.ComputedColumnConstraint: ("GENERATED", "compute the column in a view"),
}
CREATABLE = "create a TABLE, VIEW, MATERIALIZED VIEW, INDEX or SINK"


def create(node: exp.Create, text: str) -> Statement:
    """A CREATE statement; UnsupportedSQL for an unsupported kind or clause."""
    only(node, text, "CREATE", ("this", "kind", "expression", "exists", "replace", "properties", "unique"))
    kind = node.args["kind"].upper()
    if node.args.get("unique"):
        raise refuse(node, text, "CREATE UNIQUE INDEX is not supported", "declare a PRIMARY KEY in CREATE TABLE")
    if kind == "TABLE":
        return _table(node, text)
    if kind == "VIEW":
        return _view(node, text)
    if kind == "INDEX":
        return _index(node, text)
    raise refuse(node, text, f"CREATE {kind} is not supported", CREATABLE)


def create_sink(node: syntax.CreateSink, text: str) -> CreateSink:
    """A CREATE SINK statement."""
    target = node.args["target"]
    if not target.name:
        raise refuse(target, text, "a sink needs a path or URL in quotes", dialect.SINK_SYNTAX)
    return CreateSink(table_name(node.this, text), table_name(node.args["source"], text), target.name,
                      bool(node.args.get("exists")), bool(node.args.get("replace")))


def table_name(node: exp.Expr, text: str, alias: bool = False) -> str:
    """The name of a table or view; UnsupportedSQL if a schema qualifies it."""
    if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
        raise refuse(node, text, "expected the name of a table or view")
    if node.args.get("db"):
        raise refuse(node, text, "schemas are not supported", f"write {name_of(node)}")
    only(node, text, "a name", ("this", "alias") if alias else ("this",))
    return name_of(node)


def _properties(node: exp.Create, text: str) -> tuple[bool, int | None]:
    """Whether the statement says MATERIALIZED, and the history to retain."""
    materialized, retain = False, None
    for item in node.args["properties"].expressions if node.args.get("properties") else ():
        if isinstance(item, exp.MaterializedProperty):
            materialized = True
        elif isinstance(item, syntax.RetainHistory):
            retain = constant_duration(item.this, text)
        else:
            raise refuse(item if item.args else node, text, f"{item.sql('materialize')} is not supported",
                         "options: WITH (RETAIN HISTORY FOR '1 hour')")
    return materialized, retain


def _table(node: exp.Create, text: str) -> CreateTable:
    if node.expression is not None:
        raise refuse(node.expression, text, "CREATE TABLE AS is not supported",
                     "create a materialized view, or create the table and INSERT INTO it SELECT ...")
    if node.args.get("replace"):
        raise refuse(node, text, "CREATE OR REPLACE TABLE is not supported", "DROP TABLE first")
    if not isinstance(node.this, exp.Schema):
        raise refuse(node, text, "a table needs columns", "write CREATE TABLE t (a integer, ...)")
    _, retain = _properties(node, text)
    columns: list[ColumnDef] = []
    keys: list[tuple[exp.Expr, tuple[str, ...]]] = []
    for item in node.this.expressions:
        if isinstance(item, exp.Constraint):
            item = item.expressions[0]
        if isinstance(item, exp.ColumnDef):
            column, is_key = _column(item, text)
            columns.append(column)
            if is_key:
                keys.append((item, (column.name,)))
        elif isinstance(item, exp.PrimaryKey):
            keys.append((item, tuple(name_of(key) for key in item.expressions)))
        else:
            raise _constraint(item, text)
    if len(keys) > 1:
        raise refuse(keys[1][0], text, "a table has one PRIMARY KEY", "write PRIMARY KEY (a, b) for one of two columns")
    key = keys[0][1] if keys else ()
    _check_names(node, [column.name for column in columns], key, text)
    columns = [ColumnDef(column.name, column.type, column.not_null or column.name in key) for column in columns]
    return CreateTable(table_name(node.this.this, text), tuple(columns), key, retain, bool(node.args.get("exists")))


def _column(node: exp.ColumnDef, text: str) -> tuple[ColumnDef, bool]:
    if node.args.get("kind") is None:
        raise refuse(node, text, f"column {name_of(node)} has no type")
    type = stored_type(node.args["kind"], text)
    not_null = is_key = False
    for constraint in node.args.get("constraints") or ():
        kind = constraint.kind
        if isinstance(kind, exp.PrimaryKeyColumnConstraint):
            is_key = True
        elif isinstance(kind, exp.NotNullColumnConstraint):
            not_null = not kind.args.get("allow_null")
        else:
            raise _constraint(kind, text)
    return ColumnDef(name_of(node), type, not_null or is_key), is_key


def _constraint(node: exp.Expr, text: str) -> Exception:
    if isinstance(node, exp.Identifier):
        return refuse(node, text, f"column {name_of(node)} has no type")
    word, instead = CONSTRAINTS.get(type(node), (written(node), "columns take NOT NULL and PRIMARY KEY"))
    return refuse(node, text, f"{word} is not supported", instead)


def _check_names(node: exp.Expr, names: list[str], key: tuple[str, ...], text: str) -> None:
    for name in names:
        if names.count(name) > 1:
            raise refuse(node, text, f"column {name} is named twice")
        if name.lower() in ("__time", "__diff"):  # other tools ignore case
            raise refuse(node, text, f"{name} is the name of an update's own column", "give the column another name")
    for name in key:
        if name not in names:
            raise refuse(node, text, f"PRIMARY KEY names column {name}, which the table does not have")
    if not names:
        raise refuse(node, text, "a table needs columns", "write CREATE TABLE t (a integer, ...)")


def _view(node: exp.Create, text: str) -> CreateView:
    query = as_query(node.expression) if node.expression else None
    if not isinstance(query, exp.Query):
        raise refuse(node, text, "a view needs a query", "write CREATE MATERIALIZED VIEW v AS SELECT ...")
    materialized, retain = _properties(node, text)
    schema = node.this
    names: tuple[str, ...] = ()
    if isinstance(schema, exp.Schema):
        names = tuple(name_of(column) for column in schema.expressions)
        schema = schema.this
    if retain is not None and not materialized:
        raise refuse(node, text, "RETAIN HISTORY is not supported for a plain view, which holds no history",
                     "write CREATE MATERIALIZED VIEW, or retain the history of the tables it reads")
    name, written = table_name(schema, text), node.expression.meta["text"]
    if names:
        query, written = _renamed(query, written, node.this)
    return CreateView(name, query, written, names, materialized, retain,
                      bool(node.args.get("exists")), bool(node.args.get("replace")))


def _renamed(query: exp.Query, text: str, schema: exp.Schema) -> tuple[exp.Query, str]:
    """The query and its text, both with the view's column list applied."""
    alias = exp.TableAlias(this=schema.this.this.copy(), columns=[column.copy() for column in schema.expressions])
    outer = exp.Select(expressions=[exp.Star()], from_=exp.From(this=exp.Subquery(this=query, alias=alias)))
    return outer, f"SELECT * FROM ({text}) AS {alias.sql('materialize')}"


def _index(node: exp.Create, text: str) -> CreateIndex:
    index = node.this
    params = index.args.get("params") or exp.IndexParameters()
    only(index, text, "CREATE INDEX", ("this", "table", "params"))
    only(params, text, "CREATE INDEX", ("columns",))
    keys = []
    for item in params.args.get("columns") or ():
        if item.args.get("desc") or item.args.get("opclass"):
            raise refuse(item, text, "an index has no order", "leave out DESC")
        key = item.this if isinstance(item, exp.Ordered) else item
        keys.append(key.unnest())
    if not keys:
        raise refuse(index, text, "an index needs keys", "write CREATE INDEX ON t (a)")
    name = index.args.get("this")
    return CreateIndex(name and name_of(name), table_name(index.args["table"], text), tuple(keys),
                       node.meta["text"], bool(node.args.get("exists")))
