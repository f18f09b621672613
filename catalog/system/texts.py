"""What functions of PostgreSQL's catalog say of a number: a name, a definition, a comment."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from halfjoin.catalog.models import Sequence, View
from halfjoin.catalog.system.known import ROLE, Constraint, Key, Known, Relation, identifier
from halfjoin.catalog.system.operators import operators
from halfjoin.catalog.system.procedures import procedures
from halfjoin.catalog.system.sizes import SIZES, bytes_of, bytes_of_all
from halfjoin.catalog.system.types import TypeRow

COLUMN = 1 << 16  # a column's number is that of its table times this, plus its own


def constraint_text(known: Known, one: Constraint, pretty: bool = False) -> str:
    """The definition of a constraint, as in CREATE TABLE."""
    if one.check is not None:
        text = f"CHECK ({one.check.text})" if pretty else f"CHECK (({one.check.text}))"
        return text if one.check.valid else f"{text} NOT VALID"
    columns = ", ".join(map(identifier, one.columns))
    if one.key is not None:
        other = ", ".join(map(identifier, one.key.references))
        update, delete = (f" {event} {action.upper()}" if action else "" for event, action in
                          (("ON UPDATE", one.key.on_update), ("ON DELETE", one.key.on_delete)))  # fmt: skip
        later = " DEFERRABLE INITIALLY DEFERRED" if one.key.deferred else ""
        later += "" if one.key.valid else " NOT VALID"
        of = known.shown(*known.split(one.key.table))
        return f"FOREIGN KEY ({columns}) REFERENCES {of}({other}){update}{delete}{later}"
    return f"{'PRIMARY KEY' if one.kind == 'p' else 'UNIQUE'} ({columns})"


def index_text(known: Known, one: Relation, pretty: bool = False) -> str:
    """The CREATE INDEX of an index; a `pretty` one names the schema only if that is needed."""
    assert isinstance(one.item, Key)
    schema, table = known.split(one.item.table)
    of = known.shown(schema, table) if pretty else f"{identifier(schema)}.{identifier(table)}"
    keys = ", ".join(map(index_key, one.item.keys))
    return f"CREATE {'UNIQUE ' if one.item.unique else ''}INDEX {identifier(one.name)} ON {of} USING btree ({keys})"


def index_key(key: str) -> str:
    """A key of an index: a column as a name, an expression as its text."""
    return key if "(" in key or " " in key else identifier(key)


def view_text(view: View) -> str:
    """The query of a view."""
    return f" {view.text.rstrip().rstrip(';')};"


def _relation_names(known: Known) -> Iterator[tuple[int, str]]:
    for oid, schema, name, _ in known.system_relations():
        yield oid, known.shown(schema, name)
    for one in known.relations:
        yield one.oid, known.shown(one.schema, one.name)


def _comments(known: Known) -> Iterator[tuple[int, str]]:
    for one in known.relations:
        yield one.oid, one.comment
    for constraint in known.constraints:
        yield constraint.oid, constraint.comment
    for kind, found in (("type", known.types), ("domain", known.types)):
        for type in found:
            name = type.name if type.schema == "public" else f"{type.schema}.{type.name}"
            yield type.oid, known.catalog.comments.get(f"{kind} {name}", "")
    for name, oid in known.schemas.items():
        yield oid, known.catalog.comments.get(f"schema {name}", "")
    yield 11, "system catalog schema"
    for function in procedures(known):
        yield function.oid, function.doc
    for operator in operators():
        yield operator.oid, operator.doc


def _column_comments(known: Known) -> Iterator[tuple[int, str]]:
    for one in known.relations:
        for number, column in enumerate(one.columns, 1):
            yield one.oid * COLUMN + number, column.comment


def _index_texts(known: Known, pretty: bool = False) -> Iterator[tuple[int, str]]:
    for one in known.relations:
        if isinstance(one.item, Key):
            yield one.oid * COLUMN, index_text(known, one, pretty)
            for number, key in enumerate(one.item.keys, 1):
                yield one.oid * COLUMN + number, index_key(key)


def _visible_relations(known: Known) -> Iterator[tuple[int, str]]:
    for oid, schema, _, _ in known.system_relations():
        yield oid, _flag(known.visible(schema))
    for one in known.relations:
        yield one.oid, _flag(known.visible(one.schema))


def _last_values(known: Known) -> Iterator[tuple[int, str]]:
    for one in known.relations:
        if isinstance(one.item, Sequence) and (last := known.last_value(one.item)) is not None:
            yield one.oid, str(last)


def _flag(value: bool) -> str:
    return "true" if value else "false"


def _type_names(known: Known) -> Iterator[tuple[int, str]]:
    return ((one.oid, one.title) for one in known.types)


def _procedure(part: str) -> Callable[[Known], Iterator[tuple[int, str]]]:
    return lambda known: ((one.oid, str(getattr(one, part))) for one in procedures(known))


def _schema_names(known: Known) -> Iterator[tuple[int, str]]:
    return ((oid, identifier(name)) for name, oid in known.schemas.items())


_TEXTS: Mapping[str, Callable[[Known], Iterator[tuple[int, str]]]] = {
    "regclass": _relation_names,
    "regtype": _type_names,
    "regproc": _procedure("name"),
    "regprocedure": _procedure("signature"),
    "regnamespace": _schema_names,
    "regrole": lambda known: iter(((ROLE, identifier(known.asker.user)),)),
    "regcollation": lambda known: iter(((100, '"default"'), (950, '"C"'), (951, '"POSIX"'))),
    "regoper": lambda known: iter(()),
    "regoperator": lambda known: iter(()),
    "pg_get_userbyid": lambda known: iter(((ROLE, known.asker.user),)),
    "pg_get_constraintdef": lambda known: ((one.oid, constraint_text(known, one)) for one in known.constraints),
    "pg_get_constraintdef pretty": lambda known: ((one.oid, constraint_text(known, one, True))
                                                  for one in known.constraints),
    "pg_get_indexdef": _index_texts,
    "pg_get_indexdef pretty": lambda known: _index_texts(known, True),
    "pg_get_viewdef": lambda known: ((one.oid, view_text(one.item)) for one in known.relations
                                     if isinstance(one.item, View)),
    **{name: partial(bytes_of, function=name) for name in SIZES}, "pg_database_size": bytes_of_all,
    "pg_sequence_last_value": _last_values,
    "obj_description": _comments,
    "col_description": _column_comments,
    "pg_table_is_visible": _visible_relations,
    "pg_type_is_visible": lambda known: ((one.oid, _flag(known.visible(one.schema))) for one in known.types),
    "pg_function_is_visible": lambda known: ((one.oid, "true") for one in procedures(known)),
    "pg_get_function_arguments": _procedure("arguments"),
    "pg_get_function_identity_arguments": _procedure("arguments"),
    "pg_get_function_result": _procedure("result"),
}  # fmt: skip


def serials(known: Known) -> dict[str, str]:
    """The sequences that number columns, by the table's oid, a blank, and the column's name."""
    return {f"{one.oid} {column.name}": ".".join(map(identifier, known.split(column.sequence)))
            for one in known.relations for column in one.columns if column.sequence}


def texts(known: Known, what: str) -> dict[int, str]:
    """The texts of a function or a type, by number; without those that are empty."""
    return {oid: text for oid, text in _TEXTS[what](known) if text}


def numbers(known: Known, type: str) -> dict[str, int]:
    """The numbers by the names that a type such as regclass takes: with and without the schema. A function with its
    arguments has the numbers of their types."""
    found: dict[str, int] = {}
    match type:
        case "regclass":
            every = [*known.system_relations(), *((one.oid, one.schema, one.name, one.kind) for one in known.relations)]
            for oid, schema, name, _ in every:
                found[f"{schema}.{name}"] = oid
            for schema in reversed((*known.asker.path, "pg_catalog")):
                found |= {name: oid for oid, of, name, _ in every if of == schema}
        case "regtype":
            for one in reversed(known.types):  # a type of PostgreSQL's comes before a table of its name
                found |= dict.fromkeys(_names_of(known, one), one.oid)
        case "regnamespace":
            found = dict(known.schemas)
        case "regrole":
            found = {known.asker.user: ROLE}
        case "regproc" | "regprocedure":
            for procedure in reversed(procedures(known)):
                for name in (procedure.name, f"{procedure.name}({','.join(map(str, procedure.takes))})"):
                    found |= {name: procedure.oid, f"pg_catalog.{name}": procedure.oid}
    return found


def _names_of(known: Known, one: TypeRow) -> tuple[str, ...]:
    """The names of a type: in SQL, in pg_type, with the schema."""
    bare = (one.name, one.title) if known.visible(one.schema) else (one.title,)
    extra = {"integer": ("int",), "numeric": ("decimal",), "timestamp without time zone": ("timestamp",),
             "time without time zone": ("time",), "character varying": ("varchar",)}.get(one.title, ())
    return (*bare, *extra, f"{one.schema}.{one.name}")
