"""ALTER TYPE: an enum gets another value, another name for one, or another name for itself.

The order of labels is a part of plans, so the views over the enum are made anew from their texts, in the same entry of
the journal. Readers see the view before or after.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from halfjoin.catalog.models import Table, View
from halfjoin.engine.batch.state import State
from halfjoin.engine.spark.runners import Runners
from halfjoin.engine.statements.definitions import create_index, create_view, drop_view
from halfjoin.engine.statements.domains import alter_domain, new_name
from halfjoin.engine.statements.dropping import composites_of, users_of_type
from halfjoin.engine.statements.reshaping import put
from halfjoin.engine.statements.tables import check_columns
from halfjoin.engine.updates.updates import Updates
from halfjoin.errors import Conflict, UnknownName, UnsupportedSQL
from halfjoin.sql.bind.constraints import bind_check, relabelled
from halfjoin.sql.bind.named_types import condition
from halfjoin.sql.definitions import CreateView
from halfjoin.sql.named import AlterDomain, AlterEnum
from halfjoin.sql.parse.parse import parse_index, parse_query
from halfjoin.sql.types import Kind, SqlType


def alter_enum(state: State, runners: Runners, statement: AlterEnum) -> None:
    """Carry out ALTER TYPE ... ADD VALUE, RENAME VALUE or RENAME TO.

    Raises:
        UnknownName: there is no such enum.
        UnsupportedSQL: a label is not there, or already there.
        Conflict: a sink reads rows of the enum; a name is taken; a text names the type that is to be renamed.
    """
    catalog = state.catalog
    if statement.to and statement.name in catalog.domains:
        alter_domain(state, AlterDomain(statement.name, "rename", to=statement.to))
        return
    old = catalog.enums.get(statement.name)
    if old is None:
        raise UnknownName("type", statement.name, catalog.enums)
    if users := composites_of(catalog, old.named):
        raise Conflict(f"the type {users[0]} has a field of type {old.named}", remedy="drop it first", name=old.named,
                       holder=users[0], code="2BP01")  # fmt: skip
    if statement.label and old.kind is not Kind.ENUM:
        raise UnsupportedSQL(f"{old.named} is not an enum", code="42809")
    if statement.to:
        new = replace(old, named=new_name(catalog, "type", old.named, statement.to))
    else:
        new = replace(old, labels=_labels(old, statement))
    if new == old:
        return
    columns, named, domains = users_of_type(catalog, old.named)
    tables = {table.name for table, _ in columns}
    for one in domains:
        tables |= {table.name for table, _ in users_of_type(catalog, one)[0]}
        named += users_of_type(catalog, one)[1]
    views = _above(state, tables, {view.name for view in named})
    touched = {*tables, *(view.name for view in views)}
    if sinks := [sink.name for sink in catalog.sinks.values() if sink.collection in touched]:
        raise Conflict(f"the sink {sinks[0]} reads rows of {old.named}", remedy="drop it first", name=old.named,
                       holder=sinks[0], code="2BP01")  # fmt: skip
    indexes = [index for index in catalog.indexes.values() if index.collection in {view.name for view in views}]
    for view in reversed(views):
        drop_view(state, view)
    catalog.enums = {(new.named if name == old.named else name): new if name == old.named else one
                     for name, one in catalog.enums.items()}
    if text := catalog.comments.pop(f"type {old.named}", ""):
        catalog.comments[f"type {new.named}"] = text
    for name in domains:
        domain = catalog.domains[name]
        catalog.domains[name] = replace(domain, type=_with(domain.type, old, new),
                                        default=_default(domain.default, domain.type, new, statement))
        with _holding(f"a condition of the domain {name}", old, statement):
            for _, text in domain.checks:
                condition(text, catalog.domains[name].type, catalog)
    for name in tables:
        with _holding(f"an expression of the table {name}", old, statement):
            _retype(state, catalog.tables[name], old, new, statement)
    for view in views:
        again = CreateView(view.name, parse_query(view.text), view.text, (), view.materialized, view.retain)
        with _holding(f"the view {view.name}", old, statement):
            create_view(state, runners, again, view.text)
        notes = {column.name: column.comment for column in view.columns}
        made = catalog.views[view.name]
        catalog.views[view.name] = made.model_copy(update={"comment": view.comment, "columns": tuple(
            column.model_copy(update={"comment": notes.get(column.name, "")}) for column in made.columns)})
    for index in indexes:
        with _holding(f"the index {index.name}", old, statement):
            create_index(state, replace(parse_index(index.text), name=index.name), index.text)


@contextmanager
def _holding(holder: str, type: SqlType, statement: AlterEnum) -> Iterator[None]:
    """Say who names the label that is to have another name, where its text is no longer valid.

    Raises:
        Conflict: it is not.
    """
    try:
        yield
    except UnsupportedSQL:
        if statement.old is None:
            raise
        raise Conflict(f"{holder} names the label '{statement.old}' of {type.named}", name=type.named, holder=holder,
                       remedy="drop that first, and make it anew with the new label", code="2BP01") from None


def _labels(type: SqlType, statement: AlterEnum) -> tuple[str, ...]:
    """The labels after the statement."""
    labels, label = list(type.labels), statement.label
    if statement.old is not None and statement.old not in labels:
        raise UnsupportedSQL(f'"{statement.old}" is not an existing enum label', code="22023")
    if label in labels:
        if statement.if_not_exists:
            return type.labels
        raise UnsupportedSQL(f'enum label "{label}" already exists', remedy="write IF NOT EXISTS", code="42710")
    if statement.beside is not None and statement.beside not in labels:
        raise UnsupportedSQL(f'"{statement.beside}" is not an existing enum label', code="22023")
    if statement.old is not None:
        labels[labels.index(statement.old)] = label
    elif statement.beside is not None:
        labels.insert(labels.index(statement.beside) + (not statement.before), label)
    else:
        labels.append(label)
    return tuple(labels)


def _above(state: State, tables: set[str], named: set[str]) -> list[View]:
    """The views over these tables, and those named, with the views over them; in order of creation."""
    found, names = [], set(tables)
    for view in state.catalog.views.values():
        if view.name in named or names.intersection(view.reads):
            names.add(view.name)
            found.append(view)
    return found


def _with(type: SqlType, old: SqlType, new: SqlType) -> SqlType:
    if type.element is not None:
        return replace(type, element=_with(type.element, old, new))
    return new if (type.kind, type.named) == (Kind.ENUM, old.named) else type


def _retype(state: State, table: Table, old: SqlType, new: SqlType, statement: AlterEnum) -> None:
    """Put a table with the new type in the place of the old one; its rows, and a DEFAULT, get the new label.

    Raises:
        UnsupportedSQL: another expression of it names the old label.
    """
    columns = []
    changed = []
    for column in table.columns:
        domain = column.domain and replace(
            column.domain, type=_with(column.domain.type, old, new),
            default=_default(column.domain.default, column.domain.type, new, statement),
        )
        made = column.model_copy(update={"type": _with(column.type, old, new), "domain": domain,
                                         "default": _default(column.default, column.type, new, statement)})
        changed += [column.name] if made.type != column.type else []
        columns.append(made)
    before, after = statement.old, statement.label

    def rows(updates: Updates) -> Updates:
        return updates.with_columns({name: _renamed(updates.columns[name], str(before), after) for name in changed})

    now = table.model_copy(update={"columns": tuple(columns)})
    check_columns(now, state.catalog)
    for check in now.checks:
        bind_check(check.text, [one.column for one in columns], state.catalog, now.name)
    put(state, table, now, None if before is None else rows)


def _default(text: str | None, type: SqlType, new: SqlType, statement: AlterEnum) -> str | None:
    """A DEFAULT, with the new label if it is the old one."""
    if text is None or statement.old is None or (type.kind, type.named) != (Kind.ENUM, new.named):
        return text
    return relabelled(text, statement.old, statement.label)


def _renamed(values: pa.Array, before: str, after: str) -> pa.Array:
    """Texts, or lists of texts, with one text in the place of another."""
    if pa.types.is_list(values.type):
        inner = _renamed(values.flatten(), before, after)
        lengths = pc.fill_null(pc.list_value_length(values), 0)
        offsets = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths).cast(pa.int32())])
        return pa.ListArray.from_arrays(offsets, inner, mask=values.is_null())
    return pc.if_else(pc.fill_null(pc.equal(values, before), False), pa.scalar(after, values.type), values)
