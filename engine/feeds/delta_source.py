"""Read a Delta table that an engine follows: its rows at a version, and the changes of each later version."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from os import PathLike
from typing import Any, TypeAlias
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from halfjoin.catalog.models import Table
from halfjoin.engine.feeds.deletion_vectors import deleted
from halfjoin.engine.feeds.delta_files import ADDS, CHANGE, Column, File, parts, text_of
from halfjoin.engine.feeds.delta_vectors import lines, vectors
from halfjoin.engine.storage.commits import commit_file
from halfjoin.engine.storage.site import site_of
from halfjoin.engine.system.panics import panics_caught
from halfjoin.engine.updates.updates import Ints
from halfjoin.errors import InvalidRow, StorageError, UnknownName

# Bytes of files to read at a time; they take several times that in memory. Restarts count the pieces of a version.
READ_BYTES = 256 << 20

_MAPPING, _STORED = "delta.columnMapping.mode", "delta.columnMapping.physicalName"
Piece: TypeAlias = Callable[[], pa.Table]  # reads some rows; those of a version's changes may have a `__diff`

_Action: TypeAlias = Mapping[str, Any]  # what a version's log says of a file
_Part: TypeAlias = tuple[int, Piece]  # the bytes of a file to read, and what reads them

RESTART = "engine.follow(..., restart=True) goes on from the rows that the source has now"


class DeltaSource:
    """The table at a path or URL, at its newest version. It is read for the columns of a table of the engine, or of
    those for `columns`; without a table all that it has.

    Raises:
        StorageError: there is no Delta table, or it has a feature that the engine cannot read.
    """

    def __init__(
        self, path: str | PathLike[str], table: Table | None = None, columns: Sequence[str] | None = None
    ) -> None:
        self._place, self._table, self._columns = site_of(path).place, table, columns
        try:
            with panics_caught():
                self._newest = self._at(None)
        except (DeltaError, OSError) as problem:
            raise StorageError(f"{self} cannot be opened as a Delta table: {problem}", path=str(self)) from problem
        self.version = int(self._newest.version())
        self.id = str(self._newest.metadata().id)

    def __str__(self) -> str:
        return str(self._place)

    @property
    def schema(self) -> pa.Schema:
        """The columns of the newest version, and their types."""
        return pa.schema(self._newest.schema().to_arrow())

    def snapshot(self) -> pa.Table:
        """All rows of the newest version.

        Raises:
                UnknownName, InvalidRow: the columns differ from the table's.
                StorageError: the files cannot be read.
        """
        return pa.concat_tables([piece() for piece in self.rows(self.version)], promote_options="permissive")

    def rows(self, version: int) -> list[Piece]:
        """All rows of a version, some files at a time. Each call gives the same pieces.

        Raises:
            As `snapshot`. The pieces raise the same errors.
        """
        with self._reading(version):
            at = self._at(version)
            columns = self._as_stored(at, self._wanted(at))
            return self._pieces(version, columns, self._parts(self._files(at, columns)))

    def changes(self, version: int) -> list[Piece]:
        """The changes of a version, some files at a time: deletions, then insertions. The same pieces every time.

        A version is read from the Change Data Feed if it has files there, else from the files that it adds and removes;
        of a file of which it only changes the deletion vector, from the rows that these tell apart. Files that were
        rewritten without a change (OPTIMIZE) give no rows. Every deleted row existed before, so no key has two rows
        between two pieces.

        Raises:
            UnknownName, InvalidRow: the columns differ from the table's.
            StorageError: the version cannot be read any more. The pieces raise it as well.
        """
        with self._reading(version):
            actions = lines(self._place, commit_file(version))
            at = self._at(version)
            wanted = self._wanted(at)
            columns = self._as_stored(at, wanted)
            if any("metaData" in action for action in actions):
                self._check_names(version, columns)
            feed = [self._file(action["cdc"], at, columns) for action in actions if "cdc" in action]
            if feed:
                return self._pieces(version, columns, self._feed(feed))
            files = [(kind, action[kind]) for action in actions for kind in ("remove", "add") if kind in action]
            removed, added = ({file["path"]: file for kind, file in files if kind == one and file.get("dataChange")}
                              for one in ("remove", "add"))  # fmt: skip
            gone = self._gone(version, wanted, removed, added) if removed else []
            come = [self._left(self._file(one, at, columns, 1 if gone else None), one, removed.get(path))
                    for path, one in added.items()]  # fmt: skip
            return self._pieces(version, columns, self._parts([*_sorted(gone), *_sorted(come)]))

    def _gone(
        self, version: int, wanted: Sequence[str], removed: Mapping[str, _Action], added: Mapping[str, _Action]
    ) -> list[File]:
        """The files that a version removes, as the version before it describes them. The action may leave out their
        partition, or what of it is NULL."""
        before = self._at(version - 1)
        columns, known = self._as_stored(before, wanted), dict[str, File]()
        if before.metadata().partition_columns and not all(one.get("partitionValues") for one in removed.values()):
            known = {file.path: file for file in self._files(before, columns, vectors=False)}
        found = []
        for path, one in removed.items():
            file = self._file(one, before, columns, -1)
            if file.path in known:
                file = replace(file, fixed=known[file.path].fixed)
            found.append(self._left(file, one, added.get(path)))
        return found

    def _left(self, file: File, one: _Action, other: _Action | None) -> File:
        """The rows that a file has by one of its actions in a version, and not by the other one, if there is one."""
        if other is not None:
            return replace(file, rows=np.setdiff1d(self._deleted(other), self._deleted(one)))
        return replace(file, rows=self._deleted(one), but=True) if one.get("deletionVector") else file

    def _deleted(self, action: _Action) -> Ints:
        vector = action.get("deletionVector")
        return np.zeros(0, np.int64) if vector is None else deleted(self._place, vector)

    def _file(self, action: _Action, at: DeltaTable, columns: Sequence[Column], diff: int | None = None) -> File:
        """The file of an action. Of its partition, what is NULL may be left out."""
        stored, given = _stored_names(at), action.get("partitionValues") or {}
        fixed = {stored[name]: given.get(stored[name]) for name in at.metadata().partition_columns}
        return File(self._inside(action["path"]), action.get("size"), columns, fixed, diff=diff)

    def _files(self, at: DeltaTable, columns: Sequence[Column], *, vectors: bool = True) -> list[File]:
        """The data files of a version, in order, without the rows that are deleted."""
        stored, masks = _stored_names(at), self._masks(at) if vectors else {}
        found = []
        for add in pa.table(at.get_add_actions()).to_pylist():
            path = self._inside(add["path"])
            fixed = {stored[name]: text_of(value) for name, value in (add.get("partition") or {}).items()}
            found.append(File(path, add["size_bytes"], columns, fixed, masks.pop(path, None), but=True))
        if masks:
            raise StorageError(f"{self} has deletion vectors of files that its version {at.version()} does not have",
                               path=str(self))  # fmt: skip
        return _sorted(found)

    def _masks(self, at: DeltaTable) -> dict[str, Ints]:
        """The deleted rows of each file that has some."""
        if "deletionVectors" not in (at.protocol().reader_features or ()):
            return {}
        found = vectors(self._place, at.version())
        return {self._inside(path): deleted(self._place, vector) for path, vector in found.items()}

    def _inside(self, path: str) -> str:
        """The path of a file in the table's folder, by the path that the log has.

        Raises:
            StorageError: it is elsewhere, as it is in a shallow clone.
        """
        found = unquote(path)
        if found.startswith("/") or ":/" in found.partition("=")[0]:
            raise StorageError(f"{self} has files in the folder of another table, as a shallow clone has: {found}",
                               remedy="follow that table, or make a deep clone", path=str(self))  # fmt: skip
        return found

    def _pieces(self, version: int, columns: Sequence[Column], read: Sequence[_Part]) -> list[Piece]:
        """Group what reads files, in its order, into pieces that fit into memory."""
        groups: list[list[Piece]] = [[]]
        size = 0
        for bytes_, part in read:
            size += bytes_
            if groups[-1] and size > READ_BYTES:
                groups.append([])
                size = bytes_
            groups[-1].append(part)
        empty = pa.schema([(column.name, column.type) for column in columns]).empty_table()
        return [partial(self._read, version, group or [lambda: empty]) for group in groups]

    def _parts(self, files: Sequence[File], which: Any = None) -> list[_Part]:
        return [part for file in files for part in parts(self._place, file, READ_BYTES, which)]

    def _feed(self, files: Sequence[File]) -> list[_Part]:
        """The rows of the Change Data Feed's files: in one go if they are small, else deletions before insertions."""
        comes = pc.field(CHANGE).isin(ADDS)
        small = sum(file.size or 0 for file in files) <= READ_BYTES
        return [part for which in ([comes | ~comes] if small else [~comes, comes])
                for part in self._parts(files, which)]  # fmt: skip

    def _read(self, version: int, parts: Sequence[Piece]) -> pa.Table:
        with self._reading(version):
            return pa.concat_tables([part() for part in parts], promote_options="permissive")

    def _at(self, version: int | None) -> DeltaTable:
        try:
            found = DeltaTable(self._place.uri, version=version)
        except TableNotFoundError:
            raise StorageError(f"there is no Delta table at {self}", path=str(self)) from None
        mode = found.metadata().configuration.get(_MAPPING, "none")
        if mode not in ("none", "name"):
            raise StorageError(f"{self} finds its columns by numbers ({_MAPPING} = {mode}), which the engine cannot "
                               "follow", remedy="copy it", path=str(self))  # fmt: skip
        return found

    def _wanted(self, at: DeltaTable) -> list[str]:
        """The columns to take: those that the user chose, or else all, which then must be the same in both tables."""
        there = [field.name for field in at.schema().fields]
        if self._table is None:
            return there
        known = [column.name for column in self._table.columns]
        for name in self._columns or ():
            if name not in known:
                raise UnknownName(f"column of {self._table.name}", name, known)
        wanted = known if self._columns is None else list(self._columns)
        extra = [name for name in there if name not in known and self._columns is None]
        missing = [name for name in wanted if name not in there]
        if extra or missing:
            has, lacks = ("has", "does not") if extra else ("does not have", "does")
            raise InvalidRow(
                f"version {at.version()} of {self} {has} the columns {', '.join(extra or missing)}, and "
                f"{self._table.name} {lacks}",
                remedy=f"choose columns with engine.follow({self._table.name!r}, ..., columns=[...])",
                table=self._table.name,
            )
        return wanted

    def _as_stored(self, at: DeltaTable, names: Sequence[str]) -> list[Column]:
        """Those of the columns that a version has, as it has them."""
        types, stored = pa.schema(at.schema()), _stored_names(at)
        for name in names:
            if stored.get(name, name) != name and not _plain(types.field(name).type):
                raise StorageError(f"{self} maps the names of columns ({_MAPPING}), and those within {name}, which the "
                                   "engine cannot follow", remedy="choose other columns, or copy it",
                                   path=str(self))  # fmt: skip
        return [Column(name, stored[name], types.field(name).type) for name in names if name in stored]

    def _check_names(self, version: int, columns: Sequence[Column]) -> None:
        """Refuse a version that gives a column's name to another one, which has other values in the rows there are."""
        if version == 0 or all(column.stored == column.name for column in columns):
            return
        before = _stored_names(self._at(version - 1))
        for column in columns:
            if before.get(column.name, column.stored) != column.stored or (
                column.name not in before and column.stored in before.values()
            ):
                raise StorageError(f"version {version} of {self} renames a column to {column.name}, or drops one of "
                                   "this name and adds another", remedy=RESTART, path=str(self))  # fmt: skip

    @contextmanager
    def _reading(self, version: int) -> Iterator[None]:
        try:
            with panics_caught():
                yield
        except (DeltaError, OSError, pa.ArrowException) as problem:
            raise StorageError(
                f"version {version} of {self} cannot be read, perhaps since its log or files were cleaned up: "
                f"{problem}",
                remedy=RESTART, path=str(self),
            ) from problem


def _stored_names(at: DeltaTable) -> Mapping[str, str]:
    """The names of a version's columns in its files and partitions, by their names."""
    return {field.name: field.metadata.get(_STORED, field.name) for field in at.schema().fields}


def _plain(kind: pa.DataType) -> bool:
    """Whether a type has no names of fields within it."""
    if pt.is_list(kind):
        return _plain(kind.value_type)
    return not pt.is_nested(kind)


def _sorted(files: Iterable[File]) -> list[File]:
    return sorted(files, key=lambda file: file.path)
