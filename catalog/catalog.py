"""The catalog: the definitions of tables, views, indexes, sinks and sources by name, and which depend on which."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from collections.abc import Sequence as Numbers
from typing import Any, TypeAlias

from halfjoin.catalog.models import Document, Index, Sequence, Sink, Source, Table, View
from halfjoin.catalog.system.system import SystemCatalog
from halfjoin.errors import Conflict, UnknownName, UnsupportedSQL
from halfjoin.sql.expr import Column
from halfjoin.sql.named import Domain
from halfjoin.sql.system import Asker, is_temporary
from halfjoin.sql.types import Kind, SqlType, innermost
from halfjoin.sql.user_aggregate import UserAggregate
from halfjoin.version import MEANING

Item: TypeAlias = Table | View | Index | Sink | Source


def beside(collection: str, name: str) -> str:
    """A name in the schema of a table or view, as the catalog has it."""
    schema, own = collection.rpartition(".")[0], name.rpartition(".")[2]
    return f"{schema}.{own}" if schema else own


class Catalog:
    """Tables, views, indexes, sinks and sources, each in order of creation, so that a view follows the views it reads.

    The catalog also holds the user's table functions, aggregates and reduces. It implements the binder's `Schema`
    (`sql.schema`).
    """

    def __init__(self) -> None:
        self.tables: dict[str, Table] = {}
        self.views: dict[str, View] = {}
        self.indexes: dict[str, Index] = {}
        self.sinks: dict[str, Sink] = {}
        self.sources: dict[str, Source] = {}
        self.former_sinks: tuple[str, ...] = ()  # ids of dropped and replaced sinks
        self.functions: dict[str, tuple[tuple[str, SqlType], ...]] = {}
        self.aggregates: dict[str, UserAggregate] = {}
        self.reductions: dict[str, tuple[tuple[str, SqlType], ...]] = {}
        self.incarnations: dict[str, tuple[str, str]] = {}  # the version and the code of the user's functions
        self.nodes: dict[str, str] = {}  # the names of nodes whose fingerprints have changed, by the fingerprints
        self.schemas: tuple[str, ...] = ()
        self.enums: dict[str, SqlType] = {}
        self.domains: dict[str, Domain] = {}
        self.sequences: dict[str, Sequence] = {}
        self.numbers: dict[str, int] = {}  # the next number of each sequence, by its id; never goes back
        self.comments: dict[str, str] = {}
        self.last: dict[str, int] = {}  # the last number of each sequence that the session got, by name; of any: ""
        self.unkept: set[str] = set()  # the sequences that setval has set since definitions were kept
        self.stale: frozenset[str] = frozenset()  # temporary views whose names mean something else by now
        self.inlined: frozenset[str] = frozenset()  # materialized views that a transaction reads as their queries
        self.asker = Asker()  # who asks about PostgreSQL's catalog

    def copy(self) -> Catalog:
        """An independent copy: changes to one do not reach the other."""
        other = Catalog()
        other.tables, other.views, other.indexes = dict(self.tables), dict(self.views), dict(self.indexes)
        other.sinks, other.functions = dict(self.sinks), dict(self.functions)
        other.sources = dict(self.sources)
        other.aggregates, other.reductions = dict(self.aggregates), dict(self.reductions)
        other.former_sinks, other.incarnations = self.former_sinks, dict(self.incarnations)
        other.nodes = dict(self.nodes)
        other.schemas, other.enums, other.domains = self.schemas, dict(self.enums), dict(self.domains)
        other.sequences, other.numbers, other.comments = dict(self.sequences), self.numbers, dict(self.comments)
        other.last, other.unkept, other.stale = self.last, self.unkept, self.stale
        other.inlined, other.asker = self.inlined, self.asker
        return other

    def aside(self) -> Catalog:
        """A copy whose sequences go on by themselves: for what is asked, and not carried out."""
        other = self.copy()
        other.numbers, other.last, other.unkept = dict(self.numbers), dict(self.last), set(self.unkept)
        return other

    def document(self) -> Document:
        """The whole catalog as a model, for the disk."""
        return Document(
            tables=tuple(self.tables.values()),
            views=tuple(self.views.values()),
            indexes=tuple(self.indexes.values()),
            sinks=tuple(self.sinks.values()),
            sources=tuple(self.sources.values()),
            former_sinks=self.former_sinks,
            functions=self.functions,
            aggregates=self.aggregates,
            reductions=self.reductions,
            incarnations=self.incarnations,
            nodes=self.nodes,
            schemas=self.schemas,
            enums=tuple(self.enums.values()),
            domains=tuple(self.domains.values()),
            sequences=tuple(self.sequences.values()),
            meaning=MEANING,
            comments=self.comments,
        )

    @classmethod
    def knowing(cls, table: Table) -> Catalog:
        """A catalog with nothing but the types of a table's columns, for its CHECKs and generated columns: they call
        built-in functions only."""
        made = cls()
        for column in table.columns:
            type = innermost(column.type)
            if type.kind is Kind.ENUM:
                made.enums[type.named] = type
            if column.domain is not None:
                made.domains[column.domain.name] = column.domain
        return made

    @property
    def others(self) -> dict[str, Collection[str]]:
        """The names of what is neither a table nor a view, by kind."""
        unique = (beside(table.name, one.name) for table in self.tables.values() for one in table.unique if one.index)
        return {"TYPE": (*self.enums, *self.domains), "DOMAIN": self.domains, "SEQUENCE": self.sequences,
                "INDEX": (*self.indexes, *unique), "SINK": self.sinks, "SOURCE": self.sources}  # fmt: skip

    def index_named(self, name: str) -> str:
        """The name under which the index of a name is kept. Earlier versions kept those that were given without the
        schema of their table."""
        schema, _, own = name.rpartition(".")
        if name not in self.indexes and own in self.indexes and (
                self.indexes[own].collection.rpartition(".")[0] == schema):  # fmt: skip
            return own
        return name

    def named_type(self, name: str) -> SqlType | None:
        """The enum or the row type of that name, or the type of the domain; None if there is none."""
        domain = self.domains.get(name)
        return self.enums.get(name) if domain is None else domain.type

    def domain(self, name: str) -> Domain | None:
        """The domain of that name, None if there is none."""
        return self.domains.get(name)

    def next_number(self, sequence: str, count: int = 1) -> Numbers[int]:
        """The next numbers of a sequence.

        Raises:
            UnknownName: there is no sequence of that name. UnsupportedSQL: it has come to its end.
        """
        found = self._sequence_to_change(sequence, "nextval")
        made = found.numbers(self.numbers.get(found.id, found.next), count) if count else ()
        if made:
            self.last[sequence] = self.last[""] = made[-1]
            self.numbers[found.id] = made[-1] + found.step
        return made

    def _sequence_to_change(self, sequence: str, call: str) -> Sequence:
        """A sequence, for a call that changes it. A transaction that only reads changes none but temporary ones."""
        found = self.sequences.get(sequence)
        if found is None:
            raise UnknownName("sequence", sequence, self.sequences, code="42P01")
        if self.asker.settings.get("transaction_read_only") == "on" and not is_temporary(sequence):
            raise UnsupportedSQL(f"cannot execute {call}() in a read-only transaction", code="25006")
        return found

    def last_number(self, sequence: str) -> int | None:
        """The last number of a sequence that this session got; of any sequence, if `sequence` is empty; None: it got
        none.

        Raises:
            UnknownName: there is no sequence of that name.
        """
        if sequence and sequence not in self.sequences:
            raise UnknownName("sequence", sequence, self.sequences, code="42P01")
        return self.last.get(sequence)

    def set_number(self, sequence: str, number: int, *, called: bool) -> None:
        """Let a sequence go on after a number that is given out (`called`), or with that number.

        Raises:
            UnknownName: there is no sequence of that name. UnsupportedSQL: the number is beyond its bounds.
        """
        found = self._sequence_to_change(sequence, "setval")
        if not found.least <= number <= found.most:
            raise UnsupportedSQL(f'setval: value {number} is out of bounds for sequence "{sequence}" '
                                 f"({found.least}..{found.most})", code="22003")  # fmt: skip
        following = number + found.step if called else number
        self.sequences[sequence] = found.going_on(following)
        self.unkept.add(sequence)
        if called:
            self.last[sequence] = number

    def speak_for(self, last: dict[str, int]) -> None:
        """Take the last numbers of a session: currval and lastval are the session's own."""
        self.last = last

    def sequence(self, table: str, column: str) -> tuple[str, bool]:
        """The sequence that numbers a table's column (empty: none), and whether statements cannot give other values."""
        found = self.tables.get(table)
        one = next((c for c in found.columns if c.name == column), None) if found else None
        return ("", False) if one is None else (one.sequence, one.always)

    def serial(self, table: str, column: str) -> bool:
        """Whether the sequence that numbers a table's column is that of a serial, and no identity."""
        found = self.tables.get(table)
        return found is not None and any(one.serial for one in found.columns if one.name == column)

    def columns(self, collection: str) -> tuple[Column, ...] | None:
        """The columns of a table or materialized view, None if none has that name."""
        found = self.tables.get(collection) or self.views.get(collection)
        if found is None or (isinstance(found, View) and self._is_query(found)):
            return None
        return tuple(column.column for column in found.columns)

    def primary_key(self, collection: str) -> tuple[str, ...]:
        """The columns of a table's primary key; empty for a table without one, and for a view."""
        table = self.tables.get(collection)
        return () if table is None else table.primary_key

    def identifying(self, collection: str) -> tuple[tuple[str, ...], ...]:
        """The sets of columns that identify a row of a table; none for a view."""
        table = self.tables.get(collection)
        return () if table is None else table.identifying

    def default(self, table: str, column: str) -> str | None:
        """The text of a column's DEFAULT, None if it has none."""
        found = self.tables.get(table)
        one = next((c for c in found.columns if c.name == column), None) if found else None
        return None if one is None else one.domain.default if one.default is None and one.domain else one.default

    def generated(self, table: str) -> tuple[str, ...]:
        """The columns of a table that are GENERATED from others."""
        found = self.tables.get(table)
        return tuple(c.name for c in found.columns if c.generated is not None) if found else ()

    def keys(self, table: str) -> dict[str, tuple[str, ...]]:
        """The columns of a table's PRIMARY KEY and UNIQUE constraints, by the constraints' names."""
        return self.tables[table].keys if table in self.tables else {}

    def system(self) -> SystemCatalog:
        """PostgreSQL's catalog over this one, as `asker` sees it."""
        return SystemCatalog(self, self.asker)

    def asked_by(self, asker: Asker) -> Catalog:
        """The same definitions, for somebody else."""
        other = Catalog()
        vars(other).update(vars(self), asker=asker)
        return other

    def incarnation(self, collection: str) -> str:
        """What tells a table or view apart from another that had its name, or will have it; empty for what an older
        version made, and for what is neither."""
        found = self.tables.get(collection) or self.views.get(collection)
        return "" if found is None else found.id

    def plain_view(self, name: str) -> str | None:
        """The SELECT text of a plain view, None if none has that name.

        Raises:
            Conflict: it is temporary, and what it reads has changed.
        """
        if name in self.stale:
            raise Conflict(f"what the view {name} reads was dropped or altered", name=name, code="55000",
                           remedy="drop it, and create it again")  # fmt: skip
        found = self.views.get(name)
        return found.text if found is not None and self._is_query(found) else None

    def _is_query(self, view: View) -> bool:
        """Whether a view is read as its query."""
        return not view.materialized or view.name in self.inlined

    def names(self) -> tuple[str, ...]:
        """The names of all tables and views."""
        return (*self.tables, *self.views)

    def table_function(self, name: str) -> tuple[tuple[str, SqlType], ...] | None:
        """The columns of a table function that the user registered, None if none has that name."""
        return self.functions.get(name)

    def table_functions(self) -> tuple[str, ...]:
        """The names of the user's table functions."""
        return tuple(self.functions)

    def aggregate(self, name: str) -> UserAggregate | None:
        """The aggregate of the user's that has that name, None if none has."""
        return self.aggregates.get(name)

    def reduce(self, name: str) -> tuple[tuple[str, SqlType], ...] | None:
        """The columns of a reduce that the user registered, None if none has that name."""
        return self.reductions.get(name)

    def reduces(self) -> tuple[str, ...]:
        """The names of the user's reduces."""
        return tuple(self.reductions)

    def table(self, name: str) -> Table:
        """The table of that name.

        Raises:
            UnknownName: no table has that name.
        """
        found = self.tables.get(name)
        if found is None:
            view = self.views.get(name)
            instead = None if view is None else f"it is a {kind_of(view)}, which follows its tables; change those"
            raise UnknownName("table", name, self.tables, remedy=instead, code=None if view is None else "42809")
        return found

    def add(self, item: Item) -> None:
        """Add a definition.

        Raises:
            Conflict: the name is already in use.
            UnsupportedSQL: the name, or that of a column, is empty or reserved for the planner.
        """
        names = [item.name]
        if isinstance(item, Table | View):
            names += [column.name for column in item.columns]
        for name in names:
            if not name or name.startswith("=") or "#" in name or "\0" in name:
                raise UnsupportedSQL(f"the name {name!r} is not supported", remedy="a name is not empty, does not "
                                     "begin with =, and has no #, which mark the planner's own names")
        taken: dict[str, Item] = {**self.tables, **self.views}
        if isinstance(item, Index | Sink | Source):
            taken = {**self._apart(item)}
        if item.name in taken:
            kind = kind_of(taken[item.name])
            raise Conflict(f"{item.name} is already a {kind}", remedy="drop it first, or write IF NOT EXISTS",
                           name=item.name, code="42P07")  # fmt: skip
        match item:
            case Table():
                self.tables[item.name] = item
            case View():
                self.views[item.name] = item
            case Index():
                self.indexes[item.name] = item
            case Sink():
                self.sinks[item.name] = item
            case Source():
                self.sources[item.name] = item

    def find(self, kind: str, name: str, word: str = "DROP") -> Item:
        """The definition of that kind (`table`, `view`, `materialized view`, `index`, `sink`, `source`) and name.
        `word`: what the statement begins with.

        Raises:
            UnknownName: nothing has that name.
            Conflict: a definition of another kind has that name.
        """
        known = {item.name: item for item in self._all() if kind_of(item) == kind}
        if name not in known:
            self.check_kind(name, [kind_of(other) for other in self._all() if other.name == name], word)
            self.check_relation(kind, name, word)
            raise UnknownName(kind, name, known)
        return known[name]

    def check_relation(self, kind: str, name: str, word: str = "DROP") -> None:
        """Check that a name stands for no relation of another kind: DROP of that kind is wrong, with IF EXISTS, too.

        Raises:
            Conflict: it does.
        """
        there = [kind_of(other) for other in self._all() if other.name == name and not isinstance(other, Sink | Source)]
        there += ["sequence"] if name in self.sequences else []
        if kind not in there:
            self.check_kind(name, there, word)

    def check_kind(self, name: str, there: Numbers[str], word: str = "DROP") -> None:
        """Refuse a name that stands for these kinds of things, and not for the one that a statement says.

        Raises:
            Conflict: there is one.
        """
        if there:
            article = "an" if there[0] == "index" else "a"
            raise Conflict(f"{name} is {article} {there[0]}", remedy=f"write {word} {there[0].upper()} {name}",
                           name=name, code="42809")  # fmt: skip

    def has(self, kind: str, name: str) -> bool:
        """Whether the name is in use among definitions of `kind`; tables and views share their names."""
        if kind in ("index", "sink", "source"):
            return name in self.others[kind.upper()]
        return name in self.names()

    def check_unread(self, item: Item, going: Collection[str] = (), *, sinks: bool = True) -> None:
        """Check that a definition may be dropped, together with the views named in `going`.

        Raises:
            Conflict: a view that stays reads it, or (if `sinks`) a sink does; or a source feeds it.
        """
        if isinstance(item, Index | Sink | Source):
            return
        readers = [view.name for view in self.views.values() if item.name in view.reads and view.name not in going]
        readers += [f"the foreign key {key.name} of {table.name}" for table in self.tables.values()
                    for key in table.foreign_keys
                    if isinstance(item, Table) and key.table == item.name and table.name not in (item.name, *going)]
        readers += [f"sink {sink.name}" for sink in self.sinks.values() if sinks and sink.collection == item.name]
        if readers:
            raise Conflict(f"{item.name} is read by {', '.join(readers)}", remedy="drop what reads it first",
                           name=item.name, holder=", ".join(readers), code="2BP01")  # fmt: skip
        if fed := [source.name for source in self.sources.values() if item.name in source.feeds]:
            raise Conflict(f"{item.name} is fed by source {', '.join(fed)}", remedy="drop the source first, or write "
                           "CASCADE", name=item.name, holder=", ".join(fed), code="2BP01")  # fmt: skip

    def remove(self, item: Item) -> None:
        """Remove a definition and the indexes on it."""
        if isinstance(item, Index | Sink | Source):
            del self._apart(item)[item.name]
            if isinstance(item, Sink):
                self.former_sinks = (*self.former_sinks, item.id)
            return
        for index in [index for index in self.indexes.values() if index.collection == item.name]:
            del self.indexes[index.name]
        for sequence in [one for one in self.sequences.values() if one.owner == item.name]:
            del self.sequences[sequence.name]
        (self.tables if isinstance(item, Table) else self.views).pop(item.name)

    def _all(self) -> Iterator[Item]:
        yield from self.tables.values()
        yield from self.views.values()
        yield from self.indexes.values()
        yield from self.sinks.values()
        yield from self.sources.values()

    def _apart(self, item: Index | Sink | Source) -> dict[str, Any]:
        """The definitions of the item's kind, which has names of its own."""
        return self.indexes if isinstance(item, Index) else self.sinks if isinstance(item, Sink) else self.sources


def kind_of(item: Item) -> str:
    """The kind of a definition, in words."""
    match item:
        case Table():
            return "table"
        case Index():
            return "index"
        case Sink():
            return "sink"
        case Source():
            return "source"
        case View(materialized=materialized):
            return "materialized view" if materialized else "view"
