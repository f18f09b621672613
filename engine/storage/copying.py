"""The mapped copies of a warehouse's files, by collection. They take disk space only while their files are in use."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

from halfjoin.engine.storage.mapped import Copies
from halfjoin.engine.storage.scratch import Scratch, ScratchPlace
from halfjoin.engine.storage.stored_run import StoredRun
from halfjoin.engine.system.behind import Behind
from halfjoin.engine.system.machine import machine_memory

CACHED = 2  # copies take at most 1/2 of the memory


class Copying:
    """Makes and gives up mapped copies.

    Args:
        staging: a folder of the warehouse for them, created when needed. None: lookups do without copies.
        behind: makes them.
    """

    def __init__(self, staging: Path | None, behind: Behind) -> None:
        self._staging = staging
        self._scratch: Scratch | None = None
        self._behind = behind
        self._copies: dict[int, Copies] = {}

    def of(self, number: int, runs: Sequence[StoredRun]) -> list[StoredRun]:
        """The runs that make up a collection now, with copies of their files. Copies of its other files go."""
        fresh = None if self._staging is None else self._fresh
        copies = self._copies.setdefault(number, Copies(fresh, self._behind, self._left))
        copies.keep({file.name for run in runs for one in (run, *run.arranged.values()) for file in one.files})

        def copied(run: StoredRun) -> StoredRun:
            arranged = {key: replace(one, copies=copies) for key, one in run.arranged.items()}
            return replace(run, arranged=arranged, copies=copies)

        return [copied(run) for run in runs]

    def only(self, numbers: Collection[int]) -> None:
        """Give up the copies of all collections but these."""
        for number in [one for one in self._copies if one not in numbers]:
            self._copies.pop(number).keep(())

    def _left(self) -> int:
        """How many bytes more copies may take."""
        return machine_memory() // CACHED - sum(copies.size for copies in self._copies.values())

    def _fresh(self) -> ScratchPlace:
        self._scratch = self._scratch or Scratch(self._staging)
        return self._scratch.fresh()

    def close(self) -> None:
        """Give up all copies."""
        self.only(())
        self._scratch = None
