"""A view's closed changes that stay in files until somebody looks at them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

import pyarrow as pa

from halfjoin.engine.arrange.run import Part
from halfjoin.engine.system.process import check_process
from halfjoin.engine.updates.consolidate import consolidate
from halfjoin.engine.updates.updates import Updates, concat, empty


@dataclass(frozen=True, slots=True)
class StoredChanges:
    """The updates of some parts with times in `[low, high)`, of the columns of `schema`; read whenever it is asked.

    `consolidated`: whether the parts have no two updates of the same row and time.
    """

    schema: Mapping[str, pa.DataType]
    parts: tuple[Part, ...]
    low: int
    high: int
    consolidated: bool

    def until(self, time: int) -> StoredChanges:
        """Those before a time."""
        return replace(self, high=min(self.high, time))

    def pieces(self) -> Iterator[Updates]:
        """They as the parts have them, in parts that memory holds."""
        for part in self.parts:
            yield from part.pieces(self.low, self.high)

    def updates(self) -> Updates:
        """All of them, in memory."""
        found = concat([empty(self.schema), *self.pieces()])
        return found if self.consolidated else consolidate(found)

    def table(self) -> pa.Table:
        """Columns, `__time`, `__diff`."""
        return self.updates().table(changes=True)


Changes: TypeAlias = pa.Table | StoredChanges


class Diffs(Mapping[str, pa.Table]):
    """Each view's closed changes by its name; what is in files is read anew each time it is asked for."""

    def __init__(self, changes: Mapping[str, Changes]) -> None:
        self.changes, self._process = changes, os.getpid()

    def __getitem__(self, view: str) -> pa.Table:
        found = self.changes[view]
        if isinstance(found, StoredChanges):
            check_process(self._process)  # whose files they are
        return found.table() if isinstance(found, StoredChanges) else found

    def __contains__(self, view: object) -> bool:
        return view in self.changes

    def __iter__(self) -> Iterator[str]:
        return iter(self.changes)

    def __len__(self) -> int:
        return len(self.changes)


def changes_of(diffs: Mapping[str, pa.Table]) -> Mapping[str, Changes]:
    """The changes that `diffs_of` was given, unread."""
    return diffs.changes if isinstance(diffs, Diffs) else diffs


def diffs_of(changes: Mapping[str, Changes]) -> Mapping[str, pa.Table]:
    """As `Applied` has them: a dict, unless something is to be read."""
    tables = {view: found for view, found in changes.items() if not isinstance(found, StoredChanges)}
    return tables if len(tables) == len(changes) else Diffs(changes)


def size(changes: Changes) -> str:
    """How many rows, in words."""
    return "in files" if isinstance(changes, StoredChanges) else f"{changes.num_rows} rows"
