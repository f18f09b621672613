"""CREATE OR REPLACE VIEW of a plain view that other plain views read: they follow its new query, as in PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence

from halfjoin.catalog.catalog import Catalog
from halfjoin.catalog.models import ColumnModel, View
from halfjoin.engine.statements.framing import Change, framed
from halfjoin.errors import Conflict
from halfjoin.sql.bind.bind import bind
from halfjoin.sql.bind.tables import names_of
from halfjoin.sql.parse.parse import parse_query


def followers(catalog: Catalog, view: View, *, materialized: bool) -> list[View]:
    """The views that follow a new query of `view`, in order of creation.

    Raises:
        Conflict: a materialized view has rows of the old query, or a view has a plan over the rows of `view`.
    """
    readers = [one for one in catalog.views.values() if view.name in one.reads]
    if view.materialized or materialized or any(one.materialized for one in readers):
        catalog.check_unread(view, sinks=False)
    return readers


def follow_query(catalog: Catalog, old: View, readers: Sequence[View]) -> None:
    """Let the readers follow, each with the columns that it has. They stay behind the view in the order of views.

    Raises:
        Conflict: the new query lacks a column of the old one.
    """
    was, now = ([(one.name, one.type) for one in view.columns] for view in (old, catalog.views[old.name]))
    if now[: len(was)] != was:
        columns = ", ".join(f"{name} {type}" for name, type in was)
        raise Conflict(f"{old.name} is read by {', '.join(one.name for one in readers)}, so its first columns stay "
                       f"{columns}", name=old.name, holder=readers[0].name, code="42P16",
                       remedy="add columns behind them, or drop what reads it first")  # fmt: skip
    change = Change(old.name, old.name, {name: name for name, _ in was}, wider=len(now) > len(was))
    for view in readers:
        made = framed(view, change) if change.wider else view
        assert made is not None  # no column is gone
        query = parse_query(made.text)
        shown = bind(query, catalog, made.text).columns
        given = tuple(ColumnModel(name=one.name, type=one.type, not_null=not one.nullable) for one in shown)
        del catalog.views[view.name]
        catalog.views[view.name] = made.model_copy(
            update={"columns": given, "reads": tuple(sorted(names_of(query, catalog)))}
        )
