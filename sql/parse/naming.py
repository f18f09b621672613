"""CREATE TYPE, DOMAIN, SCHEMA and SEQUENCE, ALTER TYPE and COMMENT ON: from syntax trees to statements."""

from __future__ import annotations

from sqlglot import exp

from halfjoin.sql.definitions import ColumnDef, Rename
from halfjoin.sql.named import (
    AlterDomain,
    AlterEnum,
    AlterSequence,
    Comment,
    CreateComposite,
    CreateDomain,
    CreateEnum,
    CreateSchema,
    CreateSequence,
    Domain,
)
from halfjoin.sql.parse import syntax
from halfjoin.sql.parse.constraints import column, inside
from halfjoin.sql.parse.locate import catalog_name, in_schema, name_of, only, refuse
from halfjoin.sql.parse.sequences import number, options
from halfjoin.sql.types import SqlType


def create_type(node: exp.Create, text: str) -> CreateEnum | CreateComposite:
    """CREATE TYPE ... AS ENUM, or AS (field type, ...)."""
    only(node, text, "CREATE TYPE", ("this", "kind", "expression"))
    type = node.expression
    if isinstance(type, exp.Schema):
        return _composite(node, type, text)
    if not isinstance(type, exp.DataType) or type.this is not exp.DType.ENUM:
        raise refuse(node, text, "a type that is neither an enum nor a row is not supported",
                     "write CREATE TYPE t AS ENUM ('a', 'b'), or CREATE TYPE t AS (a integer, b text)")
    labels = tuple(part.name for part in type.expressions)
    if not labels:
        raise refuse(node, text, "an enum without values is not supported", "name at least one value")
    for label in labels:
        if labels.count(label) > 1:
            raise refuse(node, text, f"the label {label!r} appears twice").with_(code="23505")
        _check_label(label, node, text)
    return CreateEnum(catalog_name(node.this, text), labels)


def _composite(node: exp.Create, fields: exp.Schema, text: str) -> CreateComposite:
    given: dict[str, SqlType] = {}
    for field in fields.expressions:
        made, constraints = column(field, text)
        plain = ColumnDef(made.name, made.type)
        if made != plain or constraints:
            raise refuse(field, text, "a field of a type has a name and a type only").with_(code="42601")
        if made.name in given:
            raise refuse(field, text, f'column "{made.name}" specified more than once').with_(code="42701")
        given[made.name] = made.type
    return CreateComposite(catalog_name(node.this, text), tuple(given.items()))


def _check_label(label: str, node: exp.Expr, text: str) -> None:
    if not 0 < len(label.encode()) < 64:
        raise refuse(node, text, f'invalid enum label "{label}"', "a label has 1 to 63 bytes").with_(code="42602")


def alter_enum(node: syntax.AlterEnum, text: str) -> AlterEnum:
    """ALTER TYPE ... ADD VALUE, RENAME VALUE or RENAME TO."""
    if node.args.get("to"):
        return AlterEnum(catalog_name(node.this, text), to=name_of(node.args["to"]))
    old, beside, label = node.args.get("old"), node.args.get("beside"), node.args["add"].name
    _check_label(label, node, text)
    return AlterEnum(catalog_name(node.this, text), label, old and old.name, beside and beside.name,
                     bool(node.args.get("before")), bool(node.args.get("exists")))  # fmt: skip


def create_domain(node: exp.Create, text: str) -> CreateDomain:
    """CREATE DOMAIN: a column's type, DEFAULT, NOT NULL and CHECKs, without the column."""
    if not isinstance(node.expression, exp.ColumnDef):
        raise refuse(node, text, "a domain needs a type", "write CREATE DOMAIN d AS integer CHECK (VALUE > 0)")
    made, constraints = column(node.expression, text)
    if made.generated is not None or made.identity is not None:
        raise refuse(node, text, "a domain is not GENERATED", "write DEFAULT")
    if wrong := [one.kind for one in constraints if one.kind != "check"]:
        error = refuse(node, text, f"{wrong[0]} constraints not possible for domains", "write CHECK (VALUE ...)")
        raise error.with_(code="42601")
    checks = tuple((one.name or "", one.text) for one in constraints)
    return CreateDomain(Domain(catalog_name(node.this, text), made.type, made.not_null, made.default, checks))


