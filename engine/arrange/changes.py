"""The closed changes of a view. They stay in files until somebody reads them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

import pyarrow as pa

from halfjoin.engine.arrange.part import Part
from halfjoin.engine.system.process import check_process
from halfjoin.engine.updates.consolidate import consolidate
from halfjoin.engine.updates.updates import Updates, concat, empty


@dataclass(frozen=True, slots=True)
class StoredChanges:
    """The updates of `parts` with times in `[low, high)` and the columns of `schema`. Each call reads them anew.

    `consolidated`: the parts have no two updates of the same row and time.
    """

    schema: Mapping[str, pa.DataType]
    parts: tuple[Part, ...]
    low: int
    high: int
    consolidated: bool

    def until(self, time: int) -> StoredChanges:
        """The changes before a time."""
        return replace(self, high=min(self.high, time))

    def pieces(self) -> Iterator[Updates]:
        """The changes as the parts store them, in pieces that fit into memory."""
        for part in self.parts:
            yield from part.pieces(self.low, self.high)

    @property
    def most(self) -> int:
        """At most so many updates, as far as is known without reading files."""
        return sum(map(len, self.parts))

    def updates(self) -> Updates:
        """All the changes, in memory."""
        found = concat([empty(self.schema), *self.pieces()])
        return found if self.consolidated else consolidate(found)

    def table(self) -> pa.Table:
        """All the changes as a table: the columns, then `__time` and `__diff`."""
        return self.updates().table(changes=True)


Changes: TypeAlias = pa.Table | StoredChanges


class Diffs(Mapping[str, pa.Table]):
    """The closed changes of each view, by the view's name. Each access reads the changes that are in files anew."""

    def __init__(self, changes: Mapping[str, Changes]) -> None:
        self.changes, self._process = changes, os.getpid()

    def __getitem__(self, view: str) -> pa.Table:
        found = self.changes[view]
        if isinstance(found, StoredChanges):
            check_process(self._process)  # the files belong to that process
        return found.table() if isinstance(found, StoredChanges) else found

    def __contains__(self, view: object) -> bool:
        return view in self.changes

    def __iter__(self) -> Iterator[str]:
        return iter(self.changes)

    def __len__(self) -> int:
        return len(self.changes)


def changes_of(diffs: Mapping[str, pa.Table]) -> Mapping[str, Changes]:
    """The changes that `diffs_of` got, without reading files."""
    return diffs.changes if isinstance(diffs, Diffs) else diffs


def diffs_of(changes: Mapping[str, Changes]) -> Mapping[str, pa.Table]:
    """The changes in the form that `Applied` shows: a dict of tables, or `Diffs` if some changes are in files."""
    tables = {view: found for view, found in changes.items() if not isinstance(found, StoredChanges)}
    return tables if len(tables) == len(changes) else Diffs(changes)


def size(changes: Changes) -> str:
    """The number of rows, in words."""
    return "in files" if isinstance(changes, StoredChanges) else f"{changes.num_rows} rows"
