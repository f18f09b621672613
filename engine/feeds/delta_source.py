"""A Delta table to be followed: its rows at a version, and what each later version changed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from os import PathLike
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as pt
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from halfjoin.catalog.models import Table
from halfjoin.engine.storage.place import LOG
from halfjoin.engine.storage.site import site_of
from halfjoin.engine.updates import DIFF
from halfjoin.sql.errors import InvalidRow, StorageError, UnknownName

PIECE_BYTES = 256 << 20  # of files that are read at a time; several times that in memory

_CHANGE = "_change_type"
_ADDS = ("insert", "update_postimage")
_FEED = "delta.enableChangeDataFeed"
_MAPPING = "delta.columnMapping.mode"
RESTART = "engine.follow(..., restart=True) goes on from the rows that the source has now"


class DeltaSource:
    """The table at a path or URL, at its newest version.

    Raises:
        StorageError: there is no Delta table, or one that is not read here.
    """

    def __init__(self, path: str | PathLike[str], table: Table, columns: Sequence[str] | None) -> None:
        self._place, self._table, self._columns = site_of(path).place, table, columns
        try:
            self._newest = self._at(None)
        except DeltaError as problem:
            raise StorageError(f"{self} cannot be opened as a Delta table: {problem}") from problem
        self.version = int(self._newest.version())
        self.id = str(self._newest.metadata().id)

    def __str__(self) -> str:
        return str(self._place)

    def snapshot(self) -> pa.Table:
        """All rows of the newest version.

        Raises:
            UnknownName, InvalidRow: the columns are not the table's.
            StorageError: the files cannot be read.
        """
        with self._reading(self.version):
            return pa.table(self._newest.scan(columns=self._wanted(self._newest)))

    def pieces(self, version: int) -> Iterator[tuple[pa.Table, bool]]:
        """All rows of a version, some files at a time, and whether they are the last. The same pieces every time.

        Raises:
            As `snapshot`.
        """
        with self._reading(version):
            at = self._at(version)
            wanted = self._wanted(at)
            if "deletionVectors" in (at.protocol().reader_features or ()):  # files alone are not the rows
                yield pa.table(at.scan(columns=wanted)), True
                return
            sizes = {add["path"]: add["size_bytes"] for add in pa.table(at.get_add_actions()).to_pylist()}
            groups: list[set[str]] = [set()]
            size = 0
            for path in sorted(fragment.path for fragment in at.to_pyarrow_dataset().get_fragments()):
                size += sizes.get(path, PIECE_BYTES)
                if groups[-1] and size > PIECE_BYTES:
                    groups.append(set())
                    size = sizes.get(path, PIECE_BYTES)
                groups[-1].add(path)
            for number, paths in enumerate(groups, 1):
                yield _of_files(at, paths, wanted), number == len(groups)

    def changes(self, version: int) -> pa.Table:
        """What a version changed, rows with a `__diff`.

        From the files where it only added some, and else from the Change Data Feed. Rewriting files without a change
        (OPTIMIZE) gives no rows.

        Raises:
            UnknownName, InvalidRow: the columns are not the table's.
            StorageError: the version cannot be read any more, or not without a feed.
        """
        with self._reading(version):
            log = self._place.read(f"{LOG}/{version:020}.json").to_pybytes()
            actions = [json.loads(line) for line in log.splitlines()]
            at = self._at(version)
            wanted = self._wanted(at)
            files = [(kind, action[kind]) for action in actions for kind in ("add", "remove") if kind in action]
            files = [(kind, file) for kind, file in files if file.get("dataChange")]
            feed = [action["cdc"] for action in actions if "cdc" in action]
            if not files and not feed:
                return pa.table({name: pa.nulls(0) for name in wanted})
            if not feed and any(file.get("deletionVector") for _, file in files):
                raise StorageError(f"version {version} of {self} has deletion vectors and no change files; {RESTART}")
            if not feed and all(kind == "add" for kind, _ in files):
                return _of_files(at, {unquote(file["path"]) for _, file in files}, wanted)
            if feed:
                return _diffs(pa.concat_tables([self._of_feed(at, file, wanted) for file in feed]))
            if at.metadata().configuration.get(_FEED, "").lower() == "true":
                added, removed = ({unquote(file["path"]) for kind, file in files if kind == one}
                                  for one in ("add", "remove"))  # fmt: skip
                come = _of_files(at, added, wanted)
                gone = _like(come, _of_files(self._at(version - 1), removed, wanted))
                return pa.concat_tables([_weighed(come, 1), _weighed(gone, -1)])
            raise StorageError(
                f"version {version} of {self} takes rows away, and without a Change Data Feed there is no telling "
                f"which; set its table property {_FEED} = true, and then {RESTART}"
            )

    def _at(self, version: int | None) -> DeltaTable:
        try:
            found = DeltaTable(self._place.uri, version=version)
        except TableNotFoundError:
            raise StorageError(f"there is no Delta table at {self}") from None
        if found.metadata().configuration.get(_MAPPING, "none") != "none":
            raise StorageError(f"{self} maps its columns' names ({_MAPPING}), which cannot be followed; copy it")
        return found

    def _of_feed(self, at: DeltaTable, file: dict[str, Any], columns: list[str]) -> pa.Table:
        """The rows of a file of the Change Data Feed, in which columns that partition the table are left out."""
        table = pq.read_table(pa.BufferReader(self._place.read(unquote(file["path"]))))
        fixed, types = file.get("partitionValues") or {}, pa.schema(at.schema())
        arrays = [
            _repeated(fixed[name], types.field(name).type, len(table)) if name in fixed else table.column(name)
            for name in columns
        ]
        return pa.Table.from_arrays([*arrays, table.column(_CHANGE)], names=[*columns, _CHANGE])

    def _wanted(self, at: DeltaTable) -> list[str]:
        """The columns to take: all, in both tables alike, or those that the user chose."""
        there, known = [field.name for field in at.schema().fields], [column.name for column in self._table.columns]
        for name in self._columns or ():
            if name not in known:
                raise UnknownName(f"column of {self._table.name}", name, known)
        wanted = known if self._columns is None else list(self._columns)
        extra = [name for name in there if name not in known and self._columns is None]
        missing = [name for name in wanted if name not in there]
        if extra or missing:
            has, lacks = ("has", "has not") if extra else ("has not", "has")
            raise InvalidRow(
                f"version {at.version()} of {self} {has} the columns {', '.join(extra or missing)}, and "
                f"{self._table.name} {lacks}; choose columns with "
                f"engine.follow({self._table.name!r}, ..., columns=[...])"
            )
        return wanted

    @contextmanager
    def _reading(self, version: int) -> Iterator[None]:
        try:
            yield
        except (DeltaError, OSError, pa.ArrowException) as problem:
            raise StorageError(
                f"version {version} of {self} cannot be read, perhaps since its log or files were cleaned up; "
                f"{RESTART}. The cause: {problem}"
            ) from problem


def _diffs(feed: pa.Table) -> pa.Table:
    """Rows of a Change Data Feed by their diffs."""
    added = pc.is_in(feed.column(_CHANGE).cast(pa.string()), pa.array(_ADDS))
    return feed.drop_columns([_CHANGE]).append_column(DIFF, pc.if_else(added, pa.scalar(1), pa.scalar(-1)))


def _like(other: pa.Table, rows: pa.Table) -> pa.Table:
    """Rows of an older version with the columns and types of another, NULL where they were not there yet."""
    arrays = [rows.column(field.name).cast(field.type) if field.name in rows.column_names
              else pa.nulls(len(rows), field.type) for field in other.schema]  # fmt: skip
    return pa.Table.from_arrays(arrays, schema=other.schema)


def _weighed(rows: pa.Table, diff: int) -> pa.Table:
    return rows.append_column(DIFF, pa.repeat(diff, len(rows)))


def _repeated(text: str | None, kind: pa.DataType, length: int) -> pa.Array:
    """A partition's value, which the log has as text; empty is NULL. What rows may have as text stays that."""
    value = pa.scalar(text or None, pa.string())
    parsed = pt.is_integer(kind) or pt.is_floating(kind) or pt.is_boolean(kind)
    return pa.repeat(value.cast(kind) if parsed else value, length)


def _of_files(at: DeltaTable, paths: set[str], columns: list[str]) -> pa.Table:
    """The rows of some of a version's files, of the columns that it has."""
    dataset: Any = at.to_pyarrow_dataset()
    columns = [name for name in columns if name in dataset.schema.names]
    found = [fragment for fragment in dataset.get_fragments() if fragment.path in paths]
    if len(found) < len(paths):
        raise FileNotFoundError(f"{len(paths) - len(found)} files of version {at.version()} are not among its files")
    empty = dataset.schema.empty_table().select(columns)
    return pa.concat_tables([empty, *(part.to_table(schema=dataset.schema, columns=columns) for part in found)])
