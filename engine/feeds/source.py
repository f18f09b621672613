"""The protocol of sources: what a kind of source (files, Kafka, PostgreSQL) gives the engine that reads it.

A source feeds tables inside a running engine. The engine asks its reader for what comes after a position, and stores
the rows and the new position in one transaction. So the position in the warehouse is the only one that counts. A reader
that is opened again is asked from there, whatever happened before: a kill, an error, another engine. It need not cut
its records into the same batches again. Rows are neither lost nor doubled as long as a position says exactly which
records come next.

The life of a reader, in one thread:

    reader = kind.open(opening)
    found = reader.poll(position, seconds)    # the stored position; None: from the beginning
    ...                                       # the engine applies the rows and stores found.position
    reader.acknowledge(found.position)        # the batch is durable
    reader.close()

After any error, and after a change of its tables, the engine closes the reader and opens another one.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Literal, Protocol, TypeAlias

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, SecretStr

from halfjoin.catalog.models import Table
from halfjoin.engine.updates.updates import TIME
from halfjoin.errors import HalfjoinError, UnsupportedSQL

POLL_ROWS = 100_000  # about as many records as one poll should return
POLL_BYTES = 32 << 20  # about as many bytes
MOST_TEXT = 4096  # characters of a bad record that are kept

# What the rows of a batch mean, as in `Engine.sink`. `rows`: as `Engine.apply` takes them, with `__diff` and `__time`
# if they have these columns. `upserts`: as `hj.upserts`, and the column `__diff` may say 1 (the row replaces that of
# its key) or 0 (the key has no row from then on; only the row's key has a meaning). `debezium`: as `hj.debezium`.
Mode: TypeAlias = Literal["rows", "upserts", "debezium"]


@dataclass(frozen=True, slots=True)
class BadRecord:
    """A record that could not be read.

    `place`: where it is (topic/partition/offset, file:line, LSN). `text`: the record. `reason`: what is wrong with it.
    """

    place: str
    text: str
    reason: str


@dataclass(frozen=True, slots=True)
class Polled:
    """What came after a position.

    Attributes:
        batches: the rows of each table, with the columns that `mode` says. All of them are one batch. Messages with
            columns `partition` and `offset` come in the order of these. Rows that are a `GivenRows` say themselves what
            they mean, whatever the mode.
        mode: what the rows mean.
        position: where the next poll begins, as JSON text. The engine stores it in the batch's own transaction.
        bad: the records that could not be read. They are not in `batches`.
        unnamed: for upserts that do not name every column: by table and column, a mask of the rows (boolean) that leave
            the column as it is.
        origin: the place and the text of the record that made a row, from its table and its number there. The engine
            asks it for rows that their table refuses. None: such a row stops the source, even with errors = 'table'.
        last: False for a piece of a transaction too large for one batch. Its time stays open (`close=False`), the next
            batch of the source has the same time, and the first one that is `last` closes it. See `Engine.follow`.
    """

    batches: Mapping[str, Any]
    mode: Mode
    position: str
    bad: Sequence[BadRecord] = ()
    unnamed: Mapping[str, Mapping[str, pa.BooleanArray]] = field(default_factory=dict)
    origin: Callable[[str, int], tuple[str, str]] | None = None
    last: bool = True


@dataclass(frozen=True, slots=True)
class Lag:
    """How far a reader is behind the end of its source: `amount` (None: it is not known) of `unit` (files, messages,
    bytes)."""

    amount: int | None
    unit: str

    def __str__(self) -> str:
        return "unknown" if self.amount is None else f"{self.amount} {self.unit}"


class Reader(Protocol):
    """Reads one source. One thread calls it."""

    def poll(self, position: str | None, seconds: float) -> Polled | None:
        """The records after a position. It waits up to `seconds` for the first; None: there is nothing new.

        Raises:
            StorageError: the source cannot be reached; the engine tries again later.
            HalfjoinError: the source cannot go on from the position (it is another one, or its records are gone).
        """

    def acknowledge(self, position: str) -> None:
        """Note that everything before a position is durable: the source may forget it."""

    def lag(self) -> Lag:
        """What is known of how far behind the reader is, without asking the source at length."""

    def close(self) -> None:
        """Release everything. It may be called twice."""


@dataclass(frozen=True, slots=True)
class Opening:
    """What a reader is opened with. `id` tells the source from any other that had or gets its name; `options` is a
    model of the kind's class; `tables` are those that it feeds, in the order of INTO; `memory` is the bytes that the
    rows of one batch may take."""

    name: str
    id: str
    options: Any
    tables: Sequence[Table]
    memory: int = POLL_BYTES


@dataclass(frozen=True, slots=True)
class Definition:
    """A statement that makes what a source needs, such as CREATE TABLE, and the `name` of what it makes. The engine
    carries it out unless there is a table or type of that name. `problem`: why there is no such statement."""

    name: str
    text: str
    problem: UnsupportedSQL | None = None


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of source.

    Attributes:
        name: as SQL writes it, such as FILES.
        options: the model of its options, a subclass of `Options`. A field of type SecretStr is never shown.
        open: opens a reader. It imports optional packages with `needed`.
        check: refuses a definition that cannot work with these tables, when it is made. It asks nobody else.
        tables: finds the definitions of the tables, when CREATE SOURCE is carried out, from the options and the names
            after INTO (none for INTO TABLES: each table has its own name), and returns them, the tables' names, and
            options that the source shall have beside those that were given. None: the tables must be there.
        times: how its rows get times of the user's own (`clock="own"`), as a remedy; None: they cannot have any.
        dropped: after DROP SOURCE, gives back what the source holds elsewhere (a replication slot). An error of it is
            a warning: the source is gone.
    """

    name: str
    options: type[Options]
    open: Callable[[Opening], Reader]
    check: Callable[[Opening], None] | None = None
    tables: Callable[[Any, Sequence[str]], tuple[Sequence[Definition], Sequence[str], Mapping[str, Any]]] | None = None
    dropped: Callable[[Opening], None] | None = None
    times: str | None = f"give the rows a column {TIME}"


class Options(BaseModel):
    """The options of a kind of source, each a field; SQL gives them as texts, numbers and booleans."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    def kept(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The options that were given, as the catalog keeps them."""
        return dict(given)


def needed(module: str, kind: str, extra: str) -> ModuleType:
    """Import a module of an optional package.

    Raises:
        HalfjoinError: it is not installed; with the extra that has it.
    """
    try:
        return importlib.import_module(module)
    except ImportError as problem:
        raise HalfjoinError(f"a source FROM {kind} needs {module}, which cannot be imported: {problem}",
                            remedy=f"pip install 'halfjoin[{extra}]'") from None


def revealed(secret: SecretStr | None) -> str | None:
    """The value of a secret option. `env:NAME` stands for an environment variable of the process that reads the source,
    so that the warehouse does not hold the secret.

    Raises:
        HalfjoinError: the variable is not set.
    """
    if secret is None:
        return None
    text = secret.get_secret_value()
    if not text.startswith("env:"):
        return text
    found = os.environ.get(text[4:])
    if found is None:
        raise HalfjoinError(f"the environment variable {text[4:]} is not set, which an option of the source names")
    return found
