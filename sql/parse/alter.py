"""ALTER TABLE and ALTER VIEW: from syntax trees to statements."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sqlglot import exp

from halfjoin.sql.definitions import AlterAction, AlterRetention, AlterTable, Identity, Rename
from halfjoin.sql.named import SequenceOptions
from halfjoin.sql.parse import syntax
from halfjoin.sql.parse.collations import check_collation
from halfjoin.sql.parse.constraints import column, constraints, identity_of
from halfjoin.sql.parse.create import check_dots, table_name
from halfjoin.sql.parse.locate import in_schema, name_of, only, refuse, written
from halfjoin.sql.parse.sequences import number, options
from halfjoin.sql.parse.syntax import AlterConstraint, AlterIdentity
from halfjoin.sql.parse.times import constant_duration
from halfjoin.sql.parse.type_names import stored_type
from halfjoin.sql.types import BIGINT


def alter(node: exp.Alter, text: str) -> AlterTable | AlterRetention | Rename:
    """An ALTER statement."""
    only(node, text, "ALTER", ("this", "kind", "exists", "actions", "options", "only"))  # tables have no children here
    kind, name, exists = str(node.args["kind"]).lower(), table_name(node.this, text), bool(node.args.get("exists"))
    actions = node.args["actions"]
    if len(actions) == 1 and isinstance(actions[0], exp.AlterRename):
        renamed = name_of(actions[0].this)
        schema = name.rpartition(".")[0] if node.this.args.get("db") is not None else ""
        for option in node.args.get("options") or ():
            if isinstance(option, exp.ToTableProperty) and kind != "table":  # RENAME a TO b
                return Rename(kind, name, name_of(option.this), exists, column=renamed)
            if isinstance(option, exp.ToTableProperty):
                return AlterTable(name, (AlterAction("rename column", renamed, to=name_of(option.this)),), exists)
        check_dots(actions[0].this, text)
        return Rename(kind, name, f"{schema}.{renamed}" if schema else renamed, exists)
    if len(actions) == 1 and isinstance(actions[0], syntax.AlterSchema):
        return Rename(kind, name, in_schema(name, name_of(actions[0].this)), exists, moves=True)
    if len(actions) == 1 and isinstance(actions[0], syntax.AlterRetention):
        length = actions[0].this
        return AlterRetention(name, None if length is None else constant_duration(length, text), exists)
    if kind != "table":
        if len(actions) == 1 and isinstance(actions[0], exp.RenameColumn):
            return Rename(kind, name, name_of(actions[0].args["to"]), exists, column=name_of(actions[0].this))
        raise refuse(node, text, f"this ALTER {kind.upper()} is not supported",
                     "write ALTER VIEW v RENAME TO w, RENAME COLUMN a TO b, or SET SCHEMA s")
    return AlterTable(name, tuple(made for action in actions for made in _actions(action, text)), exists)


def _actions(node: exp.Expr, text: str) -> Iterator[AlterAction]:
    match node:
        case exp.ColumnDef():
            made, beside = column(node, text)
            yield AlterAction("add column", made.name, column=made, beside=tuple(beside),
                              lenient=bool(node.args.get("exists")))  # fmt: skip
        case exp.AddConstraint():
            for part in node.expressions:
                for one in constraints(part, text):
                    valid = not part.meta.get("not_valid")
                    if not valid and one.kind not in ("check", "foreign key"):
                        raise refuse(part, text, f"{one.kind.upper()} constraints cannot be marked NOT VALID")
                    yield AlterAction("add constraint", constraint=replace(one, valid=valid))
        case exp.Drop() if str(node.args["kind"]).upper() in ("COLUMN", "CONSTRAINT"):
            for one in node.args["tables"]:
                yield AlterAction(f"drop {str(node.args['kind']).lower()}", name_of(one),
                                  lenient=bool(node.args.get("exists")), cascade=bool(node.args.get("cascade")))
        case exp.RenameColumn():
            yield AlterAction("rename column", name_of(node.this), to=name_of(node.args["to"]))
        case AlterConstraint():
            to = node.args.get("to")
            yield AlterAction("rename constraint" if to else "validate constraint", name_of(node.this),
                              to=to and name_of(to))
        case exp.AlterColumn():
            yield _altered(node, text)
        case AlterIdentity():
            yield from _identity(node, text)
        case _:
            raise refuse(node, text, f"ALTER TABLE ... {written(node)} is not supported",
                         "ADD, DROP or RENAME a column or constraint, or ALTER a column")


def _altered(node: exp.AlterColumn, text: str) -> AlterAction:
    name = name_of(node.this)
    using, dtype = node.args.get("using"), node.args.get("dtype")
    if dtype:
        type, collation = stored_type(dtype, text), node.args.get("collate")
        if collation:
            check_collation(collation, type, text)
        return AlterAction("type", name, type=type, to=node.meta["text"] if using else None)
    if node.args.get("allow_null") is not None:
        return AlterAction("drop not null" if node.args["allow_null"] else "set not null", name)
    if node.args.get("drop"):
        return AlterAction("default", name)
    if "text" not in node.meta:
        raise refuse(node, text, "SET DEFAULT needs a value").with_(code="42601")
    return AlterAction("default", name, to=node.meta["text"])


def _identity(node: AlterIdentity, text: str) -> Iterator[AlterAction]:
    name, action = name_of(node.this), node.args["action"]
    if action == "add":
        given = node.args["constraint"]
        kind = given.kind if isinstance(given, exp.ColumnConstraint) else given
        if not isinstance(kind, exp.GeneratedAsIdentityColumnConstraint):
            raise refuse(node, text, "expected GENERATED ALWAYS or BY DEFAULT AS IDENTITY")
        yield AlterAction("add identity", name, identity=identity_of(kind, BIGINT, text))
    if action == "drop":
        yield AlterAction("drop identity", name, lenient=bool(node.args.get("exists")))
    if (always := node.args.get("always")) is not None:
        yield AlterAction("set identity", name, to="always" if always else None)
    changed = options(node, text) if action == "change" else SequenceOptions()
    if changed != SequenceOptions():
        yield AlterAction("alter identity", name, identity=Identity(always=False, options=changed))
    if (restart := node.args.get("restart")) is not None:
        yield AlterAction("restart identity", name, restart=None if restart is True else number(restart, node, text))
