"""Definitions of what the user made, as immutable pydantic models."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from halfjoin.sql.expr import Column
from halfjoin.sql.types import SqlType


class Definition(BaseModel):
    """A named thing of the catalog."""

    model_config = ConfigDict(frozen=True)
    name: str


class ColumnModel(BaseModel):
    """A column of a table or view."""

    model_config = ConfigDict(frozen=True)
    name: str
    type: SqlType
    not_null: bool = False

    @property
    def column(self) -> Column:
        """As the binder and the planner know it."""
        return Column(self.name, self.type, not self.not_null)


class Table(Definition):
    """A table, filled by batches. `retain`: time units of history, None for the engine's default. `id` tells the table
    from any other that had or gets its name."""

    columns: tuple[ColumnModel, ...]
    primary_key: tuple[str, ...] = ()
    retain: int | None = None
    id: str = ""


class Figures(BaseModel):
    """On what a view's plan was made, when times below `upper` were closed: the answers to the planner's questions.

    `rows`: rows of each collection. `keys`: distinct keys of arrangements, by what EXPLAIN calls them, None where
    that was not known. `shared`: arrangements that others used.
    """

    model_config = ConfigDict(frozen=True)
    upper: int
    rows: dict[str, int]
    keys: dict[str, int | None]
    shared: tuple[str, ...]


class View(Definition):
    """A view by its SQL text. A materialized one is maintained, a plain one is inlined where it is used."""

    columns: tuple[ColumnModel, ...]
    text: str
    materialized: bool
    reads: tuple[str, ...]  # tables, views and plain views that the text names, directly or through plain views
    retain: int | None = None
    id: str = ""  # tells the view from any other that had or gets its name
    planned: Figures | None = None  # of a plain view, or one that an older version of halfjoin made, there are none


class Index(Definition):
    """An arrangement that stays: CREATE INDEX.

    `keys` shows the key expressions over the collection's columns, `text` is the statement as it was written.
    """

    collection: str
    keys: tuple[str, ...]
    text: str


class Sink(Definition):
    """A Delta table outside, kept at the contents of a table or materialized view: CREATE SINK.

    `target` is the path or URL as it was written. `id` tells the sink from any other that had or gets its name.
    """

    collection: str
    target: str
    id: str


class Document(BaseModel):
    """A whole catalog, as it is kept on disk; each kind in the order of creation. A kind that is missing has none."""

    model_config = ConfigDict(frozen=True)
    tables: tuple[Table, ...] = ()
    views: tuple[View, ...] = ()
    indexes: tuple[Index, ...] = ()
    sinks: tuple[Sink, ...] = ()
    former_sinks: tuple[str, ...] = ()  # ids of those that were dropped or replaced, whose tables others may take over
    functions: dict[str, tuple[tuple[str, SqlType], ...]] = {}
