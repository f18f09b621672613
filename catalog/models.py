"""The definitions of tables, views, indexes, sinks and sources, as immutable pydantic models."""

from __future__ import annotations

from collections.abc import Sequence as Numbers
from itertools import chain
from uuid import uuid4

from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import PydanticSerializationError

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.definitions import OptionValue
from halfjoin.sql.expr import Column
from halfjoin.sql.named import Domain
from halfjoin.sql.types import SqlType
from halfjoin.sql.user_aggregate import UserAggregate


class Definition(BaseModel):
    """A named definition of the catalog."""

    model_config = ConfigDict(frozen=True)
    name: str
    comment: str = ""

    @property
    def own_name(self) -> str:
        """The name without that of its schema."""
        return self.name.rpartition(".")[2]


class ColumnModel(BaseModel):
    """A column of a table or view.

    `default`: the text of its DEFAULT. `generated`: that of the expression over other columns that computes it.
    `domain`: the one it was declared with; `type` is the domain's. `sequence`: the name of the one that numbers the
    rows; if `always`, statements cannot give other values. `serial`: it is no identity to PostgreSQL, but a default.
    """

    model_config = ConfigDict(frozen=True)
    name: str
    type: SqlType
    not_null: bool = False
    default: str | None = None
    generated: str | None = None
    own_not_null: bool | None = None  # whether NOT NULL is the column's own, not only its domain's; None: unknown
    had_nulls: bool = False  # NOT NULL came later, so the past may have NULLs
    domain: Domain | None = None
    sequence: str = ""
    always: bool = False
    serial: bool = False
    comment: str = ""

    @property
    def column(self) -> Column:
        """The column as the binder and the planner represent it. They must not count on a NOT NULL that came later."""
        return Column(self.name, self.type, not self.not_null or self.had_nulls)


class Unique(Definition):
    """A UNIQUE constraint: no two rows have equal values in the columns; a NULL equals nothing. `index`: it is one of
    CREATE UNIQUE INDEX. `lasting`: the table never had a row without it, so it holds at every time of the past."""

    columns: tuple[str, ...]
    index: bool = False
    lasting: bool = False


class Check(Definition):
    """A CHECK constraint: the text of a condition that is not false for any row. Unless `valid`, rows that were there
    before it may break it."""

    text: str
    valid: bool = True


class ForeignKey(Definition):
    """A FOREIGN KEY: the values of `columns`, if none is NULL, are those of `references` in some row of `table`.

    `on_delete`, `on_update`: what happens to rows whose key goes or changes: `cascade`, `set null` or `set default`;
    empty: the batch is refused. `deferred`: a transaction checks it at COMMIT. `valid`: as of a CHECK.
    """

    columns: tuple[str, ...]
    table: str
    references: tuple[str, ...]
    on_delete: str = ""
    on_update: str = ""
    deferred: bool = False
    valid: bool = True


