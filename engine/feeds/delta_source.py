"""Read a Delta table that an engine follows: its rows at a version, and the changes of each later version."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from os import PathLike
from typing import Any, TypeAlias
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.types as pt
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from halfjoin.catalog.models import Table
from halfjoin.engine.storage.place import LOG
from halfjoin.engine.storage.site import site_of
from halfjoin.engine.updates.updates import DIFF
from halfjoin.errors import InvalidRow, StorageError, UnknownName

# Bytes of files to read at a time; they take several times that in memory. Restarts count the pieces of a version.
READ_BYTES = 256 << 20

_CHANGE = "_change_type"
_ADDS = ["insert", "update_postimage"]
_FEED = "delta.enableChangeDataFeed"
_MAPPING = "delta.columnMapping.mode"
Piece: TypeAlias = Callable[[], pa.Table]  # reads some rows; those of a version's changes may have a `__diff`

_Part: TypeAlias = tuple[int, Piece]  # the bytes of a file to read, and what reads them

RESTART = "engine.follow(..., restart=True) goes on from the rows that the source has now"


class DeltaSource:
    """The table at a path or URL, at its newest version.

    Raises:
        StorageError: there is no Delta table, or it has a feature that the engine cannot read.
    """

    def __init__(self, path: str | PathLike[str], table: Table, columns: Sequence[str] | None) -> None:
        self._place, self._table, self._columns = site_of(path).place, table, columns
        try:
            self._newest = self._at(None)
        except DeltaError as problem:
            raise StorageError(f"{self} cannot be opened as a Delta table: {problem}", path=str(self)) from problem
        self.version = int(self._newest.version())
        self.id = str(self._newest.metadata().id)

    def __str__(self) -> str:
        return str(self._place)

    def snapshot(self) -> pa.Table:
        """All rows of the newest version.

        Raises:
                UnknownName, InvalidRow: the columns differ from the table's.
                StorageError: the files cannot be read.
        """
        with self._reading(self.version):
            return pa.table(self._newest.scan(columns=self._wanted(self._newest)))

    def rows(self, version: int) -> list[Piece]:
        """All rows of a version, some files at a time. Each call gives the same pieces.

        Raises:
            As `snapshot`. The pieces raise the same errors.
        """
        with self._reading(version):
            at = self._at(version)
            wanted = self._wanted(at)
            if "deletionVectors" in (at.protocol().reader_features or ()):  # the files also have deleted rows
                return [partial(self._read, version, [lambda: pa.table(at.scan(columns=wanted))])]
            known = {add["path"]: add["size_bytes"] for add in pa.table(at.get_add_actions()).to_pylist()}
            sizes = {path: known.get(path) for path in at.to_pyarrow_dataset().files}
            return self._pieces(version, _of_files(at, sizes, wanted, None))

    def changes(self, version: int) -> list[Piece]:
        """The changes of a version, some files at a time: deletions, then insertions. The same pieces every time.

        A version that only adds files is read from these files, any other from the Change Data Feed. Files that were
        rewritten without a change (OPTIMIZE) give no rows. Every deleted row existed before, so no key has two rows
        between two pieces.

        Raises:
            UnknownName, InvalidRow: the columns differ from the table's.
            StorageError: the version cannot be read any more, or not without a feed. The pieces raise it as well.
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
                return [lambda: pa.table({name: pa.nulls(0) for name in wanted})]
            if not feed and any(file.get("deletionVector") for _, file in files):
                raise StorageError(f"version {version} of {self} has deletion vectors and no change files",
                                   remedy=RESTART, path=str(self))
            if feed:
                return self._pieces(version, self._of_feed(at, feed, wanted))
            added, removed = ({unquote(file["path"]): file.get("size") for kind, file in files if kind == one}
                              for one in ("add", "remove"))  # fmt: skip
            if not removed:
                return self._pieces(version, _of_files(at, added, wanted, None))
            if at.metadata().configuration.get(_FEED, "").lower() == "true":
                gone = _of_files(self._at(version - 1), removed, wanted, -1)
                return self._pieces(version, [*gone, *_of_files(at, added, wanted, 1)])
            raise StorageError(
                f"version {version} of {self} deletes rows, and without a Change Data Feed the engine cannot tell "
                "which", remedy=f"set its table property {_FEED} = true, and then {RESTART}", path=str(self),
            )

    def _pieces(self, version: int, parts: Sequence[_Part]) -> list[Piece]:
        """Group parts, in their order, into pieces that fit into memory."""
        groups: list[list[Piece]] = [[]]
        size = 0
        for bytes_, part in parts:
            size += bytes_
            if groups[-1] and size > READ_BYTES:
                groups.append([])
                size = bytes_
            groups[-1].append(part)
        return [partial(self._read, version, group) for group in groups]

    def _read(self, version: int, parts: Sequence[Piece]) -> pa.Table:
        with self._reading(version):
            return pa.concat_tables([part() for part in parts], promote_options="permissive")

    def _at(self, version: int | None) -> DeltaTable:
        try:
            found = DeltaTable(self._place.uri, version=version)
        except TableNotFoundError:
            raise StorageError(f"there is no Delta table at {self}", path=str(self)) from None
        if found.metadata().configuration.get(_MAPPING, "none") != "none":
            raise StorageError(f"{self} maps its columns' names ({_MAPPING}), which the engine cannot follow",
                               remedy="copy it", path=str(self))
        return found

    def _of_feed(self, at: DeltaTable, files: Sequence[dict[str, Any]], columns: list[str]) -> list[_Part]:
        """The rows of the Change Data Feed's files: in one go if they are small, else deletions before insertions.

        The files do not have the columns that partition the table.
        """
        types = pa.schema(at.schema())

        def read(file: dict[str, Any], group: int | None, which: Any) -> pa.Table:
            fixed, found = file.get("partitionValues") or {}, self._change_file(file)
            found = found if group is None else found.subset(row_group_ids=[group])
            stored = [name for name in columns if name not in fixed]
            schema = pa.schema([(field.name, _unviewed(field.type)) for field in found.physical_schema])
            rows = found.to_table(schema=schema, columns=[*stored, _CHANGE], filter=which)
            arrays = [_repeated(fixed[name], types.field(name).type, len(rows)) if name in fixed else rows.column(name)
                      for name in columns]  # fmt: skip
            comes = pc.is_in(rows.column(_CHANGE).cast(pa.string()), pa.array(_ADDS))
            diff = pc.if_else(comes, pa.scalar(1), pa.scalar(-1))
            return pa.Table.from_arrays([*arrays, diff], names=[*columns, DIFF])

        comes = pc.field(_CHANGE).cast(pa.string()).isin(_ADDS)
        parts: list[_Part] = []
        for which in (None,) if sum(file["size"] for file in files) <= READ_BYTES else (~comes, comes):
            for file in files:
                whole = file["size"] <= READ_BYTES
                groups = [None] if whole else list(range(self._change_file(file).num_row_groups))
                parts += [(file["size"] // len(groups), partial(read, file, group, which)) for group in groups]
        return parts

    def _change_file(self, file: dict[str, Any]) -> Any:
        return ds.ParquetFileFormat().make_fragment(self._place.open(unquote(file["path"])))

    def _wanted(self, at: DeltaTable) -> list[str]:
        """The columns to take: those that the user chose, or else all, which then must be the same in both tables."""
        there, known = [field.name for field in at.schema().fields], [column.name for column in self._table.columns]
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

    @contextmanager
    def _reading(self, version: int) -> Iterator[None]:
        try:
            yield
        except (DeltaError, OSError, pa.ArrowException) as problem:
            raise StorageError(
                f"version {version} of {self} cannot be read, perhaps since its log or files were cleaned up: "
                f"{problem}",
                remedy=RESTART, path=str(self),
            ) from problem


def _repeated(text: str | None, kind: pa.DataType, length: int) -> pa.Array:
    """A partition's value, which the log has as text; empty means NULL. Types that rows may have as text stay text."""
    value = pa.scalar(text or None, pa.string())
    parsed = pt.is_integer(kind) or pt.is_floating(kind) or pt.is_boolean(kind)
    return pa.repeat(value.cast(kind) if parsed else value, length)


def _unviewed(kind: pa.DataType) -> pa.DataType:
    """The type in which to read a column. Arrow cannot filter views, which delta-rs uses for texts and bytes."""
    if pt.is_list(kind):
        return pa.list_(_unviewed(kind.value_type))
    if pt.is_struct(kind):
        return pa.struct([(field.name, _unviewed(field.type)) for field in kind])
    return pa.string() if pt.is_string_view(kind) else pa.binary() if pt.is_binary_view(kind) else kind


def _split(fragment: Any, size: int | None) -> list[tuple[int, Any]]:
    """A file, or its row groups if it is larger than a piece, and about how many bytes each has."""
    size = READ_BYTES if size is None else size
    groups = [fragment] if size <= READ_BYTES else fragment.split_by_row_group()
    return [(size // len(groups), group) for group in groups]


def _of_files(at: DeltaTable, sizes: dict[str, int | None], columns: list[str], diff: int | None) -> list[_Part]:
    """The rows of some files of a version, with those columns that the version has."""
    dataset: Any = at.to_pyarrow_dataset()
    columns = [name for name in columns if name in dataset.schema.names]
    found = sorted((one for one in dataset.get_fragments() if one.path in sizes), key=lambda one: one.path)
    if len(found) < len(sizes):
        raise FileNotFoundError(f"{len(sizes) - len(found)} files of version {at.version()} are not in its file list")

    def read(fragment: Any) -> pa.Table:
        rows = fragment.to_table(schema=dataset.schema, columns=columns)
        return rows if diff is None else rows.append_column(DIFF, pa.repeat(diff, len(rows)))

    if not found:
        return [(0, lambda: dataset.schema.empty_table().select(columns))]
    return [(size, partial(read, part)) for one in found for size, part in _split(one, sizes[one.path])]
