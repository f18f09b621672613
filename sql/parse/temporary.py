"""TEMPORARY: what CREATE TEMP makes is in the schema pg_temp, which each connection has for itself."""

from __future__ import annotations

from sqlglot import exp

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.parse.locate import name_of
from halfjoin.sql.system import TEMPORARY

KINDS = ("TABLE", "VIEW", "SEQUENCE")


def not_materialized() -> UnsupportedSQL:
    """The error for a materialized view over temporary tables, or in their schema."""
    return UnsupportedSQL("materialized views must not use temporary tables or views, which end with the connection",
                          remedy="CREATE TEMP VIEW, or create the tables without TEMP", code="0A000")  # fmt: skip


def in_its_schema(tree: exp.Expr) -> exp.Expr:
    """The statement, with the schema pg_temp for what it creates as TEMPORARY. SELECT ... INTO is CREATE TABLE AS.

    Raises:
        UnsupportedSQL: the kind of thing is never temporary, or another schema is named.
    """
    first = tree
    while isinstance(first, exp.SetOperation):
        first = first.this
    if isinstance(first, exp.Select) and (into := first.args.get("into")) is not None:
        first.set("into", None)
        options = exp.Properties(expressions=[exp.TemporaryProperty()] if into.args.get("temporary") else [])
        tree = exp.Create(this=into.this, kind="TABLE", expression=tree, properties=options)
    properties = tree.args.get("properties") if isinstance(tree, exp.Create) else None
    if properties is None:
        return tree
    kept = [one for one in properties.expressions if not isinstance(one, exp.TemporaryProperty | exp.UnloggedProperty)]
    temporary = any(isinstance(one, exp.TemporaryProperty) for one in properties.expressions)
    properties.set("expressions", kept)
    if not temporary:
        return tree
    kind = str(tree.args["kind"]).upper()
    if kind not in KINDS:
        raise UnsupportedSQL(f"CREATE TEMPORARY {kind} is not supported", remedy="leave out TEMPORARY")
    if any(isinstance(one, exp.MaterializedProperty) for one in kept):
        raise not_materialized()
    made = tree.this.this if isinstance(tree.this, exp.Schema) else tree.this
    given = made.args.get("db")
    if given is not None and name_of(given) != TEMPORARY:
        raise UnsupportedSQL("cannot create temporary relation in non-temporary schema", remedy="leave the schema out",
                             code="42P16")  # fmt: skip
    made.set("db", exp.to_identifier(TEMPORARY))
    return tree