def alter_sequence(node: syntax.AlterSequence, text: str) -> AlterSequence | Rename:
    """ALTER SEQUENCE."""
    name, exists = catalog_name(node.this, text), bool(node.args.get("exists"))
    if (to := node.args.get("to")) is not None:
        schema = name.rpartition(".")[0]
        return Rename("sequence", name, f"{schema}.{name_of(to)}" if schema else name_of(to), exists)
    if (into := node.args.get("schema")) is not None:
        return Rename("sequence", name, in_schema(name, name_of(into)), exists, moves=True)
    restart = node.args.get("restart")
    at = None if restart in (None, True) else number(restart, node, text)
    return AlterSequence(name, restart is not None, at, options(node, text), exists)


def alter_domain(node: syntax.AlterDomain, text: str) -> AlterDomain:
    """ALTER DOMAIN."""
    action, given = node.args["action"], node.args.get("constraint")
    said = given.find(exp.CheckColumnConstraint, exp.DefaultColumnConstraint) if given is not None else None
    if action in ("set default", "add") and (said is None or isinstance(said, exp.CheckColumnConstraint) != (
            action == "add")):  # fmt: skip
        raise refuse(node, text, "this ALTER DOMAIN is not supported", "SET DEFAULT value, or ADD CHECK (VALUE ...)")
    words = "" if said is None else said.meta["text"]
    called = given.this if isinstance(given, exp.ColumnConstraint) else None
    name, to = node.args.get("name") or called, node.args.get("to")
    return AlterDomain(catalog_name(node.this, text), action, inside(words) if action == "add" else words,
                       name_of(name) if name is not None else "", name_of(to) if to is not None else "",
                       bool(node.args.get("exists")))  # fmt: skip


def create_schema(node: exp.Create, text: str) -> CreateSchema:
    """CREATE SCHEMA."""
    only(node, text, "CREATE SCHEMA", ("this", "kind", "exists"))
    return CreateSchema(schema_named(node.this, text), bool(node.args.get("exists")))


def schema_named(node: exp.Expr, text: str) -> str:
    """The name of a schema."""
    given = node.args.get("db")
    if given is None or node.args.get("catalog"):
        raise refuse(node, text, "expected the name of a schema")
    name = name_of(given)
    if "." in name:
        raise refuse(node, text, f"the schema {name!r} has a dot in its name", "choose another name")
    return name


def create_sequence(node: exp.Create, text: str) -> CreateSequence:
    """CREATE SEQUENCE."""
    only(node, text, "CREATE SEQUENCE", ("this", "kind", "exists", "properties", "expression"))
    given = options(exp.SequenceProperties(type=node.args.get("expression")), text)
    for item in node.args["properties"].expressions if node.args.get("properties") else ():
        if not isinstance(item, exp.SequenceProperties) or item.args.get("restart"):
            raise refuse(node, text, "this option of CREATE SEQUENCE is not supported", "START WITH, INCREMENT BY")
        item.set("type", node.args.get("expression"))
        given = options(item, text)
    return CreateSequence(catalog_name(node.this, text), given, bool(node.args.get("exists")))


def comment(node: syntax.Comment, text: str) -> Comment:
    """COMMENT ON."""
    kind, given = node.args["kind"], node.args.get("text")
    if kind == "schema":
        return Comment(kind, schema_named(node.this, text), given and given.name)
    if kind != "column":
        constraint = node.args.get("constraint")
        part = "" if constraint is None else name_of(constraint)
        return Comment(kind, catalog_name(node.this, text), given and given.name, part)
    parts = [name_of(part) for part in node.this.parts]
    if not 1 < len(parts) < 4:
        raise refuse(node, text, "expected the name of a column", "write COMMENT ON COLUMN t.a IS 'text'")
    table = exp.Table(this=node.this.parts[-2], db=node.this.parts[0] if len(parts) == 3 else None)
    return Comment(kind, catalog_name(table, text), given and given.name, parts[-1])
