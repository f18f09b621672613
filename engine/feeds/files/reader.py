"""The reader of a folder: each file is applied once, as one batch, or in pieces of one time if it is larger than the
memory for a batch.

A file that changes after it was read is not read again: its name counts once.
"""

from __future__ import annotations

import logging
import sys
import time
import zlib
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import BinaryIO

import pyarrow as pa

from halfjoin.engine.feeds.files.block import Block, Raw, following, together
from halfjoin.engine.feeds.files.folder import File, Folder
from halfjoin.engine.feeds.files.formats import blocks
from halfjoin.engine.feeds.files.options import FilesOptions, check
from halfjoin.engine.feeds.files.position import Names, Position
from halfjoin.engine.feeds.source import BadRecord, Kind, Lag, Opening, Polled
from halfjoin.engine.intake.schemas import counts_rows
from halfjoin.engine.updates.updates import DIFF, TIME
from halfjoin.errors import InvalidRow, StorageError, UnknownName

_log = logging.getLogger("halfjoin")


@dataclass(slots=True)
class _Open:
    """A file that is being read: its blocks that are left, the next of them first."""

    file: File
    stream: BinaryIO
    left: Iterator[Raw]
    next: Raw | None
    record: int = 0  # the last one that is done
    sum: int = 0


class FilesReader:
    """Reads one folder into one table."""

    def __init__(self, opening: Opening) -> None:
        self._options: FilesOptions = opening.options
        self._table, self._name = opening.tables[0], opening.name
        self._most = opening.memory
        self._folder = Folder(self._options)
        self._open: _Open | None = None
        self._known: tuple[str | None, Position] = (None, Position())
        self._names = Names()
        self._told: set[str] = set()
        self._new: deque[File] = deque()  # those of the last look that are not begun

    def poll(self, position: str | None, seconds: float) -> Polled | None:
        """The next file, or the next piece of the present one."""
        if self._known[0] != position:
            self._known, self._names = (position, Position.read(position)), Names()
        at = self._known[1]
        if at.file is not None:
            return self._piece(self._resumed(at), at)
        deadline = time.monotonic() + seconds
        while True:
            while self._new:  # of the last look, so that a thousand files are not listed a thousand times
                file = self._new.popleft()
                if file.name not in at.done and self._folder.look(file.name) == file:
                    return self._piece(self._begun(file), at)
            files, settling = self._folder.files()
            self._new = deque(one for one in files if one.name not in at.done)
            self._notice([one for one in files if at.done.get(one.name, one.mark) != one.mark])
            if self._new:
                continue
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            self._folder.wait(left, settling=settling)

    def acknowledge(self, position: str) -> None:
        """Nothing: the files stay as they are."""

    def lag(self) -> Lag:
        """The files of the last look that are not done."""
        return Lag(len(self._new) + (self._open is not None), "files")

    def close(self) -> None:
        """Close the file that is being read."""
        present, self._open = self._open, None
        if present is not None:
            present.stream.close()

    def _notice(self, changed: list[File]) -> None:
        for one in changed:
            if one.name not in self._told:
                self._told.add(one.name)
                _log.warning("the source %s has read %s, which has changed since; it is not read again: put new rows "
                             "into a new file", self._name, one.name)  # fmt: skip

    def _begun(self, file: File) -> _Open:
        self.close()
        stream = self._folder.open(file.name)
        found = self._open = _Open(file, stream, iter(()), None)
        try:
            found.left = blocks(file.name, stream, self._options, self._table)
            found.next = self._next(found)
        except InvalidRow as problem:
            named = problem.with_(called=file.name, table=None)
            found.next = Raw(sys.maxsize, partial(_raise, named))  # no record of it is done
        return found

    def _resumed(self, at: Position) -> _Open:
        """The present file, at the block that comes next."""
        if self._open is not None and (self._open.file.name, self._open.record) == (at.file, at.record):
            return self._open
        assert at.file is not None
        file = self._folder.look(at.file)
        if file is None or (file.mark != at.mark and file not in self._folder.files()[0]):
            raise StorageError(f"{at.file} was changed or removed after its records up to {at.record} were read",
                               remedy="put it back, at most with other records from there on", path=at.file)
        found = self._begun(file)
        while found.next is not None and found.next.last <= at.record:
            if file.mark != at.mark:  # somebody has mended it: it may go on if the rows that are applied are the same
                found.sum = _sum(found.next, found.sum)
            found.record, found.next = found.next.last, self._next(found)
        ended = found.next is None and found.record < at.record  # as this program reads it
        if ended or (file.mark != at.mark and (found.record, found.sum) != (at.record, at.sum)):
            self.close()
            raise StorageError(f"{at.file} has other records than before among those up to {at.record}, which are "
                               "applied", remedy="put these back as they were", path=at.file)  # fmt: skip
        if found.next is not None and found.record < at.record:
            found.next = following(found.next, at.record)
        found.record, found.sum = at.record, at.sum
        return found

    def _next(self, present: _Open) -> Raw | None:
        try:
            return next(present.left, None)
        except InvalidRow as problem:
            raise problem.with_(called=present.file.name, table=None) from None
        except OSError as problem:
            raise StorageError(f"{present.file.name} cannot be read: {problem}", path=present.file.name) from None

    def _check(self, file: str, names: list[str]) -> None:
        """Refuse columns that the table does not have, and name the file, which the batch does not know."""
        known = [column.name for column in self._table.columns]
        for name in names:
            if name not in known and name not in (TIME, DIFF) and not counts_rows(name):
                raise UnknownName(f"column of {self._table.name} in {file}", name, known)

    def _piece(self, present: _Open, at: Position) -> Polled:
        """The rest of a file, or as many of its next blocks as the memory for a batch holds. The end of a file is given
        only if the file is still what it was when it was found."""
        name, record, bytes = present.file.name, present.record, 0
        found, spoilt, coming = list[Block](), list[BadRecord](), present.next
        try:
            while coming is not None and bytes <= self._most:
                block = coming.make()
                self._check(name, block.rows.column_names)
                found.append(block)
                record, bytes = coming.last, bytes + block.rows.nbytes
                coming = self._next(present)
        except InvalidRow as problem:  # what comes after this place in the file cannot be read
            spoilt, coming = [BadRecord(name, "", str(problem))], None
        if coming is None:
            now = self._folder.look(name)
            if now is None or now.mark != present.file.mark:
                raise StorageError(f"{name} was changed or removed while it was read", path=name,
                                   remedy="write it under a name that begins with a dot, and rename it when it is "
                                   "complete")  # fmt: skip
            self.close()
            after = Position({**at.done, name: present.file.mark})
        else:
            present.next, present.record = coming, record
            for one in found:
                present.sum = _added(one, present.sum)
            after = Position(at.done, name, present.file.mark, record, present.sum)
        text = after.text(self._names)
        self._known = (text, after)
        given = _polled(name, together(found) if found else None, self._table.name, self._options, text,
                        last=coming is None)  # fmt: skip
        return replace(given, bad=[*given.bad, *spoilt]) if spoilt else given


def _sum(made: Raw, before: int) -> int:
    """The checksum with one block more; -1 if it cannot be read."""
    try:
        return _added(made.make(), before)
    except InvalidRow:
        return -1


def _added(block: Block, before: int) -> int:
    """The checksum with the rows and the bad records of one block more."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, block.rows.schema) as stream:
        stream.write_table(block.rows)
    return zlib.crc32(repr(block.bad).encode(errors="backslashreplace"), zlib.crc32(sink.getvalue(), before))


def _raise(problem: InvalidRow) -> Block:
    raise problem


def _polled(name: str, block: Block | None, table: str, options: FilesOptions, position: str, *, last: bool) -> Polled:
    if block is None or (not len(block.rows) and not block.bad):
        return Polled({}, "rows", position, last=last)
    bad = [BadRecord(f"{name}:{number}", text, why) for number, text, why in block.bad]

    def origin(_: str, row: int) -> tuple[str, str]:
        return f"{name}:{block.number[row]}", block.text(row)

    batches = {table: block.rows} if len(block.rows) else {}
    return Polled(batches, options.mode, position, bad, origin=origin, last=last)


FILES = Kind("FILES", FilesOptions, FilesReader, check)
