"""SHOW CREATE: the statements that define a table or view, from the catalog."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from halfjoin.catalog.catalog import Catalog
from halfjoin.catalog.models import ColumnModel, ForeignKey, Table
from halfjoin.engine.intake.schemas import counts_rows
from halfjoin.engine.scalar.arrow_types import sql_type
from halfjoin.engine.statements.reading import quoted
from halfjoin.errors import UnknownName, UnsupportedSQL
from halfjoin.sql.parse.labels import RESERVED


def create_statement(catalog: Catalog, name: str) -> str:
    """The CREATE statement of a table or view.

    Raises:
        UnknownName: nothing has that name.
    """
    if name in catalog.tables:
        return _table(catalog, catalog.tables[name])
    if name not in catalog.views:
        raise UnknownName("table or view", name, catalog.names())
    view = catalog.views[name]
    kind = "MATERIALIZED VIEW" if view.materialized else "VIEW"
    retain = "" if view.retain is None else f" WITH (RETAIN HISTORY FOR {view.retain})"
    return f"CREATE {kind} {qualified(name)}{retain} AS {view.text}"


def create_like(name: str, schema: Any, key: Sequence[str], types: Mapping[str, str] | None = None) -> str:
    """CREATE TABLE for the columns of a `pyarrow.Schema`. `types`: SQL types that columns get instead of its own. An
    index of pandas without a name is a column only where `key` or `types` name it.

    Raises:
        UnknownName: `key` or `types` name another column. UnsupportedSQL: a column's type has no SQL type.
    """
    given = dict(types or {})
    for column in (*key, *given):
        if column not in schema.names:
            raise UnknownName(f"column of {name}", column, schema.names)
    columns = []
    for field in schema:
        if counts_rows(field.name) and field.name not in {*key, *given}:
            continue
        try:
            text = given.get(field.name) or str(sql_type(field.type))
        except UnsupportedSQL as error:
            raise error.with_(reason=f"column {field.name}: {error.reason}") from None
        missing = "" if field.nullable or field.name in key else " NOT NULL"
        columns.append(f"{identifier(field.name)} {text}{missing}")
    if key:
        columns.append(f"PRIMARY KEY ({', '.join(map(identifier, key))})")
    return f"CREATE TABLE {qualified(name)} ({', '.join(columns)})"


def identifier(name: str) -> str:
    """A name as SQL text, in quotes if it needs them."""
    plain = name.isascii() and name.replace("_", "a").isalnum() and name == name.lower() and not name[0].isdigit()
    return name if plain and name not in _WORDS else quoted(name)


def qualified(name: str) -> str:
    """The name of a table, view or type as SQL text, with its schema."""
    return ".".join(map(identifier, name.split(".", 1)))


def type_text(column: ColumnModel) -> str:
    """The type of a column as CREATE TABLE names it."""
    if column.domain is not None:
        return qualified(column.domain.name)
    element = column.type.element
    if element is not None and element.named:
        return f"{qualified(element.named)}[]"
    return qualified(column.type.named) if column.type.named else str(column.type)


def _identity(catalog: Catalog, column: ColumnModel) -> str:
    if not column.sequence:
        return ""
    one = catalog.sequences[column.sequence]
    least, most = (1, 2**63 - 1) if one.step > 0 else (-(2**63), -1)  # what the direction says
    options = [f"START WITH {one.start}"] * (one.start != (one.least if one.step > 0 else one.most))
    options += [f"INCREMENT BY {one.step}"] * (one.step != 1) + [f"MINVALUE {one.least}"] * (one.least != least)
    options += [f"MAXVALUE {one.most}"] * (one.most != most) + ["CYCLE"] * one.cycle
    word = "ALWAYS" if column.always else "BY DEFAULT"
    return f" GENERATED {word} AS IDENTITY" + (f" ({' '.join(options)})" if options else "")


def _table(catalog: Catalog, table: Table) -> str:
    items = []
    for column in table.columns:
        text = f"{identifier(column.name)} {type_text(column)}"
        text += _identity(catalog, column)
        text += f" GENERATED ALWAYS AS ({column.generated}) STORED" if column.generated else ""
        text += f" DEFAULT {column.default}" if column.default else ""
        items.append(text + (" NOT NULL" if column.not_null and column.own_not_null is not False else ""))
    if table.primary_key:
        name = f"CONSTRAINT {identifier(table.key_name)} " if table.key_name else ""
        items.append(f"{name}PRIMARY KEY {_list(table.primary_key)}")
    items += [f"CONSTRAINT {identifier(one.name)} UNIQUE {_list(one.columns)}" for one in table.unique]
    items += [f"CONSTRAINT {identifier(one.name)} CHECK ({one.text})" for one in table.checks]
    items += [f"CONSTRAINT {identifier(one.name)} FOREIGN KEY {_list(one.columns)} REFERENCES "
              f"{qualified(one.table)} {_list(one.references)}{_actions(one)}"
              for one in table.foreign_keys]  # fmt: skip
    retain = "" if table.retain is None else f" WITH (RETAIN HISTORY FOR {table.retain})"
    return f"CREATE TABLE {qualified(table.name)} ({', '.join(items)}){retain}"


def _list(names: tuple[str, ...]) -> str:
    return f"({', '.join(map(identifier, names))})"


_WORDS = frozenset((*map(str.lower, RESERVED), "key", "set", "values", "view"))


def _actions(key: ForeignKey) -> str:
    """ON DELETE and ON UPDATE of a foreign key, and when it is checked."""
    text = "".join(f" {event} {action.upper()}" for event, action in (("ON DELETE", key.on_delete),
                                                                     ("ON UPDATE", key.on_update)) if action)
    return text + (" DEFERRABLE INITIALLY DEFERRED" if key.deferred else "")
