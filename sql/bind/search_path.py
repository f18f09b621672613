"""search_path: gives the names in a statement that have no schema the one that they mean."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from sqlglot import exp

from halfjoin.errors import UnknownName, UnsupportedSQL
from halfjoin.sql.bind.sequences import CALLS, quoted, sequence_named, text_in
from halfjoin.sql.bind.tables import references
from halfjoin.sql.parse.locate import PUBLIC, name_of, place
from halfjoin.sql.parse.syntax import ShowObjects
from halfjoin.sql.parse.type_names import of_catalog
from halfjoin.sql.system import TEMPORARY

MADE = ("TABLE", "VIEW", "TYPE", "DOMAIN", "SEQUENCE")


class Names(Protocol):
    """What exists, by its names in the catalog."""

    schemas: tuple[str, ...]

    def names(self) -> Collection[str]:
        """Of tables and views."""

    @property
    def others(self) -> Mapping[str, Collection[str]]:
        """Of other things, by their kinds in upper case."""


def path_of(setting: str | None) -> tuple[str, ...]:
    """The schemas of a setting's value; those that a session may lack are left out.

    >>> path_of('"$user", sales, public')
    ('sales', 'public')
    """
    names = [name.strip().strip('"') for name in (PUBLIC if setting is None else setting).split(",")]
    return tuple(name for name in names if name and name != "$user")


def placed(tree: exp.Expr, names: Names, path: Sequence[str]) -> exp.Expr:
    """The statement with a schema for each name that has none: the first of the path where the name exists.

    Raises:
        UnsupportedSQL: something is to be created, and no schema of the path exists.
    """
    if isinstance(tree, ShowObjects) and tree.this == "setting":
        return tree
    kind = str(tree.args.get("kind") or "").upper()
    made = _made(tree, kind)
    if made is not None and made.args.get("db") is None:
        schema = next((one for one in path if one != TEMPORARY and (one == PUBLIC or one in names.schemas)), None)
        if schema is None:
            raise UnsupportedSQL("no schema has been selected to create in", remedy="CREATE SCHEMA, or SET search_path",
                                 code="3F000")  # fmt: skip
        made.set("db", exp.to_identifier(schema, quoted=True))
    known = names.others.get(kind, names.names()) if isinstance(tree, exp.Drop) else names.names()
    for table in list(references(tree)):
        if table is not made and table.args.get("db") is None and not isinstance(table.parent, exp.AlterRename):
            _place(table, known, path)
    for call in tree.find_all(exp.Anonymous):
        if call.name.lower() in CALLS and call.expressions:
            _place_sequence(call.expressions[0], names.others["SEQUENCE"], path)
    types = [*names.others["TYPE"], *names.others["DOMAIN"]]
    for type in tree.find_all(exp.DataType):
        name = type.args.get("kind")
        if type.this is exp.DType.USERDEFINED and isinstance(name, exp.Identifier) and of_catalog(name) is None:
            schema = _schema(name_of(name), types, path)
            if schema != PUBLIC:
                type.set("kind", exp.Dot.build([exp.to_identifier(schema, quoted=True), name]))
                _note(tree, name, schema)
    return tree


def check_dots(tree: exp.Expr, sql: str, schemas: Collection[str]) -> None:
    """Check that no name in quotes looks like a name in a schema: `"s.t"` is not `s.t`.

    Raises:
        UnknownName: one does.
    """
    if not any(f'"{schema}.' in sql for schema in schemas):
        return
    for table in references(tree):
        name = name_of(table)
        if table.args.get("db") is None and name.partition(".")[0] in schemas and "." in name:
            remedy = f"write {name}, with the quotes around each part"
            raise UnknownName("table or view", f'"{name}"', (), remedy=remedy).at(sql, *place(table, sql))


def _made(tree: exp.Expr, kind: str) -> exp.Expr | None:
    """The name of what a statement creates."""
    if not isinstance(tree, exp.Create) or kind not in MADE:
        return None
    made: exp.Expr = tree.this
    return made.this if isinstance(made, exp.Schema) else made


def _place(table: exp.Table, known: Collection[str], path: Sequence[str]) -> None:
    name = name_of(table)
    schema = _schema(name, known, path)
    if name.startswith("pg_") and f"{schema}.{name}" not in known and name not in known:
        return  # the catalog is on any path
    if schema != PUBLIC:
        table.set("db", exp.to_identifier(schema, quoted=True))
        _note(table.root(), table.this, schema)


def _place_sequence(given: exp.Expr, known: Collection[str], path: Sequence[str]) -> None:
    """Give the sequence that nextval names its schema."""
    text = text_in(given)
    if text is not None:
        name = sequence_named(text.name)
        named = len(exp.to_table(text.name, dialect="postgres").parts) > 1
        if not named and (schema := _schema(name, known, path)) != PUBLIC:
            text.set("this", quoted(f"{schema}.{name}"))


def _schema(name: str, known: Collection[str], path: Sequence[str]) -> str:
    """The schema that a name means. For a name that is nowhere on the path it is the path's first one."""
    for schema in path:
        if (name if schema == PUBLIC else f"{schema}.{name}") in known:
            return schema
    return next((PUBLIC if PUBLIC in path else one for one in path if one != TEMPORARY), PUBLIC)


def _note(tree: exp.Expr, name: exp.Expr, schema: str) -> None:
    """Write the schema into the text that the catalog keeps of a view."""
    query = tree.args.get("expression")
    if not isinstance(tree, exp.Create) or query is None or "text" not in query.meta or "start" not in name.meta:
        return
    edits = query.meta.setdefault("edits", [])
    place = name.meta["start"] - query.meta["from"]
    if place >= 0:
        edits.append((place, '"' + schema.replace('"', '""') + '".'))
        text = query.meta.setdefault("written", query.meta["text"])
        for at, more in sorted(edits, reverse=True):
            text = text[:at] + more + text[at:]
        query.meta["text"] = text
