"""The columns and constraints of CREATE TABLE and ALTER TABLE: from syntax trees to data. Expressions stay text."""

from __future__ import annotations

import re
from collections.abc import Iterable

from sqlglot import exp

from halfjoin.sql.definitions import ColumnDef, Constraint, Identity
from halfjoin.sql.parse.collations import check_collation
from halfjoin.sql.parse.locate import catalog_name, name_of, refuse, written
from halfjoin.sql.parse.sequences import options
from halfjoin.sql.parse.type_names import stored_type
from halfjoin.sql.types import BIGINT, INTEGER, INTEGERS, SMALLINT, SqlType

_GENERATED = re.compile(r"\s*always\s+as\s*(.*?)(\s+stored)?\s*", re.IGNORECASE | re.DOTALL)
SERIAL = {exp.DType.SMALLSERIAL: SMALLINT, exp.DType.SERIAL: INTEGER, exp.DType.BIGSERIAL: BIGINT}
_ACTIONS = {f"{event} {action.upper()}": action for event in ("ON DELETE", "ON UPDATE")
            for action in ("cascade", "set null", "set default")}  # fmt: skip
_OPTIONS = ("ON DELETE NO ACTION", "ON DELETE RESTRICT", "ON UPDATE NO ACTION", "ON UPDATE RESTRICT", "MATCH SIMPLE",
            "DEFERRABLE", "NOT DEFERRABLE", "INITIALLY IMMEDIATE", "INITIALLY DEFERRED")  # fmt: skip
KINDS = (exp.PrimaryKey, exp.PrimaryKeyColumnConstraint, exp.UniqueColumnConstraint, exp.CheckColumnConstraint,
         exp.Reference, exp.ForeignKey)  # fmt: skip


def column(node: exp.ColumnDef, text: str) -> tuple[ColumnDef, list[Constraint]]:
    """A column with its DEFAULT and GENERATED, and the constraints that stand beside it."""
    if node.args.get("kind") is None:
        raise refuse(node, text, f"column {name_of(node)} has no type")
    name, declared = name_of(node), node.args["kind"]
    serial = SERIAL.get(declared.this)
    type = stored_type(declared, text) if serial is None else serial
    not_null, default, generated, constraints = serial is not None, None, None, list[Constraint]()
    identity = None if serial is None else Identity(always=False, serial=True)
    said = True if serial is not None else None  # whether NOT NULL is; None: neither that nor NULL

    def once(kind: exp.Expr, again: bool, what: str) -> None:
        if again:
            raise refuse(kind, text, f"{what} for column {name}", "write one of them").with_(code="42601")

    for item in node.args.get("constraints") or ():
        kind = item.kind
        if isinstance(kind, exp.NotNullColumnConstraint):
            wanted = not kind.args.get("allow_null")
            once(kind, said is not None and said != wanted, "conflicting NULL/NOT NULL declarations")
            not_null = said = wanted
        elif isinstance(kind, exp.DefaultColumnConstraint):
            once(kind, default is not None, "multiple default values")
            default = kind.meta["text"]
        elif isinstance(kind, exp.ComputedColumnConstraint):
            found = _GENERATED.fullmatch(kind.meta.get("text", ""))
            if found is None:
                raise refuse(kind, text, "a generated column is not written so", "GENERATED ALWAYS AS (...) STORED")
            once(kind, generated is not None, "multiple generation clauses")
            generated = inside(found[1])
        elif isinstance(kind, exp.GeneratedAsIdentityColumnConstraint):
            if identity is not None:
                raise refuse(kind, text, f"column {name} has more than one identity").with_(code="42601")
            once(kind, said is False, "conflicting NULL/NOT NULL declarations")
            identity, not_null, said = identity_of(kind, type, text), True, True
        elif isinstance(kind, KINDS):
            made = constraint(kind, item.this and name_of(item.this), text, (name,))
            constraints.append(made)
            not_null |= made.kind == "primary key"
        elif isinstance(kind, exp.CollateColumnConstraint):
            check_collation(kind.this, type, text)
        else:
            raise unknown(kind, text)
    if identity is not None and (default is not None or generated is not None):
        raise refuse(node, text, f"column {name} has an identity, and another value as well").with_(code="42601")
    return ColumnDef(name, type, not_null, default, generated, identity), constraints


