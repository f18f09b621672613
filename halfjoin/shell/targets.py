"""What the shell talks to, and what it gets back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Answer:
    """What a statement gave back.

    Args:
        names: of the columns; None if it has no rows to show.
        kinds: of each column `number`, `boolean` or `text`.
        rows: the values as texts, row by row; None is NULL.
        tag: what was done, such as `INSERT 0 3`.
    """

    names: tuple[str, ...] | None = None
    kinds: tuple[str, ...] = ()
    rows: Sequence[tuple[str | None, ...]] = ()
    tag: str = ""


class ShellError(Exception):
    """A statement failed; the text is for people."""


class Target(Protocol):
    """Runs statements. `ShellError` says what is wrong with one."""

    name: str  # what the prompt shows

    def run(self, statement: str) -> Answer:
        """Run one statement."""

    def subscribe(self, view: str) -> Iterator[Answer]:
        """The contents of a view, then its changes as they come, without end."""

    def copy_in(self, statement: str, data: bytes) -> str:
        """Run COPY ... FROM STDIN; the answer is its tag."""

    def copy_out(self, statement: str) -> bytes:
        """Run COPY ... TO STDOUT."""

    def in_transaction(self) -> str:
        """What the prompt shows of the transaction: nothing, `*` while one is open, `!` when it failed."""

    def close(self) -> None:
        """End the session."""
