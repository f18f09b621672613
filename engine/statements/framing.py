"""The text of a view after ALTER TABLE: WITH queries give tables the names and the columns that the text knows.

After `ALTER TABLE t RENAME k TO j` the view `SELECT k FROM t` is `WITH t AS (SELECT j AS k FROM t) SELECT k FROM t`.
So the view means what it meant, whatever its text is: `*`, NATURAL and USING included. PostgreSQL writes the names of
now into the text instead; the meaning is the same.

No WITH query has a schema. So after `ALTER TABLE s.t RENAME TO u`, `SELECT t.k FROM s.t` is `WITH "s.t" AS (SELECT k
FROM s.u) SELECT t.k FROM "s.t" AS t`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from halfjoin.catalog.models import Frame, Table, View
from halfjoin.engine.statements.creating import identifier, qualified
from halfjoin.sql.bind.tables import without_schema
from halfjoin.sql.parse.locate import PUBLIC
from halfjoin.sql.parse.parse import parse_query


@dataclass(frozen=True, slots=True)
class Change:
    """What ALTER does to a table or view: its name before and now, the names of its columns before and now. A column
    that goes has no name. `strict`: a view that reads what goes or changes its type cannot follow."""

    name: str
    now: str
    columns: Mapping[str, str | None]
    strict: bool = False
    wider: bool = False  # whether it has more columns now
    retypes: bool = False  # whether a column has another type now, rather than that it is gone

    @property
    def plain(self) -> bool:
        """Whether all names are the same."""
        return self.name == self.now and not self.wider and all(name == now for name, now in self.columns.items())


def between(old: Table, new: Table) -> Change:
    """The change that does not rename: each column that stays has its name, and its type or another one."""
    types = {column.name: column.type for column in new.columns}
    columns = {column.name: column.name if types.get(column.name) == column.type else None for column in old.columns}
    wider = any(name not in columns for name in types)
    retypes = any(name in types for name, now in columns.items() if now is None)
    return Change(old.name, new.name, columns, None in columns.values(), wider, retypes)


def framed(view: View, change: Change) -> View | None:
    """The view over the changed table; None if a frame of it would show what goes, or there is none to take it from.

    A view that reads the table through a plain view only keeps its text: that view shows what it showed.
    """
    frames = dict(view.frames)
    names = [name for name, frame in frames.items() if frame.source == change.name]
    if change.strict and not names:
        return None
    for name in names:
        now = ((column, change.columns.get(at, at)) for column, at in frames[name].columns)
        frames[name] = Frame(source=change.now, columns=tuple((column, at) for column, at in now if at is not None))
    base = view.base or view.text
    if not change.strict:
        base, read = without_schema(base, change.name, frames)
        every = tuple((column, at) for column, at in change.columns.items() if at is not None)
        frames = {name: Frame(source=change.now, columns=every) for name in read} | frames
    return view.model_copy(update={"base": base, "frames": frames, "text": text_over(base, frames)})


def text_over(base: str, frames: Mapping[str, Frame]) -> str:
    """The text with its frames in WITH. Their sources have schemas, so that no frame hides one."""
    if not frames:
        return base
    queries = []
    for name, frame in frames.items():
        shown = ", ".join(identifier(at) + ("" if at == column else f" AS {identifier(column)}")
                          for column, at in frame.columns)  # fmt: skip
        source = qualified(frame.source if "." in frame.source else f"{PUBLIC}.{frame.source}")
        queries.append(f"{identifier(name)} AS (SELECT {shown} FROM {source})")
    if parse_query(base).args.get("with_") is not None:
        base = f"SELECT * FROM (\n{base}\n) AS view"
    return f"WITH {', '.join(queries)}\n{base}"