def identity_of(node: exp.GeneratedAsIdentityColumnConstraint, type: SqlType, text: str) -> Identity:
    """The identity of a column."""
    if type.kind not in INTEGERS:
        raise refuse(node, text, "identity column type must be smallint, integer, or bigint").with_(code="22023")
    named = node.meta.get("sequence")
    return Identity(bool(node.this), options(node, text), sequence="" if named is None else catalog_name(named, text))


def constraints(node: exp.Expr, text: str) -> list[Constraint]:
    """The constraint of a table, with its name if it has one."""
    if isinstance(node, exp.Constraint):
        return [constraint(part, name_of(node.this), text, ()) for part in node.expressions]
    return [constraint(node, None, text, ())]


def constraint(node: exp.Expr, name: str | None, text: str, columns: tuple[str, ...]) -> Constraint:
    """A constraint. `columns`: the column that it stands beside."""
    match node:
        case exp.PrimaryKey():
            return Constraint("primary key", name, _names(node.expressions))
        case exp.PrimaryKeyColumnConstraint():
            return Constraint("primary key", name, columns)
        case exp.UniqueColumnConstraint():
            inner = node.this
            return Constraint("unique", name, _names(inner.expressions) if isinstance(inner, exp.Schema) else columns)
        case exp.CheckColumnConstraint():
            return Constraint("check", name, columns, inside(node.meta["text"]))
        case exp.ForeignKey():
            if node.args.get("reference") is None:
                raise refuse(node, text, "FOREIGN KEY without REFERENCES", "write FOREIGN KEY (a) REFERENCES t (b)")
            return _references(node.args["reference"], name, text, _names(node.expressions))
        case exp.Reference():
            return _references(node, name, text, columns)
    raise unknown(node, text)


def unknown(node: exp.Expr, text: str) -> Exception:
    """The error for a constraint that is not supported."""
    if isinstance(node, exp.Identifier):
        return refuse(node, text, f"column {name_of(node)} has no type")
    kind = node.args.get("kind", node)
    if isinstance(kind, exp.AutoIncrementColumnConstraint):
        return refuse(node, text, "AUTO_INCREMENT is not supported", "write GENERATED BY DEFAULT AS IDENTITY")
    if isinstance(kind, exp.CommentColumnConstraint):
        return refuse(node, text, "COMMENT in CREATE TABLE is not supported", "write COMMENT ON COLUMN t.a IS '...'")
    return refuse(node, text, f"{written(node)} is not supported",
                  "constraints: NOT NULL, PRIMARY KEY, UNIQUE, CHECK, REFERENCES, DEFAULT, GENERATED")


def _references(node: exp.Reference, name: str | None, text: str, columns: tuple[str, ...]) -> Constraint:
    target = node.this
    table = target.this if isinstance(target, exp.Schema) else target
    options = [str(option).upper() for option in node.args.get("options") or ()]
    for option in options:
        if option not in _OPTIONS and option not in _ACTIONS:
            raise refuse(node, text, f"{option} is not supported", f"write {', '.join((*_ACTIONS, *_OPTIONS))}")
    on_delete, on_update = (next((_ACTIONS[one] for one in options if one.startswith(event) and one in _ACTIONS), "")
                            for event in ("ON DELETE", "ON UPDATE"))  # fmt: skip
    references = _names(target.expressions) if isinstance(target, exp.Schema) else ()
    return Constraint("foreign key", name, columns, "", catalog_name(table, text), references, False, on_delete,
                      on_update, "INITIALLY DEFERRED" in options)  # fmt: skip


def inside(text: str) -> str:
    """The text between the parentheses around an expression."""
    return text.strip()[1:-1].strip()


def _names(nodes: Iterable[exp.Expr]) -> tuple[str, ...]:
    return tuple(name_of(node.this if isinstance(node, exp.Ordered) else node) for node in nodes)