class Table(Definition):
    """A table, which batches change. `retain`: time units of history to keep, None for the engine's default. `id` tells
    the table from any other that had or gets its name. `referenced`: whether a foreign key of some table reads it."""

    columns: tuple[ColumnModel, ...]
    primary_key: tuple[str, ...] = ()
    retain: int | None = None
    id: str = ""
    unique: tuple[Unique, ...] = ()
    checks: tuple[Check, ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    referenced: bool = False
    key_name: str = ""  # of the PRIMARY KEY, if it is not PostgreSQL's default
    key_comment: str = ""
    ended: str = Field(default="", exclude=True)  # what ON COMMIT does to a temporary table: `delete` or `drop`

    @property
    def keys(self) -> dict[str, tuple[str, ...]]:
        """The columns of PRIMARY KEY and the UNIQUE constraints, by the constraints' names."""
        keys = {self.key_name or f"{self.own_name}_pkey": self.primary_key} if self.primary_key else {}
        return keys | {one.name: one.columns for one in self.unique}

    @property
    def constraint_comments(self) -> dict[str, str]:
        """The comments on the constraints, by their names; an empty one where there is none."""
        found = {next(iter(self.keys)): self.key_comment} if self.primary_key else {}
        own = (one for one in self.unique if not one.index)
        return found | {one.name: one.comment for one in (*own, *self.checks, *self.foreign_keys)}

    @property
    def identifying(self) -> tuple[tuple[str, ...], ...]:
        """The sets of columns that identify a row at every time that can be read: PRIMARY KEY, and UNIQUE columns that
        are never NULL. A UNIQUE constraint that came to a table with rows says nothing of the past."""
        never_null = {one.name for one in self.columns if one.not_null and not one.had_nulls}
        keys = [one.columns for one in self.unique if one.lasting and never_null.issuperset(one.columns)]
        return ((self.primary_key,) if self.primary_key else ()) + tuple(key for key in keys if key != self.primary_key)

    @property
    def constrained(self) -> bool:
        """Whether rows obey more than types, NOT NULL and PRIMARY KEY, or are computed from each other."""
        if self.unique or self.checks or self.foreign_keys or self.referenced:
            return True
        generated = [column for column in self.columns
                     if column.generated is not None or (column.domain and column.domain.checks)]  # fmt: skip
        return bool(generated)


BITS = {"smallint": 16, "integer": 32, "bigint": 64}  # of the types of sequences


class Sequence(Definition):
    """A sequence of numbers. Those before `next` may have been given out; a new process goes on from there. Beyond
    `least` and `most` it ends, or with `cycle` begins at the other end. `owner`: the table whose column it numbers,
    with which it goes. `column`: that column, if OWNED BY said so; empty for an identity. `id` changes when the numbers
    go back; `first_id` is what it was before, if it did: clients know the sequence by this."""

    next: int
    start: int = 1
    step: int = 1
    least: int = 1
    most: int = 2**63 - 1
    cycle: bool = False
    type: str = "bigint"
    owner: str = ""
    column: str = ""
    id: str = ""
    first_id: str = ""

    def going_on(self, following: int) -> Sequence:
        """The sequence with another next number."""
        return self.model_copy(update={"next": following, "id": uuid4().hex, "first_id": self.first_id or self.id})

    @property
    def bounded(self) -> bool:
        """Whether it may come to an end. Then no number is left out when a process goes on."""
        return self.cycle or (self.most if self.step > 0 else -self.least) < 2**62

    def numbers(self, first: int, count: int) -> Numbers[int]:
        """So many numbers from the next one on.

        Raises:
            UnsupportedSQL: it has come to its end.
        """
        runs = list[range]()
        while count:
            end = self.most + 1 if self.step > 0 else self.least - 1
            run = range(first, end, self.step)[:count] if self.least <= first <= self.most else range(0)
            if run:
                runs.append(run)
                count, first = count - len(run), run[-1] + self.step
            elif self.cycle:
                first = self.least if self.step > 0 else self.most
            else:
                word, bound = ("maximum", self.most) if self.step > 0 else ("minimum", self.least)
                raise UnsupportedSQL(f'nextval: reached {word} value of sequence "{self.name}" ({bound})',
                                     remedy="ALTER SEQUENCE ... RESTART, or CYCLE", code="2200H")  # fmt: skip
        return runs[0] if len(runs) == 1 else list(chain.from_iterable(runs))


class Figures(BaseModel):
    """The figures that the planner based a view's plan on, when times below `upper` were closed.

    `rows`: number of rows of each collection. `keys`: number of distinct keys of each arrangement, by EXPLAIN's name
    for it, None if it was not known. `shared`: the arrangements that other views used.
    """

    model_config = ConfigDict(frozen=True)
    upper: int
    rows: dict[str, int]
    keys: dict[str, int | None]
    shared: tuple[str, ...]


class Frame(BaseModel):
    """What a name in the text of a view stands for, after ALTER TABLE: a table or view, and columns by their names in
    the text, each with its name now."""

    model_config = ConfigDict(frozen=True)
    source: str
    columns: tuple[tuple[str, str], ...]


class View(Definition):
    """A view and its SQL text. The engine maintains a materialized view; the binder inlines a plain one.

    `base`, `frames`: the text as the user wrote it, and what names in it stand for now; empty while it is `text`.
    """

    columns: tuple[ColumnModel, ...]
    text: str
    materialized: bool
    reads: tuple[str, ...]  # tables, materialized and plain views that the text names, directly or through plain views
    retain: int | None = None
    id: str = ""  # tells the view from any other that had or gets its name
    first_id: str = ""  # its `id` before it was renamed or replaced, if it was; clients know it by this
    planned: Figures | None = None  # None for a plain view, or one from an older version of halfjoin
    base: str = ""
    frames: dict[str, Frame] = {}


class Index(Definition):
    """An arrangement that CREATE INDEX keeps.

    `keys` shows the key expressions over the collection's columns, `text` is the statement as written.
    """

    collection: str
    keys: tuple[str, ...]
    text: str


class Sink(Definition):
    """What CREATE SINK keeps equal to a table or materialized view: an external Delta table, or a topic of Kafka.

    `target` is the path or URL as written, or the topic. `id` tells the sink from earlier and later sinks of its name.
    `options` are those of a topic, with `brokers` and `topic`; a Delta table has none.
    """

    collection: str
    target: str
    id: str
    options: dict[str, OptionValue] = {}


class Source(Definition):
    """A feed of tables that CREATE SOURCE defines and the engine reads.

    `kind`: its kind in upper case. `options`: as the user gave them, secrets included. `into`: the tables that it
    feeds. `errors`: the table of the records that cannot be read; empty: such a record stops the source. `paused`:
    nobody reads it. `id` tells the source from earlier and later sources of its name.
    """

    kind: str
    options: dict[str, OptionValue]
    into: tuple[str, ...]
    id: str
    errors: str = ""
    paused: bool = False

    @property
    def feeds(self) -> tuple[str, ...]:
        """All tables that it writes."""
        return (*self.into, self.errors) if self.errors else self.into


class Document(BaseModel):
    """A whole catalog, as stored on disk; each kind in order of creation. A missing kind has no definitions."""

    model_config = ConfigDict(frozen=True)
    tables: tuple[Table, ...] = ()
    views: tuple[View, ...] = ()
    indexes: tuple[Index, ...] = ()
    sinks: tuple[Sink, ...] = ()
    sources: tuple[Source, ...] = ()
    former_sinks: tuple[str, ...] = ()  # ids of dropped and replaced sinks, whose Delta tables a new sink may take over
    functions: dict[str, tuple[tuple[str, SqlType], ...]] = {}
    aggregates: dict[str, UserAggregate] = {}
    reductions: dict[str, tuple[tuple[str, SqlType], ...]] = {}
    incarnations: dict[str, tuple[str, str]] = {}  # the version and the code of the user's functions
    nodes: dict[str, str] = {}  # the names of nodes whose fingerprints ALTER TABLE has changed, by the fingerprints
    schemas: tuple[str, ...] = ()
    enums: tuple[SqlType, ...] = ()
    domains: tuple[Domain, ...] = ()
    sequences: tuple[Sequence, ...] = ()
    meaning: int = 1  # what the version that wrote it gave each expression; see `halfjoin.version`
    comments: dict[str, str] = {}  # of what is not a definition of its own: `type mood`, `schema s`

    def text(self) -> str:
        """The document as JSON. Pydantic has an error of its own for a Ctrl-C that reaches it."""
        try:
            return self.model_dump_json()
        except PydanticSerializationError as problem:
            if not str(problem).startswith("Error serializing to JSON: KeyboardInterrupt"):
                raise
            raise KeyboardInterrupt from problem
