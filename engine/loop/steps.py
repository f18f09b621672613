"""What a node of a loop does in a round, and who does it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from halfjoin.engine.arrange.part import Part
from halfjoin.engine.join.closing import Closing, RunsOf
from halfjoin.engine.join.dataflow import Dataflow
from halfjoin.engine.loop.reduce import Round, RoundReduce
from halfjoin.engine.updates.updates import Updates

New: TypeAlias = Mapping[str, Sequence[Part]]  # what has arrived in each collection since a node ran last


class Steps(Protocol):
    """Carries out the steps of nodes. The results are consolidated."""

    def join(self, flow: Dataflow, new: New, lookup: RunsOf, closing: Closing) -> tuple[Updates, Updates]:
        """The output and error updates of a join, as `Dataflow.changes`; collections without new parts have none."""

    def reduce(
        self, flow: RoundReduce, updates: Updates, again: Updates, lookup: RunsOf, round: Round, before: int, *,
        failing: bool,
    ) -> tuple[Updates, Updates, Updates]:  # fmt: skip
        """As `RoundReduce.round`."""


@dataclass(frozen=True, slots=True)
class _Several:
    """Some parts as one."""

    parts: Sequence[Part]

    def pieces(self, names: Iterable[str] | None = None) -> Iterator[Updates]:
        for part in self.parts:
            yield from part.pieces(names=names)


class _Here:
    """This process, on Arrow batches."""

    def join(self, flow: Dataflow, new: New, lookup: RunsOf, closing: Closing) -> tuple[Updates, Updates]:
        staged = {name: _Several(parts) for name, parts in new.items()}
        return flow.changes(staged, lookup, closing)  # type: ignore[arg-type]  # it reads the pieces alone

    def reduce(
        self, flow: RoundReduce, updates: Updates, again: Updates, lookup: RunsOf, round: Round, before: int, *,
        failing: bool,
    ) -> tuple[Updates, Updates, Updates]:  # fmt: skip
        return flow.round(updates, again, lookup, round, before, failing=failing)


HERE: Steps = _Here()
